#!/usr/bin/env python3
"""Flow rules that a device executes: net_tap in the guest makes filters of the kernel's of them (cls_flower, skbedit).

The packets of one capture go through the device with rules in it, and through weir's software; both must come to the same.
usage: flows_test.py WEIR
"""

import json
import struct
import subprocess

import guest
import live

# One flow to a queue each, a drop, what that leaves of its port, many flows, and one that nothing matches.
RULES = """flow create 0 ingress pattern eth / ipv4 / udp dst is 19522 / end actions queue index 1 / end
flow create 0 ingress pattern eth / ipv4 / udp dst is 19523 / end actions queue index 2 / end
flow create 0 ingress pattern eth / ipv4 src is 10.1.0.99 / udp dst is 6000 / end actions drop / end
flow create 0 ingress pattern eth / ipv4 / udp dst is 6000 / end actions queue index 1 / end
flow create 0 ingress pattern eth / ipv4 / udp dst is 6001 / end actions queue index 3 / end
flow create 0 ingress pattern eth / ipv4 / udp dst is 7 / end actions queue index 3 / end
"""
# What net_tap does not take: weir does it.
REFUSED = """flow create 0 ingress pattern eth / ipv4 / udp dst is 6002 / end actions mark id 3 / queue index 0 / end
flow create 0 ingress pattern eth / ipv4 / udp dst is 6003 / end actions count / drop / end
flow create 0 ingress pattern eth / ipv4 / udp dst spec 6004 dst last 6005 dst mask 0xffff / end actions queue index 0 / end
flow create 0 ingress pattern eth / ipv4 ttl is 3 / udp dst is 6006 / end actions drop / end
"""

CONFIG = """name = "flows"
[[port]]
name = "det0"
device = "net_tap0,iface=dtap0"
queues = 4
flows = "rules.flow"
isolated = {isolated}

[[stream]]
port = "det0"
transport = "udp"
udp_dst = [19522, 19523]
format = "ejfat"

[events]
sources = 2
memory = "64MiB"
timeout_ms = 5000

[[sink]]
kind = "events"
path = "unused"

[lcores]
idle = "sleep"
"""

INJECT = """
import socket, struct, sys, time
data = open(sys.argv[1], "rb").read()
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((sys.argv[2], 0))
at, sent = 24, 0
while at < len(data):
    size = struct.unpack_from("<I", data, at + 8)[0]
    out.send(data[at + 16:at + 16 + size])
    at, sent = at + 16 + size, sent + 1
    time.sleep(0.002)
print("injected", sent, flush=True)

# weir has them when it looks for more, as it says each second, and there are none.
def received():
    return [line.split('"received":')[1].split(",")[0] for line in open("/tmp/progress").read().split("\\n")[:-1]]
before = len(received())
while len(said := received()) < before + 3 or len(set(said[-3:])) > 1:
    time.sleep(0.1)
"""

JOB = """
modprobe tun; modprobe sch_multiq; modprobe sch_ingress; modprobe cls_flower; modprobe act_skbedit; modprobe act_gact; modprobe act_mirred
sysctl -q net.ipv6.conf.all.disable_ipv6=1 2>/dev/null || echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
start_run --duration 600 --progress json:/tmp/progress
cat /tmp/errors
python3 $share/inject.py $share/packets.pcap dtap0 || fail "injecting"
kill -INT $run
end_run
"""

EVENTS = 20
DROPPED = 30  # packets for the rule that drops
BEHIND = 32   # of sixteen flows, for the rule after it, which matches what that one drops as well
MANY = 48     # of sixteen flows, for one queue
STRAY = 25    # that no rule matches
SOFT = 6      # for each rule that the device does not take


def udp(source, port, number, ttl=64):
    payload = struct.pack("<I", number) * 16
    datagram = struct.pack("!HHHH", 4000 + number % 16, port, 8 + len(payload), 0) + payload
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), number, 0, ttl, 17, 0, bytes(source), bytes([10, 1, 0, 2]))
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    header = header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:]
    return bytes.fromhex("020000000002" "02000000000a" "0800") + header + datagram


class Flows(guest.Case):
    def capture(self, refused):
        """Packets of two sources, one flow each, and for the other rules; and how many those of the sources are."""
        path = self.folder / "packets.pcap"
        sent = self.send("--format", "ejfat", "--sources", 2, "--events", EVENTS, "--bytes", 3000, "--bytes-min", 3000, "--mtu", 1500,
                         "--to", path)
        frames = [udp((10, 1, 0, 99), 6000, number) for number in range(DROPPED)]
        frames += [udp((10, 1, 0, 98), 6001, number) for number in range(MANY)]
        frames += [udp((10, 1, 0, 98), 6000, number) for number in range(BEHIND)]
        frames += [udp((10, 1, 0, 98), 5000, number) for number in range(STRAY)]
        if refused:
            kinds = ((6002, 64), (6003, 64), (6005, 64), (6006, 3))
            frames += [udp((10, 1, 0, 97), port, number, ttl) for number in range(SOFT) for port, ttl in kinds]
        with open(path, "ab") as out:
            for frame in frames:
                out.write(struct.pack("<IIII", 1800000000, 0, len(frame), len(frame)) + frame)
        return path, sent["packets"]["sent"]

    def in_software(self, capture):
        """What `weir flows check` makes of the capture."""
        done = subprocess.run([live.Weir.program, "flows", "check", str(self.folder / "rules.flow"), "--capture", str(capture), "--json"],
                              check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def run_in_guest(self, isolated, refused=""):
        """The report, what software makes of the same packets, and what the run said; what must be in either case is checked."""
        (self.folder / "rules.flow").write_text(RULES + refused)
        (self.folder / "config.toml").write_text(CONFIG.format(isolated=str(isolated).lower()))
        (self.folder / "inject.py").write_text(INJECT)
        capture, sent = self.capture(refused)
        said = self.guest(JOB, cpus=2, memory=1024).wait()
        report, software = self.load("report.json"), self.in_software(capture)
        hits = [sent // 2, sent // 2, DROPPED, BEHIND, MANY, 0] + [SOFT] * refused.count("\n")
        self.assertIn(f"injected {len(software['packets'])}", said)
        self.assertEqual([rule["hits"] for rule in software["rules"]], hits)
        self.assert_balanced(report)
        rules = report["flows"][0]["rules"]
        self.assertEqual([rule["where"] for rule in rules], ["hardware"] * 6 + ["software"] * refused.count("\n"), said)
        for rule in rules[:6]:
            self.assertNotIn("otherwise", rule.get("message") or "", said)
        self.assertEqual([rule["effective"] for rule in rules[3:5]], ["verified"] * 2, said)
        self.assertEqual(rules[2]["hits"], 0, "what the device drops, weir never sees")
        self.assertEqual(report["packets"]["placed"], sent, said)
        self.assertEqual(report["events"]["complete"], EVENTS)
        self.check_events(capture)
        return report, software, said

    def check_events(self, capture):
        """The same events as from the capture, with the rules done in software."""
        subprocess.run([live.Weir.program, "replay", str(capture), "--config", str(self.folder / "config.toml"), "--quiet", "--out",
                        str(self.folder / "replayed"), "--report", str(self.folder / "replayed.json")], check=True, timeout=60)
        done = subprocess.run([live.Weir.program, "inspect", str(self.folder / "replayed"), "--json", "--digest", "sha256"], check=True,
                              capture_output=True, text=True)
        digests = lambda inspected: {event["id"]: event["sha256"] for event in inspected["events"]}
        self.assertEqual(digests(self.load("inspect.json")), digests(json.loads(done.stdout)))

    def test_an_isolated_device_hands_over_what_rules_match_each_in_its_queue_and_nothing_else(self):
        report, software, said = self.run_in_guest(isolated=True)
        expected = [sum(packet["queue"] == queue for packet in software["packets"]) for queue in range(4)]
        self.assertEqual([queue["packets"] for queue in report["ports"][0]["queues"]], expected, said)
        self.assertEqual(report["packets"]["received"], sum(expected), "neither what no rule matches nor what one drops")
        self.assertEqual(report["packets"]["dropped"]["flow_rule"], 0)
        self.assertEqual([rule["effective"] for rule in report["flows"][0]["rules"][:2]], ["verified"] * 2, said)

    def test_without_isolation_the_rest_arrives_too_and_what_is_refused_is_done_in_software(self):
        report, software, said = self.run_in_guest(isolated=False, refused=REFUSED)
        rules, packets = report["flows"][0]["rules"], report["packets"]
        seen = lambda of: [rule["hits"] for rule in of if rule["line"] != 3]  # all but what the device drops
        self.assertEqual(seen(rules), seen(software["rules"]))
        self.assertEqual([rule["message"] for rule in rules[6:]], [f"validate: {what} not supported" for what in ("action", "action", "item", "item")],
                         "the driver's own words")
        others = sum(packets["not_for_us"].values())
        self.assertEqual(packets["received"] - others, len(software["packets"]) - DROPPED, "the device dropped them")
        self.assertEqual(packets["dropped"]["flow_rule"], 2 * SOFT)
        self.assertEqual(packets["unsteered"], BEHIND + MANY + STRAY + 2 * SOFT)
        for queue, told in enumerate(report["ports"][0]["queues"]):
            least = sum(packet["queue"] == queue and packet["rule"] <= 6 for packet in software["packets"])
            self.assertGreaterEqual(told["packets"], least)


if __name__ == "__main__":
    guest.main()
