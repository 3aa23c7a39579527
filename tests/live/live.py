"""What the live tests share: a sandbox that the kernel clears away, `weir` as a process, a detector written independently of weir.

Used by the *_test.py beside it, which call main(). Each runs in namespaces of its own (network, mounts, processes), so that
interfaces, mounts and processes are gone at its end, however it ends. Where namespaces are not to be had a test is skipped:
exit status 77, with the reason printed.
"""

import hashlib
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
sys.path.insert(0, str(ROOT / "scripts"))

import sandbox  # noqa: E402
from sandbox import RECEIVER, SENDER, Network  # noqa: E402, F401


def enter_sandbox(required):
    """Runs this program again as the first process of new namespaces. The kernel ends and unmounts everything with it."""
    if os.environ.get("WEIR_LIVE_SANDBOX"):
        sandbox.settle()
        return
    reason = sandbox.no_sandbox()
    if not reason:
        environment = {**os.environ, "WEIR_LIVE_SANDBOX": "1", "PYTHONUNBUFFERED": "1"}
        command = [*sandbox.command(), sys.executable, "-B", *sys.argv]
        os.execvpe(command[0], command, environment)
    if required:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    print(f"not in a sandbox: {reason}")


def is_real_root():
    """Root outside of a user namespace too: may mount file systems of devices."""
    return os.geteuid() == 0 and pathlib.Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]


def main(sandbox_required=False, more_arguments=0):
    """usage: NAME_test.py WEIR [the test's own arguments] [unittest options]"""
    if len(sys.argv) < 2 + more_arguments:
        sys.exit(main.__doc__)
    enter_sandbox(sandbox_required)
    Weir.program = os.path.abspath(sys.argv[1])
    result = unittest.main(argv=[sys.argv[0], *sys.argv[2 + more_arguments:]], verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped and len(result.skipped) >= result.testsRun else 0)


class Weir:
    """One `weir run`: started, watched, ended; its report, its account and its events are checked."""

    program = "weir"

    def __init__(self, folder, config, *options, name="run", environment=None):
        self.out = pathlib.Path(folder) / name
        name = self.out.name  # the other files do not go to a folder that the name may have
        self.report_file = pathlib.Path(folder) / f"{name}.json"
        if isinstance(config, pathlib.Path):
            config_file = config
        else:
            config_file = pathlib.Path(folder) / f"{name}.toml"
            config_file.write_text(config)
        self.lines = []
        self.running = threading.Event()
        self.output_file = pathlib.Path(folder) / f"{name}.txt"
        with open(self.output_file, "w") as output:
            self.process = subprocess.Popen(
                [self.program, "run", "--config", str(config_file), "--out", str(self.out), "--report", str(self.report_file),
                 *map(str, options)], stdout=output, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("running"):
                self.running.set()
        self.running.set()

    def wait_running(self, timeout_s=30):
        self.running.wait(timeout_s)
        if self.process.poll() is not None or not any(line.startswith("running") for line in self.lines):
            raise AssertionError("weir run did not get going:\n" + "\n".join(self.lines))

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)

    def end(self, status=0, timeout_s=60):
        """Waits for the end; the exit status must be this. Returns the report."""
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"weir run did not end within {timeout_s} s:\n" + "\n".join(self.lines[-10:])) from None
        self.reader.join(5)
        self.errors = "\n".join(self.lines)
        self.output = self.output_file.read_text()
        if self.process.returncode != status:
            raise AssertionError(f"weir run: exit status {self.process.returncode}, not {status}\n{self.errors}\n{self.output}")
        text = self.report_file.read_text() if self.report_file.exists() else ""
        self.report = json.loads(text) if text else None
        return self.report

    def abort(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(5)
        self.process.stderr.close()

    def inspect(self, path=None, status=0):
        done = subprocess.run([self.program, "inspect", str(path or self.out), "--json", "--digest", "sha256"], capture_output=True,
                              text=True, timeout=120)
        if done.returncode != status:
            raise AssertionError(f"weir inspect: exit status {done.returncode}\n{done.stderr}\n{done.stdout[-1000:]}")
        return json.loads(done.stdout)


class Case(unittest.TestCase):
    """A folder per test, in which all that it starts works; whatever still runs at the end is ended."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-live-"))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.sendings = itertools.count()

    def weir(self, config, *options, **more):
        run = Weir(self.folder, config, *options, **more)
        self.addCleanup(run.abort)
        return run

    def assert_account(self, run, sent=None):
        """The account balances; both sides, added up here once more."""
        report = run.report
        packets, events, messages = report["packets"], report["events"], report["messages"]
        self.assertTrue(report["balanced"], run.errors)
        parts = sum(packets["dropped"].values()) + sum(packets["not_for_us"].values())
        self.assertEqual(packets["received"], packets["placed"] + packets["control"] + packets["unsteered"] + parts)
        self.assertEqual(packets["in_flight"], 0)
        closed = events["complete"] + sum(events["incomplete"].values())
        self.assertEqual(events["opened"], closed)
        self.assertEqual(closed, events["written"] + events["vetoed"] + sum(events["dropped"].values()))
        self.assertEqual(messages["opened"], messages["delivered"] + sum(messages["refused"].values()))
        if sent is not None:
            for_weir = packets["received"] - sum(packets["not_for_us"].values()) - packets["unsteered"]
            self.assertEqual(for_weir, sent, f"the sender sent {sent}")
        self.assertIn("balanced", run.output)

    def assert_no_leftovers(self, run):
        self.assertEqual([path.name for path in self.folder.glob(".*.part")], [])
        self.assertTrue(run.out.is_dir(), "the run has not got its name")

    def send(self, *options, where=()):
        """`weir send` to its end; returns its account. `--rate`: what of it is bearable."""
        options = list(options)
        if "--rate" in options:
            at = options.index("--rate") + 1
            options[at] = bearable(options[at])
        report = self.folder / f"sent{next(self.sendings)}.json"  # each its own: senders may run at the same time
        done = subprocess.run([*where, Weir.program, "send", "--quiet", "--report", str(report), *map(str, options)],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(report.read_text())

    def expected_digests(self, config, *options):
        """What `weir replay` makes of the same packets in a capture: event number -> digest."""
        capture = self.folder / "expected.pcap"
        self.send(*options, "--to", capture)
        config_file = self.folder / "expected.toml"
        config_file.write_text(config)
        subprocess.run([Weir.program, "replay", str(capture), "--config", str(config_file), "--quiet", "--out",
                        str(self.folder / "expected")], check=True, timeout=60)
        done = subprocess.run([Weir.program, "inspect", str(self.folder / "expected"), "--json", "--digest", "sha256"], check=True,
                              capture_output=True, text=True)
        return {event["id"]: event["sha256"] for event in json.loads(done.stdout)["events"]}


class Jungfrau:
    """Frames of JUNGFRAU modules as slsDetectorPackage sends them, written from its documentation and not with weir's code."""

    PACKETS = 128
    PIXELS = 8192

    def __init__(self, modules, seed):
        self.modules = modules
        self.random = random.Random(seed)
        self.digests = {}

    def frame(self, number):
        """[(module, datagram), ...] in the order in which modules that are triggered together send."""
        images = [self.random.randbytes(self.PACKETS * self.PIXELS) for _ in range(self.modules)]
        self.digests[number] = hashlib.sha256(b"".join(images)).hexdigest()
        out = []
        for packet in range(self.PACKETS):
            for module, image in enumerate(images):
                header = struct.pack("<QIIQQHHHHIHBB", number, 100, packet, 0xB0C0 + number, 10 * number, module, module, 0, 0, 0, 0, 3, 2)
                out.append((module, header + image[packet * self.PIXELS:(packet + 1) * self.PIXELS]))
        return out


def wait_for(condition, what, timeout_s=10):
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"no {what} within {timeout_s} s")
        time.sleep(0.005)


def bearable(rate):
    """A quarter where sanitizers slow the receiver down."""
    return rate / 4 if "ASAN_OPTIONS" in os.environ else rate


def paced(items, per_second):
    """Yields the items at this rate, or what of it is bearable, in small bursts; never catches up with more than 5 ms."""
    per_second = bearable(per_second)
    due = time.monotonic()
    for count, item in enumerate(items):
        yield item
        due += 1 / per_second
        if count % 8 == 7:
            now = time.monotonic()
            due = max(due, now - 0.005)
            if due > now:
                time.sleep(due - now)
