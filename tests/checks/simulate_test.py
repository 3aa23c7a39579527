#!/usr/bin/env python3
"""Event building over a simulated network of 64 nodes: the shapes that have to come out, and the same ones again.

The cases that take minutes are left to scripts/simulate without arguments.
usage: simulate_test.py BUILD
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
CASES = ["n-to-n", "n-to-n, wrong places", "lockstep", "lockstep, slow node", "push, 1 send, random", "push, in step",
         "push, in step, wrong places", "push, in step, listed", "pull, 1 credit", "pull, 4 credits"]


@unittest.skipIf(shutil.which("smpicxx") is None, "there is no smpicxx (Debian's libsimgrid-dev)")
class Simulation(unittest.TestCase):
    def test_shapes_of_64_nodes(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.json"
            done = subprocess.run([ROOT / "scripts/simulate", "--json", out, "--limit", "300", *CASES], text=True, capture_output=True,
                                  env={**os.environ, "WEIR_SIMULATE_BUILD": str(BUILD / "simulate")})
            self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
            made = json.loads(out.read_text())
        self.assertEqual(set(made["results"]), set(CASES))
        self.assertEqual(len(made["checks"]), 8, made["checks"])
        for name, holds in made["checks"].items():
            with self.subTest(name):
                self.assertTrue(holds, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
