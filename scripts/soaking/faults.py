"""What happens to the appliance. Each fault is a generator, so that everything else goes on; it returns in words how it ended, and
raises DidNotHold if it ended as it must not.

Faults of the wire (sender, cable) and of the box (weir, disk) are drawn apart, so one of each may happen at the same time.
"""

import dataclasses
import signal
import time

from soaking.box import DidNotHold, until, wait
from soaking.detectors import DETECTORS
from soaking.freeze import Frozen

START_S = 60  # to recover: RestartSec of the unit, and so much for the start, which takes two or three on a machine with time for it
EVENTS_S = 60  # until events come again; other faults may be going on


def events_again(box, what):
    """Complete events are counted again; how long that took, in words."""
    took = yield from until(box.count("events", "complete"), f"complete event {what}", EVENTS_S)
    return f"events again after {took:.1f} s"


# The wire.

def sender_restarted(box, drawn, again=False):
    yield from box.take_wire()
    try:
        yield from box.end_session()
        yield from wait(drawn["seconds"])
        box.begin_session(again)
    finally:
        box.give_wire()
    return (yield from events_again(box, "after the sender began again"))


def detector_restarted(box, drawn):
    return (yield from sender_restarted(box, drawn, again=True))


def sender_killed(box, drawn):
    yield from box.take_wire()
    try:
        yield from box.end_session(signal.SIGKILL)
        yield from wait(drawn["seconds"])
        box.begin_session()
    finally:
        box.give_wire()
    return (yield from events_again(box, "after the sender was killed"))


def cable_out(box, drawn, side="det0"):
    yield from box.take_wire()
    try:
        box.run.faults.add("cable")
        box.set_link(side, False)
        yield from wait(drawn["seconds"])
    finally:
        box.set_link(side, True)
        box.give_wire()
    return (yield from events_again(box, "after the cable was in again"))


def far_side_off(box, drawn):
    return (yield from cable_out(box, drawn, "gen0"))


# The box.

def recovered(box, since, what):
    yield from until(lambda: box.taking_data and box.run.running_at > since, f"running weir after {what}", box.unit.restart_s + START_S)
    box.recoveries.append(box.run.running_at - since)
    return f"taking data again after {box.run.running_at - since:.1f} s"


def weir_killed(box, drawn, number=signal.SIGKILL):
    run, since = box.run, time.monotonic()
    run.faults.add("killed")
    run.kill(number)
    return (yield from recovered(box, since, number.name))


def weir_aborted(box, drawn):
    return (yield from weir_killed(box, drawn, signal.SIGABRT))


def sink_stalls(box, drawn):
    run = box.run
    refused, received = box.count("events", "refused", "queue_full"), box.count("packets", "received")
    frozen = Frozen(run.writer_thread())
    try:
        yield from wait(drawn["seconds"])
        if box.sender.sending and drawn["seconds"] > 3 and not received():
            raise DidNotHold(f"run {run.number} took no packet while the sink stood still for {drawn['seconds']:.1f} s")
    finally:
        frozen.thaw()
    took = yield from until(box.count("events", "written"), "written event after the sink had stood still", EVENTS_S)
    if box.run is not run:
        raise DidNotHold(f"run {run.number} did not live through a sink that stood still for {drawn['seconds']:.1f} s")
    lost = refused.value() - refused.before
    return f"written again after {took:.1f} s; " + (f"{lost} whole events refused" if lost else "no event lost")


def disk_near_full(box, drawn):
    run = box.run
    warnings = lambda: sum("disk will be full soon" in line for line in run.lines)
    before = warnings()
    box.disk.fill(int(box.warning_s * 0.7 * box.rate * box.detector.event_bytes))
    try:
        yield from until(lambda: warnings() > before or not run.taking_data, "warning that the disk will be full soon", box.warning_s * 0.5)
        yield from wait(min(drawn["seconds"], box.warning_s * 0.1))
    finally:
        box.disk.make_room()
    yield from until(box.count("events", "written"), "written event with room on the disk", EVENTS_S)
    if box.run is not run:
        raise DidNotHold(f"run {run.number} ended although the disk was never full")
    return "warned in time, went on"


def disk_full(box, drawn):
    run = box.run
    box.full = True
    run.faults.add("disk full")
    run.mark_end()  # it may end at once
    box.disk.fill(0)
    try:
        yield from until(lambda: run.ended_at is not None, "end of the run on a full disk", 40)
        since = run.ended_at
        if run.process.returncode != 1 or not any("No space left" in line for line in run.lines):
            raise DidNotHold(f"run {run.number} did not say that the disk is full: {run.lines[-1]}")
        end = time.monotonic() + drawn["seconds"]
        while time.monotonic() < end:
            box.run.faults.add("disk full")  # those that were started meanwhile
            yield
    finally:
        box.disk.make_room()
        box.full = False
    box.run.faults.add("disk full")
    by_hand = box.service.state == "failed"
    if by_hand:
        box.service.start()
    text = yield from recovered(box, since, "the disk had room again")
    return "ended in order; " + text + (", started by hand after the start limit" if by_hand else "")


def asked_how_it_goes(box, drawn):
    run = box.run
    before = len(run.lines)
    run.process.send_signal(signal.SIGUSR1)
    yield from until(lambda: len(run.lines) > before, "answer to SIGUSR1", 10)
    return f"answered: {' '.join(run.lines[before].split())[:60]}..."


def asked_to_record(box, drawn):
    if box.progress().get("recorder", {}).get("bytes", 0) > 28 << 20:
        return "not asked: the recorder has written all that it may"
    asked = box.count("recorder", "triggers", "request")
    box.run.process.send_signal(signal.SIGUSR2)
    took = yield from until(asked, "recording after SIGUSR2", 15)
    return f"recorded, {took:.1f} s later"


def new_run(box, drawn):
    """As an operator does it: the detector stops, a new run with another configuration."""
    yield from box.take_wire()
    try:
        yield from box.end_session()
        yield from wait(3)  # what is on its way arrives, what is open times out, also on a busy machine
        run, since = box.run, time.monotonic()
        box.service.stop()
        yield from until(lambda: box.service.state == "stopped", "end of the run", box.unit.stop_s + 5)
        box.configure(DETECTORS[(DETECTORS.index(box.detector) + 1) % len(DETECTORS)])
        box.service.start()
        yield from until(lambda: box.taking_data, "new run", START_S)
        box.planned_s += box.run.running_at - since
        box.begin_session(again=drawn["again"])
    finally:
        box.give_wire()
    return f"run {run.number} closed, run {box.run.number} takes {box.detector.name}"


@dataclasses.dataclass(frozen=True)
class Fault:
    does: object
    words: str
    shortest_s: float = 0.0
    longest_s: float = 0.0
    ends_run: bool = False

    def drawn(self, random, scale):
        """The parameters of one that happens."""
        longest = max(self.shortest_s, self.longest_s * scale)
        return {"seconds": round(random.uniform(self.shortest_s, longest), 2), "again": random.random() < 0.5}


WIRE = (
    Fault(sender_restarted, "sender restarted, goes on in numbers", 0.2, 5),
    Fault(detector_restarted, "detector restarted, numbers from 1", 0.2, 5),
    Fault(sender_killed, "sender killed in the middle of an event", 0.2, 5),
    Fault(cable_out, "cable out at weir", 0.5, 10),
    Fault(far_side_off, "cable out at the detector", 0.5, 10),
)
BOX = (
    Fault(new_run, "new run, by hand", ends_run=True),
    Fault(sink_stalls, "sink stands still", 1, 25),
    Fault(weir_killed, "weir killed (SIGKILL)", ends_run=True),
    Fault(disk_near_full, "disk nearly full", 0, 5),
    Fault(asked_how_it_goes, "asked how it goes (SIGUSR1)"),
    Fault(weir_aborted, "weir aborted (SIGABRT)", ends_run=True),
    Fault(asked_to_record, "asked to record (SIGUSR2)"),
    Fault(disk_full, "disk full", 0.5, 12, ends_run=True),
)
