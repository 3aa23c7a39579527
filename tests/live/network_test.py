#!/usr/bin/env python3
"""`weir run` on a kernel interface: net_af_packet on one end of a veth, jumbo frames from ordinary programs at the other end.

The configuration is examples/live-af-packet.toml with a longer timeout, and room for all that a test sends: what is lost where there is
less is no matter of this file. Variants change the stream only. usage: network_test.py WEIR
"""

import os
import re
import resource
import socket
import struct

import live
from telemetry_test import Client

PROFILE = live.ROOT / "pmd-config/net_af_packet.toml"
EXAMPLE = live.patient((live.ROOT / "examples/live-af-packet.toml").read_text()).replace("../pmd-config/net_af_packet.toml", str(PROFILE))


def with_stream(stream, events="sources = 2\ntimeout_ms = 20000"):
    """The example with another [[stream]]."""
    text, count = re.subn(r"(?s)\[\[stream\]\].*?\[events\].*?(?=\[\[sink\]\])",
                          f'[[stream]]\nport = "det0"\n{stream}\n[events]\n{events}\n', EXAMPLE)
    assert count == 1
    return text


EJFAT = with_stream('transport = "udp"\nudp_dst = [19522, 19523]\nformat = "ejfat"')
ROCE = with_stream('transport = "roce"\nqp = [0x11, 0x12]\nformat = "message"\nevent = "immediate"')
# Until nothing has come for so long, which includes the time that the sender takes to start: on a busy machine many seconds.
UNTIL_IDLE = ("--idle-exit", 20, "--duration", live.PATIENCE_S)
JUNGFRAU = with_stream('transport = "udp"\nudp_dst = [50001, 50002]\nformat = "jungfrau"')


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class NetworkTest(live.Case):
    @classmethod
    def setUpClass(cls):
        if not live.is_real_root() and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < 512 << 20:
            raise live.unittest.SkipTest("net_af_packet locks its rings in memory: needs root, or a higher `ulimit -l`")
        cls.network = live.Network()

    @classmethod
    def tearDownClass(cls):
        cls.network.close()

    def setUp(self):
        super().setUp()
        live.subprocess.run(self.network.there("ip", "neigh", "flush", "all"), check=True)

    def weir(self, config, *options, **more):
        text = config.read_text() if hasattr(config, "read_text") else config
        return super().weir(text.replace('net_af_packet0,iface=det0"', 'net_af_packet0,iface=det0,framecnt=8192"'), *options, **more)

    def ping(self, count):
        """Echo requests from the sender's kernel, until each is answered with the same bytes."""
        with self.network.socket_there(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
            for number in range(count):
                body = struct.pack("!BBHHH", 8, 0, 0, 0x1234, number) + bytes(range(56))
                body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
                live.ask(raw, body, (live.RECEIVER, 0), lambda reply: reply[20] == 0 and reply[24:] == body[4:] and checksum(reply[20:]) == 0)

    def wait_reachable(self, run):
        """Until the sender's kernel knows the way: before that it keeps few packets, and drops the others."""
        run.wait_running()
        self.ping(1)

    def check_digests(self, run, expected):
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        self.assertEqual({event["id"]: event["sha256"] for event in inspected["events"]}, expected)
        self.assertTrue(all(event["complete"] for event in inspected["events"]))
        self.assertEqual(run.report["events"]["complete"], len(expected))
        self.assert_no_leftovers(run)

    def test_jungfrau_from_a_python_socket(self):
        run = self.weir(EXAMPLE, "--events", 30, "--duration", live.PATIENCE_S)
        run.wait_running()
        self.ping(3)
        detector = live.Jungfrau(modules=2, seed=2)
        datagrams = [item for number in range(1, 31) for item in detector.frame(number)]
        with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for module, datagram in live.paced(datagrams, 5000):
                sender.sendto(datagram, (live.RECEIVER, 50001 + module))
        run.end()
        self.assert_account(run, sent=len(datagrams))
        self.assertEqual(run.report["stopped_by"], "--events")
        self.assertGreaterEqual(run.report["packets"]["not_for_us"]["arp"], 1)
        self.assertGreaterEqual(run.report["packets"]["not_for_us"]["icmp"], 3)  # and the kernels' neighbour discovery
        self.check_digests(run, detector.digests)
        # The kernel of the sender learnt the address from weir: nothing else has it.
        neighbours = live.subprocess.run(self.network.there("ip", "neigh", "show", live.RECEIVER), capture_output=True, text=True).stdout
        self.assertIn("lladdr", neighbours)

    def test_jungfrau_from_weir_send(self):
        run = self.weir(EXAMPLE, *UNTIL_IDLE)
        self.wait_reachable(run)
        options = ["--sources", 2, "--events", 30, "--seed", 5]
        sent = self.send(*options, "--rate", 20, "--to", f"udp:{live.RECEIVER}:50001", where=self.network.there())
        self.assertEqual(sent["events"]["whole"], 30)
        run.end()
        self.assertEqual(run.report["stopped_by"], "--idle-exit")
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.check_digests(run, self.expected_digests(JUNGFRAU, *options))

    def test_nobody_has_the_address(self):
        command = [live.Weir.program, "send", "--events", 5, "--rate", 100, "--to", "udp:10.1.0.99:50001"]
        done = live.subprocess.run(self.network.there(*command), capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("nobody there: no answer to ARP for 10.1.0.99", done.stderr)
        self.assertNotIn("whole", done.stdout)

    def test_the_first_packets_wait_for_arp(self):
        run = self.weir(EXAMPLE, "--duration", live.PATIENCE_S)
        run.wait_running()
        # As fast as it goes, and nobody has asked for the address before.
        sent = self.send("--sources", 2, "--events", 2, "--to", f"udp:{live.RECEIVER}:50001", where=self.network.there())
        run.wait_received(sent["packets"]["sent"])
        run.stop()
        run.end()
        self.assert_account(run, sent=sent["packets"]["sent"])

    def test_faults_of_the_sender_are_in_the_account(self):
        run = self.weir(EXAMPLE, "--duration", live.PATIENCE_S)
        self.wait_reachable(run)
        sent = self.send("--sources", 2, "--events", 30, "--seed", 6, "--rate", 20, "--drop", 0.002, "--duplicate", 0.003,
                         "--truncate", 0.001, "--reorder", 20, "--to", f"udp:{live.RECEIVER}:50001", where=self.network.there())
        self.assertGreater(sent["packets"]["dropped"], 0)
        run.wait_received(sent["packets"]["sent"])
        run.stop()
        run.end()
        report = run.report
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.assertEqual(report["events"]["complete"], sent["events"]["whole"])
        self.assertEqual(sum(report["events"]["incomplete"].values()), sent["events"]["damaged"] - sent["events"]["empty"])
        malformed = sum(n for name, n in report["packets"]["dropped"].items() if name.startswith("malformed."))
        self.assertEqual(malformed, sent["packets"]["truncated"])
        self.assertTrue(run.inspect()["verified"])

    def test_what_the_ring_drops_is_in_the_account(self):
        # A ring of 16 frames, and a sender that does not wait.
        run = self.weir(JUNGFRAU.replace("iface=det0", "iface=det0,framecnt=16"), "--duration", live.PATIENCE_S)
        self.wait_reachable(run)
        sent = self.send("--sources", 2, "--events", 40, "--to", f"udp:{live.RECEIVER}:50001", where=self.network.there())
        run.wait_quiet()
        run.stop()
        report = run.end()
        self.assert_account(run)
        got = report["packets"]["received"] - sum(report["packets"]["not_for_us"].values())
        self.assertGreater(report["device_missed"], 0)
        # What was lost on the way to the ring, in the backlog of the processor, the interface counts, and weir with it. The ring
        # also drops a neighbour discovery now and then.
        self.assertAlmostEqual(got + report["device_missed"], sent["packets"]["sent"], delta=10)
        if report["wire_loss"] != "unknown":
            self.assertGreaterEqual(report["wire_loss"], report["device_missed"])

    def test_frames_that_the_ring_cuts_are_explained(self):
        text = JUNGFRAU.replace('iface=det0"', 'iface=det0,framesz=2048"\nmtu = 1500')
        # Where it is as certain as here, a run has to be told to start.
        refused = self.weir(text, "--duration", 1, name="refused")
        refused.end(status=1)
        self.assertIn("frame_room", refused.errors)
        self.assertIn("--force", refused.errors)
        run = self.weir(text, "--duration", live.PATIENCE_S, "--force")
        self.wait_reachable(run)
        sent = self.send("--sources", 2, "--events", 2, "--rate", 20, "--to", f"udp:{live.RECEIVER}:50001", where=self.network.there())
        run.wait_progress(lambda one: one["packets"]["received"] >= sent["packets"]["sent"], "packets")
        run.stop()
        report = run.end()
        self.assert_account(run)
        cut = report["packets"]["dropped"]["malformed.ip_length"] + report["packets"]["dropped"]["malformed.truncated"]
        self.assertGreater(cut, 0)
        found = [f for f in report["findings"] if f["page"] == "docs/guides/LOSSES.md#cut-frames"]
        self.assertEqual([f["packets"] for f in found], [cut])
        self.assertIn("framesz", found[0]["sentence"])
        self.assertIn(found[0]["sentence"], run.output)

    def test_ejfat(self):
        run = self.weir(EJFAT, "--events", 100, "--duration", live.PATIENCE_S)
        self.wait_reachable(run)
        options = ["--format", "ejfat", "--lb", "--sources", 2, "--bytes", 200000, "--events", 100, "--seed", 7]
        sent = self.send(*options, "--gbps", 0.4, "--to", f"udp:{live.RECEIVER}", where=self.network.there())
        self.assertEqual(sent["events"]["whole"], 100)
        run.end()
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.check_digests(run, self.expected_digests(EJFAT, *options))

    def check_small_payload(self, *sizes):
        """A live run copies it, a replay refers to it; both make the same events."""
        run = self.weir(EJFAT, "--events", 400, "--duration", live.PATIENCE_S)
        self.wait_reachable(run)
        options = ["--format", "ejfat", "--sources", 2, *sizes, "--events", 400, "--seed", 3]
        sent = self.send(*options, "--rate", 2000, "--to", f"udp:{live.RECEIVER}", where=self.network.there())
        run.end()
        self.assertIn("copies: payload up to 128 bytes, and up to", run.errors)
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.check_digests(run, self.expected_digests(EJFAT, *options))

    def test_messages_of_one_small_packet(self):
        self.check_small_payload("--bytes", 128)

    def test_messages_that_end_in_a_small_packet(self):
        self.check_small_payload("--bytes", 1500, "--mtu", 576)

    def test_small_payload_holds_no_buffers(self):
        """Messages of one source, whose events wait for the other."""
        name = f"weir-small-{os.getpid()}"
        run = self.weir(EJFAT.replace("timeout_ms = 20000", "timeout_ms = 60000"), "--duration", live.PATIENCE_S, "--telemetry", name)
        self.wait_reachable(run)
        client = Client(name)
        self.addCleanup(client.socket.close)
        self.send("--format", "ejfat", "--bytes", 128, "--bytes-min", 100, "--events", 50, "--rate", 1000, "--to", f"udp:{live.RECEIVER}",
                  where=self.network.there())

        def held():
            lcore = next(lcore for rx, lcore in client.ask("/weir/lcores").items() if rx.startswith("rx"))
            return lcore["cells_held"], lcore["buffers_held"]

        live.wait_for(lambda: held() == (50, 0), "fifty copies")
        run.stop()
        run.end()
        self.assert_account(run, sent=50)

    def test_roce_uc_write_through_a_device(self):
        run = self.weir(ROCE, "--events", 100, "--duration", live.PATIENCE_S)
        self.wait_reachable(run)
        options = ["--format", "message", "--transport", "roce-write", "--sources", 2, "--bytes", 100000, "--mtu", 4096, "--events", 100,
                   "--first-psn", 16777000, "--seed", 8]
        sent = self.send(*options, "--gbps", 0.4, "--to", "device:net_af_packet0,iface=gen0", where=self.network.there())
        self.assertEqual(sent["events"]["whole"], 100)
        run.end()
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.assertEqual(run.report["packets"]["dropped"]["malformed.bad_icrc"], 0)
        self.check_digests(run, self.expected_digests(ROCE, *options))

    def test_roce_through_a_kernel_socket(self):
        run = self.weir(ROCE, "--events", 50, "--duration", live.PATIENCE_S)
        self.wait_reachable(run)
        options = ["--format", "message", "--transport", "roce-send", "--sources", 2, "--bytes", 60000, "--mtu", 1024, "--events", 50,
                   "--seed", 9]
        sent = self.send(*options, "--gbps", 0.2, "--to", f"udp:{live.RECEIVER}", where=self.network.there())
        run.end()
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.check_digests(run, self.expected_digests(ROCE, *options))


if __name__ == "__main__":
    live.main(sandbox_required=True)
