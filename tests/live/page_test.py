#!/usr/bin/env python3
"""The page of a real `weir serve` in headless Chromium: it starts and stops runs, and what it shows at the end is what the report says.

usage: page_test.py WEIR
"""

import json
import os
import pathlib
import sys
import unittest

import live
from serve_test import Service
from stop_test import config

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "page"))

import chromium  # noqa: E402
import page_checks  # noqa: E402

LOSING = "sim,format=jungfrau,rate=10,seed=3,drop=0.001"


class PageTest(live.Case):
    def setUp(self):
        super().setUp()
        if chromium.program() is None:
            self.skipTest("there is no program 'chromium'")
        (self.folder / "token").write_text("a token of some length")
        (self.folder / "token").chmod(0o600)
        self.service = Service(self.folder, config(LOSING))
        self.addCleanup(self.service.close)
        self.browser = chromium.Chromium()
        self.addCleanup(self.browser.close)

    def open(self):
        page = self.browser.open(f"http://127.0.0.1:{self.service.port}/")
        page.wait("document.querySelector('#version').textContent")
        page_checks.settle(page)
        return page

    def clean(self, page):
        self.assertEqual(page.complaints, [])
        here = f"http://127.0.0.1:{self.service.port}/"
        self.assertEqual([url for url in page.requests if not url.startswith((here, "blob:", "data:"))], [])

    def test_what_it_shows_is_what_the_report_says(self):
        page = self.open()
        self.assertEqual(page.text("#state").strip().split()[0], "idle")
        self.service.command("start")
        page.wait("document.querySelector('#state').dataset.state === 'running'")
        self.service.wait_events(11)
        page.wait("document.querySelector('#picture canvas') !== null")
        self.service.command("stop")
        page.wait("document.querySelector('#state').dataset.state === 'idle'")
        live.wait_for(lambda: not page_checks.disagreements(self.service.get(""), page_checks.shown_values(page)), "page of the end")
        page_checks.settle(page)
        report = self.service.report(1)
        self.assertGreater(report["events"]["complete"], 10)
        document = self.service.get("")
        self.assertEqual(document["ledger"]["packets"]["received"], report["packets"]["received"])
        self.assertEqual(document["ledger"]["events"], report["events"])
        shown = page_checks.shown_values(page)
        self.assertEqual(page_checks.disagreements(document, shown), [])
        pointers = {one["of"] for one in shown}
        for pointer in ("/ledger/packets/received", "/where/0/packets", "/runs/0/number"):
            self.assertIn(pointer, pointers)
        places = {place["place"]: place["packets"] for place in document["where"]}
        missing = sum(source["missing_packets"] for source in report["sources"])
        self.assertGreater(missing, 0)
        if report["device_missed"] == 0:  # else nobody knows how much was lost on the way
            self.assertLessEqual(places["way"], missing)
            self.assertGreater(places["way"], 0)
        self.clean(page)

    def test_it_starts_and_stops_runs_with_the_token(self):
        page = self.open()
        page.wait("[...document.querySelectorAll('#commands button')].some((button) => /start/i.test(button.textContent))")
        wrong = json.loads(page.evaluate("""fetch('/api/0.1/weir/command/execute', {method: 'PUT', body: '"start"',
            headers: {'Content-Type': 'application/json', 'Authorization': 'Bearer wrong'}}).then((answer) => JSON.stringify(answer.status))"""))
        self.assertEqual(wrong, 401)
        self.assertEqual(self.service.state(), "idle")
        right = json.loads(page.evaluate("""fetch('/api/0.1/weir/command/execute', {method: 'PUT', body: '"start"',
            headers: {'Content-Type': 'application/json', 'Authorization': 'Bearer a token of some length'}}).then((answer) => JSON.stringify(answer.status))"""))
        self.assertEqual(right, 202)
        page.wait("document.querySelector('#state').dataset.state === 'running'")
        self.service.command("abort")
        page.wait("document.querySelector('#state').dataset.state === 'idle'")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    # Without a sandbox: Chromium does not start in one, and nothing but free ports is needed.
    live.Weir.program = os.path.abspath(sys.argv.pop(1))
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else live.SKIPPED if result.skipped else 0)
