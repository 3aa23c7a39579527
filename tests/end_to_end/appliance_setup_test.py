#!/usr/bin/env python3
"""`weir-setup` on trees of files that stand for a host: what it writes, that it can be run again, and that --undo takes all of it back."""
import os
import pathlib
import re
import shutil
import subprocess

import support

SCRIPT = support.ROOT / "scripts" / "appliance-setup"
# Written to in order to make the kernel do something; what was written last is nothing that could be taken back.
COMMANDS = re.compile(r".*/(driver_override|unbind|drivers_probe)")


def snapshot(root):
    """Everything below root: kind, mode and content."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("folder", oct(path.stat().st_mode))
        elif not COMMANDS.fullmatch("/" + name):
            found[name] = ("file", oct(path.stat().st_mode), path.read_bytes())
    return found


class Setup(support.Case):
    ADDRESS = "0000:3b:00.0"

    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        self.put("etc/default/grub", 'GRUB_CMDLINE_LINUX="quiet"\n')
        self.put("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet\n")
        self.put("proc/cpuinfo", "vendor_id\t: GenuineIntel\n")
        self.put("proc/mounts", "hugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\n")
        self.put("proc/net/route", "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\nmgmt\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\n")
        for irq in (1, 24, 25):
            self.put(f"proc/irq/{irq}/smp_affinity_list", "0-7\n")
        self.put("sys/devices/system/cpu/online", "0-7\n")
        for node in (0, 1):
            for kib in (2048, 1048576):
                self.put(f"sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB/nr_hugepages", "0\n")
        for name in ("dev/hugepages", "data", "etc/weir", "run", "var/lib", "etc/systemd/system"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self.device(self.ADDRESS, "ice", group=12)

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def device(self, address, driver, group=None, interface=None, virtio=False):
        folder = self.root / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        (folder / "driver_override").write_text("(null)\n")
        self.put(f"sys/bus/pci/drivers/{driver}/unbind", "")
        self.put("sys/bus/pci/drivers_probe", "")
        (folder / "driver").symlink_to(f"../../drivers/{driver}")
        if group is not None:
            (folder / "iommu_group").symlink_to(f"../../../../kernel/iommu_groups/{group}")
            self.put(f"dev/vfio/{group}", "")
        if interface:
            ((folder / "virtio0" if virtio else folder) / "net" / interface).mkdir(parents=True)
            (self.root / "sys/class/net" / interface).mkdir(parents=True)

    def conf(self, **keys):
        self.put("etc/weir/setup.conf", "".join(f"{key}={value}\n" for key, value in keys.items()))

    ALL = {"DEVICES": ADDRESS, "HUGEPAGES": '"0:512 1:64"', "LCORES": "2-5"}

    def setup(self, *options, status=0):
        done = subprocess.run([SCRIPT, "--root", self.root, "--weir", support.WEIR, *options], capture_output=True, text=True, timeout=support.TIMEOUT_S)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def text(self, name):
        return (self.root / name).read_text()

    def pages(self, node, kib=2048):
        return int(self.text(f"sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB/nr_hugepages"))

    # --- what is done -----------------------------------------------------------------------------------------------------

    def test_all_of_it(self):
        self.conf(**self.ALL)
        said = self.setup()
        arguments = re.search(r'GRUB_CMDLINE_LINUX="\$GRUB_CMDLINE_LINUX (.*)"', self.text("etc/default/grub.d/weir.cfg"))[1].split()
        self.assertEqual(arguments, ["default_hugepagesz=2M", "hugepagesz=2M", "hugepages=0:256,1:32", "isolcpus=managed_irq,domain,2-5",
                                     "nohz_full=2-5", "rcu_nocbs=2-5", "irqaffinity=0-1,6-7", "intel_iommu=on", "iommu=pt"])
        self.assertEqual((self.pages(0), self.pages(1)), (256, 32))
        self.assertEqual(self.text(f"sys/bus/pci/devices/{self.ADDRESS}/driver_override"), "vfio-pci\n")
        self.assertEqual(self.text("sys/bus/pci/drivers/ice/unbind"), self.ADDRESS + "\n")
        self.assertEqual(self.text("sys/bus/pci/drivers_probe"), self.ADDRESS + "\n")
        for irq in (1, 24, 25):
            self.assertEqual(self.text(f"proc/irq/{irq}/smp_affinity_list"), "0-1,6-7\n")
        self.assertEqual(os.readlink(self.root / "etc/systemd/system/dpdk.service"), "/dev/null")
        self.assertIn('SUBSYSTEM=="vfio", GROUP="weir"', self.text("etc/udev/rules.d/60-weir-vfio.rules"))
        self.assertIn("@weir - memlock unlimited", self.text("etc/security/limits.d/weir.conf"))
        self.assertEqual((self.root / "dev/vfio/12").stat().st_mode & 0o777, 0o660)
        self.assertEqual((self.root / "dev/hugepages").stat().st_mode & 0o777, 0o775)
        self.assertEqual((self.root / "data").stat().st_mode & 0o7777, 0o2775)
        self.assertIn("reboot", said)

    def test_undo_leaves_every_byte_as_it_was(self):
        self.put("etc/security/limits.d/weir.conf", "# somebody's own\n")
        self.conf(**self.ALL)
        before = snapshot(self.root)
        self.setup()
        self.assertNotEqual(snapshot(self.root), before)
        self.setup("--undo")
        self.assertEqual(snapshot(self.root), before)
        self.assertEqual(self.setup("--undo"), "", "there is nothing more to undo")
        self.assertEqual(snapshot(self.root), before)

    def test_undo_after_many_changes_of_mind(self):
        self.conf(**self.ALL)
        before = snapshot(self.root)
        for keys in ({"LCORES": "3"}, {"HUGEPAGES": '"0:4096"', "PAGE": "1G"}, {"DEVICES": "none"}, self.ALL):
            self.conf(**{**self.ALL, **keys})
            self.setup()
            self.setup("--boot")
        self.setup("--undo")
        self.assertEqual(snapshot(self.root), before)

    def test_again_changes_nothing(self):
        self.conf(**self.ALL)
        self.setup()
        once = snapshot(self.root)
        self.setup()
        self.setup("--boot")
        self.assertEqual(snapshot(self.root), once)

    def test_dry_run_changes_nothing_and_says_what_would_be(self):
        self.conf(**self.ALL)
        before = snapshot(self.root)
        said = self.setup("--dry-run")
        self.assertEqual(snapshot(self.root), before)
        for what in ("hugepages=0:256,1:32", "would bind " + self.ADDRESS, "would mask dpdk.service", "smp_affinity_list from 0-7 to 0-1,6-7",
                     "nr_hugepages from 0 to 256"):
            self.assertIn(what, said)
        self.setup()
        done = snapshot(self.root)
        self.assertIn("would undo: driver " + self.ADDRESS, self.setup("--undo", "--dry-run"))
        self.assertEqual(snapshot(self.root), done)

    def test_boot_touches_nothing_that_lasts(self):
        self.conf(**self.ALL)
        before = snapshot(self.root)
        self.setup("--boot")
        changed = {name for name, what in snapshot(self.root).items() if before.get(name) != what}
        self.assertEqual({name for name in changed if name.startswith("etc/")}, set())
        self.assertEqual(self.pages(0), 256)
        self.setup("--undo")
        self.assertEqual(snapshot(self.root), before)

    # --- what it must not do ----------------------------------------------------------------------------------------------

    def test_never_takes_the_default_route_away_unless_told(self):
        for number, (interface, more) in enumerate((("mgmt", {}), ("mgmt", {"virtio": True}), ("slave0", {}))):
            with self.subTest(interface=interface, **more):
                address = f"0000:0{number}:00.0"
                shutil.rmtree(self.root / "sys/class/net", ignore_errors=True)
                self.device(address, "e1000e", group=3, interface=interface, **more)
                if interface != "mgmt":  # a bond of it carries the route
                    (self.root / "sys/class/net/mgmt").mkdir(parents=True)
                    (self.root / f"sys/class/net/{interface}/upper_mgmt").symlink_to("../mgmt")
                self.conf(**{**self.ALL, "DEVICES": address})
                self.assertIn("carries the default route", self.setup("--boot", status=1))
                self.assertEqual(self.text(f"sys/bus/pci/devices/{address}/driver_override"), "(null)\n")
                self.conf(**{**self.ALL, "DEVICES": address, "BIND_DEFAULT_ROUTE": "yes"})
                self.setup("--boot")
                self.assertEqual(self.text(f"sys/bus/pci/devices/{address}/driver_override"), "vfio-pci\n")

    def test_the_default_route_of_ipv6_counts_too(self):
        self.put("proc/net/route", "Iface\tDestination\n")
        self.put("proc/net/ipv6_route", "0" * 32 + " 00 " + "0" * 32 + " 00 fe80" + "0" * 28 + " 00000400 00000001 00000000 00000003     mgmt\n")
        self.device("0000:01:00.0", "e1000e", group=3, interface="mgmt")
        self.conf(DEVICES="0000:01:00.0")
        self.assertIn("carries the default route", self.setup("--boot", status=1))

    def test_devices_that_cannot_or_need_not_be_bound(self):
        self.device("0000:01:00.0", "mlx5_core", group=1)
        self.device("0000:02:00.0", "ixgbe")  # no IOMMU
        self.conf(DEVICES='"0000:01:00.0 0000:02:00.0 0000:0f:00.0"')
        said = self.setup("--boot", status=1)
        self.assertIn("0000:01:00.0 stays with mlx5_core", said)
        self.assertIn("0000:02:00.0 stays with ixgbe: it is in no IOMMU group", said)
        self.assertIn("there is no device 0000:0f:00.0", said)
        for address in ("0000:01:00.0", "0000:02:00.0"):
            self.assertEqual(self.text(f"sys/bus/pci/devices/{address}/driver_override"), "(null)\n")

    def test_hugepages_are_never_taken_away(self):
        self.put("sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "9000\n")
        self.conf(**self.ALL)
        self.setup("--boot")
        self.assertEqual(self.pages(0), 9000)

    def test_somebody_elses_dpdk_service_stays(self):
        self.put("etc/systemd/system/dpdk.service", "[Service]\n")
        self.conf(**self.ALL)
        self.assertIn("somebody's own", self.setup(status=1))
        self.assertEqual(self.text("etc/systemd/system/dpdk.service"), "[Service]\n")

    def test_wrong_settings_are_named_and_nothing_is_done(self):
        before = None
        for text, wanted in (("LCORES=all\n", 'LCORES: found "all"'), ("\nCOLOUR=red\n", "setup.conf:2: found COLOUR; accepted: BIND_DEFAULT_ROUTE"),
                             ("rm -rf /\n", 'found "rm -rf /"; accepted: KEY=VALUE'), ("DATA=$(reboot)\n", "DATA: found")):
            self.put("etc/weir/setup.conf", text)
            before = snapshot(self.root)
            self.assertIn(wanted, self.setup(status=2))
            self.assertEqual(snapshot(self.root), before)
        done = subprocess.run([SCRIPT, "--root", self.root, "--bot"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--boot", done.stderr)

    def test_the_example_says_what_happens_without_it(self):
        self.put("etc/weir/setup.conf", (support.ROOT / "systemd/setup.conf").read_text())
        with_example = self.setup("--dry-run")
        (self.root / "etc/weir/setup.conf").unlink()
        self.assertEqual(self.setup("--dry-run"), with_example)

    # --- what weir's configurations ask for --------------------------------------------------------------------------------

    def instance(self, name, device, lcores, memory="64MiB"):
        self.put(f"etc/weir/{name}.toml", f'[[port]]\nname = "det0"\ndevice = "{device}"\n{support.stream()}[events]\nsources = 2\n'
                 f'memory = "{memory}"\n[[sink]]\nkind = "null"\n[lcores]\n{lcores}\n')

    def test_needs_are_read_from_the_configurations_that_are_enabled(self):
        cpus = sorted(os.sched_getaffinity(0))[:2]
        if len(cpus) < 2:
            self.skipTest("needs two CPUs to place lcores on")
        self.instance("det", self.ADDRESS, f"rx = [{cpus[1]}]\nbuild = [{cpus[1]}]\nwork = [{cpus[1]}]")
        self.instance("spare", "net_null0", f"rx = [{cpus[0]}]\nbuild = [{cpus[0]}]\nwork = [{cpus[0]}]")
        wants = self.root / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir()
        (wants / "weir@det.service").symlink_to("/usr/lib/systemd/system/weir@.service")
        said = self.setup("--dry-run")
        self.assertIn(f"would bind {self.ADDRESS}", said)
        self.assertRegex(said, rf"isolcpus=managed_irq,domain,{cpus[1]} ")
        plan = support.weir("run", "--config", self.root / "etc/weir/det.toml", "--print-config", trap=False).stdout
        need = int(re.search(r"([0-9]+) MiB of DPDK memory", plan)[1])
        pages = [int(n) for n in re.findall(r"nr_hugepages from 0 to ([0-9]+)", said)]
        self.assertGreaterEqual(2 * sum(pages), need)
        self.assertLess(2 * sum(pages), need + 80)
        # Without one that is enabled, all count: the virtual device adds its lcore, and no hugepages.
        shutil.rmtree(wants)
        both = self.setup("--dry-run")
        self.assertRegex(both, rf"isolcpus=managed_irq,domain,{cpus[0]}[-,]{cpus[1]} ")
        self.assertEqual([int(n) for n in re.findall(r"nr_hugepages from 0 to ([0-9]+)", both)], pages)

    def test_a_configuration_that_is_wrong_is_named_and_the_others_count(self):
        self.instance("det", self.ADDRESS, "")
        self.put("etc/weir/broken.toml", "[[port]\n")
        said = self.setup("--boot", "--dry-run", status=1)
        self.assertIn("/etc/weir/broken.toml:", said)
        self.assertIn(f"would bind {self.ADDRESS}", said)

    def test_without_anything_to_do_nothing_is_done(self):
        before = snapshot(self.root)
        self.assertIn("nothing in /etc/weir asks", self.setup("--boot"))
        after = snapshot(self.root)
        self.setup("--undo")
        self.assertEqual(snapshot(self.root), before)
        self.assertEqual({name for name in after if after[name] != before.get(name)} - {"data", "var/lib/weir-setup", "var/lib/weir-setup/journal"}, set())

    # --- other ways to boot ------------------------------------------------------------------------------------------------

    def test_a_command_line_of_kernel_install(self):
        (self.root / "etc/default/grub").unlink()
        self.put("etc/kernel/cmdline", "root=/dev/sda1 hugepages=7 quiet\n")
        self.conf(**self.ALL)
        before = snapshot(self.root)
        self.setup()
        words = self.text("etc/kernel/cmdline").split()
        self.assertEqual(words[:2], ["root=/dev/sda1", "quiet"])
        self.assertIn("hugepages=0:256,1:32", words)
        self.assertNotIn("hugepages=7", words)
        self.conf(**{**self.ALL, "LCORES": "none"})
        self.setup()
        self.assertNotIn("isolcpus", self.text("etc/kernel/cmdline"))
        self.conf(**self.ALL)
        self.setup("--undo")
        self.assertEqual(snapshot(self.root), before)

    def test_without_a_boot_loader_it_says_what_the_kernel_needs(self):
        (self.root / "etc/default/grub").unlink()
        self.conf(**self.ALL)
        self.assertRegex(self.setup(), "the kernel needs: .*isolcpus=managed_irq,domain,2-5")

    def test_pages_of_a_gigabyte(self):
        self.conf(**{**self.ALL, "PAGE": "1G", "HUGEPAGES": '"0:1025"'})
        said = self.setup()
        self.assertEqual(self.pages(0, 1048576), 2)
        self.assertIn("hugepages=0:2 ", self.text("etc/default/grub.d/weir.cfg"))
        self.assertTrue((self.root / "run/weir-setup/hugepages-1G").is_dir(), said)


class Units(support.Case):
    def test_systemd_finds_nothing_wrong(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("there is no program 'systemd-analyze'")
        units = [self.folder / name for name in ("weir@det.service", "weir-node@ru0.service", "weir-setup.service")]
        for unit in units:
            text = (support.ROOT / "systemd" / re.sub("@[a-z0-9]+", "@", unit.name)).read_text()
            # Programs that are here; nothing else is of another host.
            unit.write_text(text.replace("/usr/bin/weir", "/bin/true").replace("/usr/sbin/weir-setup", "/bin/true"))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=support.TIMEOUT_S)
        said = [line for line in done.stderr.splitlines() if "weir" in line]
        self.assertEqual((done.returncode, said), (0, []), done.stderr)

    def test_the_script_is_what_shellcheck_wants(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("there is no program 'shellcheck'")
        done = subprocess.run(["shellcheck", SCRIPT], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    support.main()
