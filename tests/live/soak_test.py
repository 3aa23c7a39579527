#!/usr/bin/env python3
"""scripts/soak: a minute in which every fault comes holds; one in which a file is damaged does not, and says so; Ctrl-C closes it in order,
and when it is killed nothing is left running.

usage: soak_test.py WEIR
"""

import json
import os
import signal
import subprocess
import sys
import unittest

import live
import sandbox

from soaking import faults  # noqa: E402

SOAK = live.ROOT / "scripts" / "soak"
# weir's own unit with a shorter wait and a higher limit, so that all crashes fit into the minute.
UNIT = (("RestartSec=", "RestartSec=500ms"), ("StartLimitBurst=", "StartLimitBurst=50"))
# In front of weir: damages the run that it is asked to read, in the middle of its segments.
DAMAGING = """#!/bin/sh
case "$1 $2" in "inspect "*/soak-*)
    for file in "$2"/events-*.weir; do
        printf x | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") / 2)) conv=notrunc status=none
    done
esac
exec {weir} "$@"
"""


class SoakTest(live.Case):
    def setUp(self):
        super().setUp()
        reason = sandbox.no_sandbox()
        if reason:
            self.skipTest(reason)
        text = (live.ROOT / "systemd" / "weir@.service").read_text().splitlines()
        for key, line in UNIT:
            self.assertEqual(sum(old.startswith(key) for old in text), 1, key)
            text = [line if old.startswith(key) else old for old in text]
        (self.folder / "weir@.service").write_text("\n".join(text) + "\n")

    def soak(self, minutes, name, weir=None, prepare=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)):
        """With Ctrl-C as a terminal has it, however this test itself was started."""
        process = subprocess.Popen([sys.executable, SOAK, "--minutes", str(minutes), "--seed", "3", "--unit", self.folder / "weir@.service",
                                    "--weir", weir or live.Weir.program, "--out", self.folder / name],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, preexec_fn=prepare)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def ended(self, process, status):
        said, _ = process.communicate(timeout=5 * live.PATIENCE_S)  # a minute, and more where the machine is busy
        self.assertEqual(process.returncode, status, said)
        return said

    def result(self, name):
        return json.loads((self.folder / name / "soak.json").read_text())

    def test_a_minute_with_every_fault_and_one_with_a_damaged_file(self):
        damaging = self.folder / "damaging"
        damaging.write_text(DAMAGING.format(weir=live.Weir.program))
        damaging.chmod(0o755)
        whole, damaged = self.soak(0.8, "whole"), self.soak(0.4, "damaged", damaging)
        said = self.ended(damaged, 1)
        self.assertIn("does not verify", said)
        self.assertIn("thing(s) did not hold", said)
        self.assertTrue(list((self.folder / "damaged" / "kept").glob("soak-*/manifest.json")), said)

        said = self.ended(whole, 0)
        result = self.result("whole")
        self.assertEqual(result["problems"], [])
        # A fault whose turn comes when the time is over is not begun.
        held = {fault["fault"] for fault in result["faults"] if fault["held"]}
        self.assertLessEqual(len({fault.words for fault in (*faults.WIRE, *faults.BOX)} - held), result["faults_not_reached"], said)
        self.assertIn("All held", said)
        frames = result["frames"]
        self.assertEqual(frames["left_the_sender"], sum(n for name, n in frames.items() if name.startswith(("lost_", "in_", "while_"))))
        self.assertGreater(result["availability"]["share"], 0.2)
        self.assertLess(result["availability"]["share"], 1)
        self.assertGreater(result["runs"]["events_verified"], 50)
        self.assertGreaterEqual(len(result["availability"]["recoveries_s"]), 3)
        # What crashes left was closed by the next start.
        crashed = [run for run in result["each_run"] if "killed" in run["faults"]]
        self.assertGreaterEqual(len(crashed), 2)
        self.assertTrue(all(run["verified"] and not run["directory"].startswith(".") for run in crashed), crashed)

    def wait_for_data(self, process, name):
        live.wait_for(lambda: process.poll() is not None or self.has_data(name), "run")
        self.assertIsNone(process.poll(), "it has ended")

    def has_data(self, name):
        """Its runs have been looked at a few times; a fault may have ended the first before that, on a busy machine."""
        return sum(file.read_text().count("\n") for file in self.folder.glob(f"{name}/run-*/memory.csv")) > 3

    def others(self):
        """Processes of this test that are still there."""
        found = []
        for line in subprocess.run(["ps", "-eo", "pid=,stat=,args="], capture_output=True, text=True).stdout.splitlines():
            if str(self.folder) in line and line.split()[1][0] != "Z":
                found.append(line)
        return found

    def test_interrupted_it_closes_everything_and_killed_it_leaves_nothing(self):
        # One as a shell starts it in the background, which ignores Ctrl-C and is ended by `kill`.
        ignore = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
        interrupted, background = self.soak(5, "interrupted"), self.soak(5, "background", prepare=ignore)
        killed = self.soak(5, "killed")
        self.wait_for_data(background, "background")
        background.send_signal(signal.SIGTERM)
        self.assertIn("All held, though it was ended early", self.ended(background, 0))
        self.wait_for_data(interrupted, "interrupted")
        interrupted.send_signal(signal.SIGINT)
        said = self.ended(interrupted, 0)
        self.assertIn("All held, though it was ended early", said)
        self.assertTrue(self.result("interrupted")["interrupted"])
        self.assertEqual(os.listdir(self.folder / "interrupted" / "data"), [], "its disk is still mounted")

        self.wait_for_data(killed, "killed")
        self.assertGreater(len(self.others()), 2)
        killed.kill()
        killed.wait()
        live.wait_for(lambda: not self.others(), f"end of {self.others()}")
        self.assertEqual(os.listdir(self.folder / "killed" / "data"), [])


if __name__ == "__main__":
    live.Weir.program = os.path.abspath(sys.argv[1])
    sys.argv[1:2] = []
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else live.SKIPPED if result.skipped else 0)
