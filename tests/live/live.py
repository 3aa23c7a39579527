"""What the live tests share: a sandbox that the kernel clears away, `weir` as a process, a detector written independently of weir.

Used by the *_test.py beside it, which call main(). Each runs in namespaces of its own (network, mounts, processes), so that
interfaces, mounts and processes are gone at its end, however it ends. Where namespaces are not to be had a test is skipped:
exit status 77, with the reason printed.
"""

import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
# How long what is waited for may take. It ends a hang, and is no demand: on a busy machine what takes a moment takes many seconds.
PATIENCE_S = 120
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


def patient(text):
    """A shipped configuration that gives events much more time: a machine that stands still for half a second is no loss."""
    assert text.count("timeout_ms = 500\n") == 1, text
    return text.replace("timeout_ms = 500\n", "timeout_ms = 20000\n")


# What `weir bench` says where a process had no processor for seconds.
NOT_HEARD = "the other side has not been heard for ten seconds"


class Disturbed(Exception):
    """What a trial raises when the machine has not let it be what it was meant to be; says why."""


def repeated(trial, attempts=5):
    """What trial(attempt) returns; once more where it was disturbed."""
    for attempt in range(attempts):
        try:
            return trial(attempt)
        except Disturbed as why:
            print(f"disturbed, attempt {attempt + 1} of {attempts}: {why}", file=sys.stderr)
    raise AssertionError(f"all {attempts} attempts were disturbed")


class Stalls:
    """While it is entered: how long this program or one of these processes wanted a processor and got none, at most."""

    def __init__(self, *processes):
        self.processes = [os.getpid(), *processes]
        self.longest_s = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def waited(self):
        """{thread: seconds in which it could have run and did not}"""
        waited = {}
        for task in (task for process in self.processes for task in pathlib.Path(f"/proc/{process}/task").glob("*")):
            with contextlib.suppress(OSError):  # it has just ended
                waited[task] = int((task / "schedstat").read_text().split()[1]) / 1e9
        return waited

    def watch(self):
        before, looked = self.waited(), time.monotonic()
        while not self.over.wait(0.1):
            now, at = self.waited(), time.monotonic()
            waits = (seconds - before.get(task, 0) for task, seconds in now.items())
            self.longest_s = max(self.longest_s, at - looked - 0.1, *waits)  # the first where all of the machine stood still
            before, looked = now, at

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Notified:
    """The service manager's end of NOTIFY_SOCKET. It takes all that comes, at once: who finds no room there waits for it."""

    def __init__(self, path):
        self.environment = {"NOTIFY_SOCKET": str(path)}
        self.heard = []  # (time, text)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while text := self.socket.recv(65536).decode():
            self.heard.append((time.monotonic(), text))

    def close(self):
        self.socket.shutdown(socket.SHUT_RD)  # recv() returns nothing
        self.thread.join(PATIENCE_S)
        self.socket.close()


def stand_still(*processes):
    """Stops them, and returns when none of their threads runs any more."""
    tasks = [pathlib.Path(f"/proc/{process}/task") for process in processes]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    state = lambda task: (task / "stat").read_text().rpartition(") ")[2][0]
    wait_for(lambda: all(state(task) == "T" for folder in tasks for task in folder.iterdir()), "standstill")


def whole_events(segment, limit=1 << 60):
    """Event numbers of an event file whose last block ends within the first `limit` bytes: from the block headers, read here."""
    at, found = 0, []
    with open(segment, "rb") as file:
        end = min(limit, os.fstat(file.fileno()).st_size)
        while at + 64 <= end:
            file.seek(at)
            magic, _, kind, _, stored, _, _, _, _, flags, _, _, event = struct.unpack("<4sHHIIQIIBBHIQ", file.read(48))
            if magic != b"WEIR":
                break
            at += 64 + (stored + 63) // 64 * 64
            if at <= end and kind == 4 and flags & 1:
                found.append(event)
    return found


def whole_events_in(path):
    """Of all segments of a run, finished or not."""
    return [event for file in sorted(path.glob("events-*.weir")) for event in whole_events(file)]


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
        self.progress_file = pathlib.Path(folder) / f"{name}.progress"
        if "--progress" not in options:
            options = (*options, "--progress", f"json:{self.progress_file}")
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

    def gets_going(self):
        """Waits until it runs, or has ended: then it does not."""
        self.running.wait(PATIENCE_S)
        if any(line.startswith("running") for line in self.lines):
            return self.process.poll() is None
        self.process.wait(PATIENCE_S)
        return False

    def wait_running(self):
        if not self.gets_going():
            raise AssertionError("weir run did not get going:\n" + "\n".join(self.lines))

    def wait_for(self, condition, what):
        """Until it is so; not longer than the run lasts."""
        wait_for(lambda: condition() or self.process.poll() is not None, what)
        if not condition():
            raise AssertionError(f"no {what} in this run:\n" + "\n".join(self.lines[-10:]))

    def objects(self):
        """What it has said with `--progress json`, once a second."""
        text = self.progress_file.read_text() if self.progress_file.exists() else ""
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def wait_progress(self, condition, what):
        """Until there is an object of which the condition holds, which is returned."""
        self.wait_for(lambda: any(map(condition, self.objects())), what)
        return next(filter(condition, self.objects()))

    def wait_received(self, packets):
        """So many of those that are for it."""
        count = lambda seen: seen["received"] - sum(seen["not_for_us"].values())
        return self.wait_progress(lambda one: count(one["packets"]) >= packets, f"{packets} received packets")

    def wait_quiet(self):
        """Until all rx lcores have polled and found nothing, for a second of the run that began after this was called."""
        known = len(self.objects())

        def quiet(one):
            polls = [stage["polls"] for name, stage in one["stages"].items() if name.startswith("rx")]
            return all(poll["idle"] > 0 and poll["busy"] == 0 and not any(poll["blocked"].values()) for poll in polls)

        self.wait_for(lambda: any(map(quiet, self.objects()[known + 1:])), "second in which nothing comes")

    def events_so_far(self):
        """Numbers of the events that are whole on disk while it runs."""
        try:
            return whole_events_in(self.out.with_name(f".{self.out.name}.part"))
        except FileNotFoundError:  # it has got its name in this moment
            return []

    def wait_events(self, count):
        self.wait_for(lambda: len(self.events_so_far()) >= count, f"{count} events on disk")

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)

    def end(self, status=0):
        """Waits for the end; the exit status must be this. Returns the report."""
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"weir run did not end within {PATIENCE_S} s:\n" + "\n".join(self.lines[-10:])) from None
        self.reader.join(PATIENCE_S)
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
        self.reader.join(PATIENCE_S)
        self.process.stderr.close()

    def inspect(self, path=None, status=0):
        done = subprocess.run([self.program, "inspect", str(path or self.out), "--json", "--digest", "sha256"], capture_output=True,
                              text=True, timeout=PATIENCE_S)
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
        """`weir send` to its end; returns its account. `--rate`, `--gbps`: what of it is bearable."""
        options = list(options)
        for option in {"--rate", "--gbps"}.intersection(options):
            at = options.index(option) + 1
            options[at] = bearable(options[at])
        report = self.folder / f"sent{next(self.sendings)}.json"  # each its own: senders may run at the same time
        done = subprocess.run([*where, Weir.program, "send", "--quiet", "--report", str(report), *map(str, options)],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(report.read_text())

    def expected_digests(self, config, *options):
        """What `weir replay` makes of the same packets in a capture: event number -> digest."""
        capture = self.folder / "expected.pcap"
        self.send(*options, "--to", capture)
        config_file = self.folder / "expected.toml"
        config_file.write_text(config)
        subprocess.run([Weir.program, "replay", str(capture), "--config", str(config_file), "--quiet", "--out",
                        str(self.folder / "expected")], check=True, timeout=PATIENCE_S)
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


def ask(raw, message, address, is_answer):
    """Sends it until is_answer(bytes): the kernel throws away what waits for an address when nobody has told it within 3 s."""
    def is_answered():
        try:
            raw.sendto(message, address)
            while not is_answer(raw.recv(2048)):
                pass
            return True
        except OSError:  # nothing came within a second, or the host is unreachable
            return False

    raw.settimeout(1)
    wait_for(is_answered, f"answer of {address}")


def wait_for(condition, what, limit_s=PATIENCE_S):
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"no {what} within {limit_s} s")
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
