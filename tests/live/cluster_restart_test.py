#!/usr/bin/env python3
"""All builders of a cluster are restarted, one after the other, while events come: nothing is lost, and nothing is there twice. A spare
joins in the middle, and a builder with twice the weight gets twice as many blocks.

usage: cluster_restart_test.py WEIR
"""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import live
import cluster_test as cluster

NODES = {"ru0": "readout", "ru1": "readout", "bu0": "builder", "bu1": "builder", "bu2": "builder"}
BUILDERS = ("bu0", "bu1", "bu2")
NODE_KEYS = {"bu1": "weight = 2", "bu2": "spare = true"}
SOURCES = 2  # of each readout node; each has one packet in an event


class Feed:
    """Captures that grow: each readout node reads its own from a pipe, event by event, until the test has seen enough."""

    PER_S = 300
    STEP = 10

    def __init__(self, captures, folder):
        self.target = 0  # events that may have been written
        self.most = 0
        self.over, self.closed = threading.Event(), threading.Event()
        self.pipes, self.fed, self.threads = {}, {}, []
        for name, capture in captures.items():
            self.pipes[name] = folder / name
            self.fed[name] = folder / f"{name}.fed.pcap"
            os.mkfifo(self.pipes[name])
            events = self.events_of(capture.read_bytes())
            self.most = len(events) - 1
            self.threads.append(threading.Thread(target=self.write, args=(name, events), daemon=True))
        self.pacer = threading.Thread(target=self.pace, daemon=True)

    @staticmethod
    def events_of(data):
        """The head of the capture, then the records of each event."""
        ends, at = [24], 24
        while at < len(data):
            at += 16 + int.from_bytes(data[at + 8:at + 12], "little")
            ends.append(at)
        ends = ends[::SOURCES]
        return [data[:24], *(data[begin:end] for begin, end in zip(ends, ends[1:]))]

    def start_reading(self):
        """Readers can open the pipes; nothing comes of them yet."""
        for thread in self.threads:
            thread.start()

    def start(self):
        self.pacer.start()

    def pace(self):
        while not self.over.wait(self.STEP / self.PER_S):
            self.target = min(self.target + self.STEP, self.most)

    def write(self, name, events):
        with open(self.pipes[name], "wb") as pipe, open(self.fed[name], "wb") as fed:
            written = 0
            while True:
                closed, target = self.closed.is_set(), self.target
                piece = b"".join(events[written:target + 1])
                written = max(written, target + 1)
                fed.write(piece)
                pipe.write(piece)
                pipe.flush()
                if closed:
                    return
                time.sleep(self.STEP / self.PER_S / 2)

    def end(self):
        """No more comes, of either; returns how many events came."""
        self.over.set()
        self.pacer.join()
        self.closed.set()
        for thread in self.threads:
            thread.join(live.PATIENCE_S)
            assert not thread.is_alive(), "a readout node does not read on"
        assert self.target < self.most, "the captures were too short for this machine"
        return self.target


class RestartTest(cluster.ClusterCase):
    maxDiff = None
    KEYS = 'transports = "tcp"\ncredits = 64\nsilence_ms = 30000\ntimeout_ms = 60000\nleave_ms = 30000'
    GROWTH = 4 << 20  # bytes of bu0 over which the builders are compared

    def setUp(self):
        super().setUp()
        self.pipes = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.pipes, ignore_errors=True)
        self.lives = []

    def begin(self, keys, nodes):
        """The cluster without its spare, and with data coming."""
        self.configure(cluster=f"{self.KEYS}\n{keys}", nodes=nodes, node_keys=NODE_KEYS, sink='kind = "events"\npath = "{node}/run-{run:06}"')
        common = ["--format", "ejfat", "--sources", SOURCES, "--bytes", 1200, "--bytes-min", 200, "--events", 60000, "--rate", 2000]
        captures = {f"ru{i}": self.capture(f"ru{i}", *common, "--port", 50001 + 2 * i, "--seed", i + 1) for i in (0, 1)}
        self.feed = Feed(captures, self.pipes)
        self.feed.start_reading()
        self.running = {}
        for name in nodes:
            if name != "bu2":
                self.begin_life(name)
        for node in self.running.values():
            node.wait_running()
        self.feed.start()
        for name in ("bu0", "bu1"):
            self.wait_growth(name)

    def begin_life(self, name):
        life = 1 + sum(node.name == name for node in self.lives)
        node = self.node(name, capture=self.feed.pipes.get(name), life=life)
        self.lives.append(node)
        self.running[name] = node

    def wait_growth(self, name, least=16384):
        before = cluster.written_bytes(self.folder, name)
        node = self.running[name]
        try:
            live.wait_for(lambda: cluster.written_bytes(self.folder, name) > before + least or node.process.poll() is not None, f"events of {name}")
        except AssertionError as error:
            said = "\n".join(f"{one.name}, status {one.process.poll()}:\n{one.last_words()}" for one in self.running.values())
            raise AssertionError(f"{error}\n{said}") from None
        self.assertIsNone(node.process.poll(), f"{name} has ended:\n{node.last_words()}")

    def restart(self, name):
        """As an operator does, or systemd; then it takes part again."""
        self.running[name].stop(signal.SIGTERM)
        self.running[name].end()
        self.begin_life(name)
        self.wait_growth(name)

    def growth_with_all(self):
        """What each builder writes while all of them are there, until bu0 has written enough."""
        before = {name: cluster.written_bytes(self.folder, name) for name in BUILDERS}
        self.wait_growth("bu0", self.GROWTH)
        return {name: cluster.written_bytes(self.folder, name) - before[name] for name in BUILDERS}

    def check(self, keys="", nodes=NODES):
        self.begin(keys, nodes)
        self.restart("bu0")
        self.begin_life("bu2")  # the spare
        self.wait_growth("bu2")
        self.restart("bu1")
        self.restart("bu2")
        growth = self.growth_with_all()
        events = self.feed.end()
        self.end(self.running)
        self.check_reports()
        self.check_events(events)
        self.check_inspect()
        # A part of it is in buffers, before and after.
        for name in ("bu0", "bu2"):
            self.assertGreater(growth["bu1"], 1.4 * growth[name], growth)
            self.assertLess(growth["bu1"], 3 * growth[name], growth)

    def check_reports(self):
        """Nobody lists a block, or lacks a part; nobody was given something that was done again, but for what was on its way."""
        for node in self.lives:
            part = node.report["cluster"]
            self.assertEqual((part["lost_blocks"]["list"], part["lives"]), ([], 1), node.name)
            if part["role"] == "builder":
                self.assert_account(node)
                blocks = part["builder"]["blocks"]
                self.assertEqual((blocks["incomplete"], blocks["empty"], blocks["in_hand"]), (0, 0, 0), f"{node.name}: {blocks}")
                self.assertEqual(blocks["assigned"], blocks["complete"], f"{node.name} left blocks to others that it had been given")
                self.assertGreater(blocks["complete"], 0, node.name)

    def check_events(self, count):
        runs = sorted(path for name in BUILDERS for path in (self.folder / name).glob("run-*"))
        self.assertEqual(len(runs), len([node for node in self.lives if node.name in BUILDERS]), runs)
        expected = self.events_of(self.one_node(self.feed.fed), what=lambda event: (event.complete, cluster.payload_of(event)))
        self.assertEqual(set(expected), set(range(1, count + 1)))
        self.assert_same_events(expected, self.events_of(*runs, what=lambda event: (event.complete, cluster.payload_of(event))))
        shutil.rmtree(self.folder / "one")
        (self.folder / "one.json").unlink()

    def check_inspect(self):
        done = subprocess.run([live.Weir.program, "inspect", ".", "--require-lossless"], cwd=self.folder, capture_output=True, text=True,
                              timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_builders_that_manage(self):
        """Each of them manages at some time, so the manager is restarted, too."""
        self.check("join_wait_ms = 2000")

    def test_push_until_written_with_a_manager(self):
        """Who is restarted knows for long that it came late: a node that stays manages. Nobody waits for the spare at the start."""
        self.check('join_wait_ms = 600000\nstrategy = "push"\nkeep = "written"', {"ma": "manager", **NODES})


if __name__ == "__main__":
    live.main(sandbox_required=True)
