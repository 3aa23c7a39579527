#!/usr/bin/env python3
"""From a bare Debian to events after a reboot, in four lines: apt install, weir probe, weir doctor, systemctl enable.

The guest has no boot loader: what weir-setup would have the kernel's command line say is given to QEMU. usage: install_test.py WEIR
"""

import json
import shutil
import subprocess
import sys

import guest
import live

BARE = guest.CACHE / "bare"
IOMMU = ["-device", "intel-iommu,intremap=on,caching-mode=on"]
NIC = "0000:00:10.0"
ADDRESS = "52:54:00:00:77:10"
EVENTS = 40
BYTES = 20000  # of a message: three packets


def prepare():
    guest.make(guest.SCRIPT, "make", sys.argv[1])  # its kernel and its initrd
    guest.make_package()
    guest.make(live.ROOT / "tests/guest/bare_debian", BARE, guest.package())


class Host(guest.Commands, guest.Machine):
    """The machine that is to become a readout box."""

    def __init__(self, folder, disk, *qemu, name):
        (folder / "shell.sh").write_text("share=/share\n" + self.LOOP)
        self.count = len(list(folder.glob("do.*")))
        arguments = f"console=ttyS0 quiet panic=-1 {guest.EMULATED} intel_iommu=on iommu=pt init=/sbin/init systemd.show_status=no"
        super().__init__(folder, "-kernel", guest.CACHE / "vmlinux", "-initrd", guest.CACHE / "initrd", "-append", arguments, "-no-reboot",
                         "-drive", f"file={disk},if=none,id=root,format=raw", "-device", "virtio-blk-pci,drive=root", "-virtfs",
                         f"local,path={folder},mount_tag=share,security_model=none", *qemu, name=name)

    def wait(self):
        raise AssertionError(f"the machine has ended\n{self.said()[-3000:]}")

    def reboot(self):
        self.give("systemctl reboot; sleep 1000")
        self.wait_off(400)


class Install(guest.Case):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk.ext4"
        subprocess.run(["cp", "--sparse=always", BARE / "bare.ext4", self.disk], check=True)
        self.wire = guest.tap("det0", "n0", f"{live.SENDER}/24")
        self.addCleanup(subprocess.run, ["ip", "link", "delete", "det0"])

    def boot(self, name):
        host = Host(self.folder, self.disk, *IOMMU, *self.wire, *guest.nic("e1000e", "10", "n0"), name=name)
        self.addCleanup(host.end)
        return host

    @staticmethod
    def options(seed):
        return ["--format", "ejfat", "--sources", 2, "--events", EVENTS, "--bytes", BYTES, "--bytes-min", BYTES, "--mtu", 8000, "--seed", seed]

    def test_four_lines_and_a_reboot(self):
        shutil.copy(guest.package(), self.folder / "weir_0_amd64.deb")
        self.send(*self.options(3), "--to", self.folder / "yesterday.pcap")
        host = self.boot("first")
        host.run("apt-get update -q", limit_s=600)

        host.run("cd /share && DEBIAN_FRONTEND=noninteractive apt install -y ./weir_*.deb", limit_s=600)
        host.run("weir probe /share/yesterday.pcap >/etc/weir/det.toml")
        # The device is what a capture does not know; with an address weir answers ARP.
        host.run(f"""sed -i -e '/^timeout_ms/d' -e 's|^\\[events\\]|&\\ntimeout_ms = 20000|' -e 's|^device = .*|device = "{NIC}"\\naddress = "{live.RECEIVER}/24"|' /etc/weir/det.toml && grep -q {NIC} /etc/weir/det.toml""")
        # It is right: nothing of this is there before the unit's weir-setup has been.
        said = host.run("weir doctor --config /etc/weir/det.toml", 1)
        self.assertRegex(said, r"error +hugepages")
        self.assertRegex(said, r"wanted +driver vfio-pci")
        host.run("systemctl enable --now weir@det")
        host.reboot()

        host = self.boot("second")
        host.run("until [ $(systemctl is-active weir@det) = active ]; do sleep 1; done")
        print(f"{host.seconds():.1f} s from power-on to an active weir@det", flush=True)
        # What the first start made before the reboot is run 1.
        sent = self.send(*self.options(5), "--rate", 20, "--to", f"udp:{live.RECEIVER}")
        host.run(f"until systemctl show --property StatusText weir@det | grep -q ' {EVENTS} events'; do sleep 1; done")
        host.run("systemctl stop weir@det && journalctl -u weir@det -b --no-pager && cp -r /var/lib/weir/runs /share/runs")
        host.end()
        run = sorted((self.folder / "runs").iterdir())[-1]
        done = subprocess.run([live.Weir.program, "inspect", str(run), "--json", "--digest", "sha256"], check=True, capture_output=True, text=True)
        inspected = json.loads(done.stdout)
        self.assertIs(inspected["verified"], True)
        proposed = subprocess.run([live.Weir.program, "probe", str(self.folder / "yesterday.pcap")], check=True, capture_output=True, text=True)
        expected = self.expected_digests(proposed.stdout, *self.options(5))
        self.assertEqual({event["id"]: event["sha256"] for event in inspected["events"]}, expected)
        self.assertEqual(len(expected), EVENTS)
        self.assertGreater(sent["packets"]["sent"], 0)


if __name__ == "__main__":
    guest.main(prepare)
