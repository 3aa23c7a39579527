"""The appliance under test and what is around it: weir with its service manager, the detector, the cable, the disk."""

import ctypes
import errno
import os
import resource
import signal
import subprocess
import time

import sandbox
from soaking.detectors import DETECTORS
from soaking.run import Notify, Run
from soaking.sender import Sender
from soaking.unit import Service, exit_text

FILL_BYTES = 16 << 20  # at a time: memory is cleared first, and what weir writes meanwhile must not be in what is taken
DETECTOR_AGAIN_S = 1.0  # a sender that cannot send, because the cable is out, begins again after so long


class DidNotHold(Exception):
    """Something that was promised, and was not so."""


def wait(seconds):
    """For faults, which are generators: the soak goes on meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


def until(condition, what, timeout_s):
    """Returns the seconds it took."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() > begun + timeout_s:
            raise DidNotHold(f"no {what} within {timeout_s:g} s")
        yield
    return time.monotonic() - begun


class Counter:
    """Frames that came in or went out at an interface, as the kernel counts them."""

    def __init__(self, interface, column, namespace=None):
        self.interface, self.column = interface, column
        if namespace is None:
            self.file = open("/proc/thread-self/net/dev", buffering=1)
            return
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/thread-self/ns/net") as here, open(f"/run/netns/{namespace}") as there:
            if libc.setns(there.fileno(), sandbox.CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            self.file = open("/proc/thread-self/net/dev")  # of this namespace from now on
            libc.setns(here.fileno(), sandbox.CLONE_NEWNET)

    def __call__(self):
        text = os.pread(self.file.fileno(), 65536, 0).decode()
        line = next(line for line in text.splitlines() if line.strip().startswith(f"{self.interface}:"))
        return int(line.split(":")[1].split()[self.column])


class Disk:
    """A small file system of its own, so that it can be full."""

    def __init__(self, path, size):
        self.path, self.size = path, size
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)], check=True)
        self.ballast = path / "ballast"

    def free(self):
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def fill(self, leave):
        """Other data, up to so many free bytes. weir writes at the same time, so the last bytes may be gone already."""
        with open(self.ballast, "ab") as file:
            while (take := min(self.free() - leave, FILL_BYTES) // 4096 * 4096) > 0:
                try:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), take)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def make_room(self):
        self.ballast.unlink(missing_ok=True)


class Box:
    def __init__(self, weir, out, unit, rate, seed, disk_bytes, warning_s, say):
        self.weir, self.out, self.unit, self.say = weir, out, unit, say
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # as in the unit
        self.network = sandbox.Network()
        self.arrived = Counter("det0", 1)
        self.left = Counter("gen0", 9, "sender")
        for prefix, device in (([], "det0"), (sandbox.Network.there(), "gen0")):  # no frames but the detector's
            subprocess.run([*prefix, "sysctl", "-q", "-w", f"net.ipv6.conf.{device}.disable_ipv6=1"], check=True)
        self.know_neighbour()
        self.disk = Disk(out / "data", disk_bytes)
        self.warning_s, self.rate = warning_s, rate
        self.notify = Notify("/run/soak-notify")
        self.sender = Sender(weir, out, rate, seed, self.left)
        self.runs = []
        self.service = Service(unit, self.start_run)
        self.problems = []  # (what did not hold, what to look at)
        self.wire_taken = False  # somebody works on the sender or the cable
        self.full = False  # the disk, by a fault
        self.recoveries = []  # seconds without data after each crash
        self.planned_s = 0.0  # without data because somebody wanted it so
        self.measured_at = 0.0
        self.configure(DETECTORS[0])

    def know_neighbour(self):
        """A detector has weir's address in its settings; so frames leave it while no weir answers, too."""
        # Not from /sys, which shows the interfaces of the namespace in which it was mounted.
        words = subprocess.run(["ip", "-o", "link", "show", "det0"], check=True, capture_output=True, text=True).stdout.split()
        mac = words[words.index("link/ether") + 1]
        subprocess.run(["ip", "-n", "sender", "neigh", "replace", sandbox.RECEIVER, "lladdr", mac, "dev", "gen0", "nud", "permanent"],
                       check=True)

    def configure(self, detector):
        self.detector = detector
        self.config = self.out / "soak.toml"
        self.config.write_text(detector.config(self.disk.path, self.warning_s))

    def start_run(self):
        run = Run(len(self.runs) + 1, self.weir, self.config, self.out, self.unit, self.notify, self.detector, self.arrived)
        run.frames_left_at_start = self.left()
        run.rate, run.packets_per_s = self.rate, self.rate * self.detector.packets
        run.quiet_start = not self.sender.sending
        if self.full:
            run.faults.add("disk full")
        self.runs.append(run)
        return run

    @property
    def run(self):
        return self.runs[-1] if self.runs else None

    @property
    def taking_data(self):
        return self.run is not None and self.run.taking_data and self.service.state == "running"

    def begin_session(self, again=False):
        if self.sender.sending:
            return
        session = self.sender.begin(self.detector, again)
        if self.taking_data:
            self.run.sessions.append(session)
        elif self.run:
            self.run.quiet_start = False

    def problem(self, what, look_at=""):
        self.problems.append((what, str(look_at)))
        self.say(f"DID NOT HOLD: {what}")

    # What goes on all the time.

    def tick(self):
        ended_before = self.run.ended_at if self.run else None
        said = self.service.tick()
        if said:
            self.say(f"service manager: {said}")
        run = self.run
        if run and run.ended_at and not ended_before:
            self.run_ended(run)
        if run and run.taking_data and run.path is None and run.find_path():
            self.check_name(run)
        if self.sender.tick():
            self.session_ended()
        now = time.monotonic()
        if self.sender.begin_at and now >= self.sender.begin_at and not self.wire_taken:
            self.sender.begin_at = None
            self.begin_session()
        if now >= self.measured_at + 1 and run and run.taking_data:
            self.measured_at = now
            run.measure()

    def check_name(self, run):
        if run.path in [other.path for other in self.runs if other is not run]:
            self.problem(f"run number used twice: {run.path}", run.folder)

    def run_ended(self, run):
        run.frames_left_at_end = self.left()
        run.quiet_end = not self.sender.sending
        status = run.process.returncode
        run.expected_end = run.asked_to_end and status == 0 or bool(run.faults & {"killed", "disk full"})
        self.say(f"weir run {run.number} ended: {exit_text(status)}; {self.service.state}")
        if not run.expected_end:
            said = "; ".join(run.lines[-3:])
            self.problem(f"run {run.number} ended by itself ({exit_text(status)}): {said}", run.folder)

    def session_ended(self):
        session = self.sender.now
        if session.process.returncode == 0 and session.report:
            return
        if session.may_fail:
            self.say("the sender cannot send and ended")
        elif self.sender.killed is session or session.asked_to_end and session.process.returncode == -signal.SIGINT:
            return  # the second: before it had begun to listen to signals
        else:
            self.problem(f"the sender ended ({exit_text(session.process.returncode)})", session.report_file.with_suffix(".txt"))
        self.sender.begin_at = time.monotonic() + DETECTOR_AGAIN_S

    # What faults do.

    def take_wire(self):
        """Waits until nobody else works on the sender or the cable."""
        while self.wire_taken:
            yield
        self.wire_taken = True

    def give_wire(self):
        self.wire_taken = False

    def end_session(self, number=signal.SIGINT):
        self.sender.begin_at = None
        if number == signal.SIGKILL:
            self.sender.killed = self.sender.now
        self.sender.end(number)
        yield from until(lambda: not self.sender.sending, "end of the sender", 10)

    def set_link(self, side, up):
        prefix = ["ip", "-n", "sender"] if side == "gen0" else ["ip"]
        if self.sender.now:
            self.sender.now.may_fail = True
        subprocess.run([*prefix, "link", "set", side, "up" if up else "down"], check=True)
        if up:
            self.know_neighbour()

    def count(self, *keys):
        """A function: has this counter of the progress grown since, or has another run begun?"""
        def value():
            number = self.progress()
            for key in keys:
                number = number.get(key, {}) if isinstance(number, dict) else 0
            return number if isinstance(number, int) else 0
        before = [self.run, value()]

        def grown():
            if self.run is not before[0]:
                before[:] = [self.run, 0]
            return self.taking_data and value() > before[1]
        grown.value = value
        grown.before = before[1]
        return grown

    def progress(self):
        return self.run.progress() if self.run else {}
