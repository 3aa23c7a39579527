#!/usr/bin/env python3
"""Every profile of pmd-config/ says whether it was run, from where its facts are, and why each of its values is there; its device
arguments are known to the driver; the documentation lists it.

usage: profiles_test.py
"""

import pathlib
import re
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROFILES = sorted((ROOT / "pmd-config").glob("*.toml"))


def library_of(profile):
    """The driver's library, or nothing where it is not installed."""
    name = profile.stem.removeprefix("net_")
    name = "virtio" if name == "virtio_user" else name
    for folder in ("/usr/lib", "/usr/lib64", "/usr/local/lib"):
        for pattern in (f"*/librte_net_{name}.so.*", f"librte_net_{name}.so.*", f"*/dpdk/pmds-*/librte_net_{name}.so.*", f"dpdk-pmds/librte_net_{name}.so.*"):
            for path in pathlib.Path(folder).glob(pattern):
                return path
    return None


class ProfilesTest(unittest.TestCase):
    def test_there_is_one_for_each_device_that_is_promised(self):
        names = {path.stem for path in PROFILES}
        self.assertLessEqual({"net_af_packet", "net_af_xdp", "net_memif", "net_vhost", "net_virtio_user", "net_tap", "net_pcap", "net_null", "mlx5", "ice",
                              "i40e"}, names)

    def test_each_says_whether_it_was_run_and_where_its_facts_are_from(self):
        for path in PROFILES:
            with self.subTest(path.name):
                notes = tomllib.loads(path.read_text())["notes"]
                self.assertRegex(notes[0], r"^(Checked here|Not run here)\b")
                self.assertTrue(any(note.startswith("Source:") for note in notes))
                self.assertTrue(any(note.startswith("Host:") for note in notes), "what does the host need?")

    def test_each_value_has_its_reason(self):
        for path in PROFILES:
            with self.subTest(path.name):
                text = re.sub(r"(?s)^notes = \[.*?^\]\n", "", path.read_text(), flags=re.M)
                for line in text.splitlines():
                    if re.match(r"[\w-]+ *=", line) and not line.startswith("mtu"):
                        self.assertRegex(line, r"# \S", "a value without a reason")

    def test_drivers_know_the_arguments(self):
        checked = 0
        for path in PROFILES:
            library = library_of(path)
            arguments = tomllib.loads(path.read_text()).get("args", {})
            if library is None:
                print(f"{path.name}: the driver is not installed, its arguments are not checked")
                continue
            known = library.read_bytes()
            for key in arguments:
                with self.subTest(f"{path.name}: {key}"):
                    # As a name that the driver looks up, or in the list of parameters that it is built with.
                    self.assertRegex(known, rb"(\0|params\": \"[^\"]*)" + re.escape(key.encode()) + rb"(\0|=)")
            checked += 1
        if checked == 0:
            self.skipTest("no driver is installed")

    def test_the_documentation_lists_each(self):
        text = (ROOT / "docs/reference/DEVICES.md").read_text()
        for path in PROFILES:
            self.assertIn(path.stem, text)


if __name__ == "__main__":
    unittest.main()
