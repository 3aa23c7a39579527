#!/usr/bin/env python3
"""Event building over a simulated network: the shapes that have to come out, the same ones again, and what SimGrid makes of it.

The cases that take longest are left to scripts/simulate without arguments.
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
CASES = ["n-to-n", "n-to-n, wrong places", "lockstep", "lockstep, slow node", "push, 1 send, random", "push, 4 sends", "push, 4 sends, slow node",
         "push, in step", "push, in step, wrong places", "push, in step, listed", "push, in step, slow node", "push, by time", "push, by time, slow node",
         "pull, 1 credit", "pull, 4 credits", "pull, 4 credits, slow node", "pull, 4 credits, wrong places", "pull, 16 credits"]
# The other simulator finds the same without the small words that nobody models alike.
NEAR = {"n-to-n": 0.02, "push, 1 send": 0.15, "push, in step": 0.05, "pull, 4 credits": 0.15}


class Simulation(unittest.TestCase):
    def simulate(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.json"
            done = subprocess.run([ROOT / "scripts/simulate", "--json", out, "--limit", "300", *words], text=True, capture_output=True,
                                  env={**os.environ, "WEIR_SIMULATE_BUILD": str(BUILD / "simulate")})
            self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
            return json.loads(out.read_text())

    def test_shapes_of_64_nodes(self):
        made = self.simulate(*CASES)
        self.assertEqual(set(made["results"]), set(CASES))
        self.assertEqual(len(made["checks"]), 15, made["checks"])
        for name, holds in made["checks"].items():
            with self.subTest(name):
                self.assertTrue(holds, made["results"])

    @unittest.skipIf(shutil.which("smpicxx") is None, "there is no smpicxx (Debian's libsimgrid-dev)")
    def test_simgrid_finds_the_same(self):
        flow, simgrid = (self.simulate("--nodes", "16", "--engine", engine, *NEAR)["results"] for engine in ("flow", "simgrid"))
        for name, near in NEAR.items():
            with self.subTest(name):
                self.assertAlmostEqual(flow[name]["gbps_mean"] / simgrid[name]["gbps_mean"], 1, delta=near)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
