#!/usr/bin/env python3
"""The image of the guest (scripts/guest) has every library that weir loads: the list of its packages comes from the program.

usage: guest_packages_test.py WEIR
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WEIR = sys.argv.pop(1)


def files_of(packages):
    """What dpkg says these packages installed here, whether below /lib or /usr/lib."""
    listed = subprocess.run(["dpkg-query", "-L", *packages], capture_output=True, text=True).stdout.split("\n")
    return {path.removeprefix("/usr") for path in listed}


class Packages(unittest.TestCase):
    def setUp(self):
        if not shutil.which("dpkg-query"):
            self.skipTest("no Debian packages here")

    def packages(self, *programs):
        done = subprocess.run([ROOT / "scripts" / "guest", "packages", *programs], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_every_library_that_weir_loads_is_in_one_of_them(self):
        loaded = re.findall(r"=> (/\S+)", subprocess.run(["ldd", WEIR], check=True, capture_output=True, text=True).stdout)
        self.assertGreater(len(loaded), 20)
        there = files_of(self.packages(WEIR))
        self.assertEqual([path for path in loaded if path.removeprefix("/usr") not in there], [])

    def test_a_program_adds_only_what_it_loads(self):
        self.assertNotIn("libhwy1", self.packages())
        self.assertNotIn("libhwy1", self.packages("/bin/true"))
        self.assertIn("libc6", self.packages("/bin/true"))

    def test_a_program_without_its_libraries_is_named(self):
        done = subprocess.run([ROOT / "scripts" / "guest", "packages", "/etc/hostname"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("/etc/hostname", done.stderr)


if __name__ == "__main__":
    unittest.main()
