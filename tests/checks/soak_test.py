#!/usr/bin/env python3
"""The parts of scripts/soak that judge: each kind of thing that must not be is found, and what is in order is not called wrong."""

import copy
import pathlib
import signal
import sys
import tempfile
import time
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True

from soaking import checks, faults, schedule, summary  # noqa: E402
from soaking.detectors import FRAMES  # noqa: E402
from soaking.unit import Service, Unit  # noqa: E402

REPORT = {
    "balanced": True, "device_missed": 0, "devices": [{}], "ports": [{"before_start": 0}],
    "packets": {"received": 100, "placed": 90, "control": 0, "unsteered": 1, "in_flight": 0, "dropped": {"late": 6}, "not_for_us": {"arp": 3}},
    "messages": {"opened": 12, "delivered": 11, "refused": {"late": 1}},
    "events": {"opened": 6, "complete": 5, "incomplete": {"timeout": 1}, "written": 5, "vetoed": 0, "dropped": {"write_error": 1},
               "refused": {"queue_full": 0}},
}


def changed(*keys, by):
    report = copy.deepcopy(REPORT)
    inner = report
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] += by
    return report


class Account(unittest.TestCase):
    def test_sums(self):
        self.assertEqual(checks.sums(REPORT), [])
        for keys in (("packets", "placed"), ("packets", "dropped", "late"), ("packets", "in_flight"), ("messages", "delivered"),
                     ("events", "opened"), ("events", "written"), ("events", "dropped", "write_error")):
            self.assertEqual(len(checks.sums(changed(*keys, by=1))), 1, keys)
        self.assertEqual(checks.sums({**REPORT, "balanced": False}), ["balanced is false"])

    def run_of(self, **more):
        session = types.SimpleNamespace(report={"events": {"whole": 5}}, begun_at=0, ended_at=1, may_fail=False)
        facts = dict(arrived_at_start=40, arrived_when_running=50, arrived_when_ending=150, arrived_at_end=150, quiet_start=True, quiet_end=True,
                     packets_per_s=160, rate=10, detector=FRAMES, sessions=[session], frames_left_at_start=1000, frames_left_at_end=1110)
        return types.SimpleNamespace(**{**facts, **more})

    def test_what_arrived(self):
        self.assertEqual(checks.arrivals(self.run_of(), REPORT), [])
        self.assertEqual(checks.arrivals(self.run_of(), changed("device_missed", by=10)), [])
        for report in (changed("packets", "received", by=-1), changed("packets", "received", by=11), changed("device_missed", by=11)):
            self.assertEqual(len(checks.arrivals(self.run_of(), report)), 1)
        # What an interface refuses that goes down is not among what came.
        refused = {**changed("device_missed", by=15), "devices": [{"missed": 15, "missed_by_interface": 15}]}
        self.assertEqual(checks.arrivals(self.run_of(), refused), [])
        self.assertEqual(checks.taken(refused), checks.taken(REPORT))
        # While the sender goes on the moments are not exact.
        self.assertEqual(checks.arrivals(self.run_of(quiet_end=False), changed("packets", "received", by=-40)), [])
        self.assertEqual(len(checks.arrivals(self.run_of(quiet_end=False), changed("packets", "received", by=-90))), 1)

    def test_whole_events(self):
        self.assertEqual(checks.whole_events(self.run_of(), REPORT), [])
        self.assertEqual(len(checks.whole_events(self.run_of(), changed("events", "complete", by=1))), 1)
        # One was dropped for a write error, and one timed out before its last packets came: these may be whole ones. A third one that is
        # missing has no excuse.
        self.assertEqual(checks.whole_events(self.run_of(), changed("events", "complete", by=-2)), [])
        wrong, = checks.whole_events(self.run_of(), changed("events", "complete", by=-3))
        self.assertIn("incomplete: 1 timeout", wrong)
        # But for a frame that left the sender and did not arrive.
        self.assertEqual(checks.whole_events(self.run_of(frames_left_at_end=1111), changed("events", "complete", by=-3)), [])
        # What timed out, and nothing of it came late, was lost.
        lost = changed("packets", "dropped", "late", by=-6)
        lost["events"]["complete"] -= 2
        self.assertEqual(len(checks.whole_events(self.run_of(), lost)), 1)

    def test_contents(self):
        contents, event = checks.Contents(), {"id": 7, "complete": True, "sha256": "a" * 64}
        self.assertFalse(contents.wrong(FRAMES, event))
        self.assertFalse(contents.wrong(FRAMES, event))
        self.assertTrue(contents.wrong(FRAMES, {**event, "sha256": "b" * 64}))
        self.assertFalse(contents.wrong(FRAMES, {**event, "sha256": "b" * 64, "complete": False}))

    def memory(self, samples, bound=512):
        run = types.SimpleNamespace(number=1, memory=[(float(at), kib, 5, 19) for at, kib in enumerate(samples)])
        return checks.memory(run, 10, bound)[1]

    def test_memory(self):
        self.assertEqual(self.memory([100] * 10 + [1000] * 60), [])  # the beginning is left out
        self.assertEqual(self.memory([1000 + 900 * (at % 10 == 0) for at in range(70)]), [])  # now and then a buffer
        self.assertEqual(len(self.memory([1000 + 20 * at for at in range(70)])), 1)
        self.assertEqual(len(self.memory([1000] * 12)), 1)  # nothing can be said
        run = types.SimpleNamespace(number=1, memory=[(float(at), 1000, 5, 19 + at // 20) for at in range(70)])
        self.assertIn("open files", checks.memory(run, 10, 512)[1][0])

    def test_frames(self):
        box = types.SimpleNamespace(runs=[types.SimpleNamespace(packets_per_s=160, faults=set())])
        good = {"lost_between": 0, "while_one_started_or_ended": 30}
        self.assertEqual(summary.check_frames(good, box), [])
        for wrong in ({"lost_between": 1}, {"while_one_started_or_ended": -1}, {"while_one_started_or_ended": 641}):
            self.assertEqual(len(summary.check_frames({**good, **wrong}, box)), 1, wrong)


class Plan(unittest.TestCase):
    def test_it_follows_from_the_seed(self):
        self.assertEqual(schedule.drawn(600, 1), schedule.drawn(600, 1))
        self.assertNotEqual(schedule.drawn(600, 1), schedule.drawn(600, 2))

    def test_every_fault_comes_and_the_last_run_is_left_alone(self):
        for seconds in (48, 300, 3600):
            for seed in range(20):
                plan = schedule.drawn(seconds, seed)
                for lane, kinds in (("wire", faults.WIRE), ("box", faults.BOX)):
                    self.assertEqual({planned.fault for planned in plan[lane]}, set(kinds))
                    self.assertEqual(plan[lane], sorted(plan[lane], key=lambda planned: planned.at_s))
                last = seconds - schedule.tail_s(seconds)
                self.assertEqual([planned.fault.does for planned in plan["box"] if planned.at_s >= last and planned.fault.ends_run], [faults.new_run])


class Process:
    """Ends as it is told."""

    def __init__(self):
        self.status, self.ready, self.alive_at, self.signals = None, False, 0.0, []

    def poll(self):
        return self.status

    def kill(self, number):
        self.signals.append(number)


class Manager(unittest.TestCase):
    def setUp(self):
        self.made = []
        self.unit = Unit(restart="on-failure", restart_s=0.0, limit_s=60, limit_starts=3, no_restart_after=frozenset({2}), watchdog_s=5)
        self.service = Service(self.unit, self.make)

    def make(self):
        self.made.append(Process())
        return self.made[-1]

    def run_and_end(self, status):
        self.made[-1].ready = True
        self.service.tick()
        self.assertEqual(self.service.state, "running")
        self.made[-1].status = status
        self.service.tick()
        return self.service.state

    def test_what_is_started_again(self):
        for status, state in ((0, "stopped"), (1, "waiting"), (2, "failed"), (-signal.SIGKILL, "waiting"), (-signal.SIGABRT, "waiting"),
                              (-signal.SIGTERM, "stopped")):
            self.service = Service(self.unit, self.make)
            self.service.start()
            self.assertEqual(self.run_and_end(status), state, status)

    def test_the_limit(self):
        self.service.start()
        for _ in range(2):
            self.assertEqual(self.run_and_end(1), "waiting")
            self.service.tick()
        self.assertEqual(self.run_and_end(1), "waiting")
        self.assertIn("start limit", self.service.tick())
        self.assertEqual((self.service.state, len(self.made)), ("failed", 3))
        self.service.start()
        self.assertEqual((self.service.state, len(self.made)), ("starting", 4))

    def test_it_listens_while_it_runs(self):
        heard = []

        class Heard(Process):
            ready = property(lambda self: heard.append(1) or True, lambda self, value: None)
        self.service = Service(self.unit, Heard)
        self.service.start()
        for _ in range(3):
            self.service.tick()
        self.assertEqual(len(heard), 3)

    def test_stopping_and_the_watchdog(self):
        self.service.start()
        self.made[-1].ready, self.made[-1].alive_at = True, time.monotonic()
        self.service.tick()
        self.assertEqual(self.made[-1].signals, [])
        self.made[-1].alive_at = time.monotonic() - 6
        self.assertIn("WATCHDOG", self.service.tick())
        self.assertEqual(self.made[-1].signals, [signal.SIGABRT])
        self.service.stop()
        self.assertEqual(self.made[-1].signals, [signal.SIGABRT, signal.SIGTERM])
        self.made[-1].status = 1
        self.service.tick()
        self.assertEqual(self.service.state, "stopped")

    def test_the_unit_that_is_shipped(self):
        text = (ROOT / "systemd" / "weir@.service").read_text()
        unit = Unit.read(ROOT / "systemd" / "weir@.service")
        self.assertIn(f"\nStartLimitBurst={unit.limit_starts}\n", text)
        self.assertIn(f"\nRestartSec={unit.restart_s:g}\n", text)
        self.assertEqual((unit.restart, unit.notify, unit.no_restart_after), ("on-failure", True, frozenset({2})))
        self.assertNotIn("--config", unit.options)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "other.service"
            file.write_text("[Service]\nExecStart=/usr/bin/weir run --config /x.toml --quiet\nRestartSec=500ms\nTimeoutStopSec=2min\nRestart=always\n")
            unit = Unit.read(file)
            self.assertEqual((unit.restart_s, unit.stop_s, unit.restart, unit.notify, unit.options), (0.5, 120, "always", False, ("--quiet",)))
            file.write_text("[Service]\nExecStart=/bin/true\n")
            self.assertRaises(ValueError, Unit.read, file)


if __name__ == "__main__":
    unittest.main()
