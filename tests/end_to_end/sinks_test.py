#!/usr/bin/env python3
"""Several sinks in one run: every one has every event, and one that fails ends the run or is done without."""
import json
import os
import subprocess
import unittest

from support import TIMEOUT_S, WEIR, Case, config, main, mounts_work, stream, weir

EVENTS = 40


class Sinks(Case):
    def setUp(self):
        super().setUp()
        self.capture, _ = self.send("c.pcap", "--format", "ejfat", "--sources", "1", "--bytes", "400000", "--bytes-min", "400000",
                                    "--events", str(EVENTS))
        self.second = self.folder / "second"

    def text(self, *keys):
        """Two sinks; `keys` are lines for the second."""
        sinks = 'kind = "events"\npath = "unused"\n'
        sinks += "\n".join(["[[sink]]", 'kind = "events"', f'path = "{self.second}"', *keys])
        return config(stream(format="ejfat", sources=1), sources=1, sink=sinks)

    def events_of(self, run):
        found = json.loads(weir("inspect", run, "--json", "--digest", "sha256", trap=False).stdout)
        self.assertIs(found["verified"], True)
        return {(e["epoch"], e["id"]): e["sha256"] for e in found["events"]}

    def test_each_has_every_event(self):
        result = self.replay(self.capture, self.text())
        events = self.events_of(self.second)
        self.assertEqual(len(events), EVENTS)
        self.assertEqual(events, result.digests)
        sinks = result.report["sinks"]
        self.assertEqual([sink["path"] for sink in sinks], [str(result.run), str(self.second)])
        for sink in sinks:
            self.assertEqual((sink["written"], sink["synced"], sink["lost"]), (EVENTS, EVENTS, 0))
        self.assertEqual(result.report["path"], str(result.run))

    def test_one_place_for_two_is_refused(self):
        settings = self.path("same.toml", self.text().replace(str(self.second), str(self.folder / "same")))
        done = weir("replay", self.capture, "--config", settings, "--out", self.folder / "same", status=2)
        self.assertIn("sink.path: found", done.stderr)
        self.assertIn("another sink of this run", done.stderr)
        self.assertEqual([], [path for path in self.folder.iterdir() if path.name.startswith(".same")])

    def full(self, *keys, status):
        """The second sink on a disk of 4 MiB, in a mount namespace of its own that ends with the program."""
        if not mounts_work():
            raise unittest.SkipTest("file systems cannot be mounted here")
        disk = self.folder / "disk"
        disk.mkdir()
        self.second = disk / "run"
        settings = self.path("full.toml", self.text(*keys))
        report = self.folder / "full.json"
        script = 'mount -t tmpfs -o size=4m weir-full "$1" && shift && "$@"; exit $?'
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, str(disk), str(disk), WEIR, "replay", self.capture, "--config", settings,
                               "--out", self.folder / "first", "--report", report], capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(report.read_text()), done.stdout + done.stderr

    def test_a_full_disk_ends_the_run_and_the_account_says_what_is_in_both(self):
        report, said = self.full(status=1)
        self.assertIs(report["balanced"], True)
        first, second = report["sinks"]
        self.assertIn("the disk is full", second["error"])
        self.assertIn("the disk is full", report["error"])
        self.assertGreater(second["written"], 0)
        self.assertGreater(second["lost"], 0)
        self.assertEqual(report["events"]["written"], second["written"])
        self.assertEqual(report["events"]["dropped"]["write_error"], second["lost"])
        self.assertEqual(first["lost"], 0)
        self.assertEqual(len(self.events_of(self.folder / "first")), first["written"])

    def test_a_run_can_go_on_without_it(self):
        report, said = self.full('on_error = "continue"', status=0)
        self.assertIs(report["balanced"], True)
        first, second = report["sinks"]
        self.assertEqual((report["events"]["written"], first["written"]), (EVENTS, EVENTS))
        self.assertEqual(second["written"] + second["lost"], EVENTS)
        self.assertGreater(second["lost"], 0)
        self.assertTrue(any("goes on without it" in warning or "without the sink" in warning for warning in report["warnings"]), report["warnings"])
        self.assertEqual(len(self.events_of(self.folder / "first")), EVENTS)



if __name__ == "__main__":
    main()
