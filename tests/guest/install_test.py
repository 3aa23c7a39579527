#!/usr/bin/env python3
"""From a bare Debian to events after a reboot, in four lines: apt install, weir probe, weir doctor, systemctl enable.

The guest has no boot loader: what weir-setup would have the kernel's command line say is given to QEMU. usage: install_test.py WEIR
"""

import shutil
import subprocess
import sys

import guest
import live

BARE = guest.CACHE / "bare"
IOMMU = ["-device", "intel-iommu,intremap=on,caching-mode=on"]
EVENTS = 40
BYTES = 20000


def prepare():
    guest.make(guest.SCRIPT, "make", sys.argv[1])  # its kernel and its initrd
    guest.make_package()
    guest.make(live.ROOT / "tests/guest/bare_debian", BARE, guest.package())


class Host(guest.Commands, guest.Machine):
    """The machine that is to become a readout box."""

    def __init__(self, folder, disk, *qemu, name):
        (folder / "shell.sh").write_text("share=/share\n" + self.LOOP)
        arguments = "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable intel_iommu=on iommu=pt init=/sbin/init systemd.show_status=no"
        super().__init__(folder, "-kernel", guest.CACHE / "vmlinux", "-initrd", guest.CACHE / "initrd", "-append", arguments, "-no-reboot", "-drive",
                         f"file={disk},if=none,id=root,format=raw", "-device", "virtio-blk-pci,drive=root", "-virtfs",
                         f"local,path={folder},mount_tag=share,security_model=none", *qemu, name=name)

    def wait(self):
        self.wait_off(1)


class Install(guest.Case):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk.ext4"
        subprocess.run(["cp", "--sparse=always", BARE / "bare.ext4", self.disk], check=True)
        self.wire = guest.tap("det0", "n0", f"{live.SENDER}/24")
        self.addCleanup(subprocess.run, ["ip", "link", "delete", "det0"])

    def boot(self, name):
        host = Host(self.folder, self.disk, *IOMMU, *self.wire, *guest.nic("e1000e", "10", "n0"), name=name)
        host.count = len(list(self.folder.glob("do.*")))
        self.addCleanup(host.end)
        return host

    def reboot(self, host):
        host.give("systemctl reboot; sleep 1000")
        host.wait_off(90)

    def options(self, seed):
        return ["--format", "ejfat", "--sources", 2, "--events", EVENTS, "--bytes", BYTES, "--bytes-min", BYTES, "--mtu", 8000, "--seed", seed]

    def test_four_lines_and_a_reboot(self):
        shutil.copy(guest.package(), self.folder / "weir_0_amd64.deb")
        self.send(*self.options(3), "--to", self.folder / "yesterday.pcap")
        host = self.boot("first")
        host.run("cd /share && apt-get update -q", limit_s=200)
        host.run("cd /share && DEBIAN_FRONTEND=noninteractive apt install -y ./weir_*.deb", limit_s=400)
        print(f"installed {host.seconds():.1f} s after power-on", flush=True)
        host.run("mkdir -p /data")
        # The device is the one thing that a capture does not know.
        host.run("weir probe --device 0000:00:10.0 /share/yesterday.pcap >/etc/weir/det.toml")
        host.run("weir doctor --config /etc/weir/det.toml", None)
        host.run("systemctl enable --now weir@det", limit_s=120)
        self.reboot(host)

        host = self.boot("second")
        host.wait_for(r"weir\[\d+\]: running: ", 200)
        host.end()


if __name__ == "__main__":
    guest.main(prepare)
