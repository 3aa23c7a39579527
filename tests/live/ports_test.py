#!/usr/bin/env python3
"""What `weir run` does with its ports: what is asked of them, what it says when nothing comes, times, checksums, links, and a start in
the middle of traffic.

usage: ports_test.py WEIR
"""

import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import live
from devices_test import needs
from network_test import checksum, with_stream
from stop_test import config
from telemetry_test import Client

TAP = with_stream('transport = "udp"\nudp_dst = [50001, 50002]\nformat = "jungfrau"').replace(
    "net_af_packet0,iface=det0", "net_tap0,iface=weir0").replace("net_af_packet.toml", "net_tap.toml")
JUNGFRAU = with_stream('transport = "udp"\nudp_dst = [50001, 50002]\nformat = "jungfrau"')


def port_of(report, name="det0"):
    return next(port for port in report["ports"] if port["port"] == name)


class TapTest(live.Case):
    """On an interface that weir makes: whatever is written into it arrives as it is."""

    def setUp(self):
        super().setUp()
        needs("net_tap")
        if not os.path.exists("/dev/net/tun"):
            self.skipTest("the kernel has no TUN/TAP (/dev/net/tun)")

    def start(self, text=TAP, *options):
        run = self.weir(text, "--duration", live.PATIENCE_S, *options)
        run.wait_running()
        self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.addCleanup(self.raw.close)
        self.raw.bind(("weir0", 0))
        return run

    @staticmethod
    def frame(payload, port=50009, good=True, udp_checksum=None):
        """A UDP datagram; its checksum is right, wrong, or as given."""
        source, destination = (socket.inet_aton(address) for address in (live.SENDER, live.RECEIVER))
        header = struct.pack("!HHH", 40000, port, 8 + len(payload))
        if udp_checksum is None:
            pseudo = source + destination + struct.pack("!HH", 17, 8 + len(payload)) + header + b"\0\0" + payload
            udp_checksum = checksum(pseudo + b"\0" * (len(pseudo) % 2)) ^ (0 if good else 0x5555)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(payload), 1, 0x4000, 64, 17, 0) + source + destination
        ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
        return b"\2\0\0\0\0\2" + b"\2\0\0\0\0\1" + b"\x08\0" + ip + header + struct.pack("!H", udp_checksum) + payload

    def test_wrong_udp_checksums_that_the_device_finds_are_malformed_and_zero_is_none(self):
        run = self.start()
        sent = [self.frame(b"data", good=True), self.frame(b"data", good=False), self.frame(b"data!", good=False), self.frame(b"data", udp_checksum=0)]
        for frame in sent:
            self.raw.send(frame)
        run.wait_progress(lambda one: one["packets"]["dropped"]["malformed.udp_checksum"] + one["packets"]["unsteered"] >= 4, "all four")
        run.stop()
        report = run.end()
        self.assert_account(run)
        self.assertEqual(report["packets"]["dropped"]["malformed.udp_checksum"], 2)
        self.assertEqual(report["packets"]["unsteered"], 2)
        self.assertIn("udp_checksum", port_of(report)["offloads"]["got"])

    def test_wrong_checksums_are_believed_where_they_are_to_be_ignored(self):
        run = self.start(TAP.replace('name = "det0"', 'name = "det0"\nchecksums = "ignore"\npromiscuous = false\nflow_control = "off"'), "--allow-empty")
        self.raw.send(self.frame(b"data", good=False))
        run.wait_progress(lambda one: one["packets"]["dropped"]["malformed.udp_checksum"] + one["packets"]["unsteered"] >= 1, "the one")
        run.stop()
        report = run.end()
        self.assert_account(run)
        self.assertEqual(report["packets"]["dropped"]["malformed.udp_checksum"], 0)
        self.assertEqual(report["packets"]["unsteered"], 1)
        port = port_of(report)
        self.assertEqual(port["offloads"]["got"], [])
        self.assertFalse(port["promiscuous"])
        self.assertEqual(port["flow_control"], "pause frames: off")  # net_tap takes this one, and no other
        self.assertEqual(report["config"]["port"][0]["checksums"], "ignore")

    def test_a_link_that_is_down_is_said_and_waited_for(self):
        run = self.start(TAP, "--allow-empty")
        subprocess.run(["ip", "link", "set", "weir0", "down"], check=True)
        said = self.ask(run)
        self.assertIn("the link is DOWN", said)
        run.stop()
        report = run.end()
        self.assertFalse(port_of(report)["link"]["up"])
        self.assertRegex(run.output, "the link is DOWN|the link of port det0 is down")  # with a packet of the kernel's before it, or without

    def ask(self, run):
        """SIGUSR1: what is said about nothing having come. What a run says by itself has whole seconds."""
        before = len(run.lines)
        run.process.send_signal(signal.SIGUSR1)
        answer = lambda: [line for line in run.lines[before:] if re.match(r"nothing has come for any stream in \d+\.\d s", line)]
        run.wait_for(answer, "answer to SIGUSR1")
        return answer()[0]


class SeenTest(live.Case):
    """Nothing is sent to weir: what it says, by signal, on the line, in telemetry and at the end."""

    def setUp(self):
        super().setUp()
        if not live.is_real_root() and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < 256 << 20:
            self.skipTest("net_af_packet locks its rings in memory: needs root, or a higher `ulimit -l`")
        self.network = live.Network()
        self.addCleanup(self.network.close)

    ask = TapTest.ask

    def test_packets_for_another_port_and_arp(self):
        name = f"weir-ports-{os.getpid()}"
        run = self.weir(JUNGFRAU, "--duration", live.PATIENCE_S, "--progress", "line", "--telemetry", name, "--allow-empty")
        run.wait_running()
        client = Client(name)
        self.addCleanup(client.socket.close)
        with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(20):
                sender.sendto(b"x" * 100, (live.RECEIVER, 50009))
                time.sleep(0.005)  # while it asks for the way, a kernel keeps few packets
        live.wait_for(lambda: client.ask("/weir/seen")["unsteered"] >= 18, "packets in telemetry")
        said = self.ask(run)
        self.assertRegex(said, r"port det0 \(net_af_packet\): link up, \d+ packets, [1-9]\d* answers")
        self.assertRegex(said, r"[1-9]\d* ARP")
        self.assertRegex(said, r"\d+ to no stream: UDP port 50009 from 10\.1\.0\.10 \(\d+\)")
        seen = client.ask("/weir/seen")
        self.assertEqual(seen["nothing_for_streams"], 1)
        self.assertIn("UDP port 50009 from 10.1.0.10", seen["other_senders"]["0"])
        self.assertEqual(seen["ports"]["det0/link_up"], 1)
        live.wait_for(lambda: any("nothing for any stream: " in line and "UDP port 50009" in line for line in run.lines), "progress line")
        run.stop()
        report = run.end()
        self.assert_account(run)
        self.assertIn("UDP port 50009 from 10.1.0.10", run.output)
        self.assertGreaterEqual(port_of(report)["answers"]["arp"], 1)
        self.assertEqual(report["packets"]["unsteered"] + sum(report["packets"]["not_for_us"].values()), report["packets"]["received"])

    def test_a_run_says_by_itself_that_nothing_comes(self):
        subprocess.run(self.network.there("ip", "link", "set", "gen0", "down"), check=True)
        # The kernel takes up to a second to tell the other end.
        link = lambda: "LOWER_UP" not in subprocess.run(["ip", "link", "show", "det0"], capture_output=True, text=True).stdout
        live.wait_for(link, "loss of the link")
        run = self.weir(JUNGFRAU.replace('name = "det0"', 'name = "det0"\nlink_wait_s = 1'))
        run.wait_for(lambda: any(line.startswith("nothing has come") for line in run.lines), "word of it")
        run.stop()
        report = run.end(status=1)
        self.assertIn("port det0: waiting for its link, 1 s at most", run.errors)
        self.assertIn("warning: port det0 has no link after 1 s", run.errors)
        self.assertRegex(run.errors, r"nothing has come for any stream in \d+ s: port det0 \(net_af_packet\): the link is DOWN")
        self.assertTrue(report["balanced"])
        self.assertIn("port det0 has no link after 1 s: is the cable in, and the other side on?", report["warnings"])
        self.assertIn("the link of port det0 is down", run.output)

    def test_what_is_asked_of_a_device_and_done_without_is_said(self):
        text = JUNGFRAU.replace('name = "det0"', 'name = "det0"\nflow_control = "full"\npfc = [3]')
        run = self.weir(text, "--duration", 1, "--allow-empty")
        report = run.end()
        port = port_of(report)
        self.assertEqual(port["offloads"]["asked"], ["udp_checksum", "timestamp"])
        self.assertEqual(port["offloads"]["got"], [])
        self.assertEqual([part["what"] for part in port["offloads"]["without"]], ["udp_checksum", "timestamp"])
        self.assertEqual(port["timestamps"]["source"], "software")
        self.assertIn('flow_control = "full": the driver has no such function', port["remarks"])
        self.assertIn("pfc, priority 3: the driver has no such function", port["remarks"])
        self.assertRegex(run.errors, r"port det0 \(net_af_packet\): \d+ and \d+ descriptors, offloads: none; without udp_checksum")
        file = self.folder / "required.toml"
        for more, words in (("flow_control_required = true", "the driver has no such function"),
                            ('timestamps = "hardware"', 'timestamps = "hardware"')):
            file.write_text(text.replace('name = "det0"', f'name = "det0"\n{more}'))
            done = subprocess.run([live.Weir.program, "run", "--config", str(file), "--out", str(self.folder / "no")], capture_output=True,
                                  text=True, timeout=live.PATIENCE_S)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertIn("'det0'", done.stderr)


class VirtioUserTest(live.Case):
    def test_the_guest_side_of_a_vhost_socket_without_a_guest(self):
        needs("net_vhost")
        needs("net_virtio")
        live.repeated(self.receive_without_a_guest)

    def receive_without_a_guest(self, attempt):
        path = self.folder / f"v{attempt}.sock"
        profile = live.ROOT / "pmd-config/net_virtio_user.toml"
        run = self.weir(config(f"net_virtio_user0,path={path}").replace('name = "det0"', f'name = "det0"\nprofile = "{profile}"'), "--events", 6,
                        "--idle-exit", 10, "--duration", live.PATIENCE_S, name=f"run{attempt}")
        live.wait_for(path.exists, "socket")  # the driver waits there for the other side, before the run begins
        sent = self.send("--sources", 2, "--events", 6, "--rate", 40, "--to", f"device:net_vhost0,iface={path},client=1")
        report = run.end()
        # The driver tells the other side to begin before weir takes packets: the first ones can be lost, and are missing then.
        self.assert_account(run)
        missing = sent["packets"]["sent"] - report["packets"]["placed"]
        if missing >= 256:
            raise live.Disturbed(f"{missing} packets came before weir took them")
        self.assertGreaterEqual(report["events"]["complete"], 5)
        self.assertEqual(sum(source["missing_packets"] for source in report["sources"]), missing)
        self.assertTrue(run.inspect()["verified"])


class TimeTest(live.Case):
    def test_the_clock_is_named_and_its_error_stated_and_times_are_those_of_the_system(self):
        before = time.time_ns()
        run = self.weir(config("sim,format=jungfrau,rate=40,events=20,seed=3"), "--duration", live.PATIENCE_S)
        report = run.end()
        after = time.time_ns()
        clock = report["machine"]["clock"]
        self.assertIn(clock["source"], ("TSC", "CLOCK_REALTIME"))
        self.assertGreaterEqual(clock["error_ns"], 0)
        slack = clock["error_ns"] + 1000
        last = 0
        for event in run.inspect()["events"]:
            self.assertGreaterEqual(event["first_ns"], before - slack)
            self.assertLessEqual(event["last_ns"], after + slack)
            self.assertGreaterEqual(event["last_ns"], event["first_ns"])
            self.assertGreaterEqual(event["first_ns"], last)
            last = event["first_ns"]


class StartTest(live.Case):
    """The sender is at it before weir is there."""

    def test_on_memif_the_sender_waits_and_nothing_is_lost(self):
        needs("net_memif")
        path = self.folder / "m.sock"
        text = config(f"net_memif0,role=client,id=0,socket={path},socket-abstract=no,bsize=10240")
        report_file = self.folder / "early.json"
        options = ("--sources", 2, "--events", 12, "--seed", 4, "--rate", 40)
        sender = subprocess.Popen([live.Weir.program, "send", "--quiet", "--report", str(report_file), *map(str, options), "--to",
                                   f"device:net_memif0,role=server,id=0,socket={path},socket-abstract=no,bsize=10240"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (sender.kill(), sender.wait(), sender.stderr.close()))
        live.wait_for(path.exists, "socket of the sender")
        run = self.weir(text, "--events", 12, "--duration", live.PATIENCE_S)
        self.assertEqual(sender.wait(live.PATIENCE_S), 0, sender.stderr.read())
        run.end()
        sent = json.loads(report_file.read_text())
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.assertEqual(run.report["events"]["complete"], 12)

    def test_on_a_packet_socket_every_packet_is_received_or_missing_by_its_number(self):
        if not live.is_real_root() and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < 256 << 20:
            self.skipTest("net_af_packet locks its rings in memory: needs root, or a higher `ulimit -l`")
        network = live.Network()
        self.addCleanup(network.close)
        subprocess.run(network.there("ip", "neigh", "add", live.RECEIVER, "lladdr", "02:00:00:00:00:02", "dev", "gen0"), check=True)
        text = with_stream('transport = "udp"\nudp_dst = 19522\nformat = "ejfat"', "sources = 1\ntimeout_ms = 20000")
        stop = threading.Event()
        sent = [0]

        def sender():
            with network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as out:
                number = 0
                while not stop.is_set():
                    for offset in (0, 1000):
                        out.sendto(ejfat(number, offset, 2000), (live.RECEIVER, 19522))
                    number += 1
                    sent[0] = number
                    time.sleep(0.002)  # so that no ring overflows

        thread = threading.Thread(target=sender)
        thread.start()
        try:
            live.wait_for(lambda: sent[0] > 50, "sender")
            run = self.weir(text, "--duration", live.PATIENCE_S)
            run.wait_running()
            at = sent[0]
            live.wait_for(lambda: sent[0] > at + 300, "more packets")
        finally:
            stop.set()
            thread.join()
        run.wait_quiet()
        run.stop()
        report = run.end()
        self.assert_account(run)
        numbers = sorted(event["id"] for event in run.inspect()["events"])
        # From the first one that weir saw to the last that was sent, each is there or counted by the device.
        self.assertGreater(numbers[0], 0)
        absent = set(range(numbers[0], sent[0])) - set(numbers)
        self.assertLessEqual(len(absent), report["device_missed"], f"{sorted(absent)[:20]} of {numbers[0]}..{sent[0]} {report['packets']} {run.errors}")
        incomplete = sum(report["events"]["incomplete"].values())
        self.assertLessEqual(incomplete, 1 + report["device_missed"])  # the one that it came into the middle of


def ejfat(number, offset, total):
    """A datagram of 1000 bytes with the EJFAT reassembly header (version 1), written from its documentation."""
    return struct.pack("!HHIIQ", 0x1000, 0, offset, total, number) + bytes(1000)


if __name__ == "__main__":
    live.main(sandbox_required=True)
