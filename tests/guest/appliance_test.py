#!/usr/bin/env python3
"""The appliance: powered on, it takes data; its power is cut in the middle, and it does so again, with all that was synced.

scripts/make-image makes its disk and its files for booting from the network. The traffic comes from outside, over a TAP, to a NIC that
the machine binds to vfio-pci behind its IOMMU by itself. usage: appliance_test.py WEIR
"""

import functools
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

import guest
import live

IMAGE = guest.BUILD / "guest-appliance"
MAKE_IMAGE = live.ROOT / "scripts" / "make-image"
IOMMU = ["-device", "intel-iommu,intremap=on,caching-mode=on"]
BOOT_LIMIT_S = 600  # what it takes is printed; the limit is for machines that are busy with something else
SILENCE_S = 120  # between two lines of a kernel that says all it does; there it takes seconds
FIRST_PROGRAM = "weir-image: "  # the first that the image says itself
BYTES = 20000  # of a message: three packets
SECTOR = 512

CONFIG = """name = "det"
[[port]]
name = "det0"
device = "0000:00:10.0"
address = "10.1.0.2/24"

[[stream]]
port = "det0"
transport = "udp"
udp_dst = [19522, 19523]
format = "ejfat"

[events]
sources = 2
memory = "64MiB"
timeout_ms = 5000

[[sink]]
kind = "events"
path = "{path}"
sync_ms = 200

[lcores]
idle = "sleep"
"""
# The account on the console, so that it can be followed from outside; and an emulated machine may get no CPU for a while.
DROP_IN = """[Service]
ExecStart=
ExecStart=/usr/bin/weir run --config /etc/weir/%i.toml --allow-empty --progress json
WatchdogSec=120
"""


def prepare():
    """The image, in the build folder; what of it comes from Debian is kept."""
    parts = IMAGE / "parts"
    (parts / "etc").mkdir(parents=True, exist_ok=True)
    (parts / "etc" / "det.toml").write_text(CONFIG.format(path="/data/{name}-{run:06}"))
    (parts / "etc" / "hostname").write_text("readout7\n")
    drop_ins = parts / "files/etc/systemd/system/weir@.service.d"
    drop_ins.mkdir(parents=True, exist_ok=True)
    (drop_ins / "test.conf").write_text(DROP_IN)
    guest.make_package()
    guest.make(MAKE_IMAGE, "--deb", guest.package(), "--config", parts / "etc", "--files", parts / "files", "--cache", guest.CACHE / "appliance",
               "--out", IMAGE, "--append", f"{guest.EMULATED} loglevel=7 earlyprintk=ttyS0,115200", "--data-size", 64)


class Disk:
    """A copy of the image as a disk of its own, twice the size; its data partition can be looked at while the machine is off."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.file = self.folder / "disk.img"
        subprocess.run(["cp", "--sparse=always", IMAGE / "weir.img", self.file], check=True)
        os.truncate(self.file, 2 * self.file.stat().st_size)

    def qemu(self):
        return ["-drive", f"file={self.file},if=none,id=disk,format=raw", "-device", "virtio-blk-pci,drive=disk,bootindex=1"]

    def partition(self, name):
        """(first byte, bytes)"""
        listed = subprocess.run(["sfdisk", "--json", str(self.file)], check=True, capture_output=True, text=True).stdout
        for part in json.loads(listed)["partitiontable"]["partitions"]:
            if part["name"] == name:
                return part["start"] * SECTOR, part["size"] * SECTOR
        raise AssertionError(f"no partition {name}: {listed}")

    def data(self, name):
        """A folder with all that is in the data partition, after its journal was replayed as the next mount would do it. It is a copy."""
        start, size = self.partition("weir-data")
        copy, out = self.folder / f"{name}.ext4", self.folder / name
        out.mkdir()
        subprocess.run(["dd", f"if={self.file}", f"of={copy}", "bs=1M", f"skip={start}", f"count={size}", "iflag=skip_bytes,count_bytes",
                        "conv=sparse", "status=none"], check=True)
        checked = subprocess.run(["e2fsck", "-p", str(copy)], capture_output=True, text=True)
        if checked.returncode > 1:  # 1: the journal was replayed, or orphans cleared
            raise AssertionError(f"the data partition is damaged: {checked.stdout}{checked.stderr}")
        subprocess.run(["debugfs", "-R", f"rdump / {out}", str(copy)], check=True, capture_output=True)
        copy.unlink()
        return out


class Served(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Appliance(guest.Case):
    def setUp(self):
        super().setUp()
        self.wire = guest.tap("det0", "n0", f"{live.SENDER}/24")
        self.addCleanup(subprocess.run, ["ip", "link", "delete", "det0"])

    def power_on(self, name, *qemu):
        for attempt in range(3):
            machine = guest.Machine(self.folder, *IOMMU, *self.wire, *guest.nic("e1000e", "10", "n0"), *qemu, name=f"{name}-{attempt}" if attempt else name)
            self.addCleanup(machine.end)
            if attempt == 2 or not self.locks_up(machine):
                break
            print(f"{name}: the emulation has locked up; once more\n{machine.said()[-1000:]}", flush=True)
            machine.end()
        machine.wait_for(r"weir\[\d+\]: running: ", BOOT_LIMIT_S)
        print(f"{name}: {machine.seconds():.1f} s from power-on to \"running\"", flush=True)
        self.answers(machine)
        return machine

    def locks_up(self, machine):
        """Two emulated CPUs sometimes wait for each other for ever before the kernel has started its first program (seen with QEMU 7.2):
        it says "soft lockup", or nothing any more. What happens later is the image's own, and is not tried again."""
        said, since = "", time.monotonic()
        while machine.process.poll() is None and FIRST_PROGRAM not in said:
            now = machine.said()
            if now != said:
                said, since = now, time.monotonic()
            if "soft lockup" in said or time.monotonic() - since > SILENCE_S:
                return True
            time.sleep(0.1)
        return False

    def answers(self, machine):
        """Until weir has answered ARP. What is sent for that is for nobody."""
        def reached():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
                out.sendto(b"", (live.RECEIVER, 9))
            found = subprocess.run(["ip", "neighbour", "show", live.RECEIVER], capture_output=True, text=True).stdout
            return "lladdr" in found
        live.wait_for(reached, f"answer from weir\n{machine.said()[-3000:]}")

    def options(self, events, seed):
        return ["--format", "ejfat", "--sources", 2, "--events", events, "--bytes", BYTES, "--bytes-min", BYTES, "--mtu", 8000, "--seed", seed]

    def expected(self, events, seed):
        folder = self.folder / f"expected-{seed}"
        folder.mkdir()
        kept, self.folder = self.folder, folder
        try:
            return self.expected_digests(CONFIG.format(path="unused"), *self.options(events, seed))
        finally:
            self.folder = kept

    def wait_written(self, machine, count, what="written"):
        """Until the account on the console has so many events written, or "synced"."""
        def written():
            found = re.findall(rf'"{what}":(\d+)', machine.said())
            return bool(found) and int(found[-1]) >= count
        live.wait_for(written, f"{count} {what} events\n{machine.said()[-3000:]}")

    def check_events(self, run, expected, at_least, verified=True):
        """All of `at_least` are there, and whatever is there is right, and there once."""
        done = subprocess.run([live.Weir.program, "inspect", str(run), "--json", "--digest", "sha256"], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        inspected = json.loads(done.stdout)
        whole = [event for event in inspected["events"] if event["complete"]]
        ids = [event["id"] for event in whole]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual({event["id"]: event["sha256"] for event in whole}, {number: expected[number] for number in ids})
        self.assertEqual(set(at_least) - set(ids), set())
        if verified:
            self.assertTrue(inspected["verified"], done.stdout[-2000:])
        return inspected

    def test_power_cut_in_the_middle_of_taking_data(self):
        disk = Disk(self.folder)
        before = disk.partition("weir-data")[1]
        machine = self.power_on("BIOS", *disk.qemu())
        self.assertIn("0000:00:10.0 is bound to vfio-pci", machine.said())
        # The first events are synced when the power is cut, of the others nothing is known.
        synced, all_events = 40, 4000
        expected = self.expected(all_events, 3)
        sender = subprocess.Popen([live.Weir.program, "send", *map(str, self.options(all_events, 3)), "--rate", "20", "--to", f"udp:{live.RECEIVER}",
                                   "--quiet"])
        try:
            self.wait_written(machine, synced, "synced")
            self.assertIsNone(sender.poll(), "the power was to be cut in the middle")
            machine.cut_power()
        finally:
            sender.send_signal(signal.SIGKILL)
            sender.wait()
        self.assertGreater(disk.partition("weir-data")[1], before, "the data partition has not grown to the end of the disk")
        first = sorted(expected)[:synced]
        left = disk.data("after-the-cut")
        self.assertEqual([path.name for path in left.glob(".det-*")], [".det-000001.part"])
        self.check_events(left / ".det-000001.part", expected, first, verified=False)

        # It starts by the other firmware, for which the same disk has another boot loader.
        machine = self.power_on("UEFI", *disk.qemu(), *firmware())
        again = self.expected(synced, 5)
        self.send(*self.options(synced, 5), "--rate", 20, "--to", f"udp:{live.RECEIVER}")
        self.wait_written(machine, synced)
        machine.press_power_button()
        machine.wait_off(400)
        data = disk.data("after-the-end")
        self.assertEqual(sorted(path.name for path in data.iterdir() if path.name != "lost+found" and path.is_dir()), ["det-000001", "det-000002"])
        self.check_events(data / "det-000001", expected, first)
        self.check_events(data / "det-000002", again, again)

    def test_network_boot(self):
        """The same root file system over HTTP; the data stay on a disk of the machine's."""
        served = subprocess.run(["ip", "tuntap", "add", "dev", "boot0", "mode", "tap"])
        self.assertEqual(served.returncode, 0)
        self.addCleanup(subprocess.run, ["ip", "link", "delete", "boot0"])
        subprocess.run(["ip", "address", "add", "10.3.0.1/24", "dev", "boot0"], check=True)
        subprocess.run(["ip", "link", "set", "boot0", "up"], check=True)
        server = http.server.ThreadingHTTPServer(("10.3.0.1", 80), functools.partial(Served, directory=IMAGE / "netboot"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        data = self.folder / "data.ext4"
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-L", "weir-data", str(data), "128M"], check=True, stdout=subprocess.DEVNULL)
        arguments = ipxe_arguments("http://10.3.0.1") + " weir.address=10.3.0.2/24 BOOTIF=01-52-54-00-00-77-11"
        self.power_on("network", "-kernel", IMAGE / "netboot/vmlinuz", "-initrd", IMAGE / "netboot/initrd", "-append", arguments,
                      "-drive", f"file={data},if=none,id=data,format=raw", "-device", "virtio-blk-pci,drive=data",
                      "-netdev", "tap,id=n1,ifname=boot0,script=no,downscript=no", *guest.nic("virtio-net-pci", "11", "n1"))


def ipxe_arguments(base):
    """The kernel's command line as the script for iPXE has it."""
    line, = [line for line in (IMAGE / "netboot/weir.ipxe").read_text().splitlines() if line.startswith("kernel ")]
    words = [word for word in line.split()[2:] if not word.startswith(("initrd=", "BOOTIF="))]
    return " ".join(words).replace("${base}", base)


def firmware():
    """UEFI, where it is installed."""
    code = pathlib.Path("/usr/share/OVMF/OVMF_CODE.fd")
    return ["-drive", f"if=pflash,format=raw,readonly=on,file={code}"] if code.exists() else []


if __name__ == "__main__":
    guest.main(prepare)
