#!/usr/bin/env python3
"""`weir doctor` in a guest: it complains of a machine as it boots, its own commands mend it, and then a run starts. Flow rules
are verified by effect on a device that does them (net_tap).

usage: doctor_test.py WEIR
"""

import json
import re

import guest
from pci_test import CONFIG, IOMMU, VIRTIO

DEVICE = "0000:00:11.0"
TAP = """name = "tap"
[[port]]
name = "det0"
device = "net_tap0,iface=dtap0"
queues = 2
mtu = 1500
steer = "rules"
isolated = true
{flows}

[[stream]]
port = "det0"
transport = "udp"
udp_dst = [19522]
format = "ejfat"

[[stream]]
port = "det0"
transport = "udp"
udp_dst = [19523]
format = "ejfat"

[events]
sources = 2
memory = "64MiB"

[[sink]]
kind = "null"

[lcores]
rx = [0, 1]
build = [0]
work = [0]
idle = "sleep"
"""
WITH_DROP = """flow create 0 priority 0 ingress pattern eth / ipv4 / udp dst is 9999 / end actions drop / end
flow create 0 priority 1 ingress pattern eth / ipv4 / udp dst is 19522 / end actions queue index 0 / end
flow create 0 priority 1 ingress pattern eth / ipv4 / udp dst is 19523 / end actions queue index 1 / end
"""


def by_check(text):
    found = {}
    for finding in json.loads(text)["findings"]:
        found.setdefault(finding["check"], []).append(finding)
    return found


class DoctorInTheGuest(guest.Case):
    def doctor(self, shell, config, *options, status=0):
        return by_check(shell.run(f"weir doctor --config $share/{config} --json {' '.join(options)} 2>/dev/null", status=status))

    def test_a_machine_is_mended_by_the_commands_that_are_printed(self):
        (self.folder / "config.toml").write_text(CONFIG.replace('path = "unused"', 'path = "/tmp/run"'))
        shell = guest.Shell(self.folder, "modprobe virtio_net\n", *IOMMU, *guest.hub("n0", "n1"), *guest.nic("virtio-net-pci", "10", "n0", VIRTIO),
                            *guest.nic("virtio-net-pci", "11", "n1", VIRTIO), memory=1280, cpus=2, append="intel_iommu=on iommu=pt")
        self.addCleanup(shell.end)
        found = self.doctor(shell, "config.toml", "--passive", status=1)
        self.assertEqual({check for check, findings in found.items() if any(finding["status"] == "error" for finding in findings)},
                         {"driver", "hugepages", "hugetlbfs"})
        self.assertIn("virtio", found["driver"][0]["found"])
        self.assertEqual(found["iommu"][0]["status"], "ok")
        # A run says the same, and does not start.
        self.assertIn("hugepages", shell.run("weir run --config $share/config.toml --duration 1", status=1))
        # Exactly what is printed, as a user would paste it.
        for check in ("hugetlbfs", "hugepages", "driver"):
            for finding in found[check]:
                shell.run(finding["mend"])
        found = self.doctor(shell, "config.toml", "--watch", "0.5")
        for check in ("driver", "hugepages", "hugetlbfs", "iommu"):
            self.assertEqual([finding["status"] for finding in found[check]], ["ok"], found[check])
        # No hugepage stays with what looked at the device: they were reserved to the page.
        self.assertEqual(shell.run("ls /dev/hugepages"), "")
        # The device was opened: DPDK's own answers are there.
        self.assertIn("net_virtio", found["link"][0]["found"])
        self.assertIn("link up", found["link"][0]["found"])
        self.assertEqual(found["disk_rate"][0]["status"], "ok", found["disk_rate"])
        shell.run("weir run --config $share/config.toml --duration 1 --allow-empty")
        shell.close()

    def test_fix_does_the_same(self):
        (self.folder / "config.toml").write_text(CONFIG.replace('path = "unused"', 'path = "/tmp/run"'))
        shell = guest.Shell(self.folder, "modprobe virtio_net\n", *IOMMU, *guest.hub("n0", "n1"), *guest.nic("virtio-net-pci", "10", "n0", VIRTIO),
                            *guest.nic("virtio-net-pci", "11", "n1", VIRTIO), memory=1280, cpus=2, append="intel_iommu=on iommu=pt")
        self.addCleanup(shell.end)
        said = shell.run("weir doctor --config $share/config.toml --passive --fix --yes --only hugepages --only hugetlbfs --only driver")
        self.assertIn("and once more", said)
        self.assertRegex(said, r"0 errors, 0 warnings, 0 not known, 3 fine\n$")
        self.assertEqual(shell.run(f"basename $(readlink /sys/bus/pci/devices/{DEVICE}/driver)").strip(), "vfio-pci")
        # An interface that is up is left alone.
        shell.run(f"echo {DEVICE} >/sys/bus/pci/drivers/vfio-pci/unbind; echo > /sys/bus/pci/devices/{DEVICE}/driver_override; "
                  f"echo {DEVICE} >/sys/bus/pci/drivers_probe; ip link set $(ls /sys/bus/pci/devices/{DEVICE}/virtio*/net) up")
        said = shell.run("weir doctor --config $share/config.toml --passive --fix --yes --only driver", status=1)
        self.assertIn("driver (port det0, 0000:00:11.0): by hand", said)
        shell.close()

    def test_rules_are_verified_by_effect(self):
        (self.folder / "own.toml").write_text(TAP.format(flows=""))
        (self.folder / "with_drop.flow").write_text(WITH_DROP)
        (self.folder / "file.toml").write_text(TAP.format(flows='flows = "with_drop.flow"').replace("isolated = true\n", ""))
        shell = guest.Shell(self.folder, "modprobe -a tun cls_flower sch_ingress sch_multiq act_skbedit act_mirred act_gact\n", cpus=2)
        self.addCleanup(shell.end)
        rules = self.doctor(shell, "own.toml", "--only", "flow_rules", "--watch", "20")["flow_rules"]
        self.assertEqual(len(rules), 2)
        for rule in rules:
            self.assertEqual((rule["status"], rule["found"]), ("ok", "done by the device, verified by effect"), rule)
        rules = self.doctor(shell, "file.toml", "--only", "flow_rules", "--watch", "20")["flow_rules"]
        drop = next(rule for rule in rules if "drop" in rule["wanted"])
        self.assertEqual((drop["status"], drop["found"]), ("ok", "done by the device, verified by effect"), rules)
        # Nothing of it is left.
        self.assertFalse(re.search(r"dtap0", shell.run("ip link show")))
        shell.close()


if __name__ == "__main__":
    guest.main()
