#!/usr/bin/env python3
"""Runs that go past the page cache, with io_uring and several files: the same events, the same account, also on a disk that fills up."""
import json
import os
import subprocess
import unittest

from support import mounts_work
from support import TIMEOUT_S, WEIR, Case, config, main, stream, weir

EVENTS = 60


class Direct(Case):
    def setUp(self):
        super().setUp()
        self.capture, _ = self.send("c.pcap", "--format", "ejfat", "--sources", "1", "--bytes", "700000", "--bytes-min", "1000",
                                    "--events", str(EVENTS))

    def text(self, *keys):
        sink = "\n".join(['kind = "events"', 'path = "unused"', *keys])
        return config(stream(format="ejfat", sources=1), sources=1, sink=sink)

    def test_every_way_of_writing_keeps_the_same_events(self):
        plain = self.replay(self.capture, self.text()).digests
        self.assertEqual(len(plain), EVENTS)
        for keys in (('direct = "auto"',), ('direct = "auto"', 'uring = "off"'), ('direct = "auto"', "files = 3", 'segment_bytes = "2MiB"'),
                     ("files = 2", 'uring = "auto"'), ('direct = "auto"', 'preallocate = 0', 'sync = "end"')):
            with self.subTest(keys=keys):
                result = self.replay(self.capture, self.text(*keys))
                self.assertEqual(result.digests, plain)
                sink = result.report["sinks"][0]
                self.assertEqual((sink["written"], sink["lost"]), (EVENTS, 0))
                self.assertIn("direct", sink)
                manifest = json.loads((result.run / "manifest.json").read_text())
                self.assertEqual(manifest["writing"]["files"], 3 if "files = 3" in keys else 2 if "files = 2" in keys else 1)
                if 'direct = "auto"' in keys and sink["direct"]:
                    self.assertIn("O_DIRECT", result.output)

    def test_a_small_disk_fills_up_and_the_account_says_what_is_there(self):
        if not mounts_work():
            raise unittest.SkipTest("file systems cannot be mounted here")
        for keys in (('direct = "auto"',), ('direct = "auto"', "files = 2"), ("files = 2",)):
            with self.subTest(keys=keys):
                disk = self.folder / f"disk{len(keys)}{keys[0][0]}"
                disk.mkdir()
                settings = self.path("full.toml", self.text(*keys))
                report, listing = self.folder / "full.json", self.folder / "listing.json"
                # The disk goes with the mount namespace, so what is on it is looked at inside.
                script = ('mount -t tmpfs -o size=8m weir-direct "$1" && "$2" replay "$3" --config "$4" --out "$1/run" --report "$5"; '
                          'rc=$?; "$2" inspect "$1"/*run* "$1"/.*run* --json --digest sha256 > "$6" 2>/dev/null || '
                          '"$2" inspect "$(ls -dA "$1"/* "$1"/.[!.]* 2>/dev/null | grep run | head -n 1)" --json > "$6"; exit $rc')
                done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", disk, WEIR, self.capture, settings, report, listing],
                                      capture_output=True, text=True, timeout=TIMEOUT_S)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                account = json.loads(report.read_text())
                self.assertIs(account["balanced"], True)
                self.assertIn("the disk is full", account["error"])
                written, lost = account["events"]["written"], account["events"]["dropped"]["write_error"]
                self.assertGreater(written, 0)
                self.assertGreater(lost, 0)
                found = json.loads(listing.read_text())
                self.assertEqual(len(found["events"]), written)

    def test_what_cannot_be_had_is_an_error_when_it_is_asked_for(self):
        for keys, said in ((("preallocate = 1000",), "preallocate"), (("files = 0",), "files"), (('sync = "sometimes"',), "sync")):
            with self.subTest(keys=keys):
                done = weir("replay", self.capture, "--config", self.path("bad.toml", self.text(*keys)), "--out", self.folder / "bad", status=2)
                self.assertIn(f"sink.{said}", done.stderr)


if __name__ == "__main__":
    main()
