#!/usr/bin/env python3
"""Event building over several nodes: the same events as one node builds, every part accounted for at both of its ends, nodes that are
told to stop or stand still, and nodes that do not fit together. cluster_network_test.py has the network between them.

usage: cluster_test.py WEIR
"""

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request

import live


def under_a_python_with_numpy():
    """Goes on under the system's Python if this one has no numpy, which the Python reader needs; or skips all of it."""
    if importlib.util.find_spec("numpy") is not None:
        return
    system = "/usr/bin/python3"
    if os.path.exists(system) and os.environ.get("WEIR_TEST_PYTHON") != system:
        os.environ["WEIR_TEST_PYTHON"] = system
        os.execv(system, [system, "-B", *sys.argv])
    print("skipped: no numpy for this Python (Debian: python3-numpy)")
    sys.exit(live.SKIPPED)


under_a_python_with_numpy()
sys.path.insert(0, str(live.ROOT / "python"))
import weir  # noqa: E402

TWO_AND_TWO = {"ru0": "readout", "ru1": "readout", "bu0": "builder", "bu1": "builder"}


def node_tables(nodes, addresses=None, more=None):
    """[[node]] for each of {name: role}, with the keys of {name: keys}."""
    addresses = addresses or {name: f"127.0.0.1:{7471 + place}" for place, name in enumerate(nodes)}
    return "".join(f'[[node]]\nname = "{name}"\naddress = "{addresses[name]}"\nrole = "{role}"\n{(more or {}).get(name, "")}\n'
                   for name, role in nodes.items())


def stream_tables(streams, stream_keys, in_cluster):
    """[[stream]] for each of {node: UDP ports}; without a node where there is no cluster."""
    text = ""
    for node, ports in streams.items():
        text += f'[[stream]]\nport = "det0"\ntransport = "udp"\nudp_dst = {list(ports)}\n{stream_keys}\n'
        text += f'node = "{node}"\n' if in_cluster else ""
    return text


def unhurried(cluster):
    """A process that gets no processor for seconds is neither silent nor late, unless a test says so."""
    keys = {"silence_ms": 20000, "timeout_ms": 20000}
    return cluster + "".join(f"\n{key} = {value}" for key, value in keys.items() if not re.search(rf"(?m)^{key}\b", cluster))


def configuration(cluster='transports = "tcp"', nodes=None, addresses=None, streams=None, stream_keys='format = "ejfat"',
                  port='device = "net_null0"', more="", sink='kind = "events"\npath = "{node}"', in_cluster=True, node_keys=None):
    """The text of a configuration: of a cluster, or of the one node that has all of its sources."""
    streams = streams or {"ru0": (50001, 50002), "ru1": (50003, 50004)}
    text = 'name = "cluster"\n'
    if in_cluster:
        text += f"[cluster]\n{unhurried(cluster)}\n" + node_tables(nodes or TWO_AND_TWO, addresses, node_keys)
    text += f'[[port]]\nname = "det0"\n{port}\n' + stream_tables(streams, stream_keys, in_cluster)
    sources = sum(len(ports) for ports in streams.values())
    text += f'[events]\nsources = {sources}\nmemory = "64MiB"\ntimeout_ms = 500\n{more}\n'
    return text + f'[[sink]]\n{sink}\n[lcores]\nidle = "sleep"\n'


class Node:
    """A node of a cluster as a process: `weir run`, or `weir replay` if it is given a capture."""

    def __init__(self, folder, name, *options, capture=None, config="cluster.toml", where=(), life=1):
        self.name = name
        self.report_file = folder / f"{name}-{life}.json"
        self.output_file = folder / f"{name}-{life}.txt"
        words = ["replay", str(capture)] if capture else ["run"]
        command = [*where, live.Weir.program, *words, "--config", config, "--node", name, "--report", self.report_file, *options]
        with open(self.output_file, "w") as output:
            self.process = subprocess.Popen([*map(str, command)], stdout=output, stderr=subprocess.STDOUT, cwd=folder)

    def said(self):
        return self.output_file.read_text()

    def last_words(self, lines=25):
        """The end of what it said; a line that is said again and again once."""
        said = self.said().splitlines()
        return "\n".join([line for place, line in enumerate(said) if place == 0 or line != said[place - 1]][-lines:])

    def wait_said(self, pattern):
        found = lambda: re.search(pattern, self.said())
        try:
            live.wait_for(lambda: found() or self.process.poll() is not None, pattern)
        except AssertionError as error:
            raise AssertionError(f"{self.name}: {error}\n{self.last_words()}") from None
        if not found():
            raise AssertionError(f"{self.name} ended, and has not said {pattern}:\n{self.last_words()}")

    def wait_running(self):
        """A replay says nothing when it begins to take packets."""
        self.wait_said(r"(?m)^running|^cluster: this is")

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)

    def end(self, status=0):
        try:
            self.process.wait(live.PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {live.PATIENCE_S} s:\n{self.last_words()}") from None
        self.output = self.errors = self.said()
        if self.process.returncode != status:
            raise AssertionError(f"{self.name}: exit status {self.process.returncode}, not {status}\n{self.last_words()}")
        text = self.report_file.read_text() if self.report_file.exists() else ""
        self.report = json.loads(text) if text else None
        return self.report

    def abort(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def contents_of(event):
    """All that a reader can see of an event."""
    sources = [(one.id, one.state, one.size, one.received, one.packets, one.first_ns, one.last_ns, bytes(one.header),
                tuple(map(tuple, one.missing))) for one in event.sources]
    return (event.complete, event.cause, event.first_ns, event.last_ns, event.packets, event.bytes, event.content, event.veto, event.pixels_above,
            event.peaks, sources, event.sha256())


def payload_of(event):
    return event.sha256()


def readable(path):
    """A run that has begun to be one."""
    return path.is_dir() and any(file.stat().st_size > 0 for file in path.glob("events-*.weir"))


class ClusterCase(live.Case):
    """Captures, a configuration for a cluster and for one node, and nodes that end with the test."""

    def configure(self, **keys):
        (self.folder / "cluster.toml").write_text(configuration(**keys))
        keys.update(in_cluster=False, sink='kind = "events"\npath = "one"', port='device = "net_null0"')
        (self.folder / "one.toml").write_text(configuration(**keys))

    def capture(self, name, *options):
        path = self.folder / f"{name}.pcap"
        self.send(*options, "--to", path)
        return path

    def captures(self, events=1000, rates=(2000, 2000), options=()):
        """One for each readout node, with two EJFAT sources each."""
        common = ["--format", "ejfat", "--sources", 2, "--bytes", 4000, "--bytes-min", 100, "--events", events, *options]
        return {f"ru{i}": self.capture(f"ru{i}", *common, "--rate", rate, "--port", 50001 + 2 * i, "--seed", i + 1) for i, rate in enumerate(rates)}

    def node(self, name, *options, **more):
        """It ends with the test."""
        node = Node(self.folder, name, *options, **more)
        self.addCleanup(node.abort)
        return node

    def start(self, captures, *options, nodes=TWO_AND_TWO):
        """All nodes; readout nodes read the captures, with these options."""
        return {name: self.node(name, *(options if role == "readout" else ()), capture=captures[name] if role == "readout" else None)
                for name, role in nodes.items()}

    def end(self, nodes):
        for node in nodes.values():
            node.end()

    def one_node(self, captures):
        """What one node makes of all captures: its run."""
        paths = list(captures.values())
        done = subprocess.run([live.Weir.program, "replay", *map(str, paths), "--config", "one.toml", *["--port", "det0"] * len(paths), "--report",
                               "one.json"], cwd=self.folder, capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / "one"

    def events_of(self, *paths, what=contents_of):
        """{number: what}; no event is in two runs, or in one twice."""
        found = {}
        for path in paths:
            with weir.open(path) as run:
                for event in run:
                    self.assertNotIn(event.id, found, f"event {event.id} is there twice")
                    found[event.id] = what(event)
        return found

    def assert_same_events(self, expected, found):
        different = [number for number in sorted(expected.keys() | found.keys()) if expected.get(number) != found.get(number)]
        if different:
            first = different[0]
            self.fail(f"{len(different)} of {len(expected)} events differ; event {first} is expected to be\n{expected.get(first)}\nand is\n{found.get(first)}")

    def assert_balanced(self, nodes):
        for node in nodes.values():
            if node.report["cluster"]["role"] != "manager":  # which has no packets
                self.assert_account(node)

    def assert_blocks(self, nodes, left_by=None):
        """Blocks that were given to a builder were built, or were empty; or it has left them to others, who built them instead.

        What is given to a builder while it leaves may reach nobody. It is given again.
        """
        given = 0
        for node in nodes.values():
            if node.report["cluster"]["role"] != "builder":
                continue
            blocks = node.report["cluster"]["builder"]["blocks"]
            missing = blocks["assigned"] - blocks["complete"] - blocks["incomplete"] - blocks["empty"]
            self.assertTrue(missing == 0 or (missing > 0 and node.name == left_by), f"{node.name}: {blocks}")
            given += blocks["assigned"]
            self.assertEqual(blocks["in_hand"], 0, node.name)
            self.assertEqual(node.report["cluster"]["builder"]["malformed_parts"], 0, node.name)
        managers = [node.report["cluster"]["manager"] for node in nodes.values() if "manager" in node.report["cluster"]]
        assigned, again = (sum(manager[key] for manager in managers) for key in ("assigned", "assigned_again"))
        self.assertGreaterEqual(given, assigned if left_by else assigned + again)
        self.assertLessEqual(given, assigned + again)

    def assert_nothing_lost(self, nodes):
        for node in nodes.values():
            self.assertEqual(node.report["cluster"]["lost_blocks"]["builder_down"], 0, node.name)

    def assert_handed_over_is_received(self, nodes, left_by=None):
        """Per pair of nodes, from the reports of both. A part may have been on its way to a builder that left."""
        handed, received = {}, {}
        for node in nodes.values():
            cluster = node.report["cluster"]
            for other in cluster.get("readout", {}).get("builders", []):
                handed[node.name, other["node"]] = other["handed_over"]
            for other in cluster.get("builder", {}).get("readouts", []):
                received[other["node"], node.name] = other["received"] + other["received_late"]
        different = {pair: (handed[pair], received[pair]) for pair in handed if handed[pair] != received[pair]}
        on_their_way = [pair for pair in different if pair[1] == left_by and handed[pair] > received[pair]]
        self.assertEqual(sorted(different), sorted(on_their_way), f"handed over and received: {different}")
        self.assertGreater(sum(handed.values()), 0)

    def missing_parts(self, nodes, readout, cause):
        """Of this readout node, for this cause, over all builders."""
        return sum(other["missing"][cause] for node in nodes.values() if node.report["cluster"]["role"] == "builder"
                   for other in node.report["cluster"]["builder"]["readouts"] if other["node"] == readout)

    def assert_all_well(self, nodes):
        self.assert_balanced(nodes)
        self.assert_blocks(nodes)
        self.assert_nothing_lost(nodes)
        self.assert_handed_over_is_received(nodes)


class SameEventsTest(ClusterCase):
    """Byte for byte what one node with all sources writes."""

    FAULTS = ["--drop", 0.01, "--duplicate", 0.01, "--truncate", 0.005, "--reorder", 6]

    def check(self, captures, **keys):
        self.configure(**keys)
        nodes = self.start(captures)
        expected = self.events_of(self.one_node(captures))
        self.end(nodes)
        self.assert_all_well(nodes)
        self.assert_same_events(expected, self.events_of(self.folder / "bu0", self.folder / "bu1"))
        self.assert_read_as_one_run(expected)
        return nodes, expected

    def assert_read_as_one_run(self, expected):
        """The folder with the runs of both builders, the reports and what else is there."""
        self.assert_same_events(expected, self.events_of(self.folder))
        done = subprocess.run([live.Weir.program, "diff", ".", "one", "--times"], cwd=self.folder, capture_output=True, text=True,
                              timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_ejfat_pull(self):
        nodes, events = self.check(self.captures())
        self.assertEqual(len(events), 1000)
        self.assertTrue(all(nodes[name].report["events"]["complete"] > 0 for name in ("bu0", "bu1")))

    def test_ejfat_push(self):
        self.check(self.captures(), cluster='transports = "tcp"\nstrategy = "push"\nblock = 7\norder = "random"')

    def test_ejfat_push_in_step(self):
        self.check(self.captures(), cluster='transports = "tcp"\nstrategy = "push"\nbarrier = true\nblock = 5')

    def test_ejfat_pull_until_written_by_shared_memory(self):
        self.check(self.captures(), cluster='transports = "tcp,sm"\nkeep = "written"')

    def test_ejfat_push_until_written_by_shared_memory(self):
        self.check(self.captures(), cluster='transports = "tcp,sm"\nstrategy = "push"\nkeep = "written"\ncredits = 2\nblock = 100')

    def test_ejfat_with_faults(self):
        nodes, events = self.check(self.captures(events=2000, options=self.FAULTS))
        self.assertGreater(sum(not event[0] for event in events.values()), 20)
        builders = [nodes[name].report["events"] for name in ("bu0", "bu1")]
        self.assertEqual(sum(sum(one["incomplete"].values()) for one in builders), sum(not event[0] for event in events.values()))

    def test_ejfat_with_faults_push_until_written(self):
        self.check(self.captures(events=2000, options=self.FAULTS), cluster='transports = "tcp"\nstrategy = "push"\nkeep = "written"\nblock = 3')

    def test_the_least_memory(self):
        self.check(self.captures(), cluster='transports = "tcp"\nmemory = "1MiB"')

    def test_one_event_blocks(self):
        self.check(self.captures(events=300), cluster='transports = "tcp"\nblock = 1')

    def test_a_block_with_all_events(self):
        """One builder gets all of them, and the other one nothing."""
        self.configure(cluster='transports = "tcp"\nblock = 100000')
        captures = self.captures(events=300)
        nodes = {name: self.node(name, *(["--allow-empty"] if role == "builder" else []), capture=captures.get(name))
                 for name, role in TWO_AND_TWO.items()}
        self.end(nodes)
        self.assert_all_well(nodes)
        self.assertEqual(sorted(nodes[name].report["events"]["written"] for name in ("bu0", "bu1")), [0, 300])
        runs = [self.folder / name for name in ("bu0", "bu1") if readable(self.folder / name)]
        self.assert_same_events(self.events_of(self.one_node(captures)), self.events_of(*runs))


class StandStillTest(ClusterCase):
    """A process that gets no processor for a while, in the middle of its data."""

    def start_paced(self, keys, events, rates):
        self.configure(cluster=f'transports = "tcp"\n{keys}')
        nodes = self.start(self.captures(events=events, rates=rates), "--pace", "recorded")
        wait_events(self.folder, nodes)
        return nodes

    def found(self):
        return self.events_of(self.folder, what=lambda event: event.complete)

    def test_a_readout_node_is_waited_for(self):
        """It is behind, so that blocks wait for it; and it stands still for longer than timeout_ms and silence_ms."""
        nodes = self.start_paced("silence_ms = 6000\ntimeout_ms = 6000\nreturn_ms = 60000", 4000, (700, 900))
        nodes["ru0"].process.send_signal(signal.SIGSTOP)
        time.sleep(8)
        nodes["ru0"].process.send_signal(signal.SIGCONT)
        self.end(nodes)
        self.assert_all_well(nodes)
        self.assertEqual({name: node.report["cluster"]["lives"] for name, node in nodes.items()}, dict.fromkeys(nodes, 1))
        self.assertEqual(self.found(), dict.fromkeys(range(1, 4001), True))

    def test_one_that_is_not_waited_for_offers_again_what_it_holds(self):
        nodes = self.start_paced("silence_ms = 6000\nreturn_ms = 0", 20000, (1000, 1000))
        nodes["ru0"].process.send_signal(signal.SIGSTOP)
        for name in ("ru1", "bu0", "bu1"):
            nodes[name].wait_said("warning: cluster: ru0 went away")
        nodes["ru0"].process.send_signal(signal.SIGCONT)
        nodes["ru0"].wait_said("it begins anew, and offers again what it holds")
        self.end(nodes)
        self.assert_balanced(nodes)
        self.assertEqual(nodes["ru0"].report["cluster"]["lives"], 2)
        found = self.found()
        self.assertEqual(set(found), set(range(1, 20001)))
        self.assertTrue(all(found[number] for number in range(19500, 20001)), "it has not taken part again")


class ReducedTest(SameEventsTest):
    """JUNGFRAU modules, each at a readout node of its own, which builders reduce when they have all of a frame."""

    JUNGFRAU = {"streams": {"ru0": (50001,), "ru1": (50002,)}, "stream_keys": 'format = "jungfrau"\nrows = 64'}

    def modules(self, events=60, options=()):
        common = ["--rows", 64, "--rate", 100, "--events", events, *options]
        return {f"ru{i}": self.capture(f"ru{i}", *common, "--port", 50001 + i, "--seed", i + 1) for i in (0, 1)}

    def calibration(self):
        """[[reduce]] from raw words to packed photons; pedestals that differ from pixel to pixel."""
        import numpy
        for gain in range(3):
            pedestal = numpy.random.default_rng(gain).normal(2000 + 4000 * gain, 50, (2, 512, 1024)).astype("<f4")
            pedestal.tofile(self.folder / f"pedestal{gain}.f32")
        return ('[[reduce]]\nkind = "jungfrau"\npedestal = ["pedestal0.f32", "pedestal1.f32", "pedestal2.f32"]\n'
                'gain = [41.0, -1.439, -0.1145]\nphoton_kev = 12.4\nunit = "photon"\noutput = "u16"\n')

    def test_packed(self):
        self.check(self.modules(), more='[[reduce]]\nkind = "pack"\ncodec = "bitshuffle-lz4"', **self.JUNGFRAU)

    def test_photons_of_a_chain(self):
        chain = (self.calibration() + '[[reduce]]\nkind = "veto"\nthreshold = 1.0\nmin_pixels = 10\n'
                 '[[reduce]]\nkind = "sparse"\nthreshold = 400\n[[reduce]]\nkind = "pack"\ncodec = "zstd"\n')
        _, events = self.check(self.modules(), more=chain, **self.JUNGFRAU)
        self.assertEqual({event[6] for event in events.values()}, {"pixels"})

    def test_photons_of_a_chain_with_faults_push(self):
        chain = self.calibration() + '[[reduce]]\nkind = "pack"\ncodec = "lz4"\n'
        self.check(self.modules(options=["--drop", 0.02, "--duplicate", 0.02, "--reorder", 3]), more=chain,
                   cluster='transports = "tcp,sm"\nstrategy = "push"\nkeep = "written"\nblock = 4', **self.JUNGFRAU)


# Inherited, and not about reducers.
for name in [name for name in dir(SameEventsTest) if name.startswith("test_")]:
    setattr(ReducedTest, name, None)


class ManyNodesTest(ClusterCase):
    """Eight processes, with a manager of its own."""

    NODES = {"ru0": "readout", "bu0": "builder", "ru1": "readout", "bu1": "builder", "ru2": "readout", "bu2": "builder", "ru3": "readout",
             "ma": "manager"}
    # None is begun without, however long eight programs take to start on a busy machine.
    KEYS = 'transports = "tcp"\njoin_wait_ms = 120000\norder = "listed"\nlist = ["bu2", "ru3", "bu0", "ru1", "ru0", "bu1", "ru2"]\nblock = 8\nsilence_ms = 20000\ntimeout_ms = 20000'

    def run_all(self, keys=""):
        more = '[[sink]]\nkind = "hdf5"\npath = "{node}-hdf5"'
        self.configure(cluster=f"{self.KEYS}\n{keys}", nodes=self.NODES, streams={f"ru{i}": (50001 + i,) for i in range(4)},
                       sink=f'kind = "events"\npath = "{{node}}"\n{more}')
        common = ["--format", "ejfat", "--sources", 1, "--bytes", 4000, "--bytes-min", 100, "--rate", 2000, "--events", 600]
        captures = {f"ru{i}": self.capture(f"ru{i}", *common, "--port", 50001 + i, "--seed", i + 1) for i in range(4)}
        nodes = self.start(captures, nodes=self.NODES)
        expected = self.events_of(self.one_node(captures))
        nodes["ma"].wait_said("cluster: this is ma, a manager")
        self.end({name: node for name, node in nodes.items() if name != "ma"})
        nodes["ma"].stop()
        nodes["ma"].end()
        return nodes, expected

    def check_all(self, nodes, expected):
        builders = [name for name, role in self.NODES.items() if role == "builder"]
        self.assert_all_well(nodes)
        self.assert_same_events(expected, self.events_of(*(self.folder / name for name in builders)))
        self.assertEqual(len(expected), 600)
        for name in builders:
            self.assertGreater(nodes[name].report["events"]["written"], 0, name)
            self.check_hdf5(name)
        self.check_joined(expected)

    def check_joined(self, expected):
        """One file over those of all builders has every event."""
        done = subprocess.run([live.Weir.program, "export", ".", "--to", "hdf5", "--virtual"], cwd=self.folder, capture_output=True, text=True,
                              timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("600 events of 3 runs in ./cluster.h5", done.stdout + done.stderr)
        try:
            import h5py
        except ImportError:
            return
        with h5py.File(self.folder / "cluster.h5") as run:
            self.assertEqual(run["/entry/events/number"][()].tolist(), sorted(expected))
            self.assertEqual(run["/entry/data/payload"].shape[0], run["/entry/sources/payload_bytes"][()].sum())

    def check_hdf5(self, builder):
        """The files of the second sink have the events of the first one."""
        try:
            import h5py
        except ImportError:
            return
        with h5py.File(self.folder / f"{builder}-hdf5" / "master.h5") as run:
            events = run["/entry/events"]
            self.assertEqual(set(events["number"][()].tolist()), set(self.events_of(self.folder / builder)))
            self.assertTrue(all(events["complete"][()]))
            self.assertEqual(run["/entry/sources/id"].shape[0], 4)

    def test_pull_in_listed_order(self):
        self.check_all(*self.run_all())

    def test_push_in_listed_order_until_written(self):
        self.check_all(*self.run_all('strategy = "push"\nkeep = "written"'))

    def test_push_in_step_in_listed_order(self):
        self.check_all(*self.run_all('strategy = "push"\nbarrier = true'))

    def test_push_by_time_in_listed_order(self):
        self.check_all(*self.run_all('strategy = "push"\nslot_us = 200'))


class OtherSinksTest(ClusterCase):
    """What readout nodes record themselves, and who is sent events by a builder."""

    def test_packets_are_recorded_by_readout_nodes(self):
        self.configure(sink='kind = "events"\npath = "{node}"\n[[sink]]\nkind = "pcapng"\npath = "{node}.pcapng"')
        captures = self.captures(events=300)
        nodes = self.start(captures)
        self.end(nodes)
        self.assert_all_well(nodes)
        recorded = {name: self.folder / f"{name}.pcapng" for name in captures}
        self.assertFalse((self.folder / "bu0.pcapng").exists())
        self.assert_same_events(self.events_of(self.folder / "bu0", self.folder / "bu1"), self.events_of(self.one_node(recorded)))

    def test_a_builder_sends_what_it_builds(self):
        self.configure(cluster='transports = "tcp"\ntimeout_ms = 20000')
        text = (self.folder / "cluster.toml").read_text()
        (self.folder / "bu0.toml").write_text(
            text + f'[[sink]]\nkind = "stream"\nlisten = "tcp://127.0.0.1:31001"\non_full = "wait"\nstart_timeout_ms = 20000\n')
        receiver = subprocess.Popen([live.Weir.program, "receive", "tcp://127.0.0.1:31001", "--out", "copies", "--series", "1", "--report", "copies.json"],
                                    cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(receiver.kill)
        captures = self.captures(events=300)
        nodes = {name: self.node(name, capture=captures.get(name), **({"config": "bu0.toml"} if name == "bu0" else {})) for name in TWO_AND_TWO}
        self.end(nodes)
        said = receiver.communicate(timeout=live.PATIENCE_S)[0]
        self.assertEqual(receiver.returncode, 0, said)
        self.assert_all_well(nodes)
        (copy,) = (self.folder / "copies").iterdir()
        built = self.events_of(self.folder / "bu0", what=payload_of)
        self.assertGreater(len(built), 0)
        self.assert_same_events(built, self.events_of(copy, what=payload_of))


def slow_down(case, device, rate):
    """What leaves through the device, for the time of the test."""
    made = subprocess.run(["tc", "qdisc", "replace", "dev", device, *f"root tbf rate {rate} burst 256kb limit 4mb".split()], capture_output=True, text=True)
    if made.returncode != 0:
        case.skipTest(f"no slow link here: {made.stderr.strip()}")
    case.addCleanup(subprocess.run, ["tc", "qdisc", "delete", "dev", device, "root"], stderr=subprocess.DEVNULL)


class SlowNetworkTest(ClusterCase):
    """Links of 50 Mb/s, so that parts take much longer than anything is waited for. What living nodes hold is not lost by that."""

    EVENTS = 160

    def check(self, keys):
        self.configure(cluster=f'transports = "tcp"\nsilence_ms = 20000\n{keys}')
        options = ["--format", "ejfat", "--sources", 2, "--bytes", 64000, "--events", self.EVENTS]
        captures = {f"ru{i}": self.capture(f"ru{i}", *options, "--port", 50001 + 2 * i, "--seed", i + 1) for i in (0, 1)}
        expected = self.events_of(self.one_node(captures))
        slow_down(self, "lo", "50mbit")  # all that nodes say to each other
        nodes = self.start(captures)
        self.end(nodes)
        self.assert_all_well(nodes)
        self.assert_same_events(expected, self.events_of(self.folder / "bu0", self.folder / "bu1"))

    def test_pull(self):
        self.check("")

    def test_push_until_written(self):
        self.check('strategy = "push"\nkeep = "written"')

    def test_push_in_step(self):
        self.check('strategy = "push"\nbarrier = true')

    def test_push_by_time(self):
        self.check('strategy = "push"\nslot_us = 1000')


class WildNumberTest(ClusterCase):
    """One packet whose event number is far ahead of all others, from one of a node's sources."""

    def insert(self, capture, packet, place):
        """The only packet of a capture into another one, at the time of the one that is there."""
        data = capture.read_bytes()
        at = 24
        for _ in range(place):
            at += 16 + struct.unpack_from("<I", data, at + 8)[0]
        wild = packet.read_bytes()[24:]
        capture.write_bytes(data[:at] + data[at:at + 8] + wild[8:] + data[at:])

    def check(self, number):
        self.configure()
        captures = self.captures(events=2000, rates=(500, 500))  # for seconds, in which blocks are overtaken
        expected = self.events_of(self.one_node(captures))
        wild = self.capture("wild", "--format", "ejfat", "--sources", 1, "--bytes", 100, "--events", 1, "--first-event", number, "--port", 50001)
        self.insert(captures["ru0"], wild, 1000)
        nodes = self.start(captures, "--pace", "recorded")
        self.end(nodes)
        self.assert_balanced(nodes)
        found = self.events_of(self.folder / "bu0", self.folder / "bu1")
        self.assertFalse(found.pop(number)[0], "it was complete")
        self.assert_same_events(expected, found)
        # What nobody has is not lost, and is given to nobody.
        for node in nodes.values():
            self.assertEqual(node.report["cluster"]["lost_blocks"]["list"], [], node.name)
        assigned = sum(node.report["cluster"]["manager"]["assigned"] for node in nodes.values() if "manager" in node.report["cluster"])
        self.assertEqual(assigned, 2000 // 16 + 2)

    def test_a_wild_one(self):
        self.check(1 << 40)

    def test_a_gap_that_may_be_one(self):
        self.check(200_000)


class StandingTest(ClusterCase):
    """A builder that stands still for seconds and counts as there: it costs nothing, and the others go on."""

    def check(self, keys, goes_on=True):
        """`goes_on`: the other builder does."""
        self.configure(cluster=f'transports = "tcp"\nsilence_ms = 20000\ntimeout_ms = 60000\nblock = 4\n{keys}')
        captures = self.captures(events=6000, rates=(1000, 1000))
        nodes = self.start(captures, "--pace", "recorded")
        wait_events(self.folder, nodes)
        live.stand_still(nodes["bu1"].process.pid)
        before = written_bytes(self.folder, "bu0")
        if goes_on:
            live.wait_for(lambda: written_bytes(self.folder, "bu0") > before + (1 << 20), "more events of bu0")
        else:
            time.sleep(2)  # long enough for the others to wait
        nodes["bu1"].stop(signal.SIGCONT)
        self.end(nodes)
        self.assert_all_well(nodes)
        self.assert_same_events(self.events_of(self.one_node(captures)), self.events_of(self.folder / "bu0", self.folder / "bu1"))
        return nodes

    def test_where_builders_pull(self):
        self.check("")

    def test_where_readout_nodes_push(self):
        self.check('strategy = "push"')

    def test_a_readout_node_that_stands_still_is_named(self):
        self.configure(cluster='transports = "tcp"\nsilence_ms = 20000\ntimeout_ms = 60000\nblock = 4')
        captures = self.captures(events=8000, rates=(1000, 1000))
        nodes = self.start(captures, "--pace", "recorded")
        wait_events(self.folder, nodes)
        live.stand_still(nodes["ru1"].process.pid)
        time.sleep(5)  # much longer than anything else is waited for
        nodes["ru1"].stop(signal.SIGCONT)
        self.end(nodes)
        self.assert_all_well(nodes)
        for name in ("bu0", "bu1"):
            awaited = {one["node"]: one["awaited_s"] for one in nodes[name].report["cluster"]["builder"]["readouts"]}
            self.assertGreater(awaited["ru1"], max(1, 2 * awaited["ru0"]), f"{name}: {awaited}")

    def test_where_readout_nodes_push_by_time(self):
        self.check('strategy = "push"\nslot_us = 200')

    def test_where_they_push_in_step_all_wait(self):
        self.check('strategy = "push"\nbarrier = true', goes_on=False)

    def test_full_memory_of_a_readout_node_is_waited_for(self):
        nodes = self.check('memory = "4MiB"\ncredits = 256\nkeep = "written"\nbarrier = true\nstrategy = "push"', goes_on=False)
        for name in ("ru0", "ru1"):
            memory = nodes[name].report["cluster"]["readout"]["memory"]
            self.assertGreater(memory["waited_s"], 0.1, name)
            waited = {one["node"]: one["waited_s"] for one in nodes[name].report["cluster"]["readout"]["builders"]}
            # It stands for two seconds, and on a slow machine there is no room at other times either.
            self.assertGreater(waited["bu1"], min(0.8, 0.5 * memory["waited_s"]), f"{name}: {waited}, {memory}")
            longest = max(waited, key=waited.get)
            self.assertRegex(nodes[name].output, rf"s waited for room in \[cluster\] memory, [0-9.]+ s of it for {longest}")
            self.assertLessEqual(memory["highest"], memory["bound"], name)


class WatchTest(ClusterCase):
    """What a node shows of the cluster while it works."""

    def serving(self, name, place):
        """The same configuration with an address of its own to watch it at."""
        text = (self.folder / "cluster.toml").read_text()
        (self.folder / f"{name}.toml").write_text(text + f'[serve]\nlisten = "127.0.0.1:{9400 + place}"\nsocket = "{self.folder}/{name}.sock"\n')
        return {"config": f"{name}.toml"}

    @staticmethod
    def get(place, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{9400 + place}{path}", timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    def metrics(self, place):
        """{"weir_cluster_parts_held": 3.0, ...}, of the cluster."""
        return {name: float(value) for name, value in re.findall(r"(?m)^(weir_cluster_\S+) (\S+)$", self.get(place, "/metrics"))}

    def test_a_readout_node_and_a_builder(self):
        self.configure(cluster='transports = "tcp"\nsilence_ms = 20000\ntimeout_ms = 20000')
        captures = self.captures(events=12000, rates=(1000, 1000))
        nodes = {name: self.node(name, *(["--pace", "recorded"] if role == "readout" else []), capture=captures.get(name), **self.serving(name, place))
                 for place, (name, role) in enumerate(TWO_AND_TWO.items())}
        handed = 'weir_cluster_parts_handed_over_total{to="bu1"}'
        received = 'weir_cluster_parts_received_total{from="ru0"}'
        live.wait_for(lambda: self.metrics(0).get(handed, 0) > 10 and self.metrics(3).get(received, 0) > 10, "parts in the metrics")
        readout, builder = self.metrics(0), self.metrics(3)
        for name, role in TWO_AND_TWO.items():
            self.assertEqual([seen[f'weir_cluster_node_up{{node="{name}",role="{role}"}}'] for seen in (readout, builder)], [1, 1], name)
        self.assertEqual((readout["weir_cluster_manages"], builder["weir_cluster_manages"], self.metrics(2)["weir_cluster_manages"]), (0, 0, 1))
        shown = json.loads(self.get(3, "/api/0.1/weir"))["cluster"]
        self.assertEqual((shown["node"], shown["role"], shown["lives"]), ("bu1", "builder", 1))
        self.assertNotIn("list", shown["lost_blocks"])
        nodes["bu0"].process.kill()
        nodes["bu0"].process.wait()
        away = 'weir_cluster_node_up{node="bu0",role="builder"}'
        live.wait_for(lambda: self.metrics(0).get(away) == 0 and self.metrics(3).get(away) == 0, "the death in the metrics")
        live.wait_for(lambda: self.metrics(3).get("weir_cluster_manages") == 1, "the new manager in the metrics")
        del nodes["bu0"]
        self.end(nodes)
        for node in nodes.values():
            self.assertTrue(all(name.startswith("tcp/") for name in node.report["cluster"]["transports"]), node.report["cluster"]["transports"])
            self.assertGreater(len(node.report["cluster"]["transports"]), 0, node.name)


    def test_a_node_that_only_manages(self):
        nodes = {"ma": "manager", **TWO_AND_TWO}
        self.configure(nodes=nodes)
        captures = self.captures(events=10000, rates=(1000, 1000))
        started = {"ma": self.node("ma", **self.serving("ma", 0))}
        live.wait_for(lambda: self.metrics(0).get('weir_cluster_node_up{node="ma",role="manager"}') == 1, "its own metrics")
        for name, role in TWO_AND_TWO.items():
            started[name] = self.node(name, *(["--pace", "recorded"] if role == "readout" else []), capture=captures.get(name))
        live.wait_for(lambda: self.metrics(0).get("weir_cluster_blocks_given_out_total", 0) > 5, "blocks that it gave out")
        shown = json.loads(self.get(0, "/api/0.1/weir"))
        self.assertEqual((shown["cluster"]["node"], shown["cluster"]["role"], shown["status"]["state"], shown["run"]["number"]), ("ma", "manager", "running", 1))
        self.assertIn("<html", self.get(0, "/"))
        self.end(started)
        self.assert_all_well(started)
        self.assertEqual(started["ma"].report["cluster"]["manager"]["assigned"], 10000 // 16 + 1)


class StopTest(ClusterCase):
    """Nodes that are told to stop, while events come at the pace at which they came."""

    EVENTS = 6000

    def start_recorded(self, keys="leave_ms = 2000"):
        slow = "silence_ms = 20000\ntimeout_ms = 20000"  # that others want the CPUs is nothing to give up for
        self.configure(cluster=f'transports = "tcp"\n{slow}\n{keys}')
        nodes = self.start(self.captures(events=self.EVENTS, rates=(1000, 1000)), "--pace", "recorded")
        live.wait_for(lambda: sum(len(live.whole_events_in(self.folder / f".{name}.part")) for name in ("bu0", "bu1")) > 400, "events of both builders")
        return nodes

    def found(self):
        return self.events_of(self.folder / "bu0", self.folder / "bu1", what=lambda event: (event.complete, event.cause, len(event.sources)))

    def test_a_readout_node_leaves(self):
        self.EVENTS = 10000  # so that it has left long before the other one has no more
        nodes = self.start_recorded()
        nodes["ru0"].stop()
        nodes["ru0"].end()
        self.assertIsNone(nodes["ru1"].process.poll(), "the other one has ended, too")
        self.end(nodes)
        self.assert_balanced(nodes)
        self.assert_blocks(nodes)
        self.assert_nothing_lost(nodes)
        self.assert_handed_over_is_received(nodes)
        found = self.found()
        self.assertEqual(set(found), set(range(1, self.EVENTS + 1)))
        causes = [event[1] for event in found.values() if not event[0]]
        # While it waits for the others it says that it has no more.
        self.assertEqual(set(causes) - {"end_of_run", "timeout"}, {"node_down"})
        self.assertGreater(sum(event[0] for event in found.values()), 300)
        self.assertGreater(sum(not event[0] for event in found.values()), 300)
        self.assertGreater(self.missing_parts(nodes, "ru0", "node_down"), 0)

    def check_builder_leaves(self, name, keys="leave_ms = 30000"):
        nodes = self.start_recorded(keys)
        nodes[name].stop()
        nodes[name].end()
        self.end(nodes)  # readout nodes not before they have read everything: that is what is found below
        self.assert_balanced(nodes)
        self.assert_blocks(nodes, left_by=name)
        self.assert_nothing_lost(nodes)
        self.assert_handed_over_is_received(nodes, left_by=name)
        found = self.found()
        self.assertEqual(set(found), set(range(1, self.EVENTS + 1)))
        self.assertTrue(all(event[0] for event in found.values()), "not all events are complete")

    def test_the_builder_that_manages_leaves(self):
        self.check_builder_leaves("bu0")

    def test_another_builder_leaves(self):
        self.check_builder_leaves("bu1")

    def test_a_builder_leaves_push_until_written(self):
        self.check_builder_leaves("bu1", 'leave_ms = 30000\nstrategy = "push"\nkeep = "written"')

    def test_readout_nodes_that_wait_for_nobody(self):
        """The builders end all the same when they have written what they got."""
        self.configure(cluster='transports = "tcp"\nleave_ms = 0')
        nodes = self.start(self.captures(events=500))
        self.end(nodes)
        self.assert_balanced(nodes)
        self.assert_blocks(nodes)
        self.assertEqual(set(self.found()), set(range(1, 501)))

    def check_all_stop(self, order):
        nodes = self.start_recorded('leave_ms = 30000')
        for name in order:
            nodes[name].stop()
        self.end(nodes)
        self.assert_all_well(nodes)
        found = self.found()
        read = [nodes[name].report["events"]["written"] for name in ("ru0", "ru1")]
        self.assertEqual(set(found), set(range(1, max(read) + 1)))
        # Until the first of the two was told, which was a moment before the second one.
        complete = sum(event[0] for event in found.values())
        self.assertGreaterEqual(complete, min(read) - 1, {cause for _, cause, _ in found.values()})

    def test_all_are_told_readout_nodes_first(self):
        self.check_all_stop(("ru0", "ru1", "bu0", "bu1"))

    def test_all_are_told_builders_first(self):
        self.check_all_stop(("bu0", "bu1", "ru0", "ru1"))


class AloneTest(ClusterCase):
    """Nodes that nobody is left for, or has come for: they say so and end, with status 1."""

    KEYS = 'transports = "tcp"\njoin_wait_ms = 1000\nleave_ms = 500\nalone_ms = 3000\nsilence_ms = 1000'

    def test_who_comes_when_the_others_have_ended(self):
        nodes = {**TWO_AND_TWO, "ma": "manager"}
        self.configure(cluster=self.KEYS, nodes=nodes)
        for name in ("bu0", "ma"):
            late = self.node(name)
            late.end(status=1)
            other = "readout node" if name == "bu0" else "other node"
            self.assertIn(f"no {other} of the cluster has been here for 3.0 s (cluster.alone_ms)", late.output)

    def test_a_replay_whose_builders_are_dead(self):
        """Its memory is full, and the capture has much more."""
        self.configure(cluster=self.KEYS.replace("alone_ms = 3000", "alone_ms = 15000") + '\nmemory = "2MiB"')
        nodes = self.start(self.captures(events=6000, rates=(1000, 1000)), "--pace", "recorded")
        wait_events(self.folder, nodes)
        for name in ("bu0", "bu1"):
            nodes[name].stop(signal.SIGKILL)
        for name in ("ru0", "ru1"):
            nodes[name].end(status=1)
            self.assertIn("no builder of the cluster has been here for 15.0 s (cluster.alone_ms)", nodes[name].output)
            self.assert_account(nodes[name])
            self.assertEqual(nodes[name].report["lossless"], "no")

    def test_told_to_stop_with_full_memory(self):
        """Nobody makes room for what the pipeline still has."""
        self.configure(cluster=self.KEYS.replace("alone_ms = 3000", "alone_ms = 0") + '\nmemory = "2MiB"')
        nodes = self.start(self.captures(events=6000, rates=(1000, 1000)), "--pace", "recorded")
        wait_events(self.folder, nodes)
        for name in ("bu0", "bu1"):
            nodes[name].stop(signal.SIGKILL)
        for name in ("ru0", "ru1"):
            nodes[name].wait_said("warning: cluster: bu1 went away")
        time.sleep(2)  # in which the memory becomes full
        for name in ("ru0", "ru1"):
            nodes[name].stop()
            nodes[name].end()
            self.assert_account(nodes[name])


class FullDiskTest(ClusterCase):
    """A builder whose disk is full leaves the others, which go on without it; it would take blocks faster than who has to write them."""

    EVENTS = 10000

    def start_with_a_small_disk(self, keys=""):
        self.configure(cluster=f'transports = "tcp"\n{keys}', sink='kind = "events"\npath = "disks/{node}/run"')
        disk = self.folder / "disks" / "bu1"
        disk.mkdir(parents=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(disk)], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"no tmpfs may be mounted here: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(disk)])
        (self.folder / "disks" / "bu0").mkdir()
        nodes = self.start(self.captures(events=self.EVENTS, rates=(1000, 1000)), "--pace", "recorded")
        nodes["bu1"].end(status=1)
        self.assertIn("No space left on device", nodes["bu1"].output)
        self.assertIn("the sinks of this node failed: it leaves the others", nodes["bu1"].output)
        self.assertIsNone(nodes["ru0"].process.poll(), "a readout node has ended, too")
        self.end({name: node for name, node in nodes.items() if name != "bu1"})
        self.assert_balanced(nodes)
        self.assertGreater(nodes["bu0"].report["events"]["complete"], self.EVENTS / 2)
        return nodes, [self.events_of(self.folder / "disks" / name / "run") for name in ("bu0", "bu1")]

    def test_what_it_had_not_written_is_listed(self):
        nodes, (ours, its) = self.start_with_a_small_disk()
        self.assertEqual(ours.keys() & its.keys(), set())
        self.assertGreater(len(its), 16)
        lost = nodes["bu0"].report["cluster"]["lost_blocks"]["list"]
        listed = {number for loss in lost for number in range(loss["first"], loss["last"] + 1)}
        missing = set(range(1, self.EVENTS + 1)) - ours.keys() - its.keys()
        self.assertEqual(missing - listed, set(), "events are missing, and nobody lists their blocks")
        self.assertLessEqual(len(lost), 16, "more than it had credits for")
        blocks = nodes["bu1"].report["cluster"]["builder"]["blocks"]
        self.assertGreater(blocks["given_up"], 0)
        self.assertLessEqual(blocks["given_up"], len(lost))
        self.check_inspect(nodes)

    def check_inspect(self, nodes):
        """All of it read as one run."""
        folder = self.folder / "all"
        folder.mkdir()
        for name, node in nodes.items():
            (folder / f"{name}.json").write_text(json.dumps(node.report))
            if name.startswith("bu"):
                shutil.copytree(self.folder / "disks" / name / "run", folder / name)
        done = subprocess.run([live.Weir.program, "inspect", str(folder), "--json"], capture_output=True, text=True, timeout=live.PATIENCE_S)
        found = json.loads(done.stdout)["cluster"]
        self.assertIsNot(found["blocks"]["balanced"], False, found["blocks"])
        self.assertEqual(found["lossless"], "no")

    def test_until_written_others_build_it_again(self):
        nodes, (ours, its) = self.start_with_a_small_disk('keep = "written"')
        self.assertEqual(ours.keys() | its.keys(), set(range(1, self.EVENTS + 1)))
        self.assertLessEqual(len({number // 16 for number in ours.keys() & its.keys()}), 16)
        self.assert_nothing_lost(nodes)


def written_bytes(folder, node):
    """Of the events of this builder, finished or not."""
    while True:
        try:
            files = [*folder.glob(f".{node}.part/events-*"), *folder.glob(f"{node}/events-*"), *folder.glob(f"{node}/run-*/events-*"),
                     *folder.glob(f"{node}/.run-*.part/events-*")]
            return sum(file.stat().st_size for file in files)
        except FileNotFoundError:  # a run has got its name in this moment
            pass


def wait_events(folder, nodes):
    """Until each builder has written something."""
    builders = [name for name in nodes if name.startswith("bu")]
    try:
        live.wait_for(lambda: all(written_bytes(folder, name) > 16384 for name in builders), f"events of {builders}")
    except AssertionError as error:
        said = "\n".join(f"{name}, status {node.process.poll()}:\n{node.last_words()}" for name, node in nodes.items())
        raise AssertionError(f"{error}\n{said}") from None


class WrongTest(ClusterCase):
    """Nodes that do not fit together, and names that are none."""

    def two_that_differ(self, **keys):
        self.configure(cluster='transports = "tcp"\njoin_wait_ms = 1000\nleave_ms = 500')
        (self.folder / "other.toml").write_text(configuration(**{"cluster": 'transports = "tcp"\njoin_wait_ms = 1000\nleave_ms = 500', **keys}))
        builder = self.node("bu0", "--allow-empty")
        other = self.node("ru0", capture=self.captures(events=50)["ru0"], config="other.toml")
        for node, name in ((builder, "ru0"), (other, "bu0")):
            node.wait_said(rf"warning: cluster: {name} \(127\.0\.0\.1:[0-9]+\) is of another cluster, or has another configuration")
        builder.stop()
        builder.end()
        other.stop()
        other.end()
        self.assertEqual(builder.report["packets"]["received"], 0)

    def test_another_block(self):
        self.two_that_differ(cluster='transports = "tcp"\njoin_wait_ms = 1000\nleave_ms = 500\nblock = 17')

    def test_other_streams(self):
        self.two_that_differ(streams={"ru0": (50001, 50002), "ru1": (50003, 50005)})

    def test_another_secret(self):
        texts = {}
        for name in ("cluster", "other"):
            secret = self.folder / f"{name}.secret"
            secret.write_text(f"the secret of {name}\n")
            secret.chmod(0o600)
            texts[name] = configuration(cluster=f'transports = "tcp"\njoin_wait_ms = 1000\nleave_ms = 500\nsecret_file = "{secret}"')
        self.configure()
        for name, text in texts.items():
            (self.folder / f"{name}.toml").write_text(text)
        builder = self.node("bu0", "--allow-empty")
        other = self.node("ru0", capture=self.captures(events=50)["ru0"], config="other.toml")
        for node in (builder, other):
            node.wait_said("warning: cluster: a hello .* is damaged, or of a node that has another secret; it was not believed")
        for node in (builder, other):
            node.stop()
            node.end()
            self.assertGreater(node.report["cluster"]["callers_refused"], 0)
        self.assertEqual(builder.report["packets"]["received"], 0)
        (self.folder / "other.secret").chmod(0o644)
        status, said = self.refused("--node", "bu0", config="other.toml")
        self.assertEqual(status, 1)
        self.assertIn("cluster.secret_file: ", said)
        self.assertIn("chmod o-rw", said)

    def test_the_same_secret(self):
        secret = self.folder / "secret"
        secret.write_text("open sesame\n")
        secret.chmod(0o600)
        self.configure(cluster=f'transports = "tcp"\nsecret_file = "{secret}"')
        nodes = [self.node("bu0", "--allow-empty"), self.node("bu1", "--allow-empty")]
        for node in nodes:
            node.wait_running()
            node.stop()
        for node in nodes:
            node.end()
            self.assertEqual(node.report["cluster"]["callers_refused"], 0)
        up = {one["name"] for node in nodes for one in node.report["cluster"]["nodes"] if one["up"]}
        self.assertTrue(up >= {"bu0", "bu1"}, up)

    def refused(self, *options, environment=None, config="cluster.toml"):
        done = subprocess.run([live.Weir.program, "run", "--config", config, "--report", "r.json", *options], cwd=self.folder, capture_output=True,
                              text=True, timeout=live.PATIENCE_S, env={**os.environ, **(environment or {})})
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.returncode, done.stderr

    def test_two_of_the_same_name(self):
        self.configure()
        first = self.node("bu0")
        first.wait_running()
        (self.folder / "elsewhere").mkdir()
        status, said = self.refused("--node", "bu0", "--out", "elsewhere/run")
        self.assertEqual(status, 1)
        self.assertIn("cannot listen at 127.0.0.1:7473: Address already in use", said)
        self.assertIsNone(first.process.poll())

    def test_a_name_that_no_node_has(self):
        self.configure()
        status, said = self.refused("--node", "bu7")
        self.assertEqual(status, 2)
        self.assertIn("bu7", said)
        self.assertIn('"ru0", "ru1", "bu0" or "bu1"', said)
        self.assertEqual(self.refused("--node", "bu0", config="one.toml")[0], 2)

    def test_no_name_and_the_host_is_no_node(self):
        self.configure()
        status, said = self.refused()
        self.assertEqual(status, 2)
        self.assertIn(socket.gethostname(), said)
        self.assertIn('"ru0", "ru1", "bu0" or "bu1"', said)

    def test_the_name_from_the_environment(self):
        self.configure()
        status, said = self.refused(environment={"WEIR_NODE": "bu8"})
        self.assertEqual(status, 2)
        self.assertIn("bu8", said)

    def test_an_address_of_another_host(self):
        self.configure(addresses={name: f"192.0.2.{place}:7471" for place, name in enumerate(TWO_AND_TWO)})
        status, said = self.refused("--node", "bu0")
        self.assertEqual(status, 1)
        self.assertIn("cannot listen at 192.0.2.2:7471", said)


if __name__ == "__main__":
    live.main(sandbox_required=True)
