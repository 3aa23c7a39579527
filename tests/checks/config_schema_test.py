#!/usr/bin/env python3
"""The JSON schema of the configuration: a valid one, which takes all that weir takes, and refuses slips.

usage: config_schema_test.py WEIR
"""

import copy
import json
import pathlib
import subprocess
import sys
import tomllib
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = sys.argv.pop() if len(sys.argv) > 1 else str(ROOT / "build" / "app" / "weir")
GOOD = tomllib.loads("""
[[port]]
name = "det0"
device = "net_null0"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001, "50002-50004"]
format = "jungfrau"
[events]
sources = 4
memory = "64MiB"
[[reduce]]
kind = "zstd"
[[sink]]
kind = "events"
path = "/data/{run}"
[serve]
listen = "[::1]:9321"
""")


@unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
class ConfigSchema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([WEIR, "explain", "--schema"], capture_output=True, text=True, check=True, timeout=60)
        cls.schema = json.loads(done.stdout)
        cls.validator = jsonschema.Draft7Validator(cls.schema)

    def faults(self, document):
        return [f"{'/'.join(map(str, fault.absolute_path))}: {fault.message[:200]}" for fault in self.validator.iter_errors(document)]

    def test_is_a_schema(self):
        jsonschema.Draft7Validator.check_schema(self.schema)

    def test_takes_the_examples(self):
        files = sorted((ROOT / "examples").glob("*.toml"))
        self.assertGreater(len(files), 10)
        whole = 0
        for file in files:
            document = tomllib.loads(file.read_text())
            if "port" not in document:
                continue  # formats, to be included
            whole += 1
            self.assertEqual(self.faults(document), [], file.name)
        self.assertGreater(whole, 10)

    def test_takes_what_weir_prints(self):
        for file in sorted((ROOT / "tests" / "config" / "golden").glob("*.toml")):
            document = tomllib.loads(file.read_text())
            if "port" in document:
                self.assertEqual(self.faults(document), [], file.name)

    def test_refuses_slips(self):
        self.assertEqual(self.faults(GOOD), [])
        for path, value in (
            (("events", "sources"), "four"), (("events", "sources"), 0), (("events", "timeout"), 5), (("events", "incomplete"), "maybe"),
            (("stream", 0, "transport"), "tcp"), (("stream", 0, "udp_dst"), []), (("stream", 0, "udp_dst"), 70000), (("reduce", 0, "kind"), "zip"),
            (("reduce", 0, "level"), "x"), (("sink", 0, "kind"), "evnets"), (("port", 0, "name"), ".x"), (("serve", "connections"), 0), (("prot",), []),
        ):
            document = copy.deepcopy(GOOD)
            table = document
            for part in path[:-1]:
                table = table[part]
            table[path[-1]] = value
            self.assertNotEqual(self.faults(document), [], (path, value))
        for missing in ("port", "stream", "events", "sink"):
            self.assertNotEqual(self.faults({key: table for key, table in GOOD.items() if key != missing}), [], missing)


if __name__ == "__main__":
    unittest.main()
