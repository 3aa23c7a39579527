"""The soak's detector: `weir send` on the other side of the cable, in sessions. A session begins anew, goes on in numbers, or is killed."""

import json
import os
import signal
import subprocess
import time

import sandbox
from soaking.detectors import SOURCES, WAY


class Session:
    def __init__(self, process, report_file, detector, first_event, first_psn, left):
        self.process, self.report_file, self.detector = process, report_file, detector
        self.first_event, self.first_psn = first_event, first_psn
        self.left_at_start, self.begun_at = left, time.monotonic()
        self.ended_at = None
        self.asked_to_end = False
        self.may_fail = False  # the cable was out
        self.report = None  # none: it was killed
        self.on_the_way = 0  # frames that left


class Sender:
    def __init__(self, weir, folder, rate, seed, left):
        """`left` is a function: frames that have left the sender's interface so far."""
        self.weir, self.folder, self.rate, self.seed, self.left = weir, folder, rate, seed, left
        self.sessions = []
        self.now = self.killed = None
        self.next_event, self.next_psn = 1, 0
        self.begin_at = None  # a session that is to begin

    def begin(self, detector, again=False):
        """Goes on in numbers, or from 1 as a detector that was switched off."""
        if again:
            self.next_event, self.next_psn = 1, 0
        number = len(self.sessions)
        report = self.folder / f"sent-{number:04}.json"
        psn = ("--first-psn", self.next_psn) if detector.numbered_packets else ()
        command = [self.weir, "send", "--quiet", "--to", f"udp:{sandbox.RECEIVER}:{detector.port}", "--sources", SOURCES, "--rate",
                   self.rate, "--first-event", self.next_event, *psn, "--seed", self.seed, *detector.options, *WAY, "--report", report]
        log = self.folder / f"sent-{number:04}.txt"
        left = self.left()  # before there is a process whose frames could be among them
        with open(log, "w") as said:
            process = subprocess.Popen(sandbox.Network.there(*command), stdout=said, stderr=said, stdin=subprocess.DEVNULL,
                                       start_new_session=True)
        self.now = Session(process, report, detector, self.next_event, self.next_psn, left)
        self.sessions.append(self.now)
        return self.now

    @property
    def sending(self):
        return self.now is not None and self.now.ended_at is None

    def end(self, number=signal.SIGINT):
        """Asks it to end, or kills it in the middle of an event."""
        if self.sending:
            self.now.asked_to_end = True
            # `ip netns exec` has become the program; the group is for what it may have started.
            os.killpg(self.now.process.pid, number)

    def tick(self):
        """True when a session has ended just now."""
        if not self.sending or self.now.process.poll() is None:
            return False
        session = self.now
        session.ended_at = time.monotonic()
        session.on_the_way = self.left() - session.left_at_start
        try:
            session.report = json.loads(session.report_file.read_text())
        except (OSError, ValueError):
            session.report = None
        if session.report:
            self.next_event = session.report["events"]["first"] + session.report["events"]["sent"]
            per_source = max(source["generated"] for source in session.report["sources"])
            self.next_psn = (session.first_psn + per_source) % (1 << 24)
        else:  # further on than it can have come
            events = int((session.ended_at - session.begun_at) * self.rate * 1.1) + 10
            self.next_event = session.first_event + events
            self.next_psn = (session.first_psn + events * session.detector.packets // SOURCES) % (1 << 24)
        return True
