"""`weir flows check`: random rules and packets against a linear matcher that shares nothing with the program."""
import ipaddress
import json
import os
import pathlib
import random
import struct

import support
from packets import ipv4, pcap_bytes, stamped
from support import Case, weir

ADDRESSES4 = ["10.1.0.10", "10.1.0.11", "10.1.1.10", "192.168.7.1"]
ADDRESSES6 = ["fd00::10", "fd00::11", "fd00:1::10", "2001:db8::1"]
PORTS = [50001, 50002, 50003, 4791, 80, 65535]
WIDTH = {"vid": 12, "pcp": 3, "tci": 16, "tos": 8, "ttl": 8, "proto": 8, "hop": 8, "type": 16}


def packet(random):
    """A frame, and the header fields that were put into it."""
    fields = {"tags": [random.choice([1, 100, 0x2064, 0xa001]) for _ in range(random.choice([0, 0, 0, 1, 1, 2]))]}
    kind = random.choice(["v4", "v4", "v4", "v6", "v6", "arp"])
    sport, dport = random.choice(PORTS), random.choice(PORTS)
    body = struct.pack("!HHHH", sport, dport, 12, 0) + b"data"
    if kind == "arp":
        ethertype, rest = 0x0806, bytes(28)
    elif kind == "v4":
        protocol = random.choice([17, 17, 17, 6])
        offset = random.choice([0, 0, 0, 0, 0x2000, 100])
        source, target = random.choice(ADDRESSES4), random.choice(ADDRESSES4)
        ethertype, rest = 0x0800, ipv4(body, protocol=protocol, source=source, target=target, flags=offset)
        fields["ipv4"] = {"src": source, "dst": target, "tos": 0, "ttl": 64, "proto": protocol}
        if protocol == 17 and offset & 0x1fff == 0:
            fields["udp"] = {"src": sport, "dst": dport}
    else:
        following = random.choice([17, 17, 17, 58])
        source, target = random.choice(ADDRESSES6), random.choice(ADDRESSES6)
        hop = random.choice([1, 64])
        rest = struct.pack("!IHBB", 0x60000000, len(body), following, hop) + ipaddress.ip_address(source).packed + ipaddress.ip_address(target).packed + body
        ethertype = 0x86dd
        fields["ipv6"] = {"src": source, "dst": target, "proto": following, "hop": hop}
        if following == 17:
            fields["udp"] = {"src": sport, "dst": dport}
    target, source = random.choice(["020000000001", "020000000002"]), "02000000000a"
    frame = bytes.fromhex(target + source) + b"".join(struct.pack("!HH", 0x8100, tag) for tag in fields["tags"])
    fields["eth"] = {"dst": int(target, 16), "src": int(source, 16), "type": 0x8100 if fields["tags"] else ethertype}
    return frame + struct.pack("!H", ethertype) + rest, fields


def number(value):
    return int(ipaddress.ip_address(value)) if isinstance(value, str) else value


class Rule:
    """One random rule: its text for the program, and what it means."""
    def __init__(self, random, line):
        self.line = line
        self.priority = random.choice([0, 0, 1, 2])
        self.tags = random.choice([0, 0, 0, 1, 2])
        self.network = random.choice([None, "ipv4", "ipv4", "ipv6"])
        self.udp = self.network is not None and random.random() < 0.7
        self.conditions = []   # (item, part, first, last, mask)
        items = ["eth" + self.fields(random, "eth", {"dst": (48, [0x020000000001, 0x020000000002])})]
        for tag in range(self.tags):
            items.append("vlan" + self.fields(random, f"vlan{tag}", {"vid": (12, [1, 100]), "pcp": (3, [0, 1, 5])}))
        if self.network == "ipv4":
            items.append("ipv4" + self.fields(random, "ipv4", {"src": (32, ADDRESSES4), "dst": (32, ADDRESSES4), "proto": (8, [6, 17])}))
        if self.network == "ipv6":
            items.append("ipv6" + self.fields(random, "ipv6", {"src": (128, ADDRESSES6), "dst": (128, ADDRESSES6), "hop": (8, [1, 64])}))
        if self.udp:
            items.append("udp" + self.fields(random, "udp", {"src": (16, PORTS), "dst": (16, PORTS)}))
        self.queue = self.mark = None
        self.dropped = False
        actions = []
        if random.random() < 0.4:
            self.mark = random.randrange(100)
            actions.append(f"mark id {self.mark}")
        fate = random.choice(["queue", "queue", "drop", "rss", "none"])
        if fate == "queue":
            self.queue = random.randrange(8)
            actions.append(f"queue index {self.queue}")
        if fate == "drop":
            self.dropped = True
            actions.append("drop")
        if fate == "rss":
            self.queue = {random.randrange(8) for _ in range(3)}
            actions.append(f"rss queues {' '.join(map(str, self.queue))} end")
        if random.random() < 0.3 or not actions:
            actions.append("count")
        priority = f"priority {self.priority} " if self.priority or random.random() < 0.2 else ""
        self.text = f"flow create 0 {priority}ingress pattern {' / '.join(items)} / end actions {' / '.join(actions)} / end"

    def fields(self, random, item, parts):
        text = ""
        for part, (bits, values) in parts.items():
            if random.random() > 0.35:
                continue
            whole = (1 << bits) - 1
            value = random.choice(values)
            how = random.choice(["is", "mask", "last", "prefix"])
            show = (lambda n: f"{n:#x}") if bits < 32 else (lambda n: ":".join(f"{n:012x}"[i:i + 2] for i in range(0, 12, 2))) if bits == 48 \
                else (lambda n: str(ipaddress.ip_address(n) if bits == 32 or n >= 1 << 32 else ipaddress.IPv6Address(n)))
            first = number(value)
            if how == "prefix" and isinstance(value, str):
                length = random.choice([0, bits // 4, bits // 2, bits - 8, bits - 1, bits])
                mask = whole ^ (whole >> length) if length else 0
                text += f" {part} spec {show(first)} {part} prefix {length}"
                self.conditions.append((item, part, first & mask, first & mask, mask))
            elif how == "last":
                last = min(whole, first + random.choice([0, 1, 300, 1 << (bits // 2)]))
                text += f" {part} spec {show(first)} {part} last {show(last)} {part} mask {show(whole)}"
                self.conditions.append((item, part, first, last, whole))
            elif how == "mask":
                mask = random.getrandbits(bits) if bits != 128 else whole ^ 1
                text += f" {part} spec {show(first)} {part} mask {show(mask)}"
                self.conditions.append((item, part, first & mask, first & mask, mask))
            else:
                text += f" {part} is {show(first)}"
                self.conditions.append((item, part, first, first, whole))
        return text

    def matches(self, fields):
        tags = fields["tags"]
        if len(tags) < self.tags or (self.network is not None and (len(tags) != self.tags or self.network not in fields)):
            return False
        if self.udp and "udp" not in fields:
            return False
        for item, part, first, last, mask in self.conditions:
            if item.startswith("vlan"):
                tag = tags[int(item[4:])]
                value = tag & 0xfff if part == "vid" else tag >> 13
            else:
                value = number(fields[item][part])
            if not first <= value & mask <= last:
                return False
        return True


class Flows(Case):
    def check(self, text, frames, *more):
        rules = self.path("rules.flow", text)
        capture = self.path("packets.pcap", pcap_bytes(stamped(frames)))
        return json.loads(weir("flows", "check", rules, "--capture", capture, "--json", *more, trap=False).stdout)

    def test_random_rules_and_packets(self):
        seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
        print(f"# seed {seed}", flush=True)
        for case in range(12):
            source = random.Random(seed + case)
            rules, lines = [], []
            for _ in range(source.choice([1, 5, 40, 130])):
                while source.random() < 0.2:
                    lines.append(source.choice(["", "# a remark"]))
                lines.append("")
                rules.append(Rule(source, len(lines)))
                lines[-1] = rules[-1].text
            packets = [packet(source) for _ in range(300)]
            found = self.check("\n".join(lines) + "\n", [frame for frame, _ in packets])
            hits = {rule.line: 0 for rule in rules}
            self.assertEqual(len(found["packets"]), len(packets))
            for (frame, fields), got in zip(packets, found["packets"]):
                best = min((rule for rule in rules if rule.matches(fields)), key=lambda rule: (rule.priority, rule.line), default=None)
                self.assertEqual(got["rule"], best and best.line, f"case {case}: {fields}")
                if best is None:
                    self.assertEqual(got, {"rule": None, "queue": None, "mark": None, "dropped": False})
                    continue
                hits[best.line] += 1
                self.assertEqual((got["mark"], got["dropped"]), (best.mark, best.dropped))
                self.assertTrue(got["queue"] in best.queue if isinstance(best.queue, set) else got["queue"] == best.queue)
            self.assertEqual({rule["line"]: rule["hits"] for rule in found["rules"]}, hits)
            # What it prints are the same rules.
            again = self.check("\n".join(rule["text"] for rule in found["rules"]), [frame for frame, _ in packets])
            self.assertEqual([{**p, "rule": None} for p in found["packets"]], [{**p, "rule": None} for p in again["packets"]])

    def test_rss_spreads_and_keeps_a_flow_together(self):
        frames = [packet(random.Random(i))[0] for i in range(400)]
        text = "flow create 0 ingress pattern eth / ipv4 / udp / end actions rss queues 0 1 2 3 end / end\n"
        first = [p["queue"] for p in self.check(text, frames)["packets"]]
        self.assertEqual(first, [p["queue"] for p in self.check(text, frames)["packets"]])
        self.assertEqual({queue for queue in first if queue is not None}, {0, 1, 2, 3})

    def test_cut_frames_are_harmless(self):
        whole = packet(random.Random(5))[0]
        frames = [whole[:length] for length in range(len(whole))]
        found = self.check("flow create 0 ingress pattern eth / end actions drop / end\n", frames)
        self.assertTrue(all(p["dropped"] for p in found["packets"]))

    def test_a_mistake_is_pointed_at(self):
        rules = self.path("bad.flow", "# rules\nflow create 0 ingress pattern eth / ipv5 / end actions drop / end\n")
        done = weir("flows", "check", rules, status=2, trap=False)
        self.assertIn(f"{rules}:2:37: found 'ipv5'; expected: 'vlan', 'ipv4', 'ipv6' or 'end'", done.stderr)

    def test_shipped_rules_are_understood(self):
        shipped = sorted(pathlib.Path(support.ROOT, "flows").glob("*.flow"))
        self.assertTrue(shipped)
        for rules in shipped:
            self.assertIn("all understood", weir("flows", "check", rules, trap=False).stdout)


if __name__ == "__main__":
    support.main()
