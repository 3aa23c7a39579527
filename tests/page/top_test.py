#!/usr/bin/env python3
"""`weir top` against a server that answers as weir does: its screens have what the documents say, in the words of the page, and the keys work.

usage: top_test.py (with WEIR in the environment)
"""
import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))

import documents  # noqa: E402
import verdicts  # noqa: E402
from mock_weir import MockWeir  # noqa: E402
from support import WEIR, Case, main, weir  # noqa: E402


class Terminal:
    """`weir top` on a terminal of this size; `screen` is what it has written since it was last asked."""

    def __init__(self, url, rows=24, columns=80, term="xterm"):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(WEIR, [WEIR, "top", "--url", url], {**os.environ, "TERM": term, "LANG": "C.UTF-8"})
        self.written = ""

    def wait(self, words, patience_s=120):
        end = time.monotonic() + patience_s
        while words not in self.plain():
            if time.monotonic() > end:
                raise AssertionError(f"never shown: {words!r}; but: {self.plain()[-3000:]}")
            self.take(0.1)

    def take(self, patience_s):
        if select.select([self.terminal], [], [], patience_s)[0]:
            try:
                self.written += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:  # it has ended
                time.sleep(0.05)  # its exit status comes a moment later

    def plain(self):
        """What was written, without what moves the cursor and colours."""
        return re.sub(r"\x1b[\[(][0-9;?]*[A-Za-z]", "", self.written)

    def press(self, keys):
        self.written = ""
        os.write(self.terminal, keys.encode())

    def status(self):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            done, status = os.waitpid(self.process, os.WNOHANG)
            if done:
                self.process = None
                return os.waitstatus_to_exitcode(status)
            self.take(0.05)
        raise AssertionError("it does not end")

    def close(self):
        if self.process:
            os.kill(self.process, 9)
            os.waitpid(self.process, 0)
        os.close(self.terminal)


class Top(Case):
    def serve(self, name):
        self.mock = MockWeir(documents.made(name) if isinstance(name, str) else name)
        self.addCleanup(self.mock.__exit__)
        return self.mock

    def once(self, name):
        return weir("top", "--once", "--url", self.serve(name).url, trap=False).stdout

    def on_terminal(self, name, **how):
        terminal = Terminal(self.serve(name).url, **how)
        self.addCleanup(terminal.close)
        return terminal

    def test_the_words_of_the_page(self):
        signs = {"ok": "ok", "losing": "!!", "lost": "! ", "unknown": "? ", "idle": "- "}
        for name, document, level, headline, detail in verdicts.table():
            with self.subTest(name):
                lines = self.once(document).splitlines()
                self.assertEqual(lines[1], f"{signs[level]} {headline}")
                self.assertIn(detail, " ".join(" ".join(lines[2:]).split()))

    def test_numbers(self):
        text = self.once("losing")
        document = self.mock.document
        for place in document["where"]:
            line = next(line for line in text.splitlines() if line[3:].startswith(place["title"]))
            self.assertIn("unknown" if place["packets"] is None else f"{place['packets']:,}", line)
        for stage in document["pipeline"]["stages"]:
            self.assertRegex(text, rf"{stage['name']} +lcore {stage['lcore']} +\[[#/.]+\] +{100 * stage['busy']:.0f} %")
        for words in ("402 k packets/s  26.5 Gb/s  3,139 events/s  3.2 GB/s to disk  lost 23.5 /s", "late 4,110 (12 /s)", "events0 98 % (full 1,208 times)", "3 lost  No space left on device"):
            self.assertIn(words, text)
        sources = [line for line in text.splitlines() if line.startswith("det0 udp")]
        self.assertRegex(sources[0], r"^det0 udp 50003 +! lags behind +99.7 k +1,517 +2.1 s$")

    def test_nothing_harms_a_terminal(self):
        document = documents.made("running")
        document["name"] = document["sources"]["label"][0] = document["where"][0]["evidence"] = "x\x1b[2J\x07\r\n"
        self.assertFalse(re.search(r"[\x00-\x09\x0b-\x1f\x7f]", self.once(document)))

    def test_nobody_answers(self):
        self.serve("running").go(down=True)
        self.assertIn("does not answer", weir("top", "--once", "--url", self.mock.url, status=1, trap=False).stderr)
        self.assertIn("--once", weir("top", "--url", self.mock.url, status=2, trap=False).stderr)

    def test_keys(self):
        terminal = self.on_terminal("thousand")
        terminal.wait("by trouble")
        terminal.wait("50614")
        terminal.press("s")
        terminal.wait("rate")
        terminal.press("ss")
        terminal.wait("trouble")
        terminal.press("\x1b[6~")  # page down
        terminal.wait("det0 udp")
        terminal.press("?")
        terminal.wait("sorts sources")
        terminal.press("?")
        terminal.wait("1,000 sources")
        terminal.press("q")
        self.assertEqual(terminal.status(), 0)

    def test_another_size(self):
        terminal = self.on_terminal("sixteen")
        terminal.wait("32 sources")
        self.assertNotIn("work3", terminal.plain())
        terminal.written = ""
        fcntl.ioctl(terminal.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        terminal.wait("work3")

    def test_weir_goes_and_comes_back(self):
        terminal = self.on_terminal("running")
        terminal.wait("Nothing lost")
        terminal.written = ""
        self.mock.go(down=True)
        terminal.wait("Not known")
        terminal.written = ""
        self.mock.go(down=False)
        terminal.wait("ok ")

    def test_no_such_terminal(self):
        terminal = self.on_terminal("running", term="nothing-like-it")
        terminal.wait("cannot be drawn on")
        self.assertEqual(terminal.status(), 1)


if __name__ == "__main__":
    main()
