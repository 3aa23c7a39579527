#!/usr/bin/env python3
"""`meson install`: what is installed is enough to work with, away from the checkout.

usage: install_test.py BUILD_FOLDER
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = sys.argv.pop(1)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("meson"):
            raise unittest.SkipTest("there is no program 'meson'")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", cls.folder], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.program = cls.only("bin/weir")
        cls.shared = cls.only("share/weir")

    @classmethod
    def only(cls, end):
        """The one thing that is installed under this name, whatever the prefix."""
        found = [path for path in cls.folder.rglob(end.rpartition("/")[2]) if str(path).endswith("/" + end)]
        if len(found) != 1:
            raise AssertionError(f"{end}: {found}")
        return found[0]

    def weir(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, cwd=self.folder, timeout=120)
        self.assertEqual(done.returncode, 0, f"weir {words}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_everything_that_ships_is_installed(self):
        for name in ("examples", "formats", "flows", "pmd-config"):
            self.assertEqual(sorted(path.name for path in (self.shared / name).iterdir()), sorted(path.name for path in (ROOT / name).iterdir()), name)

    def test_an_installed_example_finds_its_formats_and_the_python_package_reads_the_run(self):
        self.weir("send", "--format", "srs", "--config", self.shared / "formats/srs.toml", "--port", 6006, "--one-port", "--source-id", 1,
                  "--sources", 2, "--events", 20, "--to", "srs.pcap", "--quiet")
        self.weir("replay", "srs.pcap", "--config", self.shared / "examples/srs.toml", "--out", "run", "--quiet")
        package = self.only("weir/__init__.py").parent.parent
        text = f"import weir; run = weir.open('run'); print(len(run), weir.__file__.startswith({str(self.folder)!r}))"
        pythons = [name for name in (sys.executable, "/usr/bin/python3") if subprocess.run([name, "-c", "import numpy"], capture_output=True).returncode == 0]
        if not pythons:
            self.skipTest("no Python here has numpy")
        read = subprocess.run([pythons[0], "-c", text], env={**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}, cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(read.returncode, 0, read.stderr)
        count, ours = read.stdout.split()
        self.assertGreater(int(count), 0)
        self.assertEqual(ours, "True")

    def test_installed_examples_find_their_profiles_and_flow_rules(self):
        for name in ("live-af-packet", "live-memif", "flow-rules"):
            self.assertIn("det0", self.weir("run", "--config", self.shared / f"examples/{name}.toml", "--print-config"), name)
        self.weir("flows", "check", self.shared / "flows/jungfrau-2-modules.flow")

    def test_each_command_has_a_man_page_with_its_options(self):
        pages = {path.name: path.read_text() for path in self.only("man/man1").iterdir()}
        self.assertEqual(sorted(pages), sorted(["weir.1", *(f"weir-{name}.1" for name in ("run", "replay", "receive", "send", "inspect", "export", "diff", "probe", "doctor", "explain", "flows", "bench", "serve", "ctl", "top"))]))
        self.assertIn("\\-\\-require\\-lossless", pages["weir-run.1"])
        self.assertIn("\\-\\-sources", pages["weir-send.1"])
        for name, text in pages.items():
            self.assertTrue(text.startswith(".TH WEIR"), name)
            if shutil.which("groff"):
                done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=text, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)


if __name__ == "__main__":
    unittest.main()
