#!/usr/bin/env python3
"""Fragments that a kernel makes: its UDP socket sends datagrams of 8240 bytes through an interface of MTU 1500, over IPv4 and IPv6.
weir answers the neighbour solicitations and pings that this takes. usage: fragments_test.py WEIR
"""

import resource
import socket
import struct

import live

PROFILE = live.ROOT / "pmd-config/net_af_packet.toml"
AF_PACKET = f'device = "net_af_packet0,iface=det0"\nprofile = "{PROFILE}"'
# For net_af_packet the kernel puts IPv4 fragments together itself (but not those of IPv6).
PCAP = 'device = "net_pcap0,iface=det0"'
EVENTS = 2
RECEIVER6 = "fd00::2"
SENDER6 = "fd00::10"


def config(device, address):
    return f"""
[[port]]
name = "det0"
{device}
address = "{address}"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001, 50002]
format = "jungfrau"
[events]
sources = 2
timeout_ms = 60000  # that a processor has other things to do is no loss
ip_fragment_timeout_ms = 10000
[[sink]]
kind = "events"
path = "unused"
"""


class FragmentsTest(live.Case):
    @classmethod
    def setUpClass(cls):
        if not live.is_real_root() and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < 256 << 20:
            raise live.unittest.SkipTest("net_af_packet locks its rings in memory: needs root, or a higher `ulimit -l`")
        cls.network = live.Network()
        ip = lambda *words: live.subprocess.run(["ip", "-n", "sender", *words], check=True)
        ip("link", "set", "gen0", "mtu", "1500")
        ip("-6", "address", "add", f"{SENDER6}/64", "dev", "gen0", "nodad")

    @classmethod
    def tearDownClass(cls):
        cls.network.close()

    def ping(self, family, receiver):
        """An echo request of the sender's kernel, which resolves the address first, and the answer to it."""
        ipv6 = family == socket.AF_INET6
        body = struct.pack("!HH", 0x1234, 1) + bytes(range(56))
        message = bytes([128 if ipv6 else 8, 0, 0, 0]) + body
        if not ipv6:
            total = sum(struct.unpack(f"!{len(message) // 2}H", message))
            total = (total & 0xffff) + (total >> 16)
            message = message[:2] + struct.pack("!H", 0xffff ^ total) + body
        with self.network.socket_there(family, socket.SOCK_RAW, socket.IPPROTO_ICMPV6 if ipv6 else socket.IPPROTO_ICMP) as raw:
            header = 0 if ipv6 else 20
            live.ask(raw, message, (receiver, 0), lambda reply: reply[header] == (129 if ipv6 else 0) and reply[header + 4:] == body)

    def run_over(self, *args):
        live.repeated(lambda attempt: self.run_once(attempt, *args))

    def run_once(self, attempt, family, device, address, receiver):
        run = self.weir(config(device, address), "--events", EVENTS, "--duration", live.PATIENCE_S, name=f"run{attempt}")
        run.wait_running()
        self.ping(family, receiver)  # until it knows the way, the kernel keeps only a few packets
        detector = live.Jungfrau(modules=2, seed=3)
        datagrams = [item for number in range(1, EVENTS + 1) for item in detector.frame(number)]
        with self.network.socket_there(family, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: may fragment
            for module, datagram in live.paced(datagrams, 500):
                sender.sendto(datagram, (receiver, 50001 + module))
        run.end()
        self.assertEqual(run.report["stopped_by"], "--events", run.errors + run.output)
        self.assert_account(run)
        packets = run.report["packets"]
        lost = 6 * len(datagrams) - (packets["received"] - sum(packets["not_for_us"].values()) - packets["unsteered"])
        if lost > 0:  # each time it would be no accident
            raise live.Disturbed(f"{lost} packets were lost before weir had them")
        self.assertEqual(lost, 0)
        fragments = run.report["ip_fragments"]
        self.assertEqual((fragments["fragments"], fragments["datagrams"]), (6 * len(datagrams), len(datagrams)))
        self.assertEqual(fragments["reused_identification"], 0)
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        self.assertEqual({event["id"]: event["sha256"] for event in inspected["events"]}, detector.digests)
        self.assertTrue(all(event["complete"] for event in inspected["events"]))

    def test_IPv4(self):
        self.run_over(socket.AF_INET, PCAP, f"{live.RECEIVER}/24", live.RECEIVER)

    def test_IPv6(self):
        self.run_over(socket.AF_INET6, AF_PACKET, f"{RECEIVER6}/64", RECEIVER6)


if __name__ == "__main__":
    live.main(sandbox_required=True)
