#!/usr/bin/env python3
"""The choice of tests that `scripts/test` runs (meson's suites `unit` and `quick`) uses every command, format, reducer and sink."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = None
QUICK = {"weir:unit", "weir:quick"}


def names(list_file, variable):
    """A list of names in a meson.build."""
    text = (ROOT / list_file / "meson.build").read_text()
    return re.findall(r"'(\w+)'", re.search(variable + r" = \[(.*?)\]", text, re.DOTALL).group(1))


def chosen_scripts():
    """The text of all scripts among the chosen tests; what they import from their folder is not a test."""
    tests = json.loads(subprocess.run(["meson", "introspect", BUILD, "--tests"], capture_output=True, text=True, check=True).stdout)
    scripts = {part for test in tests if QUICK & set(test["suite"]) for part in test["cmd"] if part.endswith(("_test.py", "_test.sh"))}
    return "\n".join(pathlib.Path(script).read_text() for script in sorted(scripts))


class Choice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = chosen_scripts()

    def missing(self, found, pattern):
        self.assertTrue(found)
        return [name for name in found if not re.search(pattern.format(name), self.text)]

    def test_every_command(self):
        self.assertEqual(self.missing(names("app", "weir_commands"), r'(weir\(|\[|expect.*|, )"?{}\b'), [])

    def test_every_format(self):
        formats = [name for name in names("lib/wire/formats", "formats") if name != "declared"]  # has names of its own
        self.assertEqual(self.missing(formats, r"[\"' ]{}[\"' ]"), [])
        self.assertIn("[[format]]", self.text)

    def test_every_reducer(self):
        self.assertEqual(self.missing(names("lib/config/reducers", "reducers"), r'kind = "{}"'), [])

    def test_every_sink(self):
        sinks = [name for name in names("lib/config/sinks", "sinks") if name != "cluster"]  # nobody writes that: [cluster] stands for it
        self.assertEqual(self.missing(sinks, r'kind = "{}"'), [])
        self.assertIn("[cluster]", self.text)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
