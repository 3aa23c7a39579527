#!/usr/bin/env python3
"""Which of meson's tests somebody means, for `scripts/test NAME...`.

A name is that of a test (live_rc), of a room of lib/ (store), of a file below tests/, lib/ or app/, or a part that all names of a kind share:
"rc" is live_rc, "responder" live_responder and replay_responder. Prints a line for each test: its name and, where only one file of a program
is meant, the filter for its cases. Exit status 2: nothing has such a name.
usage: test_names.py BUILD_FOLDER NAME...
       test_names.py BUILD_FOLDER --list            all names
       test_names.py BUILD_FOLDER --targets TEST... what has to be built for these
"""

import difflib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ("live", "replay", "guest")


def introspect(build, what):
    return json.loads(subprocess.run(["meson", "introspect", build, what], capture_output=True, text=True, check=True).stdout)


def cases_of(source):
    """A filter for the cases of one source of a GoogleTest program, those with parameters and types among them."""
    suites = set(re.findall(r"^(?:TYPED_)?(?:TEST|RC_GTEST_[A-Z_]+)(?:_[FP])?\(\s*(\w+)", source.read_text(), re.MULTILINE))
    return ":".join(f"{form}" for suite in sorted(suites) for form in (f"{suite}.*", f"*/{suite}.*", f"{suite}/*.*"))


class Tests:
    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.tests = introspect(build, "--tests")
        self.targets = {target["filename"][0]: target for target in introspect(build, "--targets") if target["filename"]}
        self.names = [test["name"] for test in self.tests]

    def sources(self, test):
        """Of the program, or the script that is run."""
        target = self.targets.get(test["cmd"][0])
        named = list(test["cmd"])
        for part in target["target_sources"] if target else []:
            named += part["sources"]
            for generated in map(pathlib.Path, part["generated_sources"]):
                if re.search(r"-unity\d+\.cpp$", generated.name):  # the program in one piece, which includes its sources
                    named += re.findall(r"^#include\s*<(.*)>", generated.read_text(), re.MULTILINE)
        return {pathlib.Path(name).resolve() for name in named if name.startswith("/")}

    def of_file(self, path):
        """[(test, filter)] of a file in tests/; of one in lib/ or app/, the tests of its room."""
        place = path.relative_to(ROOT).parts
        if place[0] == "lib":
            return self.of_name(place[2])
        if place[0] == "app":
            return self.of_name("app")
        found = [test["name"] for test in self.tests if path in self.sources(test)]
        is_program = path.suffix == ".cpp"
        return [(name, cases_of(path) if is_program else "") for name in found]

    def of_name(self, name):
        exact = [test for test in self.names if test == name or re.fullmatch(re.escape(name) + "_eal", test)]
        return [(test, "") for test in exact or [test for test in self.names if test in (f"{kind}_{name}" for kind in KINDS)]]

    def built(self, names):
        """What has to be built for these, as ninja calls it."""
        needed = {target for test in self.tests if test["name"] in names for target in test["depends"]}
        return sorted(str(pathlib.Path(file).relative_to(self.build)) for file, target in self.targets.items() if target["id"] in needed)

    def meant(self, name):
        path = (pathlib.Path.cwd() / name).resolve()
        if path.is_file() and path.is_relative_to(ROOT):
            return self.of_file(path)
        return self.of_name(re.sub(r"^(lib/(data/|operate/|tools/)?|tests/)", "", name.rstrip("/")))

    def why_not(self, name):
        if (ROOT / "tests" / "guest" / f"{name.removeprefix('guest_')}_test.py").exists():
            return f"{name} runs in a guest: scripts/test --only guest"
        close = difflib.get_close_matches(name, self.names, 3)
        return f"nothing is tested under the name {name}" + (f"; did you mean {' or '.join(close)}?" if close else "; scripts/test --list has all names")


def main():
    build, *names = sys.argv[1:]
    tests = Tests(build)
    if names == ["--list"]:
        print("\n".join(sorted(tests.names)))
        return 0
    if names[0] == "--targets":
        print(" ".join(tests.built(names[1:])))
        return 0
    chosen = []
    for name in names:
        meant = tests.meant(name)
        if not meant:
            print(f"scripts/test: {tests.why_not(name)}", file=sys.stderr)
            return 2
        chosen += meant
    for test, cases in dict.fromkeys(chosen):
        print(test, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
