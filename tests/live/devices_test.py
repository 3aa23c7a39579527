#!/usr/bin/env python3
"""`weir run` on each device that needs no hardware, with `weir send` or the kernel as a second process on its other side.

Each configuration is the shipped example; only names and paths are replaced. usage: devices_test.py WEIR
"""

import os
import pathlib
import re
import socket
import subprocess

import live

PROFILES = live.ROOT / "pmd-config"


def driver_installed(name):
    return any(pathlib.Path("/usr/lib").glob(f"*/dpdk/pmds-*/librte_{name}.so*")) or any(pathlib.Path("/usr/lib64").glob(f"dpdk-pmds/librte_{name}.so*"))


def needs(driver, root=False):
    """Skips, with the reason, where the machine lacks something."""
    if not driver_installed(driver):
        raise live.unittest.SkipTest(f"DPDK's driver {driver} is not installed")
    if root and not live.is_real_root():
        raise live.unittest.SkipTest("needs root outside of a user namespace")


class DevicesTest(live.Case):
    def example(self, name, *replacements):
        """The shipped file; each replacement must fit."""
        text = live.patient((live.ROOT / f"examples/live-{name}.toml").read_text())
        for old, new in (('"../pmd-config/', f'"{PROFILES}/'), *replacements):
            self.assertIn(old, text)
            text = text.replace(old, str(new))
        return text

    def check(self, run, sent, options):
        self.assertEqual(sent["packets"]["sent"], sent["packets"]["generated"])
        report = run.end()
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.assertEqual(report["events"]["complete"], sent["events"]["whole"])
        self.assertEqual(report["device_missed"], 0)
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        replayed = re.sub(r'(?m)^(device = ).*\n(profile = .*\n)?', r'\1"net_null0"\n', (self.folder / "run.toml").read_text())
        self.assertEqual({event["id"]: event["sha256"] for event in inspected["events"]}, self.expected_digests(replayed, *options))
        return report["devices"][0]

    JUNGFRAU = ("--sources", 2, "--events", 12, "--seed", 4)

    def test_memif(self):
        needs("net_memif")
        path = self.folder / "m.sock"
        run = self.weir(self.example("memif", ("/tmp/weir-memif.sock", path)), "--duration", live.PATIENCE_S)
        run.wait_running()
        client = f"device:net_memif0,role=client,id=0,socket={path},socket-abstract=no,rsize=11"
        refused = subprocess.run([live.Weir.program, "send", "--sources", "2", "--events", "1", "--to", client + ",bsize=2048"], text=True,
                                 capture_output=True, timeout=live.PATIENCE_S)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("bsize=2048 is smaller than a frame", refused.stderr)
        sent = self.send(*self.JUNGFRAU, "--rate", 40, "--to", client + ",bsize=10240")
        # Once the sender has left, the driver forgets what it received.
        run.wait_progress(lambda one: one["events"]["complete"] == 12, "complete events")
        run.stop()
        device = self.check(run, sent, self.JUNGFRAU)
        self.assertEqual(device, {"port": "det0", "driver": "net_memif", "received": sent["packets"]["sent"], "missed": 0, "no_buffer": 0})

    def test_vhost(self):
        needs("net_vhost")
        needs("net_virtio")
        path = self.folder / "v.sock"
        run = self.weir(self.example("vhost", ("/tmp/weir-vhost.sock", path)), "--events", 12, "--duration", live.PATIENCE_S)
        run.wait_running()
        sent = self.send(*self.JUNGFRAU, "--rate", 40, "--to", f"device:net_virtio_user0,path={path},queue_size=1024")
        device = self.check(run, sent, self.JUNGFRAU)
        self.assertEqual((device["missed"], device["no_buffer"]), (0, 0))

    def test_tap(self):
        needs("net_tap")
        if not os.path.exists("/dev/net/tun"):
            self.skipTest("the kernel has no TUN/TAP (/dev/net/tun)")
        run = self.weir(self.example("tap"), "--events", 12, "--duration", live.PATIENCE_S)
        run.wait_running()
        subprocess.run(["ip", "link", "set", "weir0", "txqueuelen", "4096"], check=True)  # room for all that is sent
        subprocess.run(["ip", "address", "add", f"{live.SENDER}/24", "dev", "weir0"], check=True)
        self.assertIn("mtu 9000", subprocess.run(["ip", "link", "show", "weir0"], capture_output=True, text=True).stdout)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # weir answers ARP, so the kernel learns the way
            probe.sendto(b"?", (live.RECEIVER, 9))
            reachable = lambda: "lladdr" in subprocess.run(["ip", "neigh", "show", live.RECEIVER], capture_output=True, text=True).stdout
            live.wait_for(reachable, "answer to ARP")
        sent = self.send(*self.JUNGFRAU, "--rate", 20, "--to", f"udp:{live.RECEIVER}:50001")
        device = self.check(run, sent, self.JUNGFRAU)
        self.assertEqual(device["missed"], 0)
        self.assertGreaterEqual(run.report["packets"]["not_for_us"]["arp"], 1)
        self.assertEqual(run.report["packets"]["unsteered"], 1)

    def test_af_xdp(self):
        needs("net_af_xdp", root=True)
        network = live.Network()
        self.addCleanup(network.close)
        subprocess.run(["ip", "link", "set", "det0", "mtu", "3200"], check=True)
        subprocess.run(network.there("ip", "link", "set", "gen0", "mtu", "3200"), check=True)
        run = self.weir(self.example("af-xdp", ('name = "det0"', 'name = "det0"\nrx_descriptors = 2048')), "--events", 40, "--duration", live.PATIENCE_S)
        if not run.gets_going():
            said = "\n".join(run.lines)
            if any(word in said for word in ("not permitted", "not supported", "Invalid argument")):
                self.skipTest(f"the kernel lets no XDP socket be made here: {run.lines[-1]}")
            self.fail(said)
        address = subprocess.run(["ip", "-j", "link", "show", "det0"], capture_output=True, text=True, check=True).stdout
        mac = re.search(r'"address":"([^"]*)"', address)[1]
        subprocess.run(network.there("ip", "neigh", "add", live.RECEIVER, "lladdr", mac, "dev", "gen0"), check=True)
        options = ("--format", "ejfat", "--sources", 2, "--events", 40, "--bytes", 50000, "--mtu", 3180, "--seed", 4)
        sent = self.send(*options, "--rate", 80, "--to", f"udp:{live.RECEIVER}", where=network.there())
        device = self.check(run, sent, options)
        self.assertEqual(device["missed"], 0)

    def test_pcap(self):
        needs("net_pcap")
        sent = self.send(*self.JUNGFRAU, "--to", self.folder / "run.pcap")
        run = self.weir(self.example("pcap"), "--idle-exit", 5, "--duration", live.PATIENCE_S)
        self.check(run, sent, self.JUNGFRAU)
        self.assertEqual(run.report["stopped_by"], "--idle-exit")


class ErrorsTest(live.Case):
    def refused(self, port, status, *words, through=(), without=None):
        file = self.folder / "c.toml"
        text = (live.ROOT / "examples/live-pcap.toml").read_text()
        text = re.sub(r"(?m)^device = .*\nprofile = .*\n", port + "\n", text)
        file.write_text(text)
        done = subprocess.run([*through, live.Weir.program, "run", "--config", str(file), "--out", str(self.folder / "run"), "--quiet"],
                              capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, status, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        if without is not None:
            self.assertNotIn(without, done.stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_frames_that_a_device_does_not_carry(self):
        self.refused('device = "net_af_xdp0,iface=lo"', 2, "c.toml:", "port.mtu", "3200", "page")
        self.refused('device = "net_memif0,bsize=2048"\nmtu = 9000', 2, "c.toml:", "bsize=2048", "corrupts")
        self.refused('device = "net_af_packet0,iface=lo,framesz=2048"\nmtu = 9000', 2, "framesz=2048", "cuts")

    def test_what_is_not_allowed_names_the_capability(self):
        if not live.is_real_root():
            self.skipTest("needs root, to do without")
        without = ("setpriv", "--bounding-set", "-net_raw,-ipc_lock", "--inh-caps", "-net_raw,-ipc_lock")
        self.refused('device = "net_af_packet0,iface=lo"', 1, "'det0'", "CAP_NET_RAW", "CAP_IPC_LOCK", "setcap cap_net_raw,cap_ipc_lock",
                     through=without)
        # What this driver does not need is not asked for.
        self.refused('device = "net_pcap0,rx_pcap=nosuch.pcap"', 1, "nosuch.pcap", through=without, without="CAP_")

    def test_what_is_not_there(self):
        self.refused('device = "net_pcap0,rx_pcap=nosuch.pcap"', 1, "'det0'", "nosuch.pcap")
        self.refused('device = "net_af_packet0,iface=nosuch7"', 1, "no interface 'nosuch7'", "there are: ", "lo")
        self.refused('device = "net_af_packet0"', 1, "iface=", "there are: ", "lo")
        self.refused('device = "nosuch7"', 2, "c.toml:", "nosuch7", "kernel,iface=", "there are: ", "lo")
        self.refused('device = "lo"', 2, "c.toml:", '"kernel,iface=lo"')
        self.refused('device = "net_nosuch0"', 1, "no driver 'net_nosuch'", "librte_net_nosuch.so", "installed")
        self.refused('device = "net_memif0,socket=/nosuch/m.sock,socket-abstract=no"', 1, "'det0'", "nosuch")


if __name__ == "__main__":
    live.main(sandbox_required=True)
