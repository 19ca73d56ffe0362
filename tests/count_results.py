#!/usr/bin/env python3
"""count_results.py JUNIT_XML GTEST_XML_DIR: prints "passed failed skipped" of one ctest run, then the
names of what failed. GoogleTest cases are counted one by one; a ctest entry without GoogleTest cases
counts as one; an entry that failed although none of its cases did (a crash, a timeout, a sanitizer's
report at exit) counts as one failure more."""
import pathlib
import sys
import xml.etree.ElementTree as xml

junit, folder = sys.argv[1], pathlib.Path(sys.argv[2])
passed = failed = skipped = 0
names = []

cases_of = {}  # program -> (passed, [failed names], skipped)
for file in sorted(folder.glob("*.xml")):
    try:
        suites = xml.parse(file).getroot()
    except xml.ParseError:
        continue  # cut off by a crash: ctest's own entry counts it
    good, bad, skip = 0, [], 0
    for case in suites.iter("testcase"):
        if case.get("status") == "notrun":
            continue
        if case.find("failure") is not None:
            bad.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.get("result") == "skipped" or case.find("skipped") is not None:
            skip += 1
        else:
            good += 1
    cases_of[file.stem] = (good, bad, skip)

for entry in xml.parse(junit).getroot().iter("testcase"):
    name, status = entry.get("name"), entry.get("status")
    good, bad, skip = cases_of.pop(f"triax_{name}_test", (0, [], 0))
    passed, failed, skipped = passed + good, failed + len(bad), skipped + skip
    names += [f"{name}: {case}" for case in bad]
    if status == "run":
        passed += 1 if good + len(bad) + skip == 0 else 0
    elif status in ("disabled", "notrun") and entry.find("failure") is None and status == "disabled":
        skipped += 1
    elif not bad:
        failed += 1
        names.append(f"{name}: the program failed (crash, timeout, sanitizer or not built)")
for program, (good, bad, skip) in cases_of.items():  # several runs of one program
    passed, failed, skipped = passed + good, failed + len(bad), skipped + skip
    names += [f"{program}: {case}" for case in bad]

print(passed, failed, skipped)
for name in names:
    print(name)
