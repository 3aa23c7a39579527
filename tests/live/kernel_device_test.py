#!/usr/bin/env python3
"""`weir run` on a kernel interface through weir's own device, "kernel,iface=det0": all that holds of net_af_packet holds of it, and what is
its own: its ring, VLAN tags, promiscuous mode, the kernel's time stamps, packets that come before the run can take them.

usage: kernel_device_test.py WEIR
"""

import json
import pathlib
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import interface_test
import live
import network_test

DATAGRAMS = """
name = "live"
[[port]]
name = "det0"
device = "kernel,iface=det0"
address = "10.1.0.2/24"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001]
format = "message"
event = "arrival"
[events]
sources = 1
memory = "128MiB"
timeout_ms = 200
[[sink]]
kind = "events"
path = "runs"
[lcores]
idle = "sleep"
"""


def on_the_kernel_device(config):
    """A configuration for net_af_packet, with this device, and room for all that a test sends."""
    text = config.read_text() if isinstance(config, pathlib.Path) else config
    text, count = re.subn(r'device = "net_af_packet0,iface=det0"', 'device = "kernel,iface=det0,ring=128"', text)
    assert count == 1
    return re.sub(r"(?m)^profile = .*\n", "", text)


class KernelNetworkTest(network_test.NetworkTest):
    """The same packets make the same events."""

    def weir(self, config, *options, **more):
        return super().weir(on_the_kernel_device(config), *options, **more)

    # About arguments that it does not have.
    test_what_the_ring_drops_is_in_the_account = None
    test_frames_that_the_ring_cuts_are_explained = None


class KernelInterfaceTest(interface_test.InterfaceTest):
    """What the interface drops is in the account."""

    def weir(self, config, *options, **more):
        return super().weir(on_the_kernel_device(config), *options, **more)


class KernelDeviceTest(live.Case):
    def setUp(self):
        super().setUp()
        self.network = live.Network()
        self.addCleanup(self.network.close)
        address = json.loads(subprocess.run(["ip", "-j", "link", "show", "det0"], capture_output=True, text=True, check=True).stdout)[0]["address"]
        subprocess.run(self.network.there("ip", "neigh", "replace", live.RECEIVER, "lladdr", address, "dev", "gen0"), check=True)
        self.mac = bytes.fromhex(address.replace(":", ""))

    def send_datagrams(self, count, size=100):
        with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(count):
                sender.sendto(bytes(size), (live.RECEIVER, 50001))

    def frame(self, payload, tag=b""):
        """A datagram to the stream, as it is on the wire."""
        udp = struct.pack("!HHHH", 40000, 50001, 8 + len(payload), 0) + payload
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton(live.SENDER), socket.inet_aton(live.RECEIVER))
        ip = ip[:10] + struct.pack("!H", network_test.checksum(ip)) + ip[12:]
        return self.mac + bytes.fromhex("020000000001") + tag + b"\x08\x00" + ip + udp

    def send_frames(self, frames):
        with self.network.socket_there(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind(("gen0", 0))
            for frame in frames:
                sender.send(frame)

    def test_what_finds_no_room_in_the_ring_is_missed(self):
        run = self.weir(DATAGRAMS.replace("iface=det0", "iface=det0,ring=1"), "--duration", live.PATIENCE_S)
        run.wait_running()
        self.send_datagrams(10, 8000)
        live.stand_still(run.process.pid)
        self.send_datagrams(1200, 8000)  # nine times the ring
        run.stop(signal.SIGCONT)
        run.wait_quiet()
        self.send_datagrams(10, 8000)
        run.wait_quiet()
        run.stop()
        report = run.end()
        self.assert_account(run)
        device = report["devices"][0]
        self.assertGreater(device["missed"], 200)
        # The kernel may have asked once more who has the address, and what is missed may be that as well.
        self.assertIn(report["packets"]["placed"] + device["missed"] - 1220, range(4))
        self.assertEqual(device["no_buffer"], 0)
        self.assertEqual(report["lossless"], "no")

    def test_a_slow_detector_does_not_fill_the_ring_with_time(self):
        """A block is used up when it is full or has waited, so packets that come one by one cost a block each."""
        self.assertEqual(live.repeated(self.missed_of_a_slow_detector), 0)

    def missed_of_a_slow_detector(self, attempt):
        run = self.weir(DATAGRAMS, "--duration", live.PATIENCE_S, name=f"slow{attempt}")
        run.wait_running()
        live.stand_still(run.process.pid)
        began = time.monotonic()
        with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(300):
                sender.sendto(bytes(100), (live.RECEIVER, 50001))
                time.sleep(0.0015)
        took_s = time.monotonic() - began
        run.stop(signal.SIGCONT)
        run.wait_quiet()
        run.stop()
        report = run.end()
        self.assert_account(run)
        if took_s > 1.5:
            raise live.Disturbed(f"the detector took {took_s:.1f} s, which is as long as the ring lasts")
        return report["devices"][0]["missed"]

    def test_vlan_tags_are_where_they_were(self):
        config = DATAGRAMS + '[[sink]]\nkind = "pcapng"\npath = "packets"\n'
        run = self.weir(config, "--events", 4, "--duration", live.PATIENCE_S)
        run.wait_running()
        tags = [b"", b"\x81\x00\x20\x07", b"\x88\xa8\x00\x09", b"\x88\xa8\x00\x09\x81\x00\x00\x08"]
        frames = [self.frame(bytes([65 + i]) * 300, tag) for i, tag in enumerate(tags)]
        self.send_frames(frames)
        report = run.end()
        self.assert_account(run)
        self.assertEqual(report["packets"]["placed"], 4)
        files = [path.read_bytes() for path in self.folder.rglob("*") if path.is_file()]
        captured = b"".join(data for data in files if data.startswith(b"\x0a\x0d\x0d\x0a"))
        for frame in frames:
            self.assertTrue(frame in captured, frame[:20].hex())
        self.assertGreaterEqual(report["bytes"]["received"], sum(map(len, frames)))

    def test_promiscuous_mode_is_the_interface_s_while_the_run_goes_on(self):
        def promiscuity():
            shown = subprocess.run(["ip", "-j", "-d", "link", "show", "det0"], capture_output=True, text=True, check=True)
            return json.loads(shown.stdout)[0]["promiscuity"]
        for wanted in (True, False):
            with self.subTest(wanted):
                text = DATAGRAMS.replace('address =', f"promiscuous = {str(wanted).lower()}\naddress =")
                run = self.weir(text, "--events", 1, "--duration", live.PATIENCE_S, name=f"run{wanted}")
                run.wait_running()
                self.assertEqual(promiscuity(), int(wanted))
                self.send_datagrams(1)
                self.assertEqual(run.end()["ports"][0]["promiscuous"], wanted)
                self.assertEqual(promiscuity(), 0)

    def test_packets_have_the_kernel_s_time(self):
        run = self.weir(DATAGRAMS, "--events", 3, "--duration", live.PATIENCE_S)
        run.wait_running()
        sent = []
        for _ in range(3):
            before = time.time_ns()
            self.send_datagrams(1)
            sent.append((before, time.time_ns()))
            time.sleep(0.1)  # each in a block of the ring of its own, also where blocks are closed by time
        report = run.end()
        stamps = report["ports"][0]["timestamps"]
        late = 0
        self.assertEqual(stamps["source"], "kernel")
        self.assertLessEqual(stamps["moved"], 1)  # where the kernel's own timer was late
        for event, (before, after) in zip(run.inspect()["events"], sent, strict=True):
            # As exact as clocks are read.
            self.assertGreater(event["first_ns"], before - 200_000)
            late += event["first_ns"] > after + 200_000
        # A poll is milliseconds later.
        self.assertLessEqual(late, stamps["moved"])

    def test_the_time_of_the_poll_if_asked_for(self):
        run = self.weir(DATAGRAMS.replace("address =", 'timestamps = "software"\naddress ='), "--events", 1, "--duration", live.PATIENCE_S)
        run.wait_running()
        self.send_datagrams(1)
        self.assertEqual(run.end()["ports"][0]["timestamps"]["source"], "software")
        run = self.weir(DATAGRAMS.replace("address =", 'timestamps = "hardware"\naddress ='), "--duration", 5, name="hardware")
        run.end(status=1)
        self.assertIn('accepted: "auto", "software"', run.errors)

    def test_what_comes_before_the_run_is_no_part_of_it(self):
        stop = threading.Event()
        sent = 0

        def send():
            nonlocal sent
            with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                while not stop.is_set():
                    sender.sendto(bytes(1000), (live.RECEIVER, 50001))
                    sent += 1
                    time.sleep(0.0005)  # so that the ring does not overflow
        sending = threading.Thread(target=send)
        sending.start()
        # Blocks for the moment between the last look before the run and the first look of the lcore.
        run = self.weir(DATAGRAMS.replace("iface=det0", "iface=det0,ring=128"), "--duration", live.PATIENCE_S)
        self.addCleanup(stop.set)
        run.wait_received(100)
        stop.set()
        sending.join()
        run.wait_quiet()
        run.stop()
        report = run.end()
        self.assert_account(run)
        before = report["ports"][0]["before_start"]
        self.assertGreater(before, 0)
        self.assertGreater(report["packets"]["placed"], 0)
        self.assertLessEqual(before + report["packets"]["placed"], sent)
        self.assertEqual(report["devices"][0]["missed"], 0)
        self.assertRegex(" ".join(report["warnings"]), r"[1-9]\d* packets came before the run could take them")

    def test_two_ports_may_have_two_interfaces_and_not_one(self):
        text = DATAGRAMS.replace("[[stream]]", '[[port]]\nname = "det1"\ndevice = "kernel,iface=lo"\nmtu = 1500\n[[stream]]', 1)
        run = self.weir(text, "--events", 1, "--duration", live.PATIENCE_S)
        run.wait_running()
        self.send_datagrams(1)
        self.assertEqual(len(run.end()["ports"]), 2)
        run = self.weir(text.replace("iface=lo", "iface=det0"), "--duration", 5, name="same")
        run.end(status=2)
        self.assertIn("a device of its own", run.errors)

    def test_what_cannot_be_is_said(self):
        for device, words in (("kernel,iface=nowhere", "there is no interface 'nowhere'"), ("kernel", "iface=NAME"),
                              ("kernel,iface=det0,framesz=2048", "ring=MIB")):
            with self.subTest(device):
                run = self.weir(DATAGRAMS.replace("kernel,iface=det0", device), "--duration", 5, name=re.sub(r"\W", "_", device))
                run.end(status=2 if "framesz" in device else 1)
                self.assertIn(words, run.errors)
        run = self.weir(DATAGRAMS.replace("address =", "queues = 2\naddress ="), "--duration", 5, name="queues")
        run.end(status=1)
        self.assertIn("at most 1", run.errors)

    def test_probe_and_doctor_know_it(self):
        with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            probe = subprocess.Popen([live.Weir.program, "probe", "kernel,iface=det0", "--seconds", "3", "--json"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
            while probe.poll() is None:
                sender.sendto(bytes(500), (live.RECEIVER, 50001))
                time.sleep(0.01)  # it needs some, and not all of a processor
            said = probe.communicate()
        self.assertIn("50001", said[0], said)
        config = self.folder / "doctor.toml"
        config.write_text(DATAGRAMS)
        done = subprocess.run([live.Weir.program, "doctor", "--config", str(config), "--json"], capture_output=True, text=True, timeout=live.PATIENCE_S)
        findings = json.loads(done.stdout)["findings"]
        about = {finding["check"]: finding for finding in findings if "det0" in json.dumps(finding)}
        self.assertIn("interface", about, findings)
        self.assertNotIn("would disturb", json.dumps(findings))


if __name__ == "__main__":
    live.main(sandbox_required=True)
