#!/usr/bin/env python3
"""Rules of the tree that need no compiler. One argument names the rule: sizes, paths, links, leftovers,
packages, page."""
import hashlib
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".h", ".cc", ".inl", ".inc", ".py", ".sh", ".mjs", ".cmake", ".ts", ".tsx",
        ".css"}
MAX_LINES = 800
MAX_BYTES = 4 << 20
# Written by a program from data; their length says nothing about their reader.
GENERATED = re.compile(r"\b[Gg]enerated by\b")


def files():
    """Name and path of every file that belongs to the tree (.gitignore's folders do not)."""
    for folder, folders, names in os.walk(ROOT):
        relative = pathlib.Path(folder).relative_to(ROOT)
        outside = {".git", ".cache", "node_modules"} | ({"build"} if relative.parts == () else set())
        folders[:] = sorted(f for f in folders if f not in outside)
        if relative.parts[:1] == ("models",):
            names = [n for n in names if n == "README.md"]
        for name in sorted(names):
            path = pathlib.Path(folder) / name
            if path.is_file() and path.suffix != ".o" and name != ".git":
                yield str(path.relative_to(ROOT)), path


def text_of(path):
    data = path.read_bytes()
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def sizes():
    for name, path in files():
        if path.stat().st_size > MAX_BYTES:
            yield f"{name}: {path.stat().st_size} bytes, over {MAX_BYTES}"
        if path.suffix in CODE:
            lines = path.read_text().splitlines()
            if len(lines) > MAX_LINES and not GENERATED.search("\n".join(lines[:5])):
                yield f"{name}: {len(lines)} lines, over {MAX_LINES}: split it by what it does"


def paths():
    # Split here so that this file does not match itself.
    machine = re.compile(r"(?<![\w.$}/-])/(?:ho" r"me|ro" r"ot|wo" r"rk)/\w|\.\./sha" r"red\b")
    for name, path in files():
        text = text_of(path)
        if text is None or name == "LICENSE":
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if machine.search(line):
                yield f"{name}:{number}: a path of one machine or outside the clone: {line.strip()[:100]}"


def links():
    pattern = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
    for name, path in files():
        if path.suffix != ".md":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for target in pattern.findall(line):
                if re.match(r"[a-z]+:|#", target):
                    continue
                if not (path.parent / target.split("#")[0]).exists():
                    yield f"{name}:{number}: link to {target}: no such file"
    # Files that the pages name in backquotes.
    named = re.compile(r"`((?:src|tests|tools|docs|cmake|bench)/[\w./-]+\.\w+)`")
    for name, path in files():
        if path.suffix == ".md" and (name.startswith("docs/") or "/" not in name):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for target in named.findall(line):
                    if not (ROOT / target).exists():
                        yield f"{name}:{number}: names {target}: no such file"


def leftovers():
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
    for name, path in files():
        if path.suffix not in CODE | {".md", ".txt"} or name.startswith("tests/golden/"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if marks.search(line):
                yield f"{name}:{number}: unfinished: {line.strip()[:100]}"


def packages():
    """Every external library that CMake asks for has its package in packages.txt."""
    package_of = {"fmt": "libfmt-dev", "nlohmann_json": "nlohmann-json3-dev",
                  "simdjson": "libsimdjson-dev", "CLI11": "libcli11-dev", "OpenSSL": "libssl-dev",
                  "GTest": "libgtest-dev", "benchmark": "libbenchmark-dev", "dnnl": "libdnnl-dev",
                  "rapidcheck": "librapidcheck-dev", "Threads": "g++", "Python3": "python3",
                  "LibEdit": "libedit-dev", "Boost": "libboost1.81-dev",
                  "tomlplusplus": "libtomlplusplus-dev"}
    listed = {line.strip() for line in (ROOT / "packages.txt").read_text().splitlines()
              if line.strip() and not line.startswith("#")}
    for name, path in files():
        if path.name != "CMakeLists.txt" and path.suffix != ".cmake":
            continue
        for library in re.findall(r"find_package\((\w+)", path.read_text()):
            package = package_of.get(library)
            if package is None:
                yield f"{name}: find_package({library}): name its Debian package in {__file__}"
            elif package not in listed:
                yield f"{name}: find_package({library}): {package} is not in packages.txt"


def page():
    """The committed chat page was built from the sources in web/ (web/vite.config.mjs writes their hash)."""
    digest = hashlib.sha256()
    for name, path in sorted((str(p.relative_to(ROOT / "web").as_posix()), p) for p in (ROOT / "web").rglob("*")
                             if p.is_file() and "node_modules" not in p.relative_to(ROOT).parts):
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    built = "src/triax/server/page/index.html"
    if f"sources {digest.hexdigest()} " not in (ROOT / built).read_text():
        yield f"{built}: is not built from web/ as it is; run `npm ci && npm run build` there"


RULES = {rule.__name__: rule for rule in (sizes, paths, links, leftovers, packages, page)}
if len(sys.argv) != 2 or sys.argv[1] not in RULES:
    sys.exit(f"usage: check_tree.py {'|'.join(RULES)}")
faults = list(RULES[sys.argv[1]]())
print("\n".join(faults), end="\n" if faults else "")
sys.exit(1 if faults else 0)
