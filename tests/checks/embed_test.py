#!/usr/bin/env python3
"""examples/embed: built with nothing but g++, pkg-config and what `meson install` installs, it makes the events of what `weir send` sends.

usage: embed_test.py BUILD_FOLDER
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "python"))
sys.dont_write_bytecode = True


def free_ports(count):
    """The first of so many UDP ports in a row that nobody has."""
    for first in range(41000, 60000, count):
        try:
            sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
            for at, one in enumerate(sockets):
                one.bind(("127.0.0.1", first + at))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise unittest.SkipTest("no free UDP ports")


class Embed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("meson", "g++", "pkg-config"):
            if not shutil.which(program):
                raise unittest.SkipTest(f"there is no program '{program}'")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-embed-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        root = cls.folder / "root"
        cls.must("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root)
        about = next(root.rglob("weir.pc"))
        prefix = re.search(r"(?m)^prefix=(.*)$", about.read_text())[1]
        flags = cls.must("pkg-config", f"--define-variable=prefix={root}{prefix}", "--cflags", "--libs", "weir",
                         env={**os.environ, "PKG_CONFIG_PATH": str(about.parent)}).split()
        shutil.copy(ROOT / "examples" / "embed" / "embed.cpp", cls.folder)
        cls.must("g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "embed.cpp", *flags, "-o", "embed", cwd=cls.folder)
        cls.embed = cls.folder / "embed"

    @staticmethod
    def must(*command, **options):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600, **options)
        if done.returncode != 0:
            raise AssertionError(f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_it_is_short_and_needs_no_dpdk(self):
        self.assertLessEqual(len((ROOT / "examples" / "embed" / "embed.cpp").read_text().splitlines()), 60)
        self.assertNotIn("librte", self.must("ldd", self.embed))

    def test_its_events_are_those_that_were_sent(self):
        weir = BUILD / "app" / "weir"
        port, events = free_ports(2), 20
        send = [weir, "send", "--format", "ejfat", "--sources", 2, "--events", events, "--port", port, "--seed", 5, "--quiet"]
        # What it should be, from what the same command puts into a capture.
        self.must(*send, "--to", "sent.pcap", cwd=self.folder)
        (self.folder / "det.toml").write_text(
            f'[[port]]\nname = "det0"\ndevice = "net_null0"\n[[stream]]\nport = "det0"\ntransport = "udp"\nudp_dst = [{port}, {port + 1}]\n'
            'format = "ejfat"\n[events]\nsources = 2\n[[sink]]\nkind = "events"\npath = "unused"\n')
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        self.must(weir, "replay", "sent.pcap", "--config", "det.toml", "--out", "run", "--quiet", cwd=self.folder)
        wanted = {}
        for event in [listed["id"] for listed in json.loads(self.must(weir, "inspect", "run", "--json", cwd=self.folder))["events"]]:
            checksums = []
            for source in (0, 1):
                file = self.folder / f"{event}-{source}"
                self.must(weir, "inspect", "run", "--export", event, file, "--source", source, cwd=self.folder)
                checksums.append(f"{crc32c(file.read_bytes()):08x}")
            wanted[event] = checksums
        self.assertEqual(len(wanted), events)

        program = subprocess.Popen([self.embed, "ejfat", str(port), "2", str(events)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.kill)
        while not self.listens(port + 1):
            self.assertIsNone(program.poll(), "embed has ended")
        self.must(*send, "--to", f"udp:127.0.0.1:{port}", "--rate", 200, "--mtu", 1500)
        said, complained = program.communicate(timeout=60)
        self.assertEqual((program.returncode, complained), (0, ""))
        got = {int(number): (state, sums.split()) for number, state, sums in re.findall(r"event (\d+) (\w+) (.*)", said)}
        self.assertEqual(got, {number: ("complete", sums) for number, sums in wanted.items()})

    @staticmethod
    def listens(port):
        return any(line.split()[1].endswith(f":{port:04X}") for line in pathlib.Path("/proc/net/udp").read_text().splitlines()[1:])

    def test_it_says_what_is_wrong(self):
        for words in ((), ("message", "50001", "1", "1"), ("no such format", "50001", "1", "1")):
            done = subprocess.run([self.embed, *words], capture_output=True, text=True, timeout=20)
            self.assertEqual(done.returncode, 1, words)
            self.assertRegex(done.stderr, "^embed: .+")


def crc32c(data):
    """Bit by bit, by a table: no package is needed."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def table_entry(byte):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    return byte


TABLE = [table_entry(byte) for byte in range(256)]

if __name__ == "__main__":
    unittest.main()
