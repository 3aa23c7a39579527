#!/usr/bin/env python3
"""The Python reader on a folder with the runs of a cluster's builders, which it opens as one run."""
import contextlib
import fcntl
import os
import queue
import shutil
import struct
import sys
import threading
from unittest import mock

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips
import numpy as np

from support import ROOT, Case, main

sys.path.insert(0, str(ROOT / "python"))
import made_up_run as made  # noqa: E402
import weir  # noqa: E402

NODES = [("ru0", "readout"), ("bu0", "builder"), ("bu1", "builder"), ("bu2", "builder")]
PATIENCE_S = 60
ROWS, COLUMNS = 4, 32
MESSAGE = ROWS * COLUMNS * 2  # bytes of one as it was received


def config(nodes=NODES, block=16):
    return {"stream": [{"format": "jungfrau"}], "cluster": {"block": block}, "node": [{"name": name, "role": role} for name, role in nodes]}


def account(node, nodes=NODES, block=16, built=1):
    listed = [{"name": name, "role": role} for name, role in nodes]
    return {"node": node, "role": "builder", "block": block, "nodes": listed, "builder": {"blocks": {"complete": built}}}


def event(number, value=None, epoch=0, lost=0, pixels="f32", sources=1):
    """Of which the last `lost` bytes of a message are missing."""
    images = np.full((sources, ROWS, COLUMNS), number if value is None else value, made.TYPES[pixels])
    return made.Event(number, images, epoch=epoch, missing=((MESSAGE - lost, lost),) if lost else ())


class Lock:
    """As the program that writes a run has it on its index."""
    def __init__(self, folder):
        self.file = open(folder / "index.weir", "ab")
        self.set(fcntl.F_WRLCK)

    def set(self, kind):
        fcntl.fcntl(self.file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, 0, 0, 0))

    def release(self):
        self.file.close()


class FolderCase(Case):
    def setUp(self):
        super().setUp()
        self.all = self.path("all")
        self.all.mkdir()

    def begin(self, name, pixels="f32", **more):
        path = self.all / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return made.Run(path, pixels, COLUMNS, **{"config": config(), **more})

    def finished(self, name, *events, node=None, members=None, **more):
        """A finished run; `events` are numbers or Events."""
        run = self.begin(name, **more)
        for one in events:
            run.put(event(one, pixels=run.name) if isinstance(one, int) else one)
        run.close(**({"cluster": account(node or name)} if members is None else members))
        return run

    def left(self, name, *events, **more):
        """A run whose writer was ended by force."""
        run = self.begin(name, **more)
        for one in events:
            run.put(event(one, pixels=run.name) if isinstance(one, int) else one)
        run.flush()
        return run

    def names(self, joined=None):
        joined = joined or weir.open(self.all)
        return [str(run.path.relative_to(self.all)) for run in joined.runs]

    @staticmethod
    def value(one):
        """What its pixels are, by which copies of an event are told apart."""
        return float(one.array(source=0)[0, 0])


class Reading(FolderCase):
    def three(self):
        """Shares in blocks of four, two epochs, two segments in the first; in each run the order is another."""
        builders = [self.begin(f"bu{i}", number=7, created_ns=50 - i) for i in range(3)]
        for epoch in range(2):
            for number in reversed(range(60)):
                builders[number // 4 % 3].put(event(number, number + 100 * epoch, epoch, lost=2 * (number % 3)))
            if epoch == 0:
                builders[0].end_segment()
                builders[0].begin()
        for i, run in enumerate(builders):
            run.close(cluster=account(f"bu{i}", built=i + 1))

    def test_it_is_all_runs_in_one_order(self):
        self.three()
        alone = [weir.open(self.all / f"bu{i}") for i in range(3)]
        expected = {(one.epoch, one.id): one for run in alone for one in run}
        with weir.open(self.all) as run:
            self.assertIsInstance(run, weir.Run)
            self.assertEqual([(one.epoch, one.id) for one in run], sorted(expected))
            for one in run:
                same = expected[one.epoch, one.id]
                self.assertEqual((one.complete, one.bytes, one.sha256(), repr(one)), (same.complete, same.bytes, same.sha256(), repr(same)))
                self.assertEqual(self.value(one), one.id + 100 * one.epoch)
                self.assertEqual([source.missing for source in one.sources], [source.missing for source in same.sources])
            self.assertEqual((len(run), run.copies, run.verify()), (120, 0, []))
            begins, found = [0, 2, 3], []
            for part, begin in zip(alone, begins):
                index = part.index.copy()
                index["segment"] += begin
                found += index.tolist()
            self.assertEqual(sorted(run.index.tolist()), sorted(found))

    def test_events_are_found_as_in_one_run(self):
        self.three()
        run = weir.open(self.all)
        self.assertEqual([one.id for one in run[10:20:3]], [10, 13, 16, 19])
        self.assertEqual((run[-1].epoch, run[-1].id, run[0, 5].epoch, run[1, 5].epoch, run.event(5, epoch=1).epoch), (1, 59, 0, 1, 1))
        self.assertTrue(5 in run and (1, 5) in run and 60 not in run and (2, 5) not in run)
        for key, error in ((60, KeyError), ((2, 5), KeyError), (5, weir.RunError), (-121, IndexError)):
            with self.assertRaises(error):
                run[key]
        self.assertIn("60 events", repr(run[:60]))

    def test_it_says_what_all_say(self):
        self.three()
        run = weir.open(self.all)
        self.assertEqual((run.closed, run.being_written, run.number, run.created_ns, run.version), (True, False, 7, 48, 2))
        self.assertEqual((run.ledger, run.manifest, run.lossless, run.name), ({}, {}, "unknown", "made up"))
        self.assertEqual((run.config, run.payload["type"]), (config(), "f32"))
        self.assertIn(f"weir inspect {self.all}", " ".join(run.evidence))
        self.assertRegex(repr(run), r"number 7\) of 3 builders' runs: finished, not read yet.*lossless: unknown")
        self.assertEqual([type(part.index) for part in run.runs], [np.ndarray] * 3)
        self.assertEqual(len(run), 120)
        self.assertIn("finished, 120 events,", repr(run))
        self.finished("bu3", 900, number=8, members={"cluster": account("bu3", built=9)})
        self.assertIsNone(weir.open(self.all).number)
        alone = weir.open(self.all / "bu0")
        self.assertEqual((alone.runs, alone.copies), ([alone], 0))

    def test_the_largest_event_is_passed_on(self):
        self.three()
        with self.assertRaisesRegex(weir.RunError, "at most 100 are taken"):
            weir.open(self.all, max_event=100)[0, 5].array()

    def test_many_builders_share_their_open_files(self):
        for i in range(100):
            self.finished(f"bu{i:03}", i, members={"cluster": account("bu0", built=i)})
        before = len(os.listdir("/proc/self/fd"))
        run = weir.open(self.all)
        self.assertEqual([self.value(one) for one in run], list(range(100)))
        self.assertLessEqual(len(os.listdir("/proc/self/fd")) - before, 64)
        run.close()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)
        self.assertEqual(self.value(run[99]), 99)

    def test_a_slice_stays_what_it_is_while_the_run_grows(self):
        first, second = self.left(".bu0.part", 1), self.left(".bu1.part", 2)
        run = weir.open(self.all)
        some, whole = run[:], iter(run)
        first.end_segment()
        first.begin()
        first.put(event(3))
        first.flush()
        self.assertIs(run.refresh(), True)
        self.assertEqual([self.value(one) for one in run], [1, 2, 3])
        self.assertEqual([self.value(one) for one in some], [1, 2])
        self.assertEqual([self.value(one) for one in whole], [1, 2])
        self.assertIs(run.refresh(), False)


class Finding(FolderCase):
    def test_runs_are_looked_for_two_levels_deep(self):
        self.finished("bu1/run-000001", 1, node="bu1")
        self.finished("bu0/run-000001", 2, node="bu0")
        self.finished("bu2", 3)
        self.finished("bu2/inside", 4, node="bu0")         # in a run
        self.finished("a/b/c", 5, node="bu1")              # three levels
        self.assertEqual(self.names(), ["bu0/run-000001", "bu1/run-000001", "bu2"])
        self.assertEqual([one.id for one in weir.open(self.all)], [1, 2, 3])

    def test_an_unfinished_run_stands_where_it_will_be(self):
        self.finished("bu0", 1)
        self.finished("bu2", 2)
        # Only the first segment says that it is of a cluster; its last event is cut off.
        left = self.left(".bu1.part", 3, 4)
        with open(left.folder / "events-000000.weir", "r+b") as file:
            file.truncate(len(left.data) - 64)
        run = weir.open(self.all)
        self.assertEqual(self.names(run), ["bu0", ".bu1.part", "bu2"])
        self.assertEqual([one.id for one in run], [1, 2, 3])
        self.assertEqual((run.closed, run.being_written), (False, False))
        self.assertRegex(repr(run), "3 builders' runs: not closed, 3 events found")
        lock = Lock(left.folder)
        self.assertIs(run.being_written, True)
        lock.release()

    def test_what_a_run_says_is_what_the_first_finished_one_says(self):
        self.left(".bu0.part", 1, pixels="f16")
        self.finished("bu1", 2, pixels="u16")
        self.finished("bu2", 3, pixels="i16")
        run = weir.open(self.all)
        self.assertEqual(run.payload["type"], "u16")
        self.assertEqual([self.value(one) for one in run], [1, 2, 3])  # each in the type of its own run

    def test_other_things_are_left_aside(self):
        self.finished("bu0", 1)
        self.finished("alone", 2, config={"stream": []}, members={})
        self.finished("hdf5", 3)
        (self.all / "hdf5" / "master.h5").touch()
        (self.all / "hdf5" / "events-000000.weir").unlink()
        (self.all / "hdf5" / "manifest.json").unlink()
        self.finished("hdf5/bu1", 4, node="bu1")
        (self.all / "empty").mkdir()
        (self.all / "ru0.json").write_text("{}")
        (self.all / "no-segment").mkdir()
        (self.all / "no-segment" / "manifest.json").write_text("{}")
        self.assertEqual(self.names(), ["bu0"])
        self.assertIn("of one builder's run", repr(weir.open(self.all)))

    def test_a_folder_without_them_is_no_run(self):
        self.finished("alone", 2, config={"stream": []}, members={})
        with self.assertRaisesRegex(weir.RunError, "is not a run: it has no segment"):
            weir.open(self.all)
        self.finished("bu0", 1)
        (self.all / "master.h5").touch()
        with self.assertRaisesRegex(weir.RunError, "is not a run: it has no segment"):
            weir.open(self.all)

    def test_of_two_sinks_of_a_builder_the_first_counts(self):
        self.finished("disk1", 1, 2, node="bu0")
        self.finished("disk2", 1, 2, node="bu0")
        self.finished("disk3", 3, node="bu1")
        run = weir.open(self.all)
        self.assertEqual((self.names(run), len(run), run.copies, run.verify()), (["disk1", "disk3"], 3, 0, []))

    def test_runs_of_different_clusters_are_refused(self):
        others = {"block": {"block": 32}, "a node more": {"nodes": [*NODES, ("bu3", "builder")]},
                  "a role": {"nodes": [("ru0", "builder"), *NODES[1:]]}, "an order": {"nodes": NODES[::-1]}}
        for what, keys in others.items():
            for said in ("account", "configuration"):
                with self.subTest(what, said=said):
                    self.finished("bu0", 1)
                    if said == "account":
                        self.finished("bu1", 2, members={"cluster": account("bu1", **keys)})
                    else:
                        self.left("bu1", 2, config=config(**keys))
                    with self.assertRaisesRegex(weir.RunError, "all holds runs of different clusters: bu0 and bu1 have other nodes or blocks"):
                        weir.open(self.all)
                    for name in ("bu0", "bu1"):
                        shutil.rmtree(self.all / name)


class Copies(FolderCase):
    """Event 5 is in two runs; which of them counts is seen by its pixels. What is better is once in the first run, and once in the second."""

    def check(self, better, worse):
        """Both make a run of events, one with the value 1 in its pixels and the other with 2."""
        for order in ("bu0", "bu1"), ("bu1", "bu0"):
            with self.subTest(first=order[0]):
                better(order[0], 1)
                worse(order[1], 2)
                run = weir.open(self.all)
                self.assertEqual((len(run), run.copies), (1, 1))
                self.assertEqual([self.value(one) for one in run], [1])
                self.assertEqual(self.value(run[5]), 1)
                for path in self.all.iterdir():
                    shutil.rmtree(path)

    def of(self, lost=0, interrupted=False, sources=1):
        def write(name, value):
            members = {"cluster": account(name), **({"interrupted": True} if interrupted else {})}
            self.finished(name, event(5, value, lost=lost, sources=sources), members=members)
        return write

    def damaged(self, name, value, place):
        """At this byte of its event."""
        run = self.finished(name, event(5, value))
        with open(run.folder / "events-000000.weir", "r+b") as file:
            file.seek(run.entries[0][3] + place)
            file.write(b"\xff")

    def unreadable(self, name, value):
        self.damaged(name, value, 64)

    def without_payload(self, name, value):
        self.damaged(name, value, -1 + (self.finished(name + "-measured", event(5, value)).entries[0][4]))
        shutil.rmtree(self.all / (name + "-measured"))

    def unfinished(self, name, value):
        self.left(f".{name}.part", event(5, value))

    def test_one_that_can_be_read(self):
        self.check(self.of(lost=100, interrupted=True), self.unreadable)
        self.check(self.of(lost=100, interrupted=True), self.without_payload)

    def test_then_one_that_is_complete(self):
        self.check(self.of(interrupted=True), self.of(lost=2, sources=2))

    def test_then_one_with_more_bytes(self):
        self.check(self.of(lost=2, interrupted=True), self.of(lost=4))

    def test_then_one_of_a_run_that_its_writer_closed(self):
        self.check(self.of(), self.of(interrupted=True))
        self.check(self.of(), self.unfinished)

    def test_then_the_first(self):
        self.finished("bu1", event(5, 2))
        self.finished("bu0", event(5, 1))
        self.left(".bu2.part", event(5, 3))
        run = weir.open(self.all)
        self.assertEqual(([self.value(one) for one in run], run.copies), ([1], 2))

    def test_the_same_number_in_another_epoch_is_no_copy(self):
        self.finished("bu0", event(5, 1))
        self.finished("bu1", event(5, 2, epoch=1))
        run = weir.open(self.all)
        self.assertEqual(([self.value(one) for one in run], run.copies), ([1, 2], 0))

    def test_verify_says_where_they_are(self):
        self.finished("bu0", *range(40))
        self.finished("bu1", *range(10, 32), 50)
        self.finished("bu2", 12, 60)
        run = weir.open(self.all)
        self.assertEqual((len(run), run.copies), (42, 23))
        problems = run.verify()
        self.assertEqual(problems[:3], ["event 0:10 is in bu0 and bu1", "event 0:11 is in bu0 and bu1", "event 0:12 is in bu0 and bu1 and bu2"])
        self.assertEqual(problems[19:], ["event 0:29 is in bu0 and bu1", "2 more events are there more than once"])

    def test_verify_names_the_run_of_a_problem(self):
        self.finished("a/bu0", 1, node="bu0")
        self.unreadable("a/bu1", 1)
        self.left("a/.bu2.part", 7)
        with self.subTest("names"):
            problems = weir.open(self.all).verify()
            self.assertIn("a/bu1: ", problems[0])
            self.assertEqual({problem.split(": ")[0] for problem in problems}, {"a/bu1", "a/.bu2.part"})


class Following(FolderCase):
    def setUp(self):
        super().setUp()
        self.given, self.locks = queue.Queue(), {}
        self.addCleanup(lambda: [lock.release() for lock in self.locks.values()])

    def write(self, run, *events):
        for one in events:
            run.put(event(one) if isinstance(one, int) else one)
        run.flush()

    def grow(self, name, *events, **more):
        run = self.begin(f".{name}.part", **more)
        self.locks[name] = Lock(run.folder)
        self.write(run, *events)
        return run

    def close(self, run, name):
        run.close(cluster=account(name))
        run.folder.rename(self.all / name)
        self.locks.pop(name).release()

    def follow(self, **more):
        """What it gives goes into self.given, None at the end."""
        def give():
            with contextlib.suppress(weir.RunError):
                for one in self.run_.follow(poll_s=0.005, **more):
                    self.given.put((one.id, self.value(one)))
                self.given.put(None)
        self.run_ = weir.open(self.all)
        thread = threading.Thread(target=give, daemon=True)
        thread.start()
        self.addCleanup(thread.join, PATIENCE_S)

    def next(self):
        return self.given.get(timeout=PATIENCE_S)

    def test_events_of_all_runs_are_given_once_as_they_come(self):
        first, second = self.grow("bu0", 1), self.grow("bu1")
        self.follow()
        self.assertEqual(self.next(), (1, 1))
        self.write(second, 17, 2)
        self.assertEqual([self.next(), self.next()], [(17, 17), (2, 2)])
        self.write(first, 3)
        self.assertEqual(self.next(), (3, 3))
        # A copy is not given again, neither of what was given before nor after its run was finished.
        self.close(first, "bu0")
        self.write(second, event(1, 99), event(3, 99), 4)
        self.assertEqual(self.next(), (4, 4))
        # A builder that begins later.
        third = self.grow("bu2", 30)
        self.assertEqual(self.next(), (30, 30))
        self.close(second, "bu1")
        self.write(third, 31)
        self.assertEqual(self.next(), (31, 31))
        self.close(third, "bu2")
        self.assertIsNone(self.next())
        self.assertEqual((self.run_.closed, self.names(self.run_)), (True, ["bu0", "bu1", "bu2"]))
        self.assertEqual(([one.id for one in self.run_], self.run_.copies), ([1, 2, 3, 4, 17, 30, 31], 2))

    def test_it_ends_when_the_last_program_has_ended(self):
        first, second = self.grow("bu0", 1), self.grow("bu1", 2)
        self.follow()
        self.assertEqual([self.next(), self.next()], [(1, 1), (2, 2)])
        self.write(first, 3)
        self.locks.pop("bu0").release()
        self.assertEqual(self.next(), (3, 3))
        self.write(second, 4)
        self.assertEqual(self.next(), (4, 4))
        self.write(second, 5)
        self.locks.pop("bu1").release()
        self.assertEqual([self.next(), self.next()], [(5, 5), None])
        self.assertIs(self.run_.closed, False)

    def test_it_ends_when_nothing_comes(self):
        self.grow("bu0", 1)
        self.follow(timeout_s=0.1)
        self.assertEqual([self.next(), self.next()], [(1, 1), None])
        self.assertIs(self.run_.being_written, True)

    def test_finished_runs_are_given_whole(self):
        self.finished("bu0", 9, 1)
        self.finished("bu1", 4, 1)
        self.follow()
        self.assertEqual([self.next()[0] for _ in range(3)], [9, 1, 4])
        self.assertIsNone(self.next())

    def test_refresh_sees_what_came(self):
        first = self.grow("bu0", 1)
        run = weir.open(self.all)
        self.assertIs(run.refresh(), False)
        self.write(first, 2)
        self.assertIs(run.refresh(), True)
        self.assertEqual(len(run), 2)
        second = self.grow("bu1", 2)
        self.assertEqual((run.refresh(), len(run), run.copies), (False, 2, 1))
        self.close(first, "bu0")
        self.close(second, "bu1")
        self.assertEqual((run.refresh(), run.closed, run.refresh()), (True, True, False))
        self.assertEqual([self.value(one) for one in run], [1, 2])

    def test_refresh_sees_a_run_that_came(self):
        self.finished("bu0", 1)
        run = weir.open(self.all)
        self.assertEqual((len(run), run.refresh()), (1, False))
        self.finished("bu1", 2)
        self.assertEqual((run.refresh(), len(run)), (True, 2))

    def test_it_ends_with_the_final_name(self):
        for path in (self.all, self.all / "bu0"):  # alone, too
            with self.subTest(path.name):
                first = self.grow("bu0", 1)

                def give_name():
                    first.folder.rename(self.all / "bu0")
                    self.locks.pop("bu0").release()

                steps = [lambda: first.close(cluster=account("bu0")), lambda: None, lambda: None, give_name]
                run = weir.open(path)
                with mock.patch("time.sleep", lambda _: steps.pop(0)()):
                    self.assertEqual([one.id for one in run.follow()], [1])
                self.assertEqual((steps, run.closed, run.runs[0].path), ([], True, self.all / "bu0"))
                shutil.rmtree(self.all / "bu0")

    def test_a_run_that_has_got_its_final_name_is_read_on(self):
        first = self.grow("bu0", 1)
        run = weir.open(self.all)
        one = run[1]
        run.close()
        self.close(first, "bu0")
        self.assertEqual((self.value(one), self.value(run[1])), (1, 1))

    def test_sinks_of_one_builder_become_one_when_they_are_finished(self):
        first, second = self.grow("disk1", 1), self.grow("disk2", 1)
        run = weir.open(self.all)
        self.assertEqual((len(run.runs), run.copies), (2, 1))
        for one, name in ((first, "disk1"), (second, "disk2")):
            one.close(cluster=account("bu0"))
            one.folder.rename(self.all / name)
            self.locks.pop(name).release()
        run.refresh()
        self.assertEqual((self.names(run), run.copies), (["disk1"], 0))


class Effort(FolderCase):
    def test_copies_are_looked_for_without_a_loop_over_all_events(self):
        self.finished("bu0", 0, 5)
        self.finished("bu1", 5)
        run = weir.open(self.all)
        for place, part in enumerate(run.runs):
            many = np.zeros(20_000, part.index.dtype)
            many["event"] = np.arange(len(many)) * 2 + 10 + place
            part._index = np.concatenate((part.index, many))
        lines = 0

        def count(frame, what, _):
            nonlocal lines
            lines += 1
            return count

        sys.settrace(count)
        try:
            found = len(run)
        finally:
            sys.settrace(None)
        self.assertEqual((found, run.copies), (40_002, 1))
        self.assertGreater(lines, 10)
        self.assertLess(lines, 10_000)


if __name__ == "__main__":
    main()
