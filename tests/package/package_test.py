#!/usr/bin/env python3
"""The Debian packages that scripts/package made: what is in them, what lintian says, and their life in a root of its own: installed over an
older version, used, removed, purged.

usage: package_test.py FOLDER [CASE...]      FOLDER: with the three packages

The root is made by mmdebstrap, which needs to be root and a mirror of Debian; without these its cases are skipped. There is no systemd in
it: that units start is tested where a whole machine boots.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))

from support import ROOT, main  # noqa: E402

FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
VERSION = re.search(r"^ *version : '(.*)'", (ROOT / "meson.build").read_text(), re.M)[1]
COMMANDS = re.findall(r"'(\w+)'", re.search(r"weir_commands = \[(.*?)\]", (ROOT / "app" / "meson.build").read_text(), re.S)[1])
OLDER = "0.0.9"


def must(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=900, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def package(name):
    found = sorted(FOLDER.glob(f"{name}_*.deb"))
    if len(found) != 1:
        raise AssertionError(f"{name}: {found}")
    return found[0]


class Content(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for name in ("weir", "libweir-dev", "python3-weir"):
            must("dpkg-deb", "-x", package(name), cls.folder)

    def has(self, *names):
        for name in names:
            self.assertTrue((self.folder / name).exists(), name)

    def test_all_have_the_version_of_the_program(self):
        for name in ("weir", "libweir-dev", "python3-weir"):
            self.assertEqual(must("dpkg-deb", "-f", package(name), "Version").strip(), VERSION, name)
        self.assertIn(f"weir {VERSION} (commit ", must(self.folder / "usr/bin/weir", "--version"))
        self.assertNotIn("unknown", must(self.folder / "usr/bin/weir", "--version"))

    def test_drivers_of_network_cards_come_with_it(self):
        # They are plug-ins, which no program names.
        depends = must("dpkg-deb", "-f", package("weir"), "Depends")
        for name in ("librte-meta-net", "librte-meta-bus", "librte-meta-mempool", "librte-eal"):
            self.assertIn(name, depends)

    def test_libraries_that_are_loaded_where_they_are_wanted_come_with_it(self):
        program = (self.folder / "usr/bin/weir").read_bytes()
        depends = must("dpkg-deb", "-f", package("weir"), "Depends")
        for name, file in (("libcurl4", b"libcurl.so.4"), ("libhdf5-103-1", b"libhdf5_serial.so.103"), ("libmicrohttpd12", b"libmicrohttpd.so.12"),
                           ("libncursesw6", b"libncursesw.so.6"), ("libpcap0.8", b"libpcap.so.0.8"), ("libssl3", b"libcrypto.so.3"), ("libsystemd0", b"libsystemd.so.0"),
                           ("libzmq5", b"libzmq.so.5")):
            self.assertTrue(file + b"\0" in program, file)
            self.assertIn(name, re.split(r"[, ]+", depends))

    def test_what_ships_is_there(self):
        self.has("usr/sbin/weir-setup", "etc/weir/setup.conf", *(f"lib/systemd/system/{unit.name}" for unit in (ROOT / "systemd").glob("*.service")),
                 "usr/lib/sysusers.d/weir.conf", "usr/share/bash-completion/completions/weir.bash", "usr/share/zsh/vendor-completions/_weir",
                 "usr/share/man/man8/weir-setup.8.gz", "usr/share/man/man1/weir.1.gz", *(f"usr/share/man/man1/weir-{name}.1.gz" for name in COMMANDS))
        # The program that embeds weir ships with libweir-dev.
        for name in ("examples", "formats", "flows", "pmd-config"):
            files = lambda folder: {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.parent.name != "embed"}
            self.assertEqual(files(self.folder / "usr/share/weir" / name), files(ROOT / name), name)

    def test_the_documentation_is_there_and_fetches_nothing(self):
        pages = sorted((self.folder / "usr/share/doc/weir/html").rglob("*.html"))
        self.assertGreaterEqual(len(pages), len(list((ROOT / "docs").rglob("*.md"))))
        for page in pages:
            self.assertEqual(re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(?:[a-z]+:)?//[^>]*>", page.read_text()), [], page)

    def test_nothing_says_where_it_was_built(self):
        for path in self.folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                for word in (b"/weir-" + VERSION.encode() + b"/", str(ROOT).encode() + b"/lib"):
                    self.assertNotIn(word, path.read_bytes(), path)

    def test_a_program_builds_with_libweir_dev(self):
        if not (shutil.which("g++") and shutil.which("pkg-config")):
            self.skipTest("no g++ or no pkg-config")
        flags = must("pkg-config", f"--define-variable=prefix={self.folder}/usr", "--cflags", "--libs", "weir",
                     env={**os.environ, "PKG_CONFIG_PATH": str(next(self.folder.rglob("weir.pc")).parent)}).split()
        source = self.folder / "usr/share/doc/libweir-dev/examples/embed.cpp"
        must("g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", source, *flags, "-o", self.folder / "embed")
        done = subprocess.run([self.folder / "embed"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "embed: usage: embed FORMAT FIRST-PORT SOURCES EVENTS\n"))

    def test_lintian_has_nothing_to_say(self):
        if not shutil.which("lintian"):
            self.skipTest("there is no program 'lintian'")
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", *map(package, ("weir", "libweir-dev", "python3-weir"))],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, re.findall(r"(?m)^[EW]: .*", done.stdout)), (0, []), done.stdout + done.stderr)


class Life(unittest.TestCase):
    """One root, one life: the steps of test_life, in this order."""

    @classmethod
    def setUpClass(cls):
        for program in ("mmdebstrap", "unshare", "chroot"):
            if not shutil.which(program):
                raise unittest.SkipTest(f"there is no program '{program}' (scripts/install-deps --guest and --package)")
        if os.geteuid() != 0:
            raise unittest.SkipTest("a root of its own needs root")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-root-", dir="/var/tmp"))
        cls.addClassCleanup(subprocess.run, ["rm", "-rf", "--one-file-system", cls.folder])
        cls.root = cls.folder / "root"
        suite = re.search(r"(?m)^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text())
        made = subprocess.run(["mmdebstrap", "--variant=apt", "--components=main", "--skip=cleanup/apt", "--aptopt=APT::Install-Recommends \"false\"",
                               "--include=python3-minimal", suite[1] if suite else "bookworm", cls.root],
                              capture_output=True, text=True, timeout=600)
        if made.returncode != 0:
            raise unittest.SkipTest(f"mmdebstrap makes no root here: {made.stderr.strip().splitlines()[-1]}")
        (cls.root / "debs").mkdir()
        for name in ("weir", "libweir-dev", "python3-weir"):
            shutil.copy(package(name), cls.root / "debs")
        cls.make_older()

    @classmethod
    def make_older(cls):
        """The package weir as an earlier version."""
        tree = cls.folder / "older"
        must("dpkg-deb", "-R", package("weir"), tree)
        control = tree / "DEBIAN" / "control"
        control.write_text(control.read_text().replace(f"Version: {VERSION}", f"Version: {OLDER}"))
        (tree / "usr/share/weir/only-in-the-older").touch()
        must("dpkg-deb", "-b", tree, cls.root / f"debs/older_{OLDER}.deb")

    def inside(self, command):
        """A shell command in the root, with /proc and /sys, which programs need."""
        return must("unshare", "--mount", "sh", "-ec",
                    'mount -t proc proc "$1/proc"; mount --rbind /sys "$1/sys"; cp -f /etc/resolv.conf "$1/etc/" 2>/dev/null || true\n'
                    'exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -ec "$2"',
                    "sh", self.root, command)

    def files(self):
        """Everything in the root but what apt and dpkg note, and what is of dependencies' own making at their first use."""
        ours = re.compile(r"weir")
        return {str(path) for top in ("etc", "usr", "lib", "var/lib") for path in map(pathlib.Path, must("find", self.root / top).splitlines())
                if ours.search(path.name) and "/var/lib/dpkg/" not in str(path)}

    def test_life(self):
        before = self.files()
        for step in (self.installs_an_older_version, self.is_configured, self.is_upgraded, self.takes_data, self.reads_data, self.is_removed, self.is_purged):
            step()
            print(f"# {step.__name__.replace('_', ' ')}", flush=True)
        left = self.files() - before
        self.assertEqual({path.removeprefix(str(self.root)) for path in left}, {"/etc/weir"})

    def installs_an_older_version(self):
        self.inside(f"apt-get install -q -y /debs/older_{OLDER}.deb")
        self.assertEqual(self.state("weir"), f"install ok installed {OLDER}")
        self.assertRegex(self.inside("getent passwd weir"), r"^weir:x:\d+:\d+:weir detector readout:/var/lib/weir:/usr/sbin/nologin")
        self.assertEqual(self.inside("stat -c '%U %G %a' /etc/weir"), "root root 755\n")
        # Nothing is enabled but what is harmless.
        enabled = [path.name for path in (self.root / "etc/systemd/system").rglob("weir*")]
        self.assertEqual(enabled, ["weir-setup.service"])

    def is_configured(self):
        self.inside("cp /usr/share/weir/examples/jungfrau-2-modules.toml /etc/weir/det.toml; sed -i 's/^IRQS=.*/IRQS=no/' /etc/weir/setup.conf; grep -q IRQS=no /etc/weir/setup.conf")

    def is_upgraded(self):
        self.inside(f"apt-get install -q -y /debs/weir_{VERSION}_amd64.deb /debs/libweir-dev_{VERSION}_amd64.deb /debs/python3-weir_{VERSION}_all.deb "
                    "python3-zstandard")  # which python3-weir recommends, for compressed runs
        self.assertEqual(self.state("weir"), f"install ok installed {VERSION}")
        self.assertFalse((self.root / "usr/share/weir/only-in-the-older").exists())
        self.inside("grep -q IRQS=no /etc/weir/setup.conf; cmp /usr/share/weir/examples/jungfrau-2-modules.toml /etc/weir/det.toml")

    def takes_data(self):
        self.assertIn(f"weir {VERSION}", self.inside("weir --version"))
        said = self.inside("cd /tmp; weir send --format jungfrau --sources 2 --events 5 --to jf.pcap --quiet; "
                           "weir replay jf.pcap --config /etc/weir/det.toml --out run1 --require-lossless; weir inspect run1 --json")
        self.assertRegex(said, r'"verified": ?true')
        # Drivers are found.
        self.inside('weir run --config /usr/share/weir/examples/live-memif.toml --print-config')
        self.assertTrue(list(self.root.glob("usr/lib/*/dpdk/pmds-*/librte_net_*")))

    def reads_data(self):
        self.assertEqual(self.inside("cd /tmp; python3 -c 'import weir; run = weir.open(\"run1\"); print(len(run), run[1].array().shape)'"), "5 (2, 512, 1024)\n")

    def is_removed(self):
        self.inside("apt-get remove -q -y weir libweir-dev python3-weir")
        self.assertEqual(self.state("weir"), f"deinstall ok config-files {VERSION}")
        self.assertFalse((self.root / "usr/bin/weir").exists())
        self.inside("grep -q IRQS=no /etc/weir/setup.conf; test -e /etc/weir/det.toml; getent passwd weir")

    def is_purged(self):
        self.inside("apt-get purge -q -y weir")
        self.assertFalse((self.root / "etc/weir/setup.conf").exists())
        self.assertTrue((self.root / "etc/weir/det.toml").exists(), "what the administrator wrote is his")

    def state(self, name):
        return self.inside(f"dpkg-query -W -f '${{Status}} ${{Version}}' {name}")


if __name__ == "__main__":
    main()
