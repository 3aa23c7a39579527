#!/usr/bin/env python3
"""scripts/build-release and what it trains on, without building: training works with the programs of today, and a failure in it is
an error.

usage: build_release_test.py BUILD
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPTS = ROOT / "scripts"
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()


def run(script, *arguments):
    done = subprocess.run([SCRIPTS / script, *map(str, arguments)], capture_output=True, text=True, timeout=240)
    return done.returncode, done.stdout, done.stderr


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-release-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def build(self, weir):
        """A build folder with another program in the place of weir."""
        for name, program in (("app/weir", weir), ("bench/pipeline_bench", "/bin/true")):
            (self.folder / name).parent.mkdir()
            (self.folder / name).symlink_to(program)
        return self.folder

    def test_shellcheck_finds_nothing(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("there is no program 'shellcheck'")
        done = subprocess.run(["shellcheck", *(SCRIPTS / name for name in ("build-release", "train", "package"))], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_usage(self):
        for script in ("build-release", "train", "package"):
            for arguments, status in ((["--help"], 0), (["--no-such-option"], 2)):
                with self.subTest(script, arguments=arguments):
                    code, out, errors = run(script, *arguments)
                    self.assertEqual(code, status)
                    self.assertRegex(out + errors, f"^usage: scripts/{script} ")
                    self.assertNotIn("set -", out + errors)
        self.assertEqual(run("train")[0], 2)
        self.assertEqual(run("train", BUILD, BUILD)[0], 2)

    def test_what_does_not_go_together(self):
        if shutil.which("dh") is None:
            self.skipTest("no debhelper")
        for more in (["--prebuilt", BUILD], ["--check-reproducible"]):
            code, _, errors = run("package", "--trained", *more)
            self.assertEqual(code, 1)
            self.assertIn("package: --trained ", errors)

    def test_training_works_with_what_was_built(self):
        code, _, errors = run("train", BUILD, "--quick")
        self.assertEqual((code, errors), (0, ""))

    def test_training_fails_with_a_program_that_fails(self):
        code, _, errors = run("train", self.build("/bin/false"))
        self.assertEqual(code, 1)
        self.assertRegex(errors, "train: this failed: .*/app/weir send ")

    def test_training_fails_with_a_program_that_does_nothing(self):
        code, _, errors = run("train", self.build("/bin/true"))
        self.assertEqual(code, 1)
        self.assertIn("made no capture", errors)

    def test_training_needs_the_programs(self):
        code, _, errors = run("train", self.folder)
        self.assertEqual(code, 1)
        self.assertIn("there is no", errors)


if __name__ == "__main__":
    unittest.main()
