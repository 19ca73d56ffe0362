#!/usr/bin/env python3
"""Module edges: every #include "triax/..." in src/ and every DEPS of a CMakeLists.txt must be allowed
by docs/modules.txt, which must name every module and be free of cycles. A unit test may include
tests/support, and whatever its module reaches through allowed edges (a model test that switches the
instruction set needs the kernel table). Run from anywhere."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "triax"
OPEN_TO_ALL = "core"


def read_edges():
    edges = {OPEN_TO_ALL: set()}
    for number, line in enumerate((ROOT / "docs/modules.txt").read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        if "->" not in line:
            sys.exit(f"docs/modules.txt:{number}: expected MODULE -> MODULE..., found: {line}")
        name, targets = line.split("->")
        edges[name.strip()] = set(targets.split())
    return edges


def find_cycle(edges):
    """One cycle as a list of modules, or None."""
    done, path = set(), []

    def visit(module):
        if module in path:
            return path[path.index(module):] + [module]
        if module in done:
            return None
        path.append(module)
        for target in sorted(edges.get(module, ())):
            cycle = visit(target)
            if cycle:
                return cycle
        path.pop()
        done.add(module)
        return None

    for module in edges:
        cycle = visit(module)
        if cycle:
            return cycle
    return None


def reachable(edges, module):
    seen, todo = set(), [module]
    while todo:
        for target in edges.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def main():
    edges = read_edges()
    faults = []
    for module, targets in edges.items():
        for target in targets - edges.keys():
            faults.append(f"docs/modules.txt: {module} -> {target}: no such module is listed")
    cycle = find_cycle(edges)
    if cycle:
        faults.append("docs/modules.txt: cycle " + " -> ".join(cycle))

    used = {}  # module -> modules that its sources include
    include = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
    for file in sorted(SRC.rglob("*")):
        if file.suffix not in (".h", ".cc", ".inl", ".inc") or not file.is_file():
            continue
        module = file.relative_to(SRC).parts[0]
        where = file.relative_to(ROOT)
        if module not in edges:
            faults.append(f"{where}: module {module} is not listed in docs/modules.txt")
            continue
        is_test = re.search(r"_(test|fuzz|bench|testing)\.(cc|h)$", file.name) is not None
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = include.match(line)
            if not match:
                continue
            parts = match.group(1).split("/")
            if parts[0] == "support" and is_test:
                continue  # tests/support
            if len(parts) == 1 and parts[0].endswith((".inl", ".inc")):
                continue  # a piece of the file itself, from the same folder
            if parts[0] != "triax" or len(parts) < 3:
                faults.append(f'{where}:{number}: "{match.group(1)}": write the path from src/, '
                              '"triax/MODULE/FILE.h"')
                continue
            target = parts[1]
            if target in (module, OPEN_TO_ALL) or (is_test and target in reachable(edges, module)):
                continue
            used.setdefault(module, {}).setdefault(target, f"{where}:{number}")
            if target not in edges[module]:
                faults.append(f"{where}:{number}: {module} -> {target} is not an allowed edge; a new "
                              "one is a decision: change docs/modules.txt and say why in docs/adr/")

    for lists in sorted(SRC.glob("*/CMakeLists.txt")):
        module, where = lists.parent.name, lists.relative_to(ROOT)
        match = re.search(r"triax_module\(\s*(\w+)([^)]*)\)", lists.read_text())
        if not match:
            continue
        words = match.group(2).split()
        deps = set()
        if "DEPS" in words:
            for word in words[words.index("DEPS") + 1:]:
                if word.isupper():
                    break
                deps.add(word)
        if match.group(1) != module:
            faults.append(f"{where}: triax_module({match.group(1)}) in folder {module}")
        for target in sorted(deps - {OPEN_TO_ALL} - edges.get(module, set())):
            faults.append(f"{where}: DEPS {target}: not an edge of docs/modules.txt")
        for target, first in sorted(used.get(module, {}).items()):
            if target not in deps:
                faults.append(f"{where}: DEPS lacks {target}, which {first} includes")

    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


main()
