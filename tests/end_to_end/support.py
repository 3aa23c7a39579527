"""What the end-to-end tests share: running the program, configurations, and results as TAP for meson."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from driver import Died, Driver, Twin, can_be_repeated
from packets import EJFAT_PORT, JUNGFRAU_PORT, QUEUE_PAIR

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = os.environ.get("WEIR") or str(ROOT / "build" / "app" / "weir")
# Ends the program when a polling lcore allocates (tests/core/malloc_trap.cpp); absent in sanitizer builds.
TRAP = os.environ.get("WEIR_MALLOC_TRAP", "")
TIMEOUT_S = 300


# Executes subcommands as the program does, many in one process (driver.py). Where it is not given the program is started.
DRIVER = os.environ.get("WEIR_DRIVER", "")
drivers = []  # at most one
twins = []  # the replays that the program did besides: one per file


def weir(*args, status=0, trap=True, process=False, cwd=None, **options):
    """What the program does; fails unless it exits with `status` (None: whatever it likes). By the driver, unless it is to be a `process`
    of its own, or one is needed."""
    args, folder = [str(arg) for arg in args], pathlib.Path(cwd or os.getcwd())
    if process or options or not DRIVER or needs_process(args):
        done = started(args, trap, cwd=cwd, **options)
    elif args[0] == "replay" and not twins and can_be_repeated(args, folder):
        done = by_both(args, folder)
    else:
        done = driven(args, folder)
    if status is not None and done.returncode != status:
        raise AssertionError(f"weir {' '.join(args)}: exit {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done


def needs_process(args):
    """Devices stay in a process, and so do capabilities that are given up; some commands start processes, or wait for signals."""
    command = args[0] if args else ""
    if command == "run":
        return "--print-config" not in args
    return command not in ("replay", "send", "inspect", "export", "diff", "probe", "explain", "flows") or \
        any(arg.startswith(("udp:", "device:", "rdma:", "/dev/")) or arg == "-" for arg in args)


def environment(trap):
    return {**os.environ, "LD_PRELOAD": TRAP} if TRAP and trap else None


def started(args, trap, **options):
    return subprocess.run([WEIR, *args], capture_output=True, text=True, timeout=TIMEOUT_S, **{"env": environment(trap)} | options)


def driven(args, folder):
    if not drivers:
        drivers.append(Driver(DRIVER, environment(trap=True), TIMEOUT_S))
    try:
        return drivers[0].run(args, folder)
    except Died:
        drivers.clear()
        raise


def events_in(run):
    """By (epoch, id), as `weir inspect` has them; None: it is no event file."""
    said = driven(["inspect", str(run), "--json", "--digest", "sha256"], run.parent).stdout
    return {f"{event['epoch']}/{event['id']}": event for event in json.loads(said)["events"]} if said else None


def by_both(args, folder):
    """The proof, in each file of tests, that the driver is the program: the same status, report and events."""
    twin = Twin(args, folder)
    twins.append(twin)
    try:
        ours, theirs = started(twin.args, trap=True, cwd=folder), driven(args, folder)
        differences = twin.differences(events_in)
    finally:
        twin.remove()
    if ours.returncode != theirs.returncode:
        differences.insert(0, f"exit {theirs.returncode} in the driver, {ours.returncode} as the program\n{theirs.stderr}{ours.stderr}")
    if differences:
        raise AssertionError("\n".join([f"weir {' '.join(args)}: not the same", *differences]))
    return theirs


def stream(transport="udp", format="jungfrau", sources=2, first=None, **keys):
    """The text of a [[stream]]; further keys as TOML values."""
    if transport == "roce":
        which = f"qp = {[(first or QUEUE_PAIR) + i for i in range(sources)]}"
    else:
        which = f"udp_dst = {[(first or (EJFAT_PORT if format == 'ejfat' else JUNGFRAU_PORT)) + i for i in range(sources)]}"
    text = f'[[stream]]\nport = "det0"\ntransport = "{transport}"\n{which}\nformat = "{format}"\n'
    return text + "".join(f"{key} = {value}\n" for key, value in keys.items())


def config(*streams, sources=2, events="timeout_ms = 2000\n", sink='kind = "events"\npath = "unused"', more=""):
    port = '[[port]]\nname = "det0"\ndevice = "net_null0"\n'
    return f"{port}{''.join(streams)}[events]\nsources = {sources}\n{events}[[sink]]\n{sink}\n{more}\n"


def mounts_work():
    """Whether a test may change what is mounted, in a mount namespace of its own."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


FUSED = '[lcores]\nrx = [0]\nbuild = [0]\nwork = [0]\nidle = "pause"\n'
ZSTD = '[[reduce]]\nkind = "zstd"\nlevel = 1\n'


def digest(*parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()


def merged(ranges):
    """Ranges as (begin, end), sorted, touching ones joined."""
    out = []
    for begin, end in sorted(ranges):
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        elif end > begin:
            out.append((begin, end))
    return out


def gaps(received, size):
    """What of 0..size the received ranges leave out, as [offset, bytes] like `weir inspect` lists them."""
    out, at = [], 0
    for begin, end in merged(received):
        if begin > at:
            out.append([at, begin - at])
        at = end
    return out + ([[at, size - at]] if at < size else [])


class Replay:
    """A finished `weir replay`: its report, and what `weir inspect` says of the run."""
    def __init__(self, folder, name):
        self.report = json.loads((folder / f"{name}.json").read_text())
        self.run = folder / name
        self.inspect = None
        if self.run.exists():
            self.inspect = json.loads(weir("inspect", self.run, "--json", "--digest", "sha256", trap=False).stdout)

    @property
    def packets(self):
        """Every packet counter that is not zero, by the name in the report, and what they add up to."""
        flat = {}
        for key, value in self.report["packets"].items():
            if key == "received":
                continue
            items = {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}
            flat.update({k: v for k, v in items.items() if v != 0})
        return flat

    @property
    def events(self):
        """By (epoch, id)."""
        found = {(e["epoch"], e["id"]): e for e in self.inspect["events"]}
        assert len(found) == len(self.inspect["events"]), "an event is there twice"
        return found

    @property
    def digests(self):
        """Of the payload, by (epoch, id)."""
        return {key: event["sha256"] for key, event in self.events.items()}


class Case(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.runs = 0

    def path(self, name, content=None):
        path = self.folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content is not None:
            path.write_text(content)
        return path

    def send(self, name, *args):
        """Makes a capture with `weir send`; returns its path and the sender's account."""
        capture, report = self.path(name), self.path(name + ".json")
        weir("send", "--to", capture, "--report", report, "--quiet", *args, trap=False)
        return capture, json.loads(report.read_text())

    def replay(self, captures, text, *args, status=0, verify=True):
        """Replays and checks what holds for every run: it balances, it verifies, nothing is left in between."""
        captures = captures if isinstance(captures, (list, tuple)) else [captures]
        self.runs += 1
        name = f"run{self.runs}"
        settings = self.path(f"{name}.toml", text)
        done = weir("replay", *captures, "--config", settings, "--out", self.folder / name,
                    "--report", self.folder / f"{name}.json", *args, status=status)
        result = Replay(self.folder, name)
        result.output = done.stdout + done.stderr
        if verify:
            self.balanced(result)
        return result

    def balanced(self, result):
        report = result.report
        self.assertIs(report["balanced"], True)
        self.assertEqual(report["packets"]["received"], sum(result.packets.values()))
        self.assertEqual(report["packets"]["in_flight"], 0)
        messages, events = report["messages"], report["events"]
        self.assertEqual(messages["opened"], messages["delivered"] + sum(messages["refused"].values()))
        closed = events["complete"] + sum(events["incomplete"].values())
        self.assertEqual(events["opened"], closed)
        self.assertEqual(closed, events["vetoed"] + sum(events["dropped"].values()) + events["written"])
        if result.inspect is not None:
            self.assertIs(result.inspect["verified"], True)
            self.assertEqual(len(result.inspect["events"]), events["written"])


class Tap(unittest.TestResult):
    """One line per test, which meson reads."""
    def __init__(self):
        super().__init__()
        self.count = 0

    def line(self, word, test, note=""):
        self.count += 1
        print(f"{word} {self.count} - {test.id().split('.', 1)[-1].replace('#', '')}{note}", flush=True)

    def details(self, error, test):
        print("\n".join("# " + line for line in self._exc_info_to_string(error, test).splitlines()), flush=True)

    def addSuccess(self, test):
        self.line("ok", test)

    def addSkip(self, test, reason):
        self.line("ok", test, f" # SKIP {reason}")

    def addError(self, test, err):
        super().addError(test, err)
        self.details(err, test)
        self.line("not ok", test)

    addFailure = addError

    def fail(self, name, said):
        """What is no test of its own."""
        self.count += 1
        self.errors.append((name, said))
        print("\n".join("# " + line for line in said.splitlines()), f"not ok {self.count} - {name}", sep="\n", flush=True)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            super().addError(test, err)
            self.details(err, test)
            self.line("not ok", subtest)


def main():
    # Which cases to run may be named, as for unittest: sent_test.py Sent.test_jungfrau
    module = sys.modules["__main__"]
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(sys.argv[1:], module) if sys.argv[1:] else loader.loadTestsFromModule(module)
    result = Tap()
    tests.run(result)
    for driver in drivers:
        if said := driver.close():
            result.fail("the driver", said)
    print(f"1..{result.count}", flush=True)
    sys.exit(0 if result.wasSuccessful() else 1)
