#!/usr/bin/env python3
"""`weir run` behind a VXLAN device of the kernel, which puts the outer headers around real datagrams, and behind ERSPAN and GRE in
packets whose outer IP is the kernel's. usage: decapsulate_test.py WEIR
"""

import socket
import struct

import live
from network_test import checksum

INNER = "192.168.7.2"
CONFIG = f"""
name = "live"
[[port]]
name = "det0"
device = "kernel,iface=det0"
address = "{live.RECEIVER}/24"
decapsulate = ["erspan", "vxlan", "gre"]
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001, 50002]
dst = "{INNER}"
format = "jungfrau"
[events]
sources = 2
memory = "256MiB"
timeout_ms = 20000
[[sink]]
kind = "events"
path = "runs"
[lcores]
idle = "sleep"
"""
EVENTS = 3


def inner_frame(datagram, module):
    """A frame between others, as a mirror sees it."""
    udp = struct.pack("!HHHH", 40000, 50001 + module, 8 + len(datagram), 0) + datagram
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton("192.168.7.10"), socket.inet_aton(INNER))
    return bytes.fromhex("020000000002020000000001") + b"\x08\0" + ip + udp


class DecapsulateTest(live.Case):
    @classmethod
    def setUpClass(cls):
        cls.network = live.Network()

    @classmethod
    def tearDownClass(cls):
        cls.network.close()

    def there(self, *words):
        return live.subprocess.run(self.network.there(*words), capture_output=True, text=True)

    def ping(self):
        """An echo request of the sender's kernel, and the answer to it."""
        message = struct.pack("!BBHHH", 8, 0, 0, 0x1234, 1) + bytes(range(56))
        message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
        with self.network.socket_there(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
            live.ask(raw, message, (live.RECEIVER, 0), lambda reply: reply[28:] == message[8:])

    def start(self):
        run = self.weir(CONFIG, "--events", EVENTS, "--duration", live.PATIENCE_S)
        run.wait_running()
        # Its address is answered, which is the outer one, and the kernel knows the way from now on.
        self.ping()
        return run

    def check(self, run, detector, tunnels, packets):
        run.end()
        self.assertEqual(run.report["stopped_by"], "--events", run.errors + run.output)
        self.assert_account(run)
        (port,) = run.report["decapsulated"]
        self.assertGreaterEqual(sum(port[tunnel] for tunnel in tunnels), packets)
        self.assertEqual(run.report["packets"]["placed"], packets)
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        self.assertEqual({event["id"]: event["sha256"] for event in inspected["events"]}, detector.digests)

    def test_behind_a_VXLAN_device_of_the_kernel(self):
        made = self.there("ip", "link", "add", "vx0", "type", "vxlan", "id", "5", "dstport", "4789", "remote", live.RECEIVER, "dev", "gen0")
        if made.returncode != 0:
            self.skipTest(f"the kernel has no VXLAN: {made.stderr.strip()}")
        self.addCleanup(self.there, "ip", "link", "delete", "vx0")
        for words in (("address", "add", "192.168.7.10/24", "dev", "vx0"), ("link", "set", "vx0", "up"),
                      ("neigh", "replace", INNER, "lladdr", "02:00:00:00:00:02", "dev", "vx0")):
            self.assertEqual(self.there("ip", *words).stderr, "")
        run = self.start()
        # ARP inside, also for the address that weir answers for outside: nobody is to answer it.
        request = bytes.fromhex("ffffffffffff020000000001 0806 0001080006040001 020000000001") + socket.inet_aton("192.168.7.10") + bytes(6)
        with self.network.socket_there(socket.AF_PACKET, socket.SOCK_RAW) as raw:
            raw.bind(("vx0", 0))
            raw.send(request + socket.inet_aton(live.RECEIVER))
        detector = live.Jungfrau(modules=2, seed=3)
        datagrams = [item for number in range(1, EVENTS + 1) for item in detector.frame(number)]
        with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for module, datagram in live.paced(datagrams, 500):
                sender.sendto(datagram, (INNER, 50001 + module))
        self.check(run, detector, ["vxlan"], len(datagrams))
        answered = run.report["ports"][0]["answers"]["arp"]
        self.assertLess(answered, run.report["packets"]["not_for_us"]["arp"])

    def test_behind_a_mirror_over_GRE(self):
        run = self.start()
        detector = live.Jungfrau(modules=2, seed=4)
        datagrams = [item for number in range(1, EVENTS + 1) for item in detector.frame(number)]
        headers = [struct.pack("!HHI", 0x1000, 0x88be, 1) + bytes.fromhex("1007000100000000"),
                   struct.pack("!HHI", 0x1000, 0x22eb, 1) + bytes.fromhex("200700011234567800000000"), struct.pack("!HH", 0, 0x6558)]
        with self.network.socket_there(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_GRE) as sender:
            for at, (module, datagram) in enumerate(live.paced(datagrams, 500)):
                sender.sendto(headers[at % len(headers)] + inner_frame(datagram, module), (live.RECEIVER, 0))
        self.check(run, detector, ["erspan", "gre"], len(datagrams))


if __name__ == "__main__":
    live.main(sandbox_required=True)
