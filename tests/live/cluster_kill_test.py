#!/usr/bin/env python3
"""`kill -9` of a node of a cluster at random moments, of each role in turn: the others go on at once and end well, no event is there
twice, and what is missing was in a block that they list as lost. With a new start of the killed node at once: it takes part again.

WEIR_KILLS says how many (8), WEIR_KILL_SEED repeats a run of the test (the seed is printed), WEIR_KILL_PAUSE_S how long a survivor may
write nothing. usage: cluster_kill_test.py WEIR
"""

import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import live
import cluster_test as cluster
from cluster_test import weir

KILLS = int(os.environ.get("WEIR_KILLS", 8))
BLOCK = 16
CREDITS = 16
RATE = 1000
# Some tenths of a second, where nothing else wants the CPUs. If a survivor waited for the silence of who was killed it would be 20 s.
PAUSE_S = float(os.environ.get("WEIR_KILL_PAUSE_S", 10))
RESTART_PAUSE_S = PAUSE_S + 4  # a readout node that is started again may be behind the others by a second or two
NODES = cluster.TWO_AND_TWO
WITH_MANAGER = {"ma": "manager", **NODES}
# Which node, in which cluster: readout node, builder that manages, another builder, a node that does nothing but manage.
VICTIMS = [("ru0", NODES), ("bu0", NODES), ("bu1", NODES), ("ma", WITH_MANAGER), ("ru1", WITH_MANAGER), ("bu0", WITH_MANAGER)]


def doing(node):
    """What the threads of a node wait for, and what its TCP connections have not got rid of."""
    threads = []
    for task in sorted(pathlib.Path(f"/proc/{node.process.pid}/task").glob("*")):
        try:
            name, state = (task / "comm").read_text().strip(), (task / "stat").read_text().rpartition(") ")[2]
            threads.append(f"{name} {state.split()[0]} {(task / 'wchan').read_text()} {sum(map(int, state.split()[11:13]))}")
        except OSError:
            continue  # it has just ended
    queues = subprocess.run(["ss", "-tnpoH"], capture_output=True, text=True).stdout if shutil.which("ss") else ""
    stuck = [line for line in queues.splitlines() if f"pid={node.process.pid}," in line and not re.match(r"ESTAB +0 +0 ", line)]
    return "\n    ".join([node.name, *threads, *stuck])


class Growth:
    """When the files of a builder have grown and when nodes have ended, seen every few milliseconds."""

    SUSPICIOUS_S = 2.5

    def __init__(self, folder, builders, nodes):
        self.folder, self.builders, self.nodes = folder, builders, nodes
        self.times = {name: [] for name in builders}
        self.ended = {}
        self.notes = []
        self.longest_look = 0  # of this thread itself: what this machine did not let it do in time
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        sizes = dict.fromkeys(self.builders, 0)
        looked = began = time.monotonic()
        noted = 0
        while not self.over.wait(0.01):
            now = time.monotonic()
            self.longest_look = max(self.longest_look, now - looked)
            looked = now
            for name, node in self.nodes.items():
                if node.process.poll() is not None:
                    self.ended.setdefault(name, now)
            for name in self.builders:
                size = cluster.written_bytes(self.folder, name)
                if size > sizes[name]:
                    self.times[name].append(now)
                sizes[name] = size
                since = now - (self.times[name] or [began])[-1]
                if since > self.SUSPICIOUS_S and now - noted > 1 and len(self.notes) < 8:
                    noted = now
                    living = [node for node in self.nodes.values() if node.process.poll() is None]
                    self.notes.append(f"nothing of {name} for {since:.1f} s:\n  " + "\n  ".join(map(doing, living)))

    def end(self):
        self.over.set()
        self.thread.join()

    def longest_pause(self, name, begin):
        """In which nothing was written, from `begin` to the last time that something was."""
        times = [begin] + [moment for moment in self.times[name] if moment > begin]
        return max((later - earlier for earlier, later in zip(times, times[1:])), default=0)


class KillTest(cluster.ClusterCase):
    maxDiff = None
    EVENTS = 3000

    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("WEIR_KILL_SEED", random.SystemRandom().randrange(1 << 30)))
        print(f"seed {self.seed}", file=sys.stderr)
        self.nodes_started = []
        self.random = random.Random(self.seed)

    def node(self, name, *options, **more):
        self.nodes_started.append(super().node(name, *options, **more))
        return self.nodes_started[-1]

    def settings(self):
        """Silence is never what tells that a node has gone: that would take much longer than a second."""
        settings = {"transports": "tcp", "block": BLOCK, "credits": CREDITS, "silence_ms": 20000, "timeout_ms": 15000, "leave_ms": 20000,
                    "strategy": self.random.choice(("pull", "push")), "keep": self.random.choice(("assembled", "written")),
                    "order": self.random.choice(("linear", "random"))}
        may_keep_step = settings["strategy"] == "push" and settings["order"] == "linear"
        step = self.random.choice(("", "barrier", "time")) if may_keep_step else ""
        return {**settings, **{"": {}, "barrier": {"barrier": True}, "time": {"slot_us": 200}}[step]}

    def clear(self):
        """Of what the kill before left."""
        for node in self.nodes_started:
            node.abort()
        self.nodes_started.clear()
        for path in self.folder.iterdir():
            if path.suffix != ".pcap":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def begin(self, nodes, captures):
        """A cluster at work; returns its nodes and settings."""
        settings = self.settings()
        text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
        self.configure(cluster=text, nodes=nodes, sink='kind = "events"\npath = "{node}/run-{run:06}"')
        started = self.start(captures, "--pace", "recorded", nodes=nodes)
        for name in captures:
            started[name].wait_running()
        self.started_at = time.monotonic()
        cluster.wait_events(self.folder, started)
        return started, settings

    def runs(self):
        """Of all builders, finished or not."""
        return [path for builder in ("bu0", "bu1") for pattern in ("run-*", ".run-*.part") for path in sorted((self.folder / builder).glob(pattern))
                if cluster.readable(path)]

    def found_events(self):
        """{number: [(run, complete, cause, digest, sources)]}"""
        found = {}
        for path in self.runs():
            with weir.open(path) as run:
                for event in run:
                    absent = tuple(one.id for one in event.sources if one.state != "complete")
                    found.setdefault(event.id, []).append((path, event.complete, event.cause, event.sha256(), absent))
        return found

    def lost_blocks(self, nodes):
        """That any of the reports lists as lost with their builder."""
        return {loss["block"] for node in nodes.values() if node.report is not None for loss in node.report["cluster"]["lost_blocks"]["list"]
                if loss["cause"] == "builder_down"}

    def check_twice(self, found, settings, victim, what):
        """Nothing is there twice. But with keep = "written" a block may be that its builder had written, and died before anybody knew."""
        twice = {number: entries for number, entries in found.items() if len(entries) > 1}
        if settings["keep"] == "assembled" or victim[:2] != "bu":
            self.assertEqual(sorted(twice), [], f"{what}: events are there twice, in {({str(e[0]) for entries in twice.values() for e in entries})}")
        for number, entries in twice.items():
            self.assertEqual(len(entries), 2, f"{what}: event {number}")
            self.assertIn(self.folder / victim, [entry[0].parent for entry in entries], f"{what}: event {number}")
            self.assertEqual(len({entry[3] for entry in entries}), 1, f"{what}: event {number}")
        self.assertLessEqual(len(twice), CREDITS * BLOCK, what)
        return len(twice)

    def check_incomplete(self, number, event, victim, causes, what):
        """Only what a readout node would have had that was killed is missing."""
        _, _, cause, _, absent = event
        own = {"ru0": {0, 1}, "ru1": {2, 3}}.get(victim, set())
        self.assertTrue(absent and set(absent) <= own and cause in causes, f"{what}: event {number} lacks sources {absent} because of {cause}")

    def check_events(self, nodes, settings, victim, expected, what, causes=("node_down",)):
        """Returns what was found, in words, and the events."""
        found = self.found_events()
        twice = self.check_twice(found, settings, victim, what)
        lost = self.lost_blocks(nodes)
        missing = expected.keys() - found.keys()
        unexplained = sorted({number // BLOCK for number in missing} - lost)
        self.assertEqual(unexplained, [], f"{what}: of these blocks events are missing, and nobody lists them; listed are {sorted(lost)}")
        self.assertLessEqual(len(missing), CREDITS * BLOCK, what)
        if victim[:2] != "bu" or settings["keep"] == "written":
            self.assertEqual(lost, set(), f"{what}: blocks are listed as lost with their builder")
        for number, entries in found.items():
            if entries[0][1]:
                self.assertEqual(entries[0][3], expected[number], f"{what}: event {number}")
            else:
                self.check_incomplete(number, entries[0], victim, causes, what)
        there = sum(number // BLOCK in lost for number in found)
        return f"{len(missing)} events missing, {len(lost)} blocks listed with {there} events that are there, {twice} events twice", found

    def kill_once(self, nodes, victim, captures, expected, what, restart=None, causes=("node_down",)):
        self.clear()
        started, settings = self.begin(nodes, captures)
        growth = Growth(self.folder, [name for name in ("bu0", "bu1") if name != victim], started)
        begun = time.monotonic()
        time.sleep(self.random.uniform(0, 1.2))  # any moment will do
        started[victim].stop(signal.SIGKILL)
        killed = time.monotonic()
        started[victim].process.wait()
        what += f", {victim} killed {killed - begun:.3f} s after the first events, {settings['strategy']}, keep {settings['keep']}, {settings['order']}{', in step' if 'barrier' in settings else ', by time' if 'slot_us' in settings else ''}"
        others = {name: node for name, node in started.items() if name != victim}
        if restart:
            others[victim] = restart(victim)
        begun_again = None
        try:
            if restart:
                others[victim].wait_running()
                begun_again = time.monotonic()
            self.end(others)
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from None
        finally:
            growth.end()
            self.stood_still_s = growth.longest_look
            if begun_again:
                self.together_s = min((at for name, at in growth.ended.items() if name != victim), default=math.inf) - begun_again
        pause = max(growth.longest_pause(name, killed) for name in growth.builders)
        most = RESTART_PAUSE_S if restart else PAUSE_S
        self.assertLess(pause, most, f"{what}: a survivor wrote nothing for so long; this test itself stood still for "
                        f"{growth.longest_look:.1f} s\n" + "\n".join(growth.notes))
        self.assert_balanced(others)
        said, found = self.check_events(others, settings, victim, expected, what, causes)
        print(f"{what}: longest pause {pause:.2f} s, {said}", file=sys.stderr)
        return others, found

    def expect(self, captures):
        self.configure()
        expected = self.events_of(self.one_node(captures), what=cluster.payload_of)
        self.assertEqual(len(expected), self.EVENTS)
        return expected

    def again_and_again(self, kills, kill):
        """All of them, although one goes wrong."""
        failures = []
        for number in range(kills):
            victim, nodes = VICTIMS[number % len(VICTIMS)]
            try:
                live.repeated(lambda attempt: self.unless_disturbed(kill, victim, nodes, f"seed {self.seed}, kill {number}, attempt {attempt}"))
            except AssertionError as error:
                failures.append(str(error))
                print(f"FAILED: {error}", file=sys.stderr)
        self.assertEqual(failures, [], f"{len(failures)} of {kills} went wrong")

    def unless_disturbed(self, kill, victim, nodes, what):
        """A machine that stood still for seconds may have run one node much later than another, or started it when the others ended."""
        self.stood_still_s = 0
        self.together_s = math.inf  # a node that was started again, and all the others
        try:
            kill(victim, nodes, what)
        except AssertionError as error:
            if self.together_s < 3:
                raise live.Disturbed(f"it was back for {self.together_s:.1f} s before another one ended: {error}") from None
            if self.stood_still_s > 2:
                raise live.Disturbed(f"this test stood still for {self.stood_still_s:.1f} s: {error}") from None
            raise

    def test_again_and_again(self):
        captures = self.captures(events=self.EVENTS, rates=(RATE, RATE))
        expected = self.expect(captures)
        self.again_and_again(KILLS, lambda victim, nodes, what: self.kill_once(nodes, victim, captures, expected, what))

    def start_again(self, name, nodes, captures):
        """At once; a readout node with what comes from about now on."""
        if nodes[name] != "readout":
            return self.node(name, life=2)
        since_s = time.monotonic() - self.started_at + 0.5
        return self.node(name, "--pace", "recorded", "--from", f"+{since_s:.2f}s", capture=captures[name], life=2)

    def check_takes_part_again(self, victim, nodes, others, found, expected, what):
        role = nodes[victim]
        if role == "builder":
            self.assertGreater(others[victim].report["cluster"]["builder"]["blocks"]["complete"], 0, f"{what}: nothing was given to it")
        last = [number for number in sorted(expected)[-500:] if not found[number][0][1]]
        self.assertEqual(last, [], f"{what}: the last events are not complete")
        self.assertEqual(others[victim].report["cluster"]["lives"], 1, what)

    def test_started_again_at_once(self):
        self.EVENTS = 8000  # long enough for a node that comes back slowly, on a busy machine
        captures = self.captures(events=self.EVENTS, rates=(RATE, RATE))
        expected = self.expect(captures)

        def kill(victim, nodes, what):
            others, found = self.kill_once(nodes, victim, captures, expected, what, lambda name: self.start_again(name, nodes, captures),
                                           causes=("node_down", "ended", "timeout"))
            self.check_takes_part_again(victim, nodes, others, found, expected, what)

        self.again_and_again(max(4, KILLS // 2), kill)


if __name__ == "__main__":
    live.main(sandbox_required=True)
