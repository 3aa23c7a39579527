#!/usr/bin/env python3
"""Libraries that are loaded where they are wanted (lib/data/core/loaded_library.hpp): no other command loads them, without one the command that wants it says which
package has it, and Debian's packages and the guest have all of them.

usage: loaded_libraries_test.py WEIR
"""

import os
import pathlib
import pty
import re
import shutil
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = pathlib.Path(sys.argv.pop()).resolve()
CODE = "\n".join(path.read_text() for folder in ("lib", "app") for path in sorted((ROOT / folder).rglob("*.[ch]pp")))
# By their SONAMEs: (name, package).
LIBRARIES = {file: (name, package) for name, file, package in re.findall(r'^ +core::LoadedLibrary library\{"(.+)", "(.+)", "(.+)"\};$', CODE, re.M)}
# Few have a cluster, and DPDK's packages do not depend on it either.
SUGGESTED = "libucx0"

CONFIG = """
[[port]]
name = "det0"
device = "net_null0"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = 6006
format = "message"
event = "arrival"
[events]
sources = 1
timeout_ms = 500
memory = "64MiB"
"""


def run(*words, **variables):
    return subprocess.run([WEIR, *map(str, words)], capture_output=True, text=True, timeout=120, env={**os.environ, **variables})


def loaded(*words):
    """The libraries that a command that succeeds has loaded, by their SONAMEs."""
    done = run(*words, LD_DEBUG="files")
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return set(re.findall(r"calling init: \S*/(\S+)", done.stderr))


class LoadedLibraries(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-libraries-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.capture = self.folder / "x.pcap"
        done = run("send", "--format", "message", "--sources", 1, "--events", 3, "--port", 6006, "--to", self.capture, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)

    def config(self, sink="events", more=""):
        path = self.folder / "config.toml"
        path.write_text(f'{CONFIG}\n[[sink]]\nkind = "{sink}"\n{more}')
        return path

    def replay(self, *config, capture=None):
        return ("replay", capture or self.capture, "--config", self.config(*config), "--quiet")

    def run_folder(self):
        return f'path = "{self.folder}/run"\n'

    def without(self, file, *words, **variables):
        """What a command says that finds something else under this name."""
        (self.folder / "without").mkdir(exist_ok=True)
        (self.folder / "without" / file).touch()
        done = run(*words, LD_LIBRARY_PATH=str(self.folder / "without"), **variables)
        (self.folder / "without" / file).unlink()
        return done

    def check_missed(self, file, *words, **variables):
        name, package = LIBRARIES[file]
        done = self.without(file, *words, **variables)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stderr, rf"weir: .*{name} cannot be loaded: apt-get install {re.escape(package)} \(.*{re.escape(file)}")
        self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)

    def test_all_of_them_are_known_here(self):
        self.assertEqual(len(LIBRARIES), CODE.count("core::LoadedLibrary library{") - 1)  # one is in a comment
        self.assertIn("libhdf5_serial.so.103", LIBRARIES)

    def test_the_version_and_a_replay_into_events_load_none(self):
        for words in (("--version",), self.replay("events", self.run_folder())):
            found = loaded(*words)
            self.assertIn("libc.so.6", found)
            self.assertEqual(found & LIBRARIES.keys(), set(), words)

    def test_who_wants_one_loads_it(self):
        self.assertIn("libhdf5_serial.so.103", loaded(*self.replay("hdf5", self.run_folder())))

    def test_packages_have_them(self):
        if not shutil.which("dpkg-query"):
            self.skipTest("no Debian packages here")
        guest = subprocess.run([ROOT / "scripts" / "guest", "packages"], capture_output=True, text=True, check=True).stdout.split()
        control = (ROOT / "debian" / "control").read_text()
        of_weir = control[control.index("Package: weir\n"):control.index("Package: libweir-dev\n")]
        depends = re.search(r"^Depends: (.*(?:\n .*)*)", of_weir, re.M)[1]
        suggests = re.search(r"^Suggests: (.*)", of_weir, re.M)[1]
        for file, (_, package) in LIBRARIES.items():
            owners = subprocess.run(["dpkg-query", "-S", f"*/{file}"], capture_output=True, text=True).stdout
            self.assertEqual(set(re.findall(r"^([^:]+):", owners, re.M)), {package}, file)
            self.assertIn(package, guest)
            self.assertIn(package, re.split(r",\s*", suggests if package == SUGGESTED else depends))

    def test_without_hdf5(self):
        file = "libhdf5_serial.so.103"
        self.check_missed(file, *self.replay("hdf5", self.run_folder()))
        self.assertEqual([path.name for path in self.folder.iterdir() if "run" in path.name], [])
        self.assertEqual(run(*self.replay("events", self.run_folder())).returncode, 0)
        self.check_missed(file, "export", self.folder / "run", "--to", "hdf5", "--out", self.folder / "files")

    def test_without_zeromq(self):
        self.check_missed("libzmq.so.5", "receive", "tcp://127.0.0.1:1", "--out", self.folder / "received")
        self.check_missed("libzmq.so.5", *self.replay("stream", 'listen = "tcp://127.0.0.1:31001"\n'))

    def test_without_libcrypto(self):
        self.assertEqual(run(*self.replay("events", self.run_folder())).returncode, 0)
        self.check_missed("libcrypto.so.3", "inspect", self.folder / "run", "--json", "--digest", "sha256")
        self.assertEqual(self.without("libcrypto.so.3", "inspect", self.folder / "run", "--json").returncode, 0)

    def test_without_libcurl(self):
        self.check_missed("libcurl.so.4", "ctl", "--socket", "/nonexistent/x.sock")

    def test_without_libmicrohttpd(self):
        more = f'{self.run_folder()}[serve]\nlisten = "127.0.0.1:0"\nsocket = "{self.folder}/weir.sock"\n'
        self.check_missed("libmicrohttpd.so.12", *self.replay("events", more))

    def test_without_libpcap(self):
        # Alexey Kuznetsov's: records have eight bytes more.
        rare = self.folder / "rare.pcap"
        plain = self.capture.read_bytes()
        rare.write_bytes(struct.pack("<I", 0xA1B2CD34) + plain[4:24])
        self.check_missed("libpcap.so.0.8", *self.replay("events", self.run_folder(), capture=rare))
        self.assertEqual(self.without("libpcap.so.0.8", *self.replay("events", self.run_folder())).returncode, 0)

    def test_without_libsystemd(self):
        self.check_missed("libsystemd.so.0", *self.replay("events", self.run_folder()), NOTIFY_SOCKET=str(self.folder / "notify"))

    def test_without_ncurses(self):
        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

        class Answer(socketserver.StreamRequestHandler):
            def handle(self):
                self.rfile.readline()
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

        with Server(str(self.folder / "top.sock"), Answer) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            master, slave = pty.openpty()
            (self.folder / "without").mkdir()
            (self.folder / "without" / "libncursesw.so.6").touch()
            done = subprocess.run([WEIR, "top", "--socket", self.folder / "top.sock"], stdin=slave, stdout=slave, stderr=subprocess.PIPE, text=True, timeout=60,
                                  env={**os.environ, "TERM": "xterm", "LD_LIBRARY_PATH": str(self.folder / "without")})
            server.shutdown()
            os.close(slave)
            os.close(master)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ncurses cannot be loaded: apt-get install libncursesw6 (", done.stderr)


if __name__ == "__main__":
    unittest.main()
