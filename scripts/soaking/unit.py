"""A service manager in small: starts weir again by the rules that its unit has, as systemd would."""

import dataclasses
import pathlib
import re
import shlex
import signal
import time

CLEAN_SIGNALS = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE}
UNITS = ("systemd/weir@.service", "/usr/lib/systemd/system/weir@.service")


def seconds(text):
    """Of systemd's time spans those that units of this kind have: 5, 5s, 500ms, 2min."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*(ms|s|sec|min|)\s*", text)
    if not found:
        raise ValueError(f"not a time span that is understood here: '{text}'")
    return float(found[1]) * {"ms": 0.001, "min": 60}.get(found[2], 1)


@dataclasses.dataclass
class Unit:
    """The keys that decide what happens when the program ends; their defaults are systemd's."""

    file: str = ""
    restart: str = "no"
    restart_s: float = 0.1
    limit_s: float = 10
    limit_starts: int = 5
    no_restart_after: frozenset = frozenset()
    stop_s: float = 90
    watchdog_s: float = 0
    start_s: float = 90
    notify: bool = False  # the program says READY=1
    options: tuple = ()  # of ExecStart, without --config

    @classmethod
    def read(cls, file):
        keys = {}
        for line in pathlib.Path(file).read_text().splitlines():
            if re.match(r"[A-Z]\w*=", line):
                key, _, value = line.partition("=")
                keys[key] = value.strip()
        unit = cls(file=str(file), restart=keys.get("Restart", "no"), notify=keys.get("Type") == "notify")
        for name, key, read in (("restart_s", "RestartSec", seconds), ("limit_s", "StartLimitIntervalSec", seconds),
                                ("limit_starts", "StartLimitBurst", int), ("stop_s", "TimeoutStopSec", seconds),
                                ("watchdog_s", "WatchdogSec", seconds), ("start_s", "TimeoutStartSec", seconds),
                                ("no_restart_after", "RestartPreventExitStatus", lambda text: frozenset(map(int, text.split())))):
            if key in keys:
                setattr(unit, name, read(keys[key]))
        words = shlex.split(keys.get("ExecStart", ""))
        if words[1:2] != ["run"] or "--config" not in words:
            raise ValueError(f"{file} has no ExecStart=... run --config ...")
        at = words.index("--config")
        unit.options = tuple(words[2:at] + words[at + 2:])
        return unit

    @classmethod
    def find(cls, root):
        for name in UNITS:
            if (root / name).exists():
                return cls.read(root / name)
        raise FileNotFoundError(f"there is no {UNITS[0]}, in {root} or installed; --unit FILE names another")

    def text(self):
        prevented = f", RestartPreventExitStatus={' '.join(map(str, sorted(self.no_restart_after)))}" if self.no_restart_after else ""
        return (f"{self.file}: Restart={self.restart}, RestartSec={self.restart_s:g}, at most {self.limit_starts} starts in "
                f"{self.limit_s:g} s{prevented}, WatchdogSec={self.watchdog_s:g}")


class Service:
    """weir@soak. `start` makes a process that has `poll()`, `kill(signal)`, `ready` and `alive_at`."""

    def __init__(self, unit, start):
        self.unit, self.make = unit, start
        self.process = None
        self.state = "stopped"  # starting, running, stopping, waiting (to be started again), failed
        self.again_at = 0.0
        self.starts = []
        self.stop_by = 0.0

    def start(self, by_hand=True):
        """By hand: `systemctl start`, after `systemctl reset-failed` where that is needed."""
        if by_hand:
            self.starts.clear()
        now = time.monotonic()
        self.starts = [at for at in self.starts if at > now - self.unit.limit_s]
        if len(self.starts) >= self.unit.limit_starts:
            self.state = "failed"
            return
        self.starts.append(now)
        self.process = self.make()
        self.state = "starting"
        self.started_at = now

    def stop(self):
        if self.state in ("waiting", "failed"):
            self.state = "stopped"
        elif self.state in ("starting", "running"):
            self.process.kill(signal.SIGTERM)
            self.state, self.stop_by = "stopping", time.monotonic() + self.unit.stop_s

    def tick(self):
        """Looks after the process. What the manager did, in words, or nothing."""
        now = time.monotonic()
        if self.state == "waiting" and now >= self.again_at:
            self.start(by_hand=False)
            return "start limit reached: it stays failed" if self.state == "failed" else ""
        if self.process is None or self.state not in ("starting", "running", "stopping"):
            return ""
        status = self.process.poll()
        if status is not None:
            return self.ended(status, now)
        ready = self.process.ready  # also hears that it is alive
        if self.state == "starting" and ready:
            self.state = "running"
        if self.state == "starting" and now > self.started_at + self.unit.start_s:
            self.process.kill(signal.SIGKILL)
            return f"no READY=1 within {self.unit.start_s:g} s: killed"
        if self.state == "stopping" and now > self.stop_by:
            self.process.kill(signal.SIGKILL)
            return f"did not stop within {self.unit.stop_s:g} s: killed"
        if self.state == "running" and self.unit.watchdog_s and self.process.alive_at and now > self.process.alive_at + self.unit.watchdog_s:
            self.process.alive_at = now
            self.process.kill(signal.SIGABRT)
            return f"no WATCHDOG=1 within {self.unit.watchdog_s:g} s: aborted"
        return ""

    def ended(self, status, now):
        asked = self.state == "stopping"
        clean = status == 0 or -status in CLEAN_SIGNALS
        again = self.unit.restart == "always" or (self.unit.restart == "on-failure" and not clean)
        if asked or not again or status in self.unit.no_restart_after:
            self.state = "stopped" if clean or asked else "failed"
        else:
            self.state, self.again_at = "waiting", now + self.unit.restart_s
        return ""


def exit_text(status):
    return f"exit status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"
