#!/usr/bin/env python3
"""Completion of the command line, as bash and zsh do it.

usage: completion_test.py WEIR.BASH _WEIR
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ZSH = pathlib.Path(sys.argv.pop()).resolve()
BASH = pathlib.Path(sys.argv.pop()).resolve()

# COMP_WORDS as bash makes them, with "=" as a word of its own; then what the function offers, a line each.
ASK = """source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_weir
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Bash(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-completion-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name in ("run7.pcap", "run8.pcap.zst", "det.toml"):
            (self.folder / name).touch()

    def offered(self, *words):
        done = subprocess.run(["bash", "--norc", "-c", ASK, "bash", BASH, "weir", *words], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout.split()

    def test_commands(self):
        self.assertEqual(self.offered("rep"), ["replay"])
        self.assertIn("--version", self.offered("--"))
        self.assertEqual(self.offered("help", "insp"), ["inspect"])
        for name in ("run", "send", "bench", "help"):
            self.assertIn(name, self.offered(""))

    def test_options(self):
        self.assertEqual(self.offered("run", "--idle"), ["--idle-exit"])
        self.assertEqual(self.offered("replay", "a.pcap", "--config", "x", "--pac"), ["--pace"])
        self.assertEqual(self.offered("run", "--pac"), [])
        self.assertEqual(self.offered("explain", "--mark"), ["--markdown"])

    def test_values(self):
        self.assertEqual(self.offered("send", "--format", "jung"), ["jungfrau"])
        self.assertEqual(self.offered("send", "--format", "=", "ei"), ["eiger"])
        self.assertEqual(self.offered("export", "run", "--to", ""), ["npy", "raw", "pcap", "pcapng", "hdf5", "mdf"])
        self.assertEqual(self.offered("run", "--progress", "="), ["auto", "line", "json", "none"])
        self.assertEqual(self.offered("send", "--tengiga", "t"), ["true"])
        self.assertEqual(self.offered("run", "--require-lossless", "=", "k"), ["known"])
        self.assertEqual(self.offered("run", "--require-lossless", "k"), [])  # the next word is no value of it
        self.assertEqual(self.offered("explain", "packets.pla"), ["packets.placed"])
        self.assertEqual(self.offered("flows", "ch"), ["check"])
        # What nobody can know: no files instead.
        self.assertEqual(self.offered("replay", "run7.pcap", "--loop", ""), [])

    def test_files(self):
        self.assertEqual(self.offered("replay", "run7"), ["run7.pcap"])
        self.assertEqual(self.offered("replay", "--config", "de"), ["det.toml"])
        self.assertEqual(self.offered("run", "--config", "=", "de"), ["det.toml"])
        self.assertEqual(self.offered("flows", "check", "de"), ["det.toml"])
        self.assertEqual(self.offered("run", "de"), [])

    def test_words_that_are_no_command_get_nothing(self):
        self.assertEqual(self.offered("no-such-command", ""), [])


# What the function asks zsh's own functions for, a line each.
ASK_ZSH = """_arguments() { print -rl -- $@ }
_describe() { local name=${@[-1]}; print -rl -- ${(P)name} }
words=("${(@)@[2,-1]}"); CURRENT=$#words
source $1
"""


class Zsh(unittest.TestCase):
    def setUp(self):
        if not shutil.which("zsh"):
            self.skipTest("there is no program 'zsh'")

    def test_its_syntax_is_right(self):
        done = subprocess.run(["zsh", "-n", ZSH], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(ZSH.read_text().startswith("#compdef weir\n"))

    def offered(self, *words):
        done = subprocess.run(["zsh", "-f", "-c", ASK_ZSH, "zsh", ZSH, "weir", *words], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout.splitlines()

    def test_it_asks_for_the_same(self):
        commands = self.offered("")
        self.assertTrue(any(line.startswith("replay:") for line in commands), commands)
        run = self.offered("run", "")
        self.assertTrue(any(line.startswith("*--config=[") and line.endswith("]:FILE:_files") for line in run), run)
        self.assertIn(r"*--progress=[what is said while it runs\: auto, line, json, json\:FILE, none]:MODE:(auto line json none)", run)
        self.assertTrue(any(line.startswith("*--require-lossless=-[") and line.endswith("::yes|known:(yes known)") for line in run), run)
        self.assertIn("*:file:_files", self.offered("replay", ""))
        self.assertIn("1:what:(check print)", self.offered("flows", ""))
        self.assertNotIn("*:file:_files", run)


if __name__ == "__main__":
    unittest.main()
