#!/usr/bin/env python3
"""Flow rules in a replay: what they drop, mark and steer, and that everything else is as without them."""
import json
import os
import random

from packets import EJFAT_PORT, START_NS, ejfat, pcap_bytes, roce_message, stamped, udp
from support import FUSED, ROOT, Case, Replay, config, main, stream, weir

TWO_RX = '[lcores]\nrx = [0, 1]\nbuild = [0]\nwork = [0]\nidle = "sleep"\n'
CREATE = "flow create 0 ingress pattern eth / ipv4"


def rule(pattern, actions):
    return f"{CREATE} {pattern} / end actions {actions} / end\n"


def events(count, sources=(0, 1), port=EJFAT_PORT, **more):
    """Frames of events of two packets a source, interleaved."""
    return [udp(ejfat(n, bytes([s, n % 251]) * 300, offset=at, total=1200), port + s, **more)
            for n in range(1, count + 1) for at in (0, 600) for s in sources]


class FlowRules(Case):
    def settings(self, rules, *streams, queues=2, sources=2, more=FUSED, keys=""):
        path = self.path("r.flow", rules)
        text = config(*(streams or [stream(format="ejfat")]), sources=sources, more=more)
        return text.replace('device = "net_null0"\n', f'device = "net_null0"\nqueues = {queues}\nflows = "{path.name}"\n{keys}')

    def rules_of(self, result):
        (port,) = result.report["flows"]
        return {rule["line"]: rule for rule in port["rules"]}

    def test_dropped_packets_have_a_counter_and_the_rest_is_as_without(self):
        noise = [udp(b"noise", port) for port in (9, 5353, 9)]
        frames = events(20)
        mixed = [f for i, frame in enumerate(frames) for f in ([frame, noise[i % 3]] if i % 4 == 0 else [frame])]
        dropped = len(mixed) - len(frames)
        plain = self.replay(self.path("plain.pcap", pcap_bytes(stamped(frames))), config(stream(format="ejfat"), more=FUSED))
        text = "# noise\n" + rule(f"/ udp dst spec {EJFAT_PORT} dst last {EJFAT_PORT + 1} dst mask 0xffff", "queue index 1") + \
            rule("/ udp", "drop / count")
        result = self.replay(self.path("mixed.pcap", pcap_bytes(stamped(mixed))), self.settings(text))
        self.assertEqual(result.packets, {"placed": len(frames), "dropped.flow_rule": dropped})
        self.assertEqual(result.digests, plain.digests)
        found = self.rules_of(result)
        self.assertEqual([(r["where"], r["hits"], r["effective"], r["hits_hardware"]) for r in (found[2], found[3])],
                         [("software", len(frames), None, None), ("software", dropped, None, None)])
        self.assertEqual(found[3]["dropped_of_streams"], 0)
        self.assertIn("dropped by flow rules, as asked", result.output)
        self.assertEqual(result.report["wire_loss"], plain.report["wire_loss"])

    def test_dropping_a_stream_is_a_loss(self):
        frames = events(10)
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))),
                             self.settings(rule(f"/ udp dst is {EJFAT_PORT}", "drop")), "--require-lossless", status=3)
        self.assertEqual(result.packets, {"placed": 20, "dropped.flow_rule": 20})
        self.assertEqual(self.rules_of(result)[1]["dropped_of_streams"], 20)
        self.assertEqual(result.report["events"]["incomplete"]["end_of_run"], 10)
        self.assertEqual(result.report["wire_loss"], "unknown")
        self.assertIn("lost      20: packets of a stream were dropped by a flow rule", result.output)

    def test_a_mark_tells_streams_of_one_port_apart(self):
        frames = [udp(ejfat(n, bytes([host, n]) * 50, total=100), EJFAT_PORT, source=f"10.1.0.{host}") for n in range(1, 9) for host in (10, 11, 12)]
        streams = [stream(format="ejfat", sources=1, mark=mark) for mark in (7, 8)]
        text = rule(f"src is 10.1.0.10 / udp dst is {EJFAT_PORT}", "mark id 7 / queue index 0") + \
            rule(f"src is 10.1.0.11 / udp dst is {EJFAT_PORT}", "mark id 8 / queue index 1")
        for lcores in (FUSED, TWO_RX):
            result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), self.settings(text, *streams, more=lcores))
            self.assertEqual(result.packets, {"placed": 16, "unsteered": 8})
            self.assertEqual(result.report["events"]["complete"], 8)
            self.assertEqual([source["packets"] for source in result.report["sources"]], [8, 8])

    def test_rules_decide_who_assembles_and_not_what(self):
        """Rules that swap the queues of two sources, or spread one over all: the same events, on one rx lcore or on two."""
        frames = events(30) + [frame for n in range(4) for frame in roce_message(bytes(3000), 10 * n, n + 1, qp=0x11)]
        capture = self.path("c.pcap", pcap_bytes(stamped(frames)))
        streams = [stream(format="ejfat"), stream("roce", "message", sources=1)]
        plain = self.replay(capture, config(*streams, sources=3, more=FUSED))
        swapped = rule(f"/ udp dst is {EJFAT_PORT}", "queue index 1") + rule(f"/ udp dst is {EJFAT_PORT + 1}", "queue index 0") + \
            rule("/ udp dst is 4791", "queue index 1")
        spread = rule("/ udp", "rss queues 0 1 end / count")
        for text in (swapped, spread):
            for lcores in (FUSED, TWO_RX):
                result = self.replay(capture, self.settings(text, *streams, sources=3, more=lcores))
                self.assertEqual(result.digests, plain.digests)
                self.assertEqual(result.packets, plain.packets)
                self.assertEqual(sum(r["hits"] for r in self.rules_of(result).values()), len(frames))

    def test_rules_on_queue_pairs(self):
        frames = [frame for n in range(6) for qp in (0x11, 0x12, 0x13) for frame in roce_message(bytes(900), n, n + 1, qp=qp)]
        text = rule("/ udp / ib_bth dst_qp is 0x11", "queue index 1") + rule("/ udp dst is 4791 / ib_bth dst_qp is 0x12", "queue index 0") + \
            rule("/ udp / ib_bth dst_qp is 0x13", "drop")
        for lcores in (FUSED, TWO_RX):
            result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), self.settings(text, stream("roce", "message"), more=lcores))
            self.assertEqual(result.packets, {"placed": 12, "dropped.flow_rule": 6})
            self.assertEqual(result.report["events"]["complete"], 6)
            self.assertEqual([r["hits"] for r in self.rules_of(result).values()], [6, 6, 6])

    def test_passes_of_a_loop_go_through_the_rules(self):
        frames = events(6) + [udp(b"x", 9)] * 3
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), self.settings(rule("/ udp dst is 9", "drop")), "--loop", 5)
        self.assertEqual(result.packets, {"placed": 120, "dropped.flow_rule": 15})
        self.assertEqual(result.report["events"]["complete"], 30)

    def test_drop_everything(self):
        frames = events(5)
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), self.settings("flow create 0 ingress pattern eth / end actions drop / end\n"), "--allow-empty")
        self.assertEqual(result.packets, {"dropped.flow_rule": len(frames)})
        self.assertEqual(result.report["events"]["opened"], 0)

    def refused(self, text, *words):
        done = weir("replay", self.path("c.pcap", pcap_bytes([])), "--config", self.path("c.toml", text), "--out", self.folder / "x", status=2, trap=False)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_mistakes_are_pointed_at(self):
        self.refused(self.settings("\nflow create 0 ingress pattern eth / ipv5 / end actions drop / end\n"),
                     "r.flow:2:37: found 'ipv5'; expected: 'vlan', 'ipv4', 'ipv6' or 'end'")
        self.refused(self.settings(rule("", "queue index 2")), "r.flow:1: flow create: found queue 2; accepted: 0 to 1, because port 'det0' has queues = 2")
        self.refused(self.settings(rule("", "rss queues 0 7 end")), "r.flow:1: flow create: found queue 7")
        self.refused(self.settings(rule("", "drop").replace("create 0", "create 3")), "r.flow:1: flow create: found port 3; accepted: 0, because", "c.toml:1")
        self.refused(self.settings(rule("", "mark id 4 / queue index 0"), stream(format="ejfat", mark=5)), "stream.mark: found 5", 'none in', 'has "mark id 5"')
        self.refused(config(stream(format="ejfat", mark=5)), "stream.mark: found 5", '"det0" has no flows')
        self.refused(self.settings("").replace("r.flow", "no.flow"), "port.flows", "no.flow", "not a file")

    def test_the_port_may_be_named_by_its_place(self):
        second = config(stream(format="ejfat")).replace('port = "det0"', 'port = "det1"') \
            .replace("[[stream]]", '[[port]]\nname = "det1"\ndevice = "net_null1"\nflows = "r.flow"\n[[stream]]')
        rules = rule(f"/ udp dst is {EJFAT_PORT}", "queue index 0")
        capture = self.path("c.pcap", pcap_bytes(stamped(events(3))))
        for number, accepted in ((0, True), (1, True), (2, False)):
            self.path("r.flow", rules.replace("create 0", f"create {number}"))
            if accepted:
                result = self.replay(capture, second, "--port", "det1")
                self.assertEqual(result.report["flows"][1]["rules"][0]["hits"], 6)
            else:
                self.refused(second, "found port 2; accepted: 0, or 1, its place in the configuration")

    def test_the_shipped_example(self):
        frames = []
        for n in range(1, 11):
            for host in (10, 11):
                frames.append(udp(ejfat(n, bytes([host, n]) * 100, total=200), EJFAT_PORT, source=f"10.1.0.{host}"))
        noise = [udp(b"noise", port) for port in (9, 53, EJFAT_PORT + 1)]
        example = ROOT / "examples" / "flow-rules.toml"
        capture = self.path("c.pcap", pcap_bytes(stamped(frames + noise)))
        weir("replay", capture, "--config", example, "--out", self.folder / "run", "--report", self.folder / "run.json")
        result = Replay(self.folder, "run")
        self.balanced(result)
        self.assertEqual(result.packets, {"placed": 20, "dropped.flow_rule": 3})
        self.assertEqual(result.report["events"]["complete"], 10)
        self.assertEqual([r["hits"] for r in self.rules_of(result).values()], [0, 10, 10, 3])

    def test_printed_rules_are_rules(self):
        text = config(stream(format="ejfat", sources=4), stream("roce", "message", sources=2, src='["10.1.0.10", "fd00::10"]'), sources=6, more=TWO_RX)
        text = text.replace('device = "net_null0"\n', 'device = "net_null0"\nqueues = 4\n')
        printed = weir("flows", "print", "--config", self.path("c.toml", text), trap=False).stdout
        lines = [line for line in printed.splitlines() if not line.startswith("#")]
        self.assertEqual(len(lines), 6)  # four ports, and the addresses of the RoCE stream
        self.assertIn(f"eth / ipv4 / udp dst is {EJFAT_PORT} / end actions queue index 0 / end", lines[0])
        self.assertIn("eth / ipv6 src is fd00::10 / udp dst is 4791 / end", lines[5])
        checked = weir("flows", "check", self.path("p.flow", printed), trap=False).stdout
        self.assertIn("6 rules, all understood", checked)
        one = weir("flows", "print", "--config", self.path("d.toml", config(stream(format="ejfat"))), "--port", "det0", trap=False).stdout
        self.assertEqual(one, "# port det0: one queue: every packet goes there without a rule\n")
        self.assertIn("accepted: det0", weir("flows", "print", "--config", self.folder / "d.toml", "--port", "det7", status=2, trap=False).stderr)

    def test_random_rules_do_not_change_what_is_not_dropped(self):
        seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
        print(f"# seed {seed}", flush=True)
        r = random.Random(seed)
        frames = []
        for n in range(1, 41):
            for s in (0, 1):
                frames.append(udp(ejfat(n, bytes([s, n]) * 200, total=400), EJFAT_PORT + s, source=f"10.1.0.{10 + s}"))
            frames.append(udp(b"noise", r.choice([9, 80, 5353]), source=f"10.1.0.{r.randrange(10, 20)}"))
        rules = []
        for _ in range(60):
            pattern = r.choice(["", f"src is 10.1.0.{r.randrange(10, 20)}"])
            pattern += r.choice(["", " / udp", f" / udp dst is {r.choice([9, 80, EJFAT_PORT, EJFAT_PORT + 1])}",
                                 f" / udp dst spec 0 dst last {r.choice([8, 100, 6000])} dst mask 0xffff"])
            actions = r.choice(["queue index 0", "queue index 1", "rss queues 0 1 end", "mark id 3 / queue index 1", "count", "mark id 4"])
            rules.append(rule(pattern, actions).replace("ingress", f"priority {r.randrange(3)} ingress"))
        text = "".join(rules) + rule("/ udp dst is 9", "drop").replace("ingress", "priority 0 ingress") + \
            f"flow create 0 priority 0 ingress pattern eth / ipv4 / udp dst is 80 / end actions drop / end\n"
        capture = self.path("c.pcap", pcap_bytes(stamped(frames)))
        # What the classifier says of the same packets, rule by rule; that it is right is flows_test.py's concern.
        said = json.loads(weir("flows", "check", self.path("r.flow", text), "--capture", capture, "--json", trap=False).stdout)
        dropped = sum(packet["dropped"] for packet in said["packets"])
        for lcores in (FUSED, TWO_RX):
            result = self.replay(capture, self.settings(text, more=lcores))
            self.assertEqual(result.report["packets"]["dropped"]["flow_rule"], dropped)
            self.assertEqual(result.report["events"]["complete"], 40)
            self.assertEqual({line: r["hits"] for line, r in self.rules_of(result).items()}, {r["line"]: r["hits"] for r in said["rules"]})


if __name__ == "__main__":
    main()
