#!/usr/bin/env python3
"""What people read fits their terminal: help, tables and reports, on terminals of several widths and in pipes."""
import fcntl
import os
import pathlib
import pty
import select
import struct
import subprocess
import sys
import termios

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips

from support import ROOT, WEIR, Case, main, weir

sys.path.insert(0, str(pathlib.Path(ROOT) / "python"))
from made_up_run import write_received  # noqa: E402

COMMANDS = ("run", "replay", "receive", "send", "inspect", "export", "diff", "explain", "flows", "probe", "doctor", "bench", "serve", "ctl", "top")


def on_terminal(width, *args):
    """Standard output and standard error of the program on a terminal as wide as this, and its exit status."""
    terminal, program_side = pty.openpty()
    fcntl.ioctl(program_side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = subprocess.Popen([WEIR, *map(str, args)], stdin=program_side, stdout=program_side, stderr=program_side)
    output, ended = b"", False
    # Our end of the program's side stays open: a terminal that nobody has open any more may lose what was just written.
    while True:
        if select.select([terminal], [], [], 0 if ended else 0.01)[0]:
            output += os.read(terminal, 65536)
        elif ended:
            break
        else:
            ended = process.poll() is not None
    os.close(program_side)
    os.close(terminal)
    return output.decode().replace("\r\n", "\n").replace("\r\x1b[K", ""), process.returncode


class Terminal(Case):
    def fits(self, text, width):
        for line in text.splitlines():
            # A path or a word is never broken.
            if len(line) > width and len(max(line.split(), key=len)) < width - len(line) + len(line.lstrip()):
                self.fail(f"wider than {width}: {len(line)}: {line}")

    def test_help(self):
        for command in ("", *COMMANDS):
            words = [command] if command else []
            piped = weir(*words, "--help", trap=False).stdout
            self.fits(piped, 80)
            self.assertEqual(weir(*words, "-h", trap=False).stdout, piped)
            for width in (60, 140):
                text, status = on_terminal(width, *words, "--help")
                self.assertEqual(status, 0, f"{command} --help on {width} columns: {text}")
                self.fits(text, width)
                self.assertEqual(*("".join(one.replace("\\\n", "").split()) for one in (text, piped)))
        whole = weir("--help", trap=False).stdout
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", whole)
        for name in ("jungfrau", "moench", "eiger", "ejfat", "dune", "ess", "spead", "message", "declared"):
            self.assertIn(name, whole.split("Formats:")[1])

    def test_tables_of_events(self):
        missing = [(3, 8, b"1278", [(2, 4)]), (4, 8, b"1", [(1, 7)]), (5, 8, b"", [(0, 8)])]
        events = [((1 << 64) - 1, [(0, 8, b"12345678", []), *missing]), (7, [(0, 8, b"12345678", []), *[(i, 8, b"12345678", []) for i in (3, 4, 5)]])]
        run = write_received(self.path("run"), events, [19522, 19523])
        piped = weir("inspect", run, trap=False).stdout
        self.fits(piped, 80)
        rows = piped.split("first packet (UTC)\n")[1].split("\n\n")[0].splitlines()
        self.assertEqual(len(rows), 4, piped)  # what is missing has two lines of its own
        self.assertRegex(rows[1], "^ *0  18446744073709551615  timeout +13 B  1970-01-01 00:00:00.000001$")
        self.assertRegex(" ".join(" ".join(rows[2:]).split()), "source 3: 1 gap, 4 B missing; source 4: 1 gap, 7 B missing; source 5: nothing came")
        for width in (60, 200):
            text, status = on_terminal(width, "inspect", run)
            self.assertEqual((text.split(), status), (piped.split(), 0))
            self.fits(text, width)
        self.assertRegex(text, "18446744073709551615 .* source 3: .*; source 5: nothing came\n")

    def test_export(self):
        run = write_received(self.path("run"), [(1, [(0, 8, b"12345678", [])]), (2, [(0, (1 << 32) - 1, b"1", [(1, (1 << 32) - 2)])])], [19522])
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        text, status = on_terminal(50, "export", "run", "--to", "raw", "--out", "o1")
        self.assertEqual(status, 1)
        self.fits(text, 50)
        self.assertIn("event 0:2 is left out", text)
        # In a pipe a message is one line.
        self.assertEqual(len(weir("export", run, "--to", "raw", "--out", "o2", status=1, trap=False).stderr.splitlines()), 2)

    def test_explain(self):
        text, status = on_terminal(70, "explain", "packets")
        self.assertEqual(status, 0)
        self.fits(text, 70)
        overview, _ = on_terminal(80, "explain")
        self.assertLessEqual(len(overview.splitlines()), 24)
        for topic in ("packets", "events", "device", "rings", "reduce.veto"):
            self.assertIn(f"\n  {topic} ", overview)


if __name__ == "__main__":
    main()
