#!/usr/bin/env python3
"""examples/watch/: the alert rules do what their tests say, and rules and dashboard ask for nothing that /metrics has not.

usage: watch_examples_test.py
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "examples" / "watch"
SKIPPED = 77


def metrics():
    """Metric -> labels, by the page that a unit test holds to the tables."""
    found = {}
    for line in (ROOT / "docs" / "reference" / "METRICS.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if not cells or not cells[0].startswith("`weir_"):
            continue
        name, labels = re.match(r"`(\w+)(\{.*\})?`$", cells[0]).groups()
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels or ""))
        if len(cells) == 4:
            found[name].update(re.findall(r"\w+", cells[2]))
        if name.startswith("weir_device_"):
            found[name].add("port")
        if name.startswith("weir_reduce_codec_"):
            found[name].add("kind")
    return found


def without_strings(expression):
    return re.sub(r'"(\\.|[^"\\])*"', '""', expression)


class WatchExamplesTest(unittest.TestCase):
    def promtool(self, *arguments):
        done = subprocess.run(["promtool", *map(str, arguments)], cwd=FOLDER, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def expressions(self):
        """(where, expression) of everything that is asked for."""
        alerts = (FOLDER / "alerts.yml").read_text()
        for number, expression in enumerate(re.findall(r"^\s+expr: (.*)$", alerts, re.MULTILINE)):
            yield f"alerts.yml, rule {number}", expression
        dashboard = json.loads((FOLDER / "dashboard.json").read_text())
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield f"dashboard.json, {panel['title']}", target["expr"]
        for annotation in dashboard["annotations"]["list"]:
            yield "dashboard.json, annotations", annotation["expr"]

    def test_what_is_asked_for_is_there(self):
        known = metrics()
        self.assertGreater(len(known), 100)
        asked = set()
        for where, expression in self.expressions():
            for name, labels in re.findall(r"(weir_\w+)(?:\{([^}]*)\})?", expression):
                self.assertIn(name, known, where)
                asked.add(name)
                for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", without_strings(labels)):
                    self.assertIn(label, known[name] | {"instance", "job"}, f"{where}: {name}")
            for names in re.findall(r"by \(([^)]*)\)", expression):
                labels = set().union(*(known[name] for name in re.findall(r"weir_\w+", expression)), {"instance"})
                self.assertLessEqual({name.strip() for name in names.split(",")}, labels, where)
        self.assertGreater(len(asked), 40)

    def test_only_counters_are_asked_for_their_rate(self):
        for where, expression in self.expressions():
            for name in re.findall(r"\b(?:rate|increase)\((weir_\w+)", expression):
                self.assertTrue(name.endswith("_total"), f"{where}: {name}")
            for name in re.findall(r"\b(?:deriv|delta)\((weir_\w+)", expression):
                self.assertFalse(name.endswith("_total"), f"{where}: {name}")

    def test_every_rule_has_a_test_that_makes_it_speak(self):
        rules = set(re.findall(r"alert: (\w+)", (FOLDER / "alerts.yml").read_text()))
        tests = (FOLDER / "alerts_test.yml").read_text()
        speaks = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n", tests))
        silent = set(re.findall(r"alertname: (\w+), exp_alerts: \[\]", tests))
        self.assertEqual(speaks, rules)
        self.assertEqual(silent, rules)

    def test_promtool_takes_all_of_it(self):
        self.promtool("check", "rules", "alerts.yml")
        self.promtool("check", "config", "prometheus.yml")
        self.promtool("test", "rules", "alerts_test.yml")

    def test_a_rule_that_says_nothing_is_found(self):
        """The test of the tests."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("alerts.yml", "alerts_test.yml"):
                shutil.copy(FOLDER / name, folder)
            broken = pathlib.Path(folder) / "alerts.yml"
            broken.write_text(broken.read_text().replace("weir_sink_failed) == 1", "weir_sink_failed) == 2"))
            done = subprocess.run(["promtool", "test", "rules", "alerts_test.yml"], cwd=folder, capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)

    def test_the_dashboard_can_be_imported(self):
        dashboard = json.loads((FOLDER / "dashboard.json").read_text())
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        taken = set()
        for panel in dashboard["panels"]:
            self.assertEqual(panel["datasource"]["uid"], "${datasource}", panel["title"])
            self.assertTrue(panel["targets"], panel["title"])
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            for x in range(at["x"], at["x"] + at["w"]):
                for y in range(at["y"], at["y"] + at["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} lies on another")
                    taken.add((x, y))


if __name__ == "__main__":
    if shutil.which("promtool") is None:
        print("skipped: there is no program 'promtool'")
        sys.exit(SKIPPED)
    unittest.main()
