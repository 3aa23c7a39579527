#!/usr/bin/env python3
"""`weir run` on PCI devices: emulated NICs, bound to vfio-pci behind an emulated IOMMU, with hugepages, as on a real machine.

The guest has two NICs on one wire: its kernel sends from one, weir receives with the other. usage: pci_test.py WEIR
"""

import guest

IOMMU = ["-device", "intel-iommu,intremap=on,caching-mode=on"]
VIRTIO = ",disable-legacy=on,iommu_platform=on"
EVENTS = 60
BYTES = 20000  # of a message: three packets

CONFIG = """name = "pci"
[[port]]
name = "det0"
device = "0000:00:11.0"
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
path = "unused"

[lcores]
idle = "sleep"
"""
JOB = """
modprobe virtio_net
interface eth0 10.1.0.10/24
hugepages 384
modprobe vfio-pci || fail "no vfio-pci"
device=0000:00:11.0
echo vfio-pci >/sys/bus/pci/devices/$device/driver_override
[ ! -e /sys/bus/pci/devices/$device/driver ] || echo $device >/sys/bus/pci/devices/$device/driver/unbind
echo $device >/sys/bus/pci/drivers_probe
[ "$(basename "$(readlink /sys/bus/pci/devices/$device/driver)")" = vfio-pci ] || fail "$device is not bound to vfio-pci"
start_run --events $EVENTS --duration 60
wait_for 10 ping -c 1 -W 1 10.1.0.2 || fail "weir does not answer"
weir send --format ejfat --sources 2 --events $EVENTS --bytes $BYTES --bytes-min $BYTES --mtu 8000 --rate 20 --seed 3 \\
    --to udp:10.1.0.2 --report $share/sent.json --quiet || fail "weir send"
end_run
"""
class Pci(guest.Case):
    def check(self, model, options=""):
        (self.folder / "config.toml").write_text(CONFIG)
        job = JOB.replace("$EVENTS", str(EVENTS)).replace("$BYTES", str(BYTES))
        said = self.guest(job, *IOMMU, *guest.hub("n0", "n1"), *guest.nic("virtio-net-pci", "10", "n0", VIRTIO),
                          *guest.nic(model, "11", "n1", options), memory=1280, cpus=2, append="intel_iommu=on iommu=pt").wait()
        report, sent = self.load("report.json"), self.load("sent.json")
        self.assert_balanced(report)
        self.assertEqual(report["events"]["complete"], EVENTS, said)
        self.assertEqual(report["packets"]["placed"], sent["packets"]["sent"])
        self.assertGreaterEqual(report["packets"]["not_for_us"]["arp"], 1)
        self.assertGreaterEqual(report["packets"]["not_for_us"]["icmp"], 1)
        options = ["--format", "ejfat", "--sources", 2, "--events", EVENTS, "--bytes", BYTES, "--bytes-min", BYTES, "--mtu", 8000, "--seed", 3]
        expected = self.expected_digests(CONFIG, *options)
        inspected = self.load("inspect.json")
        self.assertIs(inspected["verified"], True)
        self.assertEqual({event["id"]: event["sha256"] for event in inspected["events"]}, expected)
    def test_virtio_receives_every_event_whole(self):
        self.check("virtio-net-pci", VIRTIO)
    def test_e1000e_receives_every_event_whole(self):
        self.check("e1000e")
if __name__ == "__main__":
    guest.main()
