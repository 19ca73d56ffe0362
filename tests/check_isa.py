#!/usr/bin/env python3
"""Holds a build to its instruction sets: check_isa.py BUILD_DIR [--objdump PROGRAM]

1. An object of an isa folder (the kernels', the machine's limits) exports its getter and nothing else,
   weak symbols included: the linker can never take one set's copy of a shared function for another's.
2. It holds no instruction above its own set.
3. No other object of src/ holds an instruction above x86-64-v2.

For release builds (a sanitizer adds symbols of its own). Prints "N passed, N failed"; exit code 1 when
something failed, 2 for wrong use.
"""
import argparse
import pathlib
import re
import subprocess
import sys

SCALAR, AVX2, AVX512, AVX512BF16, AMX = range(5)
NAMES = ["x86-64-v2", "AVX2 and FMA", "AVX-512 F, BW, DQ, VL", "AVX-512 BF16", "AMX tiles and BF16"]
GETTERS = {"triax_kernels": "table_", "triax_machine": "limits_", "triax_ops": "training_"}
SETS = {"scalar": SCALAR, "avx2": AVX2, "avx512": AVX512, "avx512bf16": AVX512BF16, "amx": AMX}

LINE = re.compile(r"^\s*[0-9a-f]+:\t(?:[{}\w]+ )*?([a-z]\w*)\s*(.*)$")
# The registers and masks that only EVEX encodes.
EVEX = re.compile(r"%zmm|%k[0-7]\b|%[xy]mm(1[6-9]|2\d|3[01])\b|\{1to")
TILES = re.compile(r"^(tdpbf16ps|tile(loadd|loaddt1|stored|zero|release)|ldtilecfg)$")
# Instructions of the later sets of AVX-512 (and of AMX), which no table may use.
LATER = re.compile(
    r"^(vpdp|vpopcnt[bwdq]|vpshld|vpshrd|vpcompress[bw]|vpexpand[bw]|vperm[it]?2?b$|vpmultishift|"
    r"vpmadd52|vgf2p8|vaes|vpclmul|vpconflict|vplzcnt|vpbroadcastm|vexp2|vrcp28|vrsqrt28|"
    r"tdp|tile|ldtilecfg|sttilecfg|v\w+(sh|ph)$)")
BF16 = re.compile(r"^(vdpbf16ps|vcvtne2?ps2?bf16\w*|vcvtneps2bf16\w*)$")
# Above x86-64-v2 without a vector register that would tell. Not tzcnt: compilers write it as `rep bsf`,
# which older processors run as bsf, where both give the same.
SCALAR_LATER = re.compile(
    r"^(andn|bextr|blsi|blsmsk|blsr|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|movbe|"
    r"adcx|adox)[lq]?$")


def level_of(mnemonic, operands):
    """The set that an instruction needs; None for one that no table may use."""
    if BF16.match(mnemonic):
        return AVX512BF16
    if TILES.match(mnemonic):
        return AMX
    if LATER.match(mnemonic):
        return None
    if EVEX.search(operands) or re.match(r"^k(mov|or|and|xor|not|test|shift|unpck|add|xnor)", mnemonic):
        return AVX512
    if mnemonic.startswith("v") and mnemonic not in ("verr", "verw"):
        return AVX2
    if SCALAR_LATER.match(mnemonic):
        return None
    return SCALAR


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def instruction_faults(objdump, path, allowed):
    faults = []
    function = "?"
    for line in run([objdump, "-d", "--no-show-raw-insn", str(path)]).splitlines():
        if line.endswith(">:"):
            function = line.split("<", 1)[1][:-2]
            continue
        match = LINE.match(line)
        if not match:
            continue
        level = level_of(match[1], match[2])
        if level is None or level > allowed:
            needs = "an unlisted set" if level is None else NAMES[level]
            faults.append(f"{function}: `{match[1]} {match[2]}` needs {needs}")
    return faults


def library_of(path):
    """triax_kernels, ... of an object in an isa folder; None for any other object."""
    if path.parent.name != "isa":
        return None
    return next((part[:-4] for part in path.parts if part.endswith(".dir")), None)


def symbol_faults(path, name):
    function = GETTERS[library_of(path)] + name
    getter = f"_ZN5triax{len(function)}{function}Ev"
    exported = []
    for line in run(["nm", "--defined-only", "--extern-only", str(path)]).splitlines():
        symbol = line.split()[-1]
        if symbol != getter and not symbol.startswith("DW.ref."):
            exported.append(f"exports {symbol}")
        if symbol == getter:
            exported.append(None)
    if None not in exported:
        return exported + [f"{getter} is missing"]
    return [e for e in exported if e]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--objdump", default="objdump")
    options = parser.parse_args()
    objects = sorted((options.build / "src" / "triax").rglob("*.cc.o"))
    sets = {o: o.name[:-5] for o in objects if library_of(o) in GETTERS}
    for library in GETTERS:
        found = sorted(name for o, name in sets.items() if library_of(o) == library)
        if found != sorted(SETS):
            print(f"{options.build}: {library} has objects {found}, expected {sorted(SETS)}; build it first",
                  file=sys.stderr)
            return 2
    passed = failed = 0
    for path in objects:
        checks = []
        if path in sets:
            checks.append(("symbols", symbol_faults(path, sets[path])))
            allowed = SETS[sets[path]]
        else:
            allowed = SCALAR
        checks.append((f"instructions within {NAMES[allowed]}",
                       instruction_faults(options.objdump, path, allowed)))
        for what, faults in checks:
            if faults:
                failed += 1
                print(f"FAILED {path}: {what}: {len(faults)} faults, such as {faults[0]}")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
