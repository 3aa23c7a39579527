#!/usr/bin/env python3
"""`weir run` with what cannot work: one clear message that names the port and the reason, status 1 or 2, and nothing left behind.

usage: error_test.py WEIR
"""

import os
import subprocess

import live
from stop_test import config


class ErrorTest(live.Case):
    def fails(self, text, status, *words, options=()):
        """Runs it; the one message must have these words. Nothing may be left in the folder, hidden or not."""
        file = self.folder / "c.toml"
        file.write_text(text)
        for hidden in (False, True):
            sink = ["--out", str(self.folder / "run")] if hidden else []
            done = subprocess.run([live.Weir.program, "run", "--config", str(file), *sink, *map(str, options)], capture_output=True,
                                  text=True, timeout=live.PATIENCE_S, cwd=self.folder)
            self.assertEqual(done.returncode, status, done.stderr)
            message = [line for line in done.stderr.splitlines() if line.startswith("weir: ")]
            self.assertEqual(len(message), 1, done.stderr)
            for word in words:
                self.assertIn(word, message[0])
        left = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_dir())
        self.assertIn(left, ([], ["runs"]), "left behind")

    def test_a_device_that_does_not_exist(self):
        self.fails(config("net_nosuch0"), 1, "'det0'", "net_nosuch0")

    def test_an_interface_that_does_not_exist(self):
        self.fails(config("net_af_packet0,iface=nosuch0"), 1, "'det0'", "nosuch0")

    def test_a_pci_device_that_does_not_exist(self):
        self.fails(config("0000:7f:1f.7"), 1)  # which of the two it lacks, hugepages or the device

    def test_arguments_that_the_driver_does_not_know(self):
        self.fails(config("net_null0,nosuch=1"), 1, "'det0'", "net_null0")

    def test_more_queues_than_the_device_has(self):
        text = config("net_af_packet0,iface=lo,qpairs=2").replace("rx_descriptors = 4096", "queues = 64")
        self.fails(text, 1, "'det0'", "64", "queues")

    def test_the_same_device_twice(self):
        text = config("net_null0").replace("[[stream]]", '[[port]]\nname = "det1"\ndevice = "net_null0"\n[[stream]]', 1)
        self.fails(text, 2, "net_null0", "\"det0\" at line 2")

    def test_the_same_name_twice(self):
        text = config("net_null0").replace("[[stream]]", '[[port]]\nname = "det0"\ndevice = "net_null1"\n[[stream]]', 1)
        self.fails(text, 2, "det0")

    def test_a_simulated_detector_with_an_unknown_key(self):
        self.fails(config("sim,format=jungfrau,colour=red"), 2, "colour", "accepted")

    def test_a_folder_that_cannot_be_written(self):
        file = self.folder / "c.toml"
        file.write_text(config("net_null0"))
        done = subprocess.run([live.Weir.program, "run", "--config", str(file), "--out", "/proc/no/run"], capture_output=True, text=True,
                              timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("/proc/no", done.stderr)

    def test_an_lcore_that_does_not_exist(self):
        self.fails(config("net_null0", lcores="rx = [5000]"), 2, "5000")

    def test_more_memory_than_there_is(self):
        self.fails(config("net_null0", memory="8TiB"), 1, "memory")


class RunNumberTest(live.Case):
    def test_a_run_that_fails_to_start_takes_no_number_for_good(self):
        (self.folder / "bad.toml").write_text(config("net_nosuch0"))
        (self.folder / "good.toml").write_text(config("sim,format=jungfrau,events=2"))
        for name in ("bad", "good", "bad", "good"):
            subprocess.run([live.Weir.program, "run", "--config", f"{name}.toml", "--quiet"], cwd=self.folder, capture_output=True,
                           timeout=live.PATIENCE_S)
        runs = sorted(path.name for path in (self.folder / "runs").iterdir() if path.is_dir())
        self.assertEqual(len(runs), 2)
        self.assertTrue(all(not name.startswith(".") for name in runs), runs)


if __name__ == "__main__":
    live.main()
