"""One process `weir run` of the soak: started, listened to, measured."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time


class Notify:
    """The socket on which a service says READY=1 and WATCHDOG=1."""

    def __init__(self, path):
        self.path = str(path)
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(self.path)

    def take(self):
        """All that has been said since."""
        said = []
        while True:
            try:
                said += self.socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                return said


class Run:
    """Run number `number` of the soak. `arrived` is a function: frames that have arrived at weir's interface so far."""

    def __init__(self, number, weir, config, folder, unit, notify, detector, arrived):
        self.number, self.detector, self.arrived = number, detector, arrived
        self.folder = folder / f"run-{number:04}"
        self.folder.mkdir()
        self.report_file, self.progress_file = self.folder / "report.json", self.folder / "progress.jsonl"
        self.stderr_file = self.folder / "stderr.txt"
        self.lines = []
        self.notify, self.uses_notify = notify, unit.notify
        self.path = None  # of its directory, hidden as long as it is written
        self.running_at = self.ended_at = self.ready_at = None
        self.alive_at = 0.0
        self.asked_to_end = False  # by the soak: an end that is no fault
        self.faults = set()  # what was done to it
        self.memory = []  # (seconds since running, RSS in KiB, threads, file descriptors)
        self.sessions = []
        environment = {**os.environ, "NOTIFY_SOCKET": notify.path}
        if unit.watchdog_s:
            environment["WATCHDOG_USEC"] = str(int(unit.watchdog_s * 1e6))
        self.started_at = time.monotonic()
        self.arrived_at_start = arrived()
        notify.take()
        with open(self.folder / "stdout.txt", "w") as output:
            self.process = subprocess.Popen(
                [str(weir), "run", "--config", str(config), *unit.options, "--report", str(self.report_file), "--progress",
                 f"json:{self.progress_file}"],
                stdout=output, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environment, start_new_session=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with open(self.stderr_file, "w", buffering=1) as copy:
            for line in self.process.stderr:
                copy.write(line)
                self.lines.append(line.rstrip("\n"))
                if line.startswith("running") and self.running_at is None:
                    self.arrived_when_running = self.arrived()
                    self.running_at = time.monotonic()

    # What the service manager asks.

    @property
    def ready(self):
        for word in self.notify.take():
            if word == "READY=1":
                self.ready_at = time.monotonic()
                self.alive_at = self.ready_at
            if word == "WATCHDOG=1":
                self.alive_at = time.monotonic()
        return self.ready_at is not None if self.uses_notify else self.running_at is not None

    def kill(self, number):
        if number == signal.SIGTERM:
            self.asked_to_end = True
        self.mark_end()
        self.process.send_signal(number)

    def mark_end(self):
        """From now on it need not take what arrives."""
        if not hasattr(self, "arrived_when_ending"):
            self.arrived_when_ending = self.arrived()

    def poll(self):
        status = self.process.poll()
        if status is not None and self.ended_at is None:
            self.reader.join(5)
            self.mark_end()
            self.ended_at = time.monotonic()
            self.arrived_at_end = self.arrived()
        return status

    # What the soak asks.

    @property
    def taking_data(self):
        return self.running_at is not None and self.ended_at is None

    def find_path(self):
        """Where it writes: it says so when it starts."""
        for line in self.lines:
            found = re.match(r"sink: (.+)/\.([^/]+)\.part, ", line)
            if found:
                self.path = f"{found[1]}/{found[2]}"
        return self.path

    def progress(self):
        """The last whole object, or an empty one."""
        try:
            with open(self.progress_file, "rb") as file:
                file.seek(max(0, os.path.getsize(self.progress_file) - 40000))
                lines = file.read().split(b"\n")[:-1]
            return json.loads(lines[-1])
        except (OSError, IndexError, ValueError):
            return {}

    def report(self):
        try:
            return json.loads(self.report_file.read_text())
        except (OSError, ValueError):
            return None

    def measure(self):
        """Adds a sample of its memory; none while it starts or ends."""
        try:
            with open(f"/proc/{self.process.pid}/statm") as statm:
                resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
            threads, files = (len(os.listdir(f"/proc/{self.process.pid}/{name}")) for name in ("task", "fd"))
        except OSError:
            return
        if resident and self.taking_data:
            self.memory.append((round(time.monotonic() - self.running_at, 2), resident, threads, files))
            with open(self.folder / "memory.csv", "a") as file:
                print(*self.memory[-1], sep=",", file=file)

    def writer_thread(self):
        """The thread that has written most: the sink's."""
        written = {}
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/io") as file:
                written[int(thread)] = int(re.search(r"wchar: (\d+)", file.read())[1])
        return max(written, key=written.get)
