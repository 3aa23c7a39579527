#!/usr/bin/env python3
"""What the program is given to write to may fail: standard error that nobody reads or that is full, descriptors that are closed, a
file that may not grow, no memory. A run goes on without its words; a command that cannot finish says so and leaves nothing behind."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

from packets import EJFAT_PORT, ejfat, pcap_bytes, stamped, udp
from support import TRAP, TIMEOUT_S, WEIR, Case, config, main, stream, weir

EVENTS = 40
GOOD = config(stream(format="ejfat", sources=1), sources=1)


class Descriptors(Case):
    def setUp(self):
        super().setUp()
        frames = [udp(ejfat(n, os.urandom(4000), total=4000), EJFAT_PORT) for n in range(1, EVENTS + 1)]
        self.capture = self.path("c.pcap", pcap_bytes(stamped(frames)))
        self.settings = self.path("good.toml", GOOD)

    def replay(self, **options):
        """A replay with progress, so that there is something to say while it runs."""
        return subprocess.run([WEIR, "replay", self.capture, "--config", self.settings, "--out", self.path("run"), "--report",
                               self.path("r.json"), "--progress=line", "--pace", "x0.0005"], timeout=TIMEOUT_S, **options)

    def whole(self):
        """The run is as if it had been heard."""
        report = json.loads(self.path("r.json").read_text())
        self.assertEqual((report["events"]["written"], report["lossless"]), (EVENTS, "yes"))
        events = json.loads(weir("inspect", self.path("run"), "--json", "--digest", "sha256", trap=False).stdout)["events"]
        self.assertEqual(len(events), EVENTS)

    def test_standard_error_is_full(self):
        with open("/dev/full", "w") as full:
            self.assertEqual(self.replay(stdout=subprocess.DEVNULL, stderr=full).returncode, 0)
        self.whole()

    def test_the_reader_of_standard_error_has_left(self):
        read, write = os.pipe()
        os.close(read)
        try:
            self.assertEqual(self.replay(stdout=subprocess.DEVNULL, stderr=write).returncode, 0)
        finally:
            os.close(write)
        self.whole()

    def test_no_standard_descriptors_at_all(self):
        # What the run opens first must not become standard error, or its words land in a file of events.
        def close_all():
            for descriptor in (0, 1, 2):
                os.close(descriptor)
        self.assertEqual(self.replay(preexec_fn=close_all).returncode, 0)
        self.whole()
        for file in self.path("run").rglob("*"):
            self.assertNotIn(b"packets", file.read_bytes()[:64] if file.suffix != ".json" else b"")

    def test_standard_output_is_full(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([WEIR, "explain", "packets"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("weir: cannot write to standard output", done.stderr)

    def limited(self, limit, size, *args, env=None):
        def set_limit():
            resource.setrlimit(limit, (size, size))
        return subprocess.run([WEIR, *map(str, args)], capture_output=True, text=True, timeout=TIMEOUT_S, preexec_fn=set_limit, env=env)

    def test_files_may_not_grow(self):
        weir("replay", self.capture, "--config", self.settings, "--out", self.path("run"), "--quiet")
        before = sorted(os.listdir(self.folder))
        for args in (("send", "--to", self.path("s.pcap"), "--format", "ejfat", "--events", 100),
                     ("export", self.path("run"), "--to", "npy", "--out", self.path("npy")),
                     ("export", self.path("run"), "--to", "raw", "--out", self.path("raw")),
                     ("export", self.path("run"), "--to", "pcap", "--out", self.path("x.pcap")),
                     ("export", self.path("run"), "--to", "hdf5", "--out", self.path("x.h5")),
                     ("inspect", self.path("run"), "--export", 1, self.path("payload"))):
            with self.subTest(args=args[0:4]):
                done = self.limited(resource.RLIMIT_FSIZE, 2048, *args)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("File too large", done.stderr)
                self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_the_terminal_hangs_up(self):
        # What a shell does to its children when the connection is gone: the run ends as with Ctrl-C, whole and in its place.
        run = subprocess.Popen([WEIR, "replay", self.capture, "--config", self.settings, "--out", self.path("run"), "--report",
                                self.path("r.json"), "--progress=line", "--pace", "x0.00001"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # the tests may run under nohup
        self.addCleanup(run.kill)
        run.stderr.read(1)  # it has begun to speak
        run.stderr.close()
        status = f"/proc/{run.pid}/status"
        caught = lambda: int(re.search(r"SigCgt:\t(\w+)", open(status).read())[1], 16) >> signal.SIGHUP - 1 & 1
        while run.poll() is None and not (self.path(".run.part").exists() and caught()):
            time.sleep(0.01)
        run.send_signal(signal.SIGHUP)
        run.wait(TIMEOUT_S)
        self.assertGreaterEqual(run.returncode, 0)  # ended by itself
        report = json.loads(self.path("r.json").read_text())
        self.assertTrue(report["balanced"])
        self.assertLess(report["packets"]["received"], EVENTS)
        weir("inspect", self.path("run"), trap=False)

    @unittest.skipUnless(TRAP, "the sanitizers reserve more address space than any limit")
    def test_no_memory(self):
        self.path("big.toml", GOOD.replace("sources = 1", "sources = 1\nmemory = \"64MiB\""))
        too_little, enough = 64, 4096  # MiB of address space
        while enough - too_little > 1:
            between = (too_little + enough) // 2
            too_little, enough = (too_little, between) if self.run_with(between).returncode == 0 else (between, enough)
        # Below that the run is refused its last step first, then the one before, and so on.
        named, limit_mib = set(), enough
        while "DPDK" not in named:
            limit_mib -= 3
            self.assertGreater(limit_mib, 64, named)
            done = self.run_with(limit_mib)
            if done.returncode != 0:
                named.add(self.refused(done))
        self.assertLessEqual({"packet buffers", "the bookkeeping of messages and sources", "the bookkeeping of events"}, named)
        # Each thread may have an arena of malloc() to itself, as usual: then a little more or less can do either way, but not harm.
        for more_mib in range(-32, 160, 8):
            done = self.run_with(enough + more_mib, arenas=8)
            if done.returncode != 0:
                self.refused(done)

    def refused(self, done):
        """What there was no memory for, where the program says so."""
        self.assertEqual(done.returncode, 1, done.stderr)
        found = re.search(r"out of memory for ([A-Za-z ]+): there were no \d+ more bytes", done.stderr)
        self.assertTrue(found or "memory" in done.stderr.lower() or "DPDK could not start" in done.stderr, done.stderr)
        return found.group(1) if found else None

    def run_with(self, limit_mib, arenas=1):
        """A run in that much address space. What is left of it, if anything, is whole. With one arena of malloc() two runs need the same:
        another is 64 MiB of address space, and which thread gets one is chance."""
        done = self.limited(resource.RLIMIT_AS, limit_mib << 20, "replay", self.capture, "--config", self.path("big.toml"),
                            "--out", self.path("run"), "--quiet", env=os.environ | {"MALLOC_ARENA_MAX": str(arenas)})
        self.assertFalse(self.path(".run.part").exists())
        if self.path("run").exists():  # perhaps only what is said of it had no room
            weir("inspect", self.path("run"), trap=False)
            shutil.rmtree(self.path("run"))
        return done

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be somebody whose threads are counted")
    def test_no_room_for_threads(self):
        self.folder.chmod(0o777)
        somebody = ["setpriv", "--reuid=54321", "--clear-groups"]
        if subprocess.run([*somebody, WEIR, "--version"], capture_output=True).returncode != 0:
            self.skipTest("nobody may not run this program")
        for threads in range(1, 17):
            run = self.path(f"run{threads}")
            done = subprocess.run([*somebody, "prlimit", f"--nproc={threads}", WEIR, "replay", self.capture, "--config", self.settings, "--out",
                                   run, "--quiet"], capture_output=True, text=True, timeout=TIMEOUT_S)
            if done.returncode == 0:
                break
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("no room for another thread", done.stderr)
            self.assertFalse(run.exists())
        self.assertGreater(threads, 1)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
