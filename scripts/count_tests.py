#!/usr/bin/env python3
"""Adds up what `meson test` ran in a build folder: every case of a GoogleTest or TAP program counts, and a
program without cases as one.

Names what failed and what was skipped, with its reason, on stderr; prints "PASSED FAILED SKIPPED" on stdout. A reason that is not in
tests/allowed_skips.txt counts as a failure.
usage: count_tests.py BUILD_FOLDER [--log NAME] [--times FILE]
  --log NAME    what `meson test --logbase` was given
  --times FILE  the seconds that each program took are added to this file, a line each
"""

import argparse
import json
import os
import pathlib
import re
import sys
import xml.etree.ElementTree

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--log", default="testlog")
parser.add_argument("--times", type=pathlib.Path)
options = parser.parse_args()
logs = options.folder / "meson-logs"
passed = failed = skipped = 0
failed_cases = {}  # program -> cases that failed
cases_of = {}  # program -> cases

ROOT = pathlib.Path(__file__).resolve().parent.parent
NO_DATA = "no data:"


def allowed_reasons():
    has_data = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared").is_dir()
    for line in (ROOT / "tests" / "allowed_skips.txt").read_text().splitlines():
        if line.startswith(NO_DATA) and not has_data:
            yield re.compile(line.removeprefix(NO_DATA).strip())
        elif line.strip() and not line.startswith(("#", NO_DATA)):
            yield re.compile(line.strip())


ALLOWED = list(allowed_reasons())


def skip_counts(name, reason):
    """How many (skipped, failed) this is."""
    allowed = any(pattern.search(reason) for pattern in ALLOWED)
    print(f"  {'skipped' if allowed else 'FAILED '} {name}: {reason}{'' if allowed else ' (skipped, but tests/allowed_skips.txt does not know why)'}",
          file=sys.stderr)
    return (1, 0) if allowed else (0, 1)


def suites(junit):
    """meson copies what a program printed; characters that XML has no place for (control of a terminal) come along."""
    text = junit.read_text(errors="replace") if junit.exists() else "<testsuites/>"
    return xml.etree.ElementTree.fromstring(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text).encode())


for suite in suites(logs / f"{options.log}.junit.xml"):
    # "project.program.Suite" for GoogleTest, "project.program" for TAP; a plain program is a case of the suite "project".
    program = (suite.get("name") or "").split(".", 2)
    if len(program) < 2:
        continue
    program[1] = program[1].split(" / ")[-1]  # with several suites, meson puts theirs in front
    for case in suite.iter("testcase"):
        name = f"{program[1]}: {'.'.join(program[2:] + [case.get('name')])}"
        cases_of[program[1]] = cases_of.get(program[1], 0) + 1
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
            failed_cases[program[1]] = failed_cases.get(program[1], 0) + 1
            print(f"  FAILED  {name}", file=sys.stderr)
        elif skip is not None or case.get("result") == "skipped":
            reason = (skip.get("message") if skip is not None else "") or case.findtext("system-out") or ""
            more_skipped, more_failed = skip_counts(name, " ".join(reason.split()))
            skipped += more_skipped
            failed += more_failed
        else:
            passed += 1

tests = [json.loads(line) for line in (logs / f"{options.log}.json").read_text().splitlines()]
if options.times:
    with open(options.times, "a") as times:
        times.writelines(f"{test['duration']:.0f} {options.folder.name}: {test['name'].split(' / ')[-1]}\n" for test in tests)

for test in tests:
    name = test["name"].split(" / ")[-1]
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    if test["result"] == "SKIP" and not cases_of.get(name):
        said = test.get("stdout", "").strip().splitlines()
        more_skipped, more_failed = skip_counts(name, said[-1].removeprefix("skipped: ") if said else "it did not say why")
        skipped += more_skipped
        failed += more_failed
    elif not good and test["result"] != "SKIP" and not failed_cases.get(name):
        # A program that crashed, hung or never wrote its results.
        failed += 1
        print(f"  FAILED  {name}: {test['result']}", file=sys.stderr)
    elif good and not cases_of.get(name):
        passed += 1

print(passed, failed, skipped)
