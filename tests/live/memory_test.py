#!/usr/bin/env python3
"""The memory of a live run: refused before anything is taken if the machine has not got it, resident and locked before packets come.

usage: memory_test.py WEIR
"""

import json
import pathlib
import re
import subprocess

import live

CONFIG = """
[[port]]
name = "det0"
device = "net_null0"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = 19522
format = "ejfat"
[events]
sources = 1
memory = "%s"
[[sink]]
kind = "null"
"""


def status_kib(process, key):
    return int(re.search(rf"(?m)^{key}:\s+(\d+) kB", pathlib.Path(f"/proc/{process}/status").read_text())[1])


class MemoryTest(live.Case):
    def test_what_the_machine_does_not_have_is_refused(self):
        run = self.weir(CONFIG % "16TiB", "--duration", 5)
        run.end(status=1)
        for words in ("the run needs", "are free of", "would fit", "packet buffers and rings"):
            self.assertIn(words, run.errors)
        self.assertEqual(len(run.lines), 1, run.errors)
        fits = re.search(r'memory = "(\d+)MiB"', run.errors)[1]
        shown = subprocess.run([live.Weir.program, "run", "--print-config", "--config", self.written(CONFIG % f"{fits}MiB")],
                               capture_output=True, text=True, check=True)
        self.assertIn("# memory: ", shown.stdout)

    def written(self, text):
        file = self.folder / "other.toml"
        file.write_text(text)
        return file

    def test_it_is_there_before_packets_come(self):
        run = self.weir(CONFIG % "64MiB", "--duration", live.PATIENCE_S)
        run.wait_running()
        planned = re.search(r"(?m)^memory: (\d+) MiB: packet buffers and rings (\d+) MiB", "\n".join(run.lines))
        self.assertTrue(planned, run.lines)
        resident = status_kib(run.process.pid, "VmRSS") / 1024
        # Of DPDK's part, what EAL keeps for itself and spare is not touched.
        self.assertGreater(resident, int(planned[1]) - 64)
        if live.is_real_root():
            self.assertGreater(status_kib(run.process.pid, "VmLck") / 1024, int(planned[1]) - 64)
            self.assertNotIn("not locked", "\n".join(run.lines))
        run.abort()

    def test_memory_that_may_not_be_locked_is_said_once(self):
        if not live.is_real_root():
            self.skipTest("needs root, to do without")
        file = self.written(CONFIG % "16MiB")
        done = subprocess.run(["prlimit", "--memlock=65536:65536", "setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock",
                               live.Weir.program, "run", "--config", file, "--duration", "1", "--report", self.folder / "r.json"],
                              capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.stderr.count("memory is not locked"), 1, done.stderr)
        self.assertIn("RLIMIT_MEMLOCK is 64 KiB", done.stderr)
        self.assertTrue(json.loads((self.folder / "r.json").read_text())["balanced"])


if __name__ == "__main__":
    live.main()
