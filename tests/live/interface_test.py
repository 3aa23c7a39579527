#!/usr/bin/env python3
"""What the kernel's interface does to packets before a device sees them: frames that are too long for it, and an MTU that is.

usage: interface_test.py WEIR
"""

import contextlib
import json
import pathlib
import re
import socket
import subprocess
import time

import live

EXAMPLE = live.ROOT / "examples/live-af-packet.toml"
PROFILE = live.ROOT / "pmd-config/net_af_packet.toml"


def datagrams(mtu):
    """The example, taking whole datagrams, with this MTU of the port."""
    text = EXAMPLE.read_text().replace("../pmd-config/net_af_packet.toml", str(PROFILE))
    text, count = re.subn(r"(?s)\[\[stream\]\].*?\[events\].*?(?=\[\[sink\]\])",
                          '[[stream]]\nport = "det0"\ntransport = "udp"\nudp_dst = [50001]\nformat = "message"\nevent = "arrival"\n'
                          '[events]\nsources = 1\ntimeout_ms = 200\n', text)
    assert count == 1
    return text.replace("[[stream]]", f"mtu = {mtu}\n[[stream]]", 1)


class InterfaceTest(live.Case):
    def setUp(self):
        super().setUp()
        self.network = live.Network()
        self.addCleanup(self.network.close)

    @staticmethod
    def set_mtu(mtu):
        subprocess.run(["ip", "link", "set", "det0", "mtu", str(mtu)], check=True)

    def send_datagrams(self, sizes):
        address = json.loads(subprocess.run(["ip", "-j", "link", "show", "det0"], capture_output=True, text=True, check=True).stdout)[0]["address"]
        subprocess.run(self.network.there("ip", "neigh", "replace", live.RECEIVER, "lladdr", address, "dev", "gen0"), check=True)
        with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for size in sizes:
                sender.sendto(bytes(size), (live.RECEIVER, 50001))

    def test_frames_that_are_too_long_for_the_interface_are_missed(self):
        self.set_mtu(1500)
        run = self.weir(datagrams(1500), "--events", 3, "--duration", live.PATIENCE_S)
        run.wait_running()
        self.send_datagrams([8000] * 5 + [100] * 3)
        report = run.end()
        self.assert_account(run)
        self.assertEqual(report["packets"]["placed"], 3)
        device = report["devices"][0]
        self.assertEqual((device["missed"], device["missed_by_interface"]), (5, 5))
        self.assertEqual(report["device_missed"], 5)
        self.assertNotIn("lost nothing", run.output)
        self.assertIn("the kernel's interface det0", run.output)
        self.assertNotIn("receive queue was full", run.output)

    def test_an_interface_with_a_smaller_mtu_is_refused(self):
        self.set_mtu(1500)
        run = self.weir(datagrams(9000), "--duration", 5)
        run.end(status=1)
        for words in ("'det0'", "MTU of 1500", "9000", "ip link set det0 mtu 9000", "mtu = 1500"):
            self.assertIn(words, run.errors)

    def test_an_mtu_that_sinks_during_the_run_is_said(self):
        run = self.weir(datagrams(9000), "--events", 2, "--duration", live.PATIENCE_S)
        run.wait_running()
        self.set_mtu(1500)
        self.send_datagrams([8000] * 4 + [100] * 2)
        report = run.end()
        self.assertEqual(report["devices"][0]["missed"], 4)
        self.assertEqual(report["ports"][0]["interface"], {"name": "det0", "mtu_at_start": 9000, "mtu": 1500})
        self.assertIn("from 9000 to 1500", " ".join(report["warnings"]))

    def test_frames_that_come_while_the_interface_goes_down_are_missed(self):
        run = self.weir(datagrams(1500), "--duration", live.PATIENCE_S)
        run.wait_running()
        before = self.refused()
        self.send_datagrams([100])
        run.wait_received(1)
        with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            deadline = time.monotonic() + live.PATIENCE_S
            # The kernel closes the sender's end a moment later, at most once a second.
            while self.refused() == before and time.monotonic() < deadline:
                for state in ("down", "up"):
                    subprocess.run(["ip", "link", "set", "det0", state], check=True)
                    for _ in range(100):
                        with contextlib.suppress(OSError):
                            sender.sendto(bytes(100), (live.RECEIVER, 50001))
        run.stop()
        report = run.end()
        self.assert_account(run)
        self.assertGreater(self.refused(), before)
        self.assertEqual(report["devices"][0]["missed_by_interface"], self.refused() - before)
        self.assertIn("while it was going down or up", run.output)

    @staticmethod
    def refused():
        """Frames that the kernel's interface gave to nobody."""
        line = next(line for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines() if line.strip().startswith("det0:"))
        _, _, errors, dropped, *_ = line.split(":")[1].split()
        return int(errors) + int(dropped)

    def test_an_interface_that_goes_leaves_its_losses_unknown(self):
        run = self.weir(datagrams(9000), "--duration", live.PATIENCE_S)
        run.wait_running()
        self.send_datagrams([100] * 2)
        run.wait_received(2)
        subprocess.run(["ip", "link", "delete", "det0"], check=True)
        run.stop()
        report = run.end()
        self.assertEqual(report["devices"][0]["missed"], "unknown")
        self.assertIn("has gone", " ".join(report["warnings"]))


if __name__ == "__main__":
    live.main(sandbox_required=True)
