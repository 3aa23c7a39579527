#!/usr/bin/env python3
"""`weir run` on devices with several queues, from a kernel sender and from weir's own: every packet arrives, whichever queue it comes
through, and the events are those of a replay.

usage: devices_queues_test.py WEIR
"""

import re
import subprocess

import live
from devices_test import PROFILES, needs
from network_test import with_stream

SOURCES = 4
STREAM = with_stream('transport = "udp"\nudp_dst = "19522-19525"\nformat = "ejfat"', f"sources = {SOURCES}\nmemory = \"128MiB\"\ntimeout_ms = 20000")
OPTIONS = ("--format", "ejfat", "--sources", SOURCES, "--events", 40, "--bytes", 20000, "--seed", 4)


class QueuesTest(live.Case):
    def config(self, queues, device=None, profile=None, lcores="rx = [0, 1]\nbuild = [0]\nwork = [1]", mtu=None):
        text = STREAM.replace('name = "det0"', f'name = "det0"\nqueues = {queues}' + (f"\nmtu = {mtu}" if mtu else ""))
        if device is not None:
            text = text.replace("net_af_packet0,iface=det0", device).replace(str(PROFILES / "net_af_packet.toml"), str(PROFILES / profile))
        return text.replace("[lcores]", f"[lcores]\n{lcores}")

    def check(self, run, sent, text, options, queues):
        """All of it has come, in all queues together; returns how much each queue took."""
        self.assertEqual(sent["packets"]["sent"], sent["packets"]["generated"])
        report = run.end()
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.assertEqual(report["events"]["complete"], sent["events"]["whole"])
        self.assertEqual(report["device_missed"], 0)
        taken = [queue["packets"] for queue in report["ports"][0]["queues"]]
        self.assertEqual(len(taken), queues)
        self.assertEqual(sum(taken), report["packets"]["received"])
        replayed = re.sub(r'(?m)^(device = ).*\n(profile = .*\n)?', r'\1"net_null0"\n', text)
        digests = {event["id"]: event["sha256"] for event in run.inspect()["events"]}
        self.assertEqual(digests, self.expected_digests(replayed, *options))
        return taken

    def veth(self, queues=1, mtu=9000):
        network = live.Network(queues, mtu)
        self.addCleanup(network.close)
        address = subprocess.run(["ip", "-j", "link", "show", "det0"], capture_output=True, text=True, check=True).stdout
        mac = re.search(r'"address":"([^"]*)"', address)[1]
        subprocess.run(network.there("ip", "neigh", "add", live.RECEIVER, "lladdr", mac, "dev", "gen0"), check=True)
        return network

    def test_packet_sockets_with_fanout_from_the_kernel(self):
        needs("net_af_packet", root=True)
        network = self.veth()
        text = self.config(2)
        run = self.weir(text, "--events", 40, "--duration", live.PATIENCE_S)
        run.wait_running()
        sent = self.send(*OPTIONS, "--rate", 80, "--to", f"udp:{live.RECEIVER}", where=network.there())
        taken = self.check(run, sent, text, OPTIONS, 2)
        # The kernel spreads by a hash of addresses and ports. With four flows both are nearly always in use; nothing here needs it.
        print(f"packets per queue: {taken}")

    def test_packet_sockets_with_fanout_from_weir(self):
        needs("net_af_packet", root=True)
        network = self.veth()
        text = self.config(2, lcores="rx = [0]\nbuild = [0]\nwork = [0]")  # one lcore polls both
        run = self.weir(text, "--events", 40, "--duration", live.PATIENCE_S)
        run.wait_running()
        sent = self.send(*OPTIONS, "--rate", 80, "--to", "device:net_af_packet0,iface=gen0", where=network.there())
        self.check(run, sent, text, OPTIONS, 2)

    def test_memif_with_rings_in_parallel(self):
        needs("net_memif")
        socket = self.folder / "m.sock"
        text = self.config(2, f"net_memif0,socket={socket},socket-abstract=no", "net_memif.toml")
        run = self.weir(text, "--events", 40, "--duration", live.PATIENCE_S)
        run.wait_running()
        sent = self.send(*OPTIONS, "--rate", 80, "--queues", 2, "--to", f"device:net_memif0,role=client,id=0,socket={socket},socket-abstract=no,rsize=11,bsize=10240")
        self.assertTrue(all(self.check(run, sent, text, OPTIONS, 2)), "both rings were used")

    def test_tap_from_the_kernel(self):
        needs("net_tap")
        if not live.os.path.exists("/dev/net/tun"):
            self.skipTest("the kernel has no TUN/TAP (/dev/net/tun)")
        text = self.config(2, "net_tap0,iface=weir0", "net_tap.toml")
        run = self.weir(text, "--events", 40, "--duration", live.PATIENCE_S)
        run.wait_running()
        subprocess.run(["ip", "address", "add", f"{live.SENDER}/24", "dev", "weir0"], check=True)
        sent = self.send(*OPTIONS, "--rate", 40, "--to", f"udp:{live.RECEIVER}")
        self.check(run, sent, text, OPTIONS, 2)

    def test_xdp_sockets_on_both_queues_of_an_interface(self):
        needs("net_af_xdp", root=True)
        network = self.veth(2, 3200)
        text = self.config(2, "net_af_xdp0,iface=det0", "net_af_xdp.toml")
        run = self.weir(text, "--events", 40, "--duration", live.PATIENCE_S)
        if not run.gets_going():
            said = "\n".join(run.lines)
            if "combined queue count" in said:
                self.skipTest("net_af_xdp takes several queues only of interfaces with combined channels, which veth has not")
            if any(word in said for word in ("not permitted", "not supported", "Invalid argument")):
                self.skipTest(f"the kernel lets no XDP sockets be made here: {run.lines[-1]}")
            self.fail(said)
        options = (*OPTIONS, "--mtu", 3180)
        sent = self.send(*options, "--rate", 80, "--to", f"udp:{live.RECEIVER}", where=network.there())
        self.check(run, sent, text, options, 2)


if __name__ == "__main__":
    live.main(sandbox_required=True)
