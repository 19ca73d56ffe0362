"""What the comparison with llama.cpp needs, made once in a scratch folder: the release's libraries, the driver, and
the same random model as GGUF files and as our folder."""
import os
import pathlib
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from engines import ROOT  # noqa: E402

PACKAGE = "@node-llama-cpp/linux-x64"
VERSION = "3.22.1"
LIBRARIES = ["libllama.v0.5.0.so", "libggml.v0.5.0.so", "libggml-base.so"]
GENERATOR = ROOT / "tools/make_synthetic_k3.py"
# The vocabularies of the generator's shapes.
VOCABULARY = {"tiny": 1024, "bench": 32768}


def say(text):
    print(text, file=sys.stderr, flush=True)


def libraries(work):
    """The folder of the release's shared libraries."""
    folder = work / "package/bins/linux-x64"
    if (folder / LIBRARIES[0]).exists():
        return folder
    archive = work / f"node-llama-cpp-linux-x64-{VERSION}.tgz"
    if not archive.exists():
        say(f"npm pack {PACKAGE}@{VERSION}")
        subprocess.run(["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=work, check=True,
                       stdout=subprocess.DEVNULL)
    with tarfile.open(archive) as tar:
        tar.extractall(work)
    return folder


def driver(work, folder):
    """The driver's binary, compiled when its source is newer."""
    source, binary = ROOT / "bench/peers/llama_peer_driver.cc", work / "llama_peer_driver"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        say("compiling the driver")
        subprocess.run(["g++", "-O2", "-std=c++20", "-Wall", "-Wextra", source, "-o", binary,
                        *(folder / name for name in LIBRARIES), f"-Wl,-rpath,{folder}"], check=True)
    return binary


def backends(work, folder):
    """Folders of processor backends to choose from, by name. The release takes the best that it finds in one; its AMX
    backend fails on some formats and is slower on others, so on a machine with AMX the rest is a second choice."""
    out = {"own choice": folder}
    if " amx_tile" in open("/proc/cpuinfo").read():
        without = work / "backends-without-amx"
        without.mkdir(exist_ok=True)
        for file in folder.glob("libggml-cpu-*.so"):
            link = without / file.name
            if "sapphirerapids" not in file.name and not os.path.lexists(link):
                link.symlink_to(file)
        out["without AMX"] = without
    return out


def gguf(work, config, flavour):
    """CONFIG-FLAVOUR.gguf, flavour bf16, q8_0 or f32."""
    file = work / f"{config}-{flavour}.gguf"
    if not file.exists():
        say(f"making {file}")
        made = work / "making"
        formats = {"bf16": "gguf", "q8_0": "gguf-q8", "f32": "gguf-f32"}
        subprocess.run([sys.executable, GENERATOR, "--config", config, "--out", made, "--formats", formats[flavour]],
                       check=True, stdout=subprocess.DEVNULL)
        os.rename(made / file.name, file)
    return file


def folder_of(work, config, triax):
    """The same weights in the released layout."""
    folder = work / f"{config}-folder"
    if not (folder / "config.json").exists():
        say(f"making {folder}")
        subprocess.run([triax, "synth", "--config", config, "--out", folder, "--force"], check=True,
                       stdout=subprocess.DEVNULL)
    return folder
