#!/usr/bin/env python3
"""Too much for weir, live: a receiver that stands still while a kernel sends counted datagrams, on each device that needs no
hardware, where sent = received + what somebody says was lost; and a disk that stands still, with the policies for overload.

usage: overload_test.py WEIR FROZEN_DISK_LIBRARY
"""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import live
from devices_test import needs

FROZEN_DISK = None
PORT = 9000
PROFILES = live.ROOT / "pmd-config"


def config(device, profile, events="", mtu=1500, more=""):
    return f"""[[port]]
name = "det0"
device = "{device}"
profile = "{PROFILES / profile}.toml"
mtu = {mtu}
address = "{live.RECEIVER}/24"
{more}
[[stream]]
port = "det0"
transport = "udp"
udp_dst = {PORT}
format = "ess"
packets_per_pulse = 1
[events]
sources = 1
timeout_ms = 60000
memory = "16MiB"
{events}
[[sink]]
kind = "null"
[lcores]
idle = "sleep"
"""


def no_ipv6(*prefix):
    """Kernels talk about IPv6 on their own; a datagram of theirs among those lost would not be one of ours."""
    for scope in ("all", "default"):
        subprocess.run([*prefix, "sysctl", "-q", "-w", f"net.ipv6.conf.{scope}.disable_ipv6=1"], capture_output=True)


class Sender:
    """Counted datagrams from a kernel socket: ESS readouts, one pulse and one sequence number each, written from the format's page."""

    def __init__(self, sender):
        self.socket = sender
        self.sent = 0

    def send(self, count, pause_s=0.0, bytes_each=200):
        for _ in range(count):
            seconds, tick = divmod(self.sent, 14)
            size = 30 + bytes_each
            header = struct.pack("<BB3sBHBBIIIII", 0, 0, b"ESS", 0x30, size, 0, 0, seconds, tick * 6_000_000, 0, 0, self.sent)
            self.socket.sendto(header + bytes(bytes_each), (live.RECEIVER, PORT))
            self.sent += 1
            if pause_s > 0:
                time.sleep(pause_s)  # so that no ring overflows


class DropsTest(live.Case):
    """The receiver is stopped (SIGSTOP) while the sender goes on."""

    BURST = 4000

    def stand_still(self, run, sender):
        """Some packets arrive, many while weir stands still, some afterwards, so that the loss has a beginning and an end."""
        sender.send(50, 0.002)
        run.wait_progress(lambda one: one["packets"]["placed"] > 0, "first packets")
        live.stand_still(run.process.pid)
        sender.send(self.BURST)
        run.stop(signal.SIGCONT)
        run.wait_quiet()
        sender.send(50, 0.002)
        report = run.end()
        self.assert_account(run)
        self.assertEqual(report["stopped_by"], "--idle-exit")
        return report

    def agree(self, report, sent, elsewhere=0):
        """What the sender sent is what was received and what was lost, by everybody's account."""
        lost = sent - report["packets"]["placed"]
        device = report["devices"][0]
        self.assertGreater(lost, 100, "hardly anything was lost: the test has not tested anything")
        self.assertEqual(report["sources"][0]["missing_packets"], lost)
        self.assertEqual(report["wire_loss"], lost)
        self.assertEqual(device["missed"] + device["no_buffer"] + elsewhere, lost, device)
        self.assertEqual(report["device_missed"], lost - elsewhere)

    OPTIONS = ("--duration", live.PATIENCE_S)
    UNTIL_IDLE = (*OPTIONS, "--idle-exit", 10)  # longer than it takes to see that nothing comes any more

    def veth(self, mtu):
        network = live.Network()
        self.addCleanup(network.close)
        no_ipv6()
        no_ipv6(*network.there())
        for prefix, device in (([], "det0"), (network.there(), "gen0")):
            subprocess.run([*prefix, "ip", "link", "set", device, "mtu", str(mtu)], check=True)
        mac = re.search(r'"address":"([^"]*)"', subprocess.run(["ip", "-j", "link", "show", "det0"], capture_output=True, text=True).stdout)[1]
        subprocess.run(network.there("ip", "neigh", "replace", live.RECEIVER, "lladdr", mac, "dev", "gen0"), check=True)
        return network

    def sender_on(self, network):
        sender = network.socket_there(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(sender.close)
        return Sender(sender)

    def dropped_by_sender(self, network):
        shown = subprocess.run(network.there("ip", "-s", "-j", "link", "show", "gen0"), capture_output=True, text=True, check=True).stdout
        return json.loads(shown)[0]["stats64"]["tx"]["dropped"]

    def test_af_packet(self):
        needs("net_af_packet", root=True)
        network = self.veth(1500)
        run = self.weir(config("net_af_packet0,iface=det0,framecnt=64", "net_af_packet"), *self.UNTIL_IDLE)
        run.wait_running()
        sender = self.sender_on(network)
        report = self.stand_still(run, sender)
        self.agree(report, sender.sent)

    def test_af_xdp(self):
        needs("net_af_xdp", root=True)
        network = self.veth(1500)
        run = self.weir(config("net_af_xdp0,iface=det0", "net_af_xdp", more="rx_descriptors = 512"), *self.UNTIL_IDLE)
        if not run.gets_going():
            said = "\n".join(run.lines)
            if any(word in said for word in ("not permitted", "not supported", "Invalid argument")):
                self.skipTest(f"the kernel lets no XDP socket be made here: {run.lines[-1]}")
            self.fail(said)
        sender = self.sender_on(network)
        report = self.stand_still(run, sender)
        # What does not get as far as the XDP program is the sending interface's loss.
        self.agree(report, sender.sent, elsewhere=self.dropped_by_sender(network))

    def test_tap(self):
        needs("net_tap")
        if not os.path.exists("/dev/net/tun"):
            self.skipTest("the kernel has no TUN/TAP (/dev/net/tun)")
        no_ipv6()
        run = self.weir(config("net_tap0,iface=weir0", "net_tap"), *self.UNTIL_IDLE)
        run.wait_running()
        subprocess.run(["ip", "address", "add", f"{live.SENDER}/24", "dev", "weir0"], check=True)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.sendto(b"?", (live.RECEIVER, 9))
            reachable = lambda: "lladdr" in subprocess.run(["ip", "neigh", "show", live.RECEIVER], capture_output=True, text=True).stdout
            live.wait_for(reachable, "answer to ARP")
            report_sender = Sender(probe)
            report = self.stand_still(run, report_sender)
        self.agree(report, report_sender.sent)

    def stopped_while_a_link_waits(self, run, target):
        """A sender that cannot lose, and a receiver that stands still in the middle: everything arrives."""
        sent = {}
        options = ("--format", "ess", "--sources", 1, "--events", 6000, "--rate", 6000, "--bytes", 1200, "--bytes-min", 1200, "--port", PORT)
        thread = threading.Thread(target=lambda: sent.update(self.send(*options, "--to", target)))
        thread.start()
        run.wait_progress(lambda one: one["packets"]["placed"] > 0, "first packets")
        live.stand_still(run.process.pid)
        time.sleep(0.5)  # the link fills meanwhile, which nobody says
        run.stop(signal.SIGCONT)
        thread.join(live.PATIENCE_S)
        run.wait_received(sent["packets"]["sent"])
        run.stop()
        report = run.end()
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.assertEqual((report["device_missed"], report["wire_loss"]), (0, 0))
        # What the sender could not get rid of in time it says itself.
        self.assertEqual(report["packets"]["placed"], sent["packets"]["sent"])
        self.assertEqual(report["sources"][0]["missing_packets"], 0)

    def test_memif(self):
        needs("net_memif")
        path = self.folder / "m.sock"
        run = self.weir(config(f"net_memif0,socket={path},socket-abstract=no", "net_memif"), *self.OPTIONS)
        run.wait_running()
        self.stopped_while_a_link_waits(run, f"device:net_memif0,role=client,id=0,socket={path},socket-abstract=no,rsize=9")

    def test_vhost(self):
        needs("net_vhost")
        needs("net_virtio")
        path = self.folder / "v.sock"
        run = self.weir(config(f"net_vhost0,iface={path}", "net_vhost"), *self.OPTIONS)
        run.wait_running()
        self.stopped_while_a_link_waits(run, f"device:net_virtio_user0,path={path},queue_size=256")


def readout(device, policy, memory="24MiB", timeout_ms=60000, profile=""):
    return f"""[[port]]
name = "det0"
device = "{device}"
{profile}
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001, 50002]
format = "jungfrau"
[events]
sources = 2
memory = "{memory}"
timeout_ms = {timeout_ms}
overload = "{policy}"
[[sink]]
kind = "events"
path = "runs/run"
[lcores]
idle = "sleep"
"""


class FrozenDiskTest(live.Case):
    def setUp(self):
        super().setUp()
        self.frozen = self.folder / "frozen"
        self.addCleanup(self.frozen.unlink, missing_ok=True)
        self.environment = {**os.environ, "LD_PRELOAD": FROZEN_DISK, "WEIR_FROZEN": str(self.frozen)}

    def assert_names_the_writer(self, run):
        limit = run.report["bottleneck"]
        self.assertEqual(limit["part"], "writer", limit)
        self.assertIn("ring full0 full in", limit["sentence"])
        self.assertIn(limit["sentence"], run.output)
        self.assertGreater(run.report["stages"]["work0"]["polls"]["blocked"]["output"], 0)
        rings = run.report["levels"]["rings"]
        self.assertGreaterEqual(rings["full0"]["highest"], rings["full0"]["size"] - 1)  # the writer has one in hand

    def test_prescaling_keeps_every_third_event_until_the_disk_is_back(self):
        run = self.weir(readout("sim,format=jungfrau,rate=25,seed=3", "prescale:3", profile="rx_descriptors = 4096"), environment=self.environment)
        run.wait_running()
        run.wait_events(10)
        self.frozen.touch()
        run.wait_progress(lambda one: one["events"]["refused"]["prescaled"] > 15, "events that are left out")
        self.frozen.unlink()
        run.wait_events(len(run.events_so_far()) + 40)  # more than memory has events
        run.stop()
        report = run.end()
        self.assert_account(run)
        self.assertEqual((report["events"]["incomplete"]["evicted"], report["events"]["incomplete"]["no_room"]), (0, 0))
        inspected = run.inspect()
        numbers = {event["id"] for event in inspected["events"]}
        lost = set(range(1, max(numbers) + 1)) - numbers
        unmeant = {number for number in lost if number % 3 != 0}
        # The last event that was refused may be after the last one that was written.
        self.assertGreater(len(unmeant), 5)
        if report["device_missed"] == 0:  # on a busy machine the detector itself may find no room
            self.assertIn(report["events"]["refused"]["prescaled"] - len(unmeant), (0, 1, 2))
            refused = report["events"]["refused"]
            self.assertLessEqual(len(lost - unmeant), refused["queue_full"] + refused["no_room"])
        self.assertGreaterEqual(report["overload"]["times"], 1)
        self.assertGreater(report["overload"]["kept"], 0)
        self.assert_names_the_writer(run)

    @staticmethod
    def waits(one):
        """Whether rx or build lcores were waiting for room in the second before this object."""
        stages = one["stages"]
        return any(stages[name]["polls"]["blocked"] for name in ("rx0", "build0") if name in stages)

    def waited_for_most_of(self, run):
        """So that the writer is what limits it, also where the sender takes seconds to start."""
        waits = [self.waits(one) for one in run.objects()]
        return sum(waits) > 4 and sum(waits) > 2 * waits.count(False)

    def test_input_that_waits_loses_nothing(self):
        needs("net_memif")
        path = self.folder / "m.sock"
        run = self.weir(readout(f"net_memif0,socket={path},socket-abstract=no", "wait", profile=f'profile = "{PROFILES}/net_memif.toml"'), "--duration", live.PATIENCE_S, "--events", 60, environment=self.environment)
        run.wait_running()
        sent = {}
        target = f"device:net_memif0,role=client,id=0,socket={path},socket-abstract=no,rsize=9,bsize=10240"
        self.frozen.touch()
        thread = threading.Thread(target=lambda: sent.update(self.send("--sources", 2, "--events", 60, "--seed", 4, "--rate", 200, "--to", target)))
        thread.start()
        run.wait_for(lambda: self.waited_for_most_of(run), "stage that waits")
        self.frozen.unlink()
        thread.join(live.PATIENCE_S)
        report = run.end()
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.assertEqual(sum(report["packets"]["dropped"].values()), 0)
        self.assertEqual(report["events"]["complete"], sent["events"]["whole"])
        self.assertIs(report["overload"]["input_waits"], True)
        self.assertGreater(sum(n for name in ("rx0", "build0") for n in report["stages"][name]["polls"]["blocked"].values()), 0)
        self.assert_names_the_writer(run)


if __name__ == "__main__":
    FROZEN_DISK = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
    live.main(sandbox_required=True, more_arguments=1)
