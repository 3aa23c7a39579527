#!/usr/bin/env python3
"""`weir doctor` from the command line: what it says, as text and as JSON, its exit statuses, what it mends, and what a run makes of it."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import TIMEOUT_S, WEIR, main, weir

KEYS = {"check", "status", "found", "wanted", "why", "mend", "about", "sure", "fix"}


def configuration(device='device = "net_null0"', more="", sink='kind = "null"', events='memory = "64MiB"\n'):
    return (f'[[port]]\nname = "det0"\n{device}\n[[stream]]\nport = "det0"\ntransport = "udp"\nudp_dst = [50001, 50002]\n'
            f'format = "jungfrau"\n[events]\nsources = 2\n{events}[[sink]]\n{sink}\n{more}')


class Doctor(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-doctor-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.root = self.folder / "root"

    def config(self, *args, **keys):
        file = self.folder / "det.toml"
        file.write_text(configuration(*args, **keys))
        return file

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def machine(self, governor="powersave"):
        """Four cores without isolation, as a recorded tree."""
        self.write("/sys/devices/system/cpu/online", "0-3")
        for cpu in range(4):
            self.write(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", str(cpu))
            self.write(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", governor)
        self.write("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 16000000 kB")
        self.write("/proc/sys/net/core/rmem_max", "212992")

    def findings(self, *args, status=0):
        done = weir("doctor", *args, "--json", status=status, trap=False)
        self.assertEqual(done.stderr, "")
        findings = json.loads(done.stdout)
        self.assertEqual(list(findings), ["findings"])
        for finding in findings["findings"]:
            self.assertEqual(set(finding), KEYS)
            self.assertIn(finding["status"], ("ok", "warning", "error", "unknown"))
            self.assertIn(finding["sure"], ("certain", "likely", "possible"))
        return {finding["check"]: finding for finding in findings["findings"]}

    def test_of_this_machine(self):
        found = self.findings("--config", self.config())
        self.assertIn("clock_source", found)
        self.assertEqual(found["event_memory"]["status"], "ok")
        self.assertEqual(found["link"]["status"], "ok")
        self.assertIn("net_null", found["link"]["found"])

    def test_passive_opens_nothing(self):
        found = self.findings("--config", self.config(sink=f'kind = "events"\npath = "{self.folder}/run"'), "--passive")
        for check in ("link", "pause", "flow_rules", "disk_rate"):
            self.assertEqual(found[check]["status"], "unknown", check)
            self.assertIn("--passive", found[check]["why"])

    def test_the_disk_of_a_sink_is_measured_and_left_as_it_was(self):
        config = self.config(sink=f'kind = "events"\npath = "{self.folder}/{{name}}-{{run:06}}"')
        before = sorted(os.listdir(self.folder))
        found = self.findings("--config", config, "--only", "disk_rate", "--only", "disk_space")
        self.assertEqual(set(found), {"disk_rate", "disk_space"})
        self.assertEqual(found["disk_rate"]["status"], "ok")
        self.assertRegex(found["disk_rate"]["found"], r"^[0-9.]+ [MG]B/s ")
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        # A rate that no disk takes is an error, and ends so.
        found = self.findings("--config", config, "--only", "disk_rate", "--rate", "90000Gb/s", status=1)
        self.assertEqual(found["disk_rate"]["status"], "error")
        self.assertEqual(found["disk_rate"]["wanted"], "11.2 TB/s")

    def test_errors_come_first_and_end_with_1(self):
        config = self.config(sink='kind = "events"\npath = "/no/such/folder/run"')
        done = weir("doctor", "--config", config, "--passive", status=1, trap=False)
        self.assertTrue(done.stdout.startswith("error    disk_space (sink events, /no/such/folder)\n"), done.stdout)
        self.assertIn("\n  mend    mkdir -p /no/such/folder\n", done.stdout)
        self.assertRegex(done.stdout, r"\n1 error, \d+ warnings?, \d+ not known, \d+ fine: a run would surely lose data, or not start\n$")
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)

    def test_without_a_configuration_the_host_alone_is_judged(self):
        self.machine()
        found = self.findings("--root", self.root, "--rate", "100Gb/s", "--packet", "1086", "--event", "64KiB")
        self.assertEqual(found["cores"]["status"], "warning")
        self.assertEqual(found["cores"]["found"], "4 cores")
        self.assertEqual(found["governor"]["found"], "powersave on 4 CPUs")
        self.assertEqual(found["socket_buffer"]["mend"], "echo 33554432 > /proc/sys/net/core/rmem_max")
        self.assertNotIn("memory", found)

    def test_fix_asks_and_does_what_is_said(self):
        self.machine()
        def fix(*more, answers=""):
            done = subprocess.run([WEIR, "doctor", "--root", self.root, "--only", "governor", "--only", "socket_buffer", "--fix", *more],
                                  input=answers, capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        governor = self.root / "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"
        buffer = self.root / "proc/sys/net/core/rmem_max"
        said = fix()  # nobody answers
        self.assertIn("do it? [y/N]", said)
        self.assertNotIn("once more", said)
        self.assertEqual(governor.read_text(), "powersave\n")
        said = fix(answers="n\ny\n")
        self.assertIn("  echo performance > /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor\n", said)
        self.assertEqual((governor.read_text(), buffer.read_text()), ("powersave\n", "33554432\n") if said.index("governor") < said.index("socket_buffer")
                         else ("performance\n", "212992\n"))
        said = fix("--yes")
        self.assertNotIn("do it?", said)
        self.assertIn("and once more", said)
        self.assertEqual((governor.read_text(), buffer.read_text()), ("performance\n", "33554432\n"))
        self.assertIn("0 errors, 0 warnings", said.split("and once more")[1])

    def test_what_fails_is_said(self):
        self.machine()
        # A file that not even root may write, with too small a number in it.
        buffer = self.root / "proc/sys/net/core/rmem_max"
        buffer.unlink()
        buffer.symlink_to("/proc/sys/kernel/ngroups_max")
        done = weir("doctor", "--root", self.root, "--only", "governor", "--only", "socket_buffer", "--fix", "--yes", trap=False)
        self.assertIn("  done\n", done.stdout)
        self.assertRegex(done.stdout, r"  failed: .*rmem_max: Permission denied\n")
        self.assertIn("0 errors, 1 warning", done.stdout.split("and once more")[1])

    def test_lists(self):
        listed = weir("doctor", "--list", trap=False).stdout
        for check in ("hugepages", "pcie_link", "isolation", "flow_rules", "clock_source", "disk_rate"):
            self.assertRegex(listed, rf"(?m)^  {check} ")
        table = weir("doctor", "--sizing", trap=False).stdout
        self.assertIn("| 100 Gb/s | 8282 B | 8 MiB |", table)
        row = weir("doctor", "--sizing", "--rate", "40Gb/s", "--packet", "8282", "--event", "2MiB", trap=False).stdout
        self.assertEqual(len(re.findall(r"(?m)^\| 40 Gb/s \| 8282 B \| 2 MiB \|", row)), 1)
        self.assertIn("cycles", row.lower())

    def test_wrong_usage(self):
        config = self.config()
        for args, words in [(["--only", "governr"], "did you mean governor"), (["--rate", "100"], "--rate: found '100'"),
                            (["--packet", "9"], "--packet"), (["--event", "x"], "--event"), (["--watch", "-1"], "--watch"),
                            (["--events-rate", "0"], "--events-rate"), (["--yes"], "--yes belongs to --fix"), (["--json", "--fix"], "--json and --fix"),
                            (["--root", self.folder / "none"], "--root"), (["--page", self.folder / "none"], "--page"),
                            (["--config", self.folder / "none.toml"], "none.toml"), (["--frobnicate"], "frobnicate")]:
            with self.subTest(args=args):
                done = weir("doctor", "--config", config, *args, status=2, trap=False) if "--config" not in args else weir("doctor", *args, status=2, trap=False)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_run_that_would_surely_lose_data_does_not_start(self):
        config = self.config(events='memory = "1MiB"\n')
        config.write_text(config.read_text().replace("50002]", "50002, 50003]").replace("sources = 2", "sources = 3"))
        done = weir("run", "--config", config, "--duration", "0.2", "--allow-empty", status=1, trap=False)
        self.assertIn("event_memory", done.stderr)
        self.assertIn("--force", done.stderr)
        self.assertIn('memory = "12MiB" in [events]', done.stderr)
        found = self.findings("--config", config, status=1)
        self.assertEqual(found["event_memory"]["status"], "error")
        done = weir("run", "--config", config, "--duration", "0.2", "--allow-empty", "--force", trap=False)
        self.assertIn("warning: ", done.stderr)
        # What is printed is no run.
        weir("run", "--config", config, "--print-config", trap=False)


if __name__ == "__main__":
    main()
