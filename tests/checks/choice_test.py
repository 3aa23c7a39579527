#!/usr/bin/env python3
"""The choice of tests that `scripts/test` runs (meson's suites `unit` and `quick`) uses every command, format, reducer and sink;
and the names that it takes."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = None
QUICK = {"weir:unit", "weir:quick"}


def names(list_file, variable):
    """A list of names in a meson.build."""
    text = (ROOT / list_file / "meson.build").read_text()
    return re.findall(r"'(\w+)'", re.search(variable + r" = \[(.*?)\]", text, re.DOTALL).group(1))


# What these name they do not use: help, completion, keys, manual pages.
ONLY_NAMES = {"choice_test.py", "command_line_test.sh", "completion_test.py", "config_schema_test.py", "install_test.py", "terminal_test.py"}


def chosen_tests():
    tests = json.loads(subprocess.run(["meson", "introspect", BUILD, "--tests"], capture_output=True, text=True, check=True).stdout)
    return [test for test in tests if QUICK & set(test["suite"])]


def text_of(tests):
    """The scripts that these tests are; what they import from their folder is not a test."""
    scripts = {part for test in tests for part in test["cmd"] if part.endswith(("_test.py", "_test.sh"))}
    return "\n".join(pathlib.Path(script).read_text() for script in sorted(scripts) if pathlib.Path(script).name not in ONLY_NAMES)


class Choice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tests = chosen_tests()
        cls.whole = text_of(test for test in tests if "weir:part" not in test["suite"])
        cls.parts = [test["name"] for test in tests if "weir:part" in test["suite"]]

    def missing(self, found, pattern):
        self.assertTrue(found)
        return [name for name in found if not re.search(pattern.format(name), self.whole)]

    def test_every_command(self):
        commands = names("app", "weir_commands")
        self.assertEqual(self.missing(commands, r'(weir\(|(WEIR|weir|program), )"{}"'), ["bench"])
        self.assertTrue("self.weir(EXAMPLE" in self.whole)  # that is `weir run` in network_test.py
        self.assertIn("live_bench_part", self.parts)

    def test_every_format(self):
        formats = [name for name in names("lib/data/wire/formats", "formats") if name != "declared"]  # has names of its own
        self.assertEqual(self.missing(formats, r"[\"' ]{}[\"' ]"), [])
        self.assertIn("[[format]]", self.whole)

    def test_every_reducer(self):
        self.assertEqual(self.missing(names("lib/data/config/reducers", "reducers"), r'kind = "{}"'), [])

    def test_every_sink(self):
        self.assertEqual(self.missing(names("lib/data/config/sinks", "sinks"), r'kind = "{}"'), ["cluster"])  # nobody writes that
        self.assertIn("live_cluster_part", self.parts)


class Names(unittest.TestCase):
    def meant(self, *names, status=0):
        done = subprocess.run([sys.executable, ROOT / "scripts" / "test_names.py", BUILD, *names], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.splitlines() if status == 0 else done.stderr

    def test_a_room_and_all_its_programs(self):
        self.assertEqual(self.meant("steer"), ["steer "])
        self.assertEqual(sorted(self.meant("lib/data/port", "port")), ["port ", "port_eal "])

    def test_a_part_of_a_name_that_several_share(self):
        self.assertEqual(sorted(self.meant("recorder")), ["live_recorder ", "replay_recorder "])

    def test_a_file(self):
        self.assertEqual(self.meant(ROOT / "tests" / "live" / "rc_test.py"), ["live_rc "])
        self.assertEqual(self.meant(ROOT / "lib" / "data" / "steer" / "steering.cpp"), ["steer "])

    def test_a_file_of_a_program_by_its_cases(self):
        [line] = self.meant(ROOT / "tests" / "steer" / "steering_test.cpp")
        program, cases = line.split()
        self.assertEqual(program, "steer")
        self.assertIn("Steering.*", cases.split(":"))

    def test_a_name_that_nothing_has(self):
        self.assertIn("did you mean steer", self.meant("stear", status=2))
        if "guest_pci" not in self.meant("--list"):
            self.assertIn("scripts/test --only guest", self.meant("guest_pci", status=2))

    def test_what_has_to_be_built(self):
        self.assertEqual(set(self.meant("--targets", "live_rc")[0].split()), {"app/weir", "tests/live/libweir_frozen_disk.so"})


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
