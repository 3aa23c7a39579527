#!/usr/bin/env python3
"""Event building over nodes that have a network between them: slow links, nodes that fall silent and come back, a network in halves.

usage: cluster_network_test.py WEIR
"""

import json
import subprocess
import threading
import time

from cluster_test import TWO_AND_TWO, ClusterCase, payload_of, slow_down, wait_events, written_bytes
import live


class Bridge:
    """A namespace for each node, with c0 on a bridge between them; readout nodes also have det0, with gen0 in a sender's namespace at its end."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.ip("link", "add", "weirbr", "mtu", 9000, "type", "bridge", "forward_delay", 0)
        self.ip("link", "set", "weirbr", "up")
        self.addresses = {}
        for place, (name, role) in enumerate(nodes.items(), start=1):
            self.ip("netns", "add", name)
            self.ip("-n", name, "link", "set", "lo", "up")
            self.ip("link", "add", f"{name}-c", "mtu", 9000, "type", "veth", "peer", "name", "c0", "mtu", 9000, "netns", name)
            self.ip("link", "set", f"{name}-c", "master", "weirbr", "up")
            self.ip("-n", name, "address", "add", f"10.2.0.{place}/24", "dev", "c0")
            self.ip("-n", name, "link", "set", "c0", "up")
            self.addresses[name] = f"10.2.0.{place}:7471"
            if role == "readout":
                self.add_detector(name)

    def add_detector(self, name):
        sender = f"{name}-sender"
        self.ip("netns", "add", sender)
        self.ip("-n", name, "link", "add", "det0", "mtu", 9000, "type", "veth", "peer", "name", "gen0", "mtu", 9000, "netns", sender)
        self.ip("-n", name, "link", "set", "det0", "up")
        self.ip("-n", sender, "address", "add", f"{live.SENDER}/24", "dev", "gen0")
        self.ip("-n", sender, "link", "set", "gen0", "up")
        # The way is known: while a kernel asks for it, it keeps few packets, and drops the others.
        shown = subprocess.run(["ip", "-n", name, "-json", "link", "show", "det0"], check=True, capture_output=True, text=True).stdout
        self.ip("-n", sender, "neighbour", "replace", live.RECEIVER, "lladdr", json.loads(shown)[0]["address"], "dev", "gen0")
        for place, device in ((name, "det0"), (sender, "gen0")):
            subprocess.run([*self.at(place), "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off", "tx", "off"], check=True,
                           stdout=subprocess.DEVNULL)

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *map(str, words)], check=True)

    @staticmethod
    def at(place):
        """In front of a command that is to be run there."""
        return ["ip", "netns", "exec", place]

    def set_link(self, name, state):
        """The bridge's end of a node's cable, up or down: the node itself is told nothing."""
        self.ip("link", "set", f"{name}-c", state)

    def fall_apart(self, names):
        """These go to a bridge of their own."""
        self.ip("link", "add", "weirbr2", "mtu", 9000, "type", "bridge", "forward_delay", 0)
        self.ip("link", "set", "weirbr2", "up")
        for name in names:
            self.ip("link", "set", f"{name}-c", "master", "weirbr2")

    def meet_again(self, names):
        for name in names:
            self.ip("link", "set", f"{name}-c", "master", "weirbr")
        self.ip("link", "delete", "weirbr2")

    def close(self):
        for name, role in self.nodes.items():
            subprocess.run(["ip", "link", "delete", f"{name}-c"])  # with its namespace it would go some time later
            subprocess.run(["ip", "netns", "delete", name])
            if role == "readout":
                subprocess.run(["ip", "netns", "delete", f"{name}-sender"])
        subprocess.run(["ip", "link", "delete", "weirbr"])
        subprocess.run(["ip", "link", "delete", "weirbr2"], stderr=subprocess.DEVNULL)


class NetworkTest(ClusterCase):
    """Each node in a network namespace of its own, at a bridge; packets come from UDP sockets."""

    OPTIONS = ["--format", "ejfat", "--sources", 2, "--bytes", 4000, "--bytes-min", 100]
    EVENTS = 10000  # for 20 s, in which a node falls silent
    AFTERWARDS = 1000  # events that are sent when it has come back
    # Silence is that of a link which is down, and not of a process that had no processor.
    SILENCE = "silence_ms = 6000\nreturn_ms = 0\nleave_ms = 6000\ntimeout_ms = 20000"

    def setUp(self):
        super().setUp()
        self.network = Bridge(TWO_AND_TWO)
        self.addCleanup(self.network.close)

    def configure_there(self, keys=""):
        """The two senders may be seconds apart on a busy machine, and nothing is to be missed for that: see ClusterPart."""
        if "timeout_ms" not in keys:
            keys += "\ntimeout_ms = 20000"
        self.configure(cluster=f'transports = "tcp"\n{keys}', addresses=self.network.addresses,
                       port=f'device = "kernel,iface=det0,ring=128"\naddress = "{live.RECEIVER}/24"')
        file = self.folder / "cluster.toml"
        file.write_text(file.read_text().replace("timeout_ms = 500\n", "timeout_ms = 2000\n"))

    def start_there(self):
        nodes = {name: self.node(name, where=self.network.at(name)) for name in TWO_AND_TWO}
        for node in nodes.values():
            node.wait_running()
        return nodes

    def send_to_both(self, events, rate, first=1):
        """At the same time, into each readout node's namespace."""
        sent = {}

        def send_to(place):
            name = f"ru{place}"
            sent[name] = self.send(*self.OPTIONS, "--events", events, "--rate", rate, "--first-event", first, "--seed", place + 1, "--to",
                                   f"udp:{live.RECEIVER}:{50001 + 2 * place}", where=self.network.at(f"{name}-sender"))

        senders = [threading.Thread(target=send_to, args=(place,)) for place in (0, 1)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        self.assertEqual(set(sent), {"ru0", "ru1"})
        return sent

    def stop_all(self, nodes):
        """The end of the readout nodes is that of the cluster."""
        for name in ("ru0", "ru1"):
            nodes[name].stop()
        self.end(nodes)
        for name in ("ru0", "ru1"):
            self.assertEqual(nodes[name].report["devices"][0]["missed"], 0, f"the ring of {name} was full")

    def expected(self, events):
        common = [*self.OPTIONS, "--rate", 2000, "--events", events]
        captures = {f"ru{i}": self.capture(f"expected{i}", *common, "--port", 50001 + 2 * i, "--seed", i + 1) for i in (0, 1)}
        return self.events_of(self.one_node(captures), what=payload_of)

    def test_two_and_two_over_a_bridge(self):
        self.configure_there()
        nodes = self.start_there()
        sent = self.send_to_both(1000, 500)
        self.stop_all(nodes)
        self.assert_all_well(nodes)
        for name, account in sent.items():
            self.assert_account(nodes[name], sent=account["packets"]["sent"])
            self.assertEqual(nodes[name].report["events"]["complete"], 1000)
        self.assert_same_events(self.expected(1000), self.events_of(self.folder / "bu0", self.folder / "bu1", what=payload_of))

    def test_a_detector_that_pauses_and_a_slow_one(self):
        """In the middle of a block: what came before that is built meanwhile, and nothing is lost by it."""
        self.configure_there("silence_ms = 20000")
        nodes = self.start_there()
        self.send_to_both(500, 500)
        written = lambda: sum(len(live.whole_events_in(self.folder / f".{builder}.part")) for builder in ("bu0", "bu1"))
        live.wait_for(lambda: written() == 500, "builders that have written all events of before the pause")
        self.send_to_both(500, 500, first=501)
        self.send_to_both(5, 0.5, first=1001)
        self.stop_all(nodes)
        self.assert_all_well(nodes)
        for name in ("ru0", "ru1"):
            self.assertEqual(nodes[name].report["events"]["written"], 1005, name)
        self.assert_all_complete(1005)

    def test_live_through_slow_links(self):
        """Builders at 10 Mb/s each, at a detector that sends twice as much: parts wait in the memory of readout nodes."""
        self.configure_there("silence_ms = 20000\nleave_ms = 60000")
        for name in ("bu0", "bu1"):
            slow_down(self, f"{name}-c", "10mbit")
        nodes = self.start_there()
        self.send_to_both(3000, 500)
        self.stop_all(nodes)
        self.assert_all_well(nodes)
        self.assert_all_complete(3000)

    def start_sending(self, keys, events=EVENTS):
        self.configure_there(keys)
        nodes = self.start_there()
        sender = self.send_meanwhile(events)
        wait_events(self.folder, nodes)
        return nodes, sender

    def send_meanwhile(self, events):
        sender = threading.Thread(target=self.send_to_both, args=(events, 500))
        sender.start()
        self.addCleanup(sender.join)
        return sender

    def send_afterwards(self, sender):
        """However long it has taken, there is something for it to take part in."""
        sender.join()
        self.send_to_both(self.AFTERWARDS, 500, first=self.EVENTS + 1)

    def silence(self, nodes, name):
        """Nothing comes from the node or gets to it until the others have seen that and gone on; then it comes back."""
        others = [other for other in nodes if other != name]
        self.network.set_link(name, "down")
        for other in others:
            nodes[other].wait_said(f"warning: cluster: {name} went away")
        builders = [other for other in others if TWO_AND_TWO[other] == "builder"]
        before = {builder: written_bytes(self.folder, builder) for builder in builders}
        for builder in builders:
            live.wait_for(lambda: written_bytes(self.folder, builder) > before[builder] + 16384, f"more events of {builder}")
        nodes[name].wait_said(f"warning: cluster: ({'|'.join(others)}) went away")
        self.network.set_link(name, "up")
        nodes[name].wait_said("the cluster took this node for dead; it begins anew")

    def found(self):
        return self.events_of(self.folder / "bu0", self.folder / "bu1", what=lambda event: (event.complete, event.cause))

    def assert_all_complete(self, events):
        self.assert_same_events(dict.fromkeys(range(1, events + 1), (True, "none")), self.found())

    def test_a_short_silence_changes_nothing(self):
        nodes, sender = self.start_sending("silence_ms = 20000\ntimeout_ms = 40000", events=2000)
        self.network.set_link("ru0", "down")
        time.sleep(0.7)  # which nobody notices: there is nothing to wait for
        self.network.set_link("ru0", "up")
        sender.join()
        self.stop_all(nodes)
        self.assert_all_well(nodes)
        self.assertFalse(any("went away" in node.output for node in nodes.values() if node.name.startswith("bu")))
        self.assert_all_complete(2000)

    def test_a_builder_falls_silent_and_comes_back(self):
        nodes, sender = self.start_sending(self.SILENCE)
        self.silence(nodes, "bu1")
        self.send_afterwards(sender)
        self.stop_all(nodes)
        self.assert_balanced(nodes)
        self.assertEqual(nodes["bu1"].report["cluster"]["lives"], 2)
        lost = {loss["block"] for node in nodes.values() for loss in node.report["cluster"]["lost_blocks"]["list"]}
        found = self.found()
        missing = {number // 16 for number in range(1, self.EVENTS + self.AFTERWARDS + 1)} - {number // 16 for number in found}
        self.assertEqual(missing - lost, set(), "blocks are missing, and nobody lists them")
        self.assertTrue(all(event[0] for event in found.values()), "not all events are complete")

    def test_a_network_in_halves(self):
        """Each with a readout node and a builder: one waits, so no event is there twice."""
        nodes, sender = self.start_sending(self.SILENCE)
        half = ("ru1", "bu1")
        self.network.fall_apart(half)
        for name in half:
            nodes[name].wait_said("only 2 of 4 nodes that count are in reach")
        for name in ("ru0", "bu0"):
            nodes[name].wait_said("warning: cluster: (ru1|bu1) went away")
        before = {builder: written_bytes(self.folder, builder) for builder in ("bu0", "bu1")}
        live.wait_for(lambda: written_bytes(self.folder, "bu0") > before["bu0"] + 65536, "more events of bu0")
        self.assertEqual(written_bytes(self.folder, "bu1"), before["bu1"], "the half that is to wait has gone on")
        self.network.meet_again(half)
        for name in half:
            nodes[name].wait_said("the cluster took this node for dead; it begins anew")
        self.send_afterwards(sender)
        self.stop_all(nodes)
        self.assert_balanced(nodes)
        self.assertEqual({name: node.report["cluster"]["lives"] for name, node in nodes.items()}, {"ru0": 1, "bu0": 1, "ru1": 2, "bu1": 2})
        lost = {loss["block"] for node in nodes.values() for loss in node.report["cluster"]["lost_blocks"]["list"]}
        found = self.found()
        missing = {number // 16 for number in range(1, self.EVENTS + self.AFTERWARDS + 1)} - {number // 16 for number in found}
        self.assertEqual(missing - lost, set(), "blocks are missing, and nobody lists them")
        self.assertGreater(max(number for number, event in found.items() if event[0]), self.EVENTS, "it has not taken part again")

    def test_nodes_that_start_in_halves(self):
        """Each sees two nodes that it might take for ones that were not started. Their hosts say nothing, so one half waits."""
        half = ("ru1", "bu1")
        self.network.fall_apart(half)
        self.configure_there(self.SILENCE)
        nodes = self.start_there()
        for name in half:
            nodes[name].wait_said("only [12] of [234] nodes that count are in reach")  # as many as have begun by then
        sender = self.send_meanwhile(self.EVENTS)
        live.wait_for(lambda: written_bytes(self.folder, "bu0") > 65536, "events of bu0")
        self.assertLess(written_bytes(self.folder, "bu1"), 16384, "the half that is to wait has begun")
        self.network.meet_again(half)
        for name in half:
            nodes[name].wait_said(r"enough of the cluster is in reach again \([34] of 4")
        self.send_afterwards(sender)
        self.stop_all(nodes)
        self.assert_balanced(nodes)
        found = self.found()
        self.assertEqual(sorted(found), list(range(1, self.EVENTS + self.AFTERWARDS + 1)))
        self.assertGreater(max(number for number, event in found.items() if event[0]), self.EVENTS, "it has not taken part")
        self.assertGreater(nodes["bu1"].report["cluster"]["builder"]["blocks"]["complete"], 0, "\n".join(node.output for node in nodes.values()))

    def test_a_builder_is_stopped_in_the_half_that_waits(self):
        """With blocks that it lacks parts of, and that nobody there may call built: it ends at the first signal."""
        nodes, sender = self.start_sending("silence_ms = 3000\nreturn_ms = 0\nleave_ms = 3000\ntimeout_ms = 20000", events=8000)
        slow_down(self, "bu1-c", "3mbit")
        before = written_bytes(self.folder, "bu0")
        live.wait_for(lambda: written_bytes(self.folder, "bu0") > before + 4_000_000, "events of bu0, while parts for bu1 are on their way")
        self.network.fall_apart(("ru1", "bu1"))
        for name in ("ru1", "bu1"):
            nodes[name].wait_said("only 2 of 4 nodes that count are in reach")
        nodes["bu1"].stop()
        nodes["bu1"].end()
        sender.join()
        nodes["ru1"].stop()
        self.stop_all(nodes)
        self.assert_balanced(nodes)
        blocks = nodes["bu1"].report["cluster"]["builder"]["blocks"]
        self.assertGreater(blocks["assigned"], blocks["complete"] + blocks["incomplete"], "it had no open blocks when the network fell apart")
        self.found()

    def test_a_readout_node_falls_silent_and_comes_back(self):
        nodes, sender = self.start_sending(self.SILENCE)
        self.silence(nodes, "ru0")
        self.send_afterwards(sender)
        self.stop_all(nodes)
        self.assert_balanced(nodes)
        self.assert_blocks(nodes)
        self.assert_nothing_lost(nodes)
        self.assertEqual(nodes["ru0"].report["cluster"]["lives"], 2)
        self.assertGreater(self.missing_parts(nodes, "ru0", "node_down"), 0)
        found = self.found()
        self.assertEqual(set(found), set(range(1, self.EVENTS + self.AFTERWARDS + 1)))
        causes = {cause for complete, cause in found.values() if not complete}
        self.assertEqual(causes - {"timeout"}, {"node_down"})  # blocks that were built while it was away
        complete = [number for number, event in found.items() if event[0]]
        incomplete = [number for number, event in found.items() if not event[0]]
        self.assertLess(min(complete), min(incomplete))
        self.assertGreater(max(complete), max(incomplete), "it has not taken part again")


if __name__ == "__main__":
    live.main(sandbox_required=True)
