#!/usr/bin/env python3
"""What the command line and the file system can do wrong: the exit status, what is said, and what is left behind."""
import os
import re
import subprocess
import unittest

from packets import EJFAT_PORT, ejfat, pcap_bytes, stamped, udp
from support import TIMEOUT_S, TRAP, WEIR, Case, config, main, mounts_work, stream, weir

GOOD = config(stream(format="ejfat", sources=1), sources=1)


class Command(Case):
    def setUp(self):
        super().setUp()
        self.capture = self.path("c.pcap", pcap_bytes(stamped([udp(ejfat(n, b"data"), EJFAT_PORT) for n in (1, 2)])))
        self.settings = self.path("good.toml", GOOD)
        self.before = sorted(os.listdir(self.folder))

    def refused(self, status, *args, words=(), left=()):
        done = weir("replay", *args, status=status)
        for word in words:
            self.assertIn(str(word), done.stderr)
        self.assertTrue(done.stderr.startswith("weir: "), done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted([*self.before, *left]))

    def test_output_exists(self):
        for name in ("folder", "file", ".hidden.part"):
            self.path(name, "keep") if name == "file" else self.path(name).mkdir()
        self.before = sorted(os.listdir(self.folder))
        for name, word in (("folder", "folder exists"), ("file", "file exists"), ("hidden", ".hidden.part exists")):
            self.refused(1, self.capture, "--config", self.settings, "--out", self.path(name), words=[word])
        self.assertEqual(self.path("file").read_text(), "keep")
        # The same path twice: the second run is refused, and the first one is as it was.
        weir("replay", self.capture, "--config", self.settings, "--out", self.path("run"), "--quiet")
        self.before = sorted(os.listdir(self.folder))
        self.refused(1, self.capture, "--config", self.settings, "--out", self.path("run"), words=["run exists"])
        weir("inspect", self.path("run"), trap=False)

    def test_a_replay_loads_no_drivers_of_devices(self):
        done = subprocess.run([WEIR, "replay", self.capture, "--config", self.settings, "--out", self.path("run"), "--quiet"], capture_output=True,
                              text=True, env={**os.environ, "LD_DEBUG": "files"})
        self.assertEqual(done.returncode, 0)
        loaded = set(re.findall(r"calling init: .*/dpdk/pmds-[^/]*/librte_(\w+)\.so", done.stderr))
        # What pools are made of, the ring that the simulated detector is, and what these need.
        self.assertLessEqual({"mempool_ring", "mempool_stack"}, loaded)
        self.assertLessEqual(loaded, {"mempool_ring", "mempool_stack", "net_ring", "bus_vdev"})

    def test_out_needs_no_sink(self):
        text = self.path("no-sink.toml", re.sub(r"(?s)\[\[sink]]\n.*?(?=\n\[|\Z)", "", GOOD))
        self.assertNotIn("sink", text.read_text())
        weir("replay", self.capture, "--config", text, "--out", self.path("run"), "--quiet")
        found = weir("inspect", self.path("run"), trap=False).stdout
        self.assertIn("2 events", found)
        done = weir("replay", self.capture, "--config", text, status=2)
        self.assertIn("at least one [[sink]]", done.stderr)
        self.assertIn("--out PATH", done.stderr)

    def test_without_sysfs_it_says_what_to_mount(self):
        if not mounts_work():
            self.skipTest("file systems cannot be mounted here")
        done = subprocess.run(["unshare", "-m", "sh", "-c", 'umount -l /sys && exec "$@"', "sh", WEIR, "replay", self.capture, "--config", self.settings,
                               "--out", self.path("run")], capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("mount -t sysfs sysfs /sys", done.stderr)
        self.assertEqual(len((done.stdout + done.stderr).splitlines()), 1, done.stdout + done.stderr)

    def test_no_such_directory(self):
        self.refused(1, self.capture, "--config", self.settings, "--out", self.path("no") / "run", words=["no directory", self.path("no")])
        self.refused(1, self.capture, "--config", self.settings, "--out", self.path("good.toml") / "run", words=["good.toml"])
        self.refused(1, self.capture, "--config", self.settings, "--out", self.path("run"), "--report", self.path("no") / "r.json",
                     words=["--report", "No such file"])

    def test_directory_that_cannot_be_written(self):
        # proc is there for everyone, root included, and takes no directories.
        if not os.path.isdir("/proc/self"):
            self.skipTest("no /proc")
        self.refused(1, self.capture, "--config", self.settings, "--out", "/proc/run", words=["/proc/"])
        self.refused(1, self.capture, "--config", self.settings, "--out", self.path("run"), "--report", "/proc/r.json", words=["/proc/r.json"])

    @unittest.skipIf(os.geteuid() == 0, "the superuser may write anywhere")
    def test_directory_of_somebody_else(self):
        closed = self.path("closed")
        closed.mkdir(mode=0o500)
        self.refused(1, self.capture, "--config", self.settings, "--out", closed / "run", words=["Permission denied"], left=["closed"])

    def test_failed_start_leaves_nothing_behind(self):
        # An lcore that DPDK does not know: that is found after the sink's path has been taken.
        self.path("far.toml", GOOD + "[lcores]\nrx = [1000]\n")
        self.before = sorted([*self.before, "far.toml"])
        self.refused(2, self.capture, "--config", self.path("far.toml"), "--out", self.path("run"), "--report", self.path("r.json"),
                     words=["lcore 1000"])
        weir("replay", self.capture, "--config", self.settings, "--out", self.path("run"), "--quiet")

    def test_wrong_usage(self):
        good = (self.capture, "--config", self.settings)
        self.refused(2, *good, "--outt", "x", words=["outt"])
        self.refused(2, *good, "--pace", "fast", words=["--pace", "fast", "recorded"])
        self.refused(2, *good, "--pace", "x0", words=["--pace"])
        self.refused(2, *good, "--port", "nic7", words=["--port", "nic7", "det0"])
        self.refused(2, *good, "--events", "3", words=["events"])
        self.refused(2, self.capture, words=["--config"])
        self.refused(2, "--config", self.settings, words=["capture"])
        self.refused(2, self.capture, "--config", self.path("none.toml"), words=["none.toml"])

    def test_contradictory_configuration(self):
        cases = [("timeout_ms = 2000", "timeout_ms = 0", "timeout_ms"), ("sources = 1", "sources = 3", "sources"),
                 ('format = "ejfat"', 'format = "eljfat"', "format"), ('transport = "udp"', 'transport = "roce"', "udp_dst"),
                 ('kind = "events"', 'kind = "events"\nsegment_bytes = 1', "segment_bytes"), ("[[sink]]", "[[sinc]]", "sinc"),
                 ("timeout_ms = 2000", 'memory = "1KiB"', "memory")]
        for old, new, key in cases:
            with self.subTest(key=key, text=new):
                self.assertIn(old, GOOD)
                text = GOOD.replace(old, new)
                line = next(i for i, line in enumerate(text.splitlines(), 1) if key in line)
                self.path("bad.toml", text)
                self.before = sorted({*self.before, "bad.toml"})
                self.refused(2, self.capture, "--config", self.path("bad.toml"), "--out", self.path("run"), "--report", self.path("r.json"),
                             words=[f"bad.toml:{line}:", key, "found", "accepted"])

    def test_a_service_is_refused_what_would_fail_later(self):
        def serve(text, status):
            return weir("serve", "--config", self.path("serve.toml", text), status=status).stderr
        reports = self.path("deep") / "reports"
        text = GOOD + f'[serve]\nreports = "{reports}"\n'
        said = serve(text, 2)  # the second run would find the first one's path taken
        for word in ("sink 0", '"unused"', "{run}"):
            self.assertIn(word, said)
        self.assertFalse(reports.exists())
        self.path("deep", "a file")
        said = serve(text.replace('"unused"', '"run-{run}"'), 1)  # the report of the first run would have no place
        for word in ("serve.reports", str(reports)):
            self.assertIn(word, said)

    def test_lossless(self):
        lossy = self.path("l.pcap", pcap_bytes(stamped([udp(ejfat(1, b"data", total=9), EJFAT_PORT), udp(ejfat(2, b"data"), EJFAT_PORT)])))
        foreign = self.path("f.pcap", pcap_bytes(stamped([udp(ejfat(1, b"data"), EJFAT_PORT), udp(b"?", 9, source="10.9.0.1"), udp(ejfat(1, b"data"), EJFAT_PORT)])))
        bad = self.path("b.pcap", pcap_bytes(stamped([udp(ejfat(1, b"data"), EJFAT_PORT), udp(b"?", EJFAT_PORT)])))
        self.replay(self.capture, GOOD, "--require-lossless")
        self.replay(foreign, GOOD, "--require-lossless")  # what is not ours, and what came twice, is no loss
        self.replay(lossy, GOOD)
        for capture in (lossy, bad):
            result = self.replay(capture, GOOD, "--require-lossless", status=3)
            self.assertIn("not lossless", result.output)
            # All the same, everything is there.
            self.assertEqual(len(result.inspect["events"]), result.report["events"]["opened"])

    def test_print_config_is_a_configuration(self):
        for text in (GOOD, config(stream(), stream("roce", "message"), sources=3, more='[[reduce]]\nkind = "zstd"\nlevel = 3\n')):
            settings = self.path("s.toml", text)
            first = weir("replay", self.capture, "--config", settings, "--print-config", "--report", self.path("r.json"))
            again = self.path("p.toml", first.stdout)
            second = weir("replay", self.capture, "--config", again, "--print-config")
            # What was filled in is marked as such the first time; otherwise nothing has changed.
            plain = [[line.split(" # ")[0].rstrip() for line in out.stdout.splitlines()] for out in (first, second)]
            self.assertEqual(*plain)
            self.assertIn("# events: ", first.stdout)
            self.assertEqual(sorted(os.listdir(self.folder)), sorted([*self.before, "s.toml", "p.toml"]))
            os.remove(again)

    def test_numbered_paths(self):
        settings = self.path("n.toml", 'name = "beam"\n' + GOOD.replace("unused", str(self.path("{name}-{run:03}"))))
        for number in (1, 2):
            done = weir("replay", self.capture, "--config", settings)
            self.assertIn(f"beam-{number:03}", done.stdout)
            weir("inspect", self.path(f"beam-{number:03}"), trap=False)

    def test_quiet(self):
        done = weir("replay", self.capture, "--config", self.settings, "--out", self.path("q"), "--quiet")
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_the_trap_is_armed(self):
        """Otherwise these tests would not notice an allocation on an lcore."""
        if not TRAP:
            self.skipTest("a sanitizer brings its own malloc")
        symbols = subprocess.run(["nm", "-D", WEIR], capture_output=True, text=True, check=True).stdout
        self.assertIn("weir_thread_is_hot", symbols)
        self.assertTrue(os.path.exists(TRAP))


if __name__ == "__main__":
    main()
