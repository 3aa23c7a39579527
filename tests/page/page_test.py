#!/usr/bin/env python3
"""The page in headless Chromium, against a server that answers as weir does: what it shows is what the document says; it asks nobody else,
runs nothing that comes from the server, and can be used by keyboard, on a phone, in the dark, and when weir is away."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))

import chromium  # noqa: E402
import documents  # noqa: E402
import page_checks  # noqa: E402
import verdicts  # noqa: E402
from mock_weir import MockWeir, picture, served_files  # noqa: E402
from support import Case, main  # noqa: E402

browser = None


class PageCase(Case):
    def setUp(self):
        super().setUp()
        self.page = None

    def serve(self, document, **how):
        """Opens the page on this document, and waits until all of it is shown."""
        self.mock = MockWeir(documents.made(document) if isinstance(document, str) else document)
        self.addCleanup(self.mock.__exit__)
        self.page = browser.open(self.mock.url + "/", **how)
        self.addCleanup(self.page.close)
        self.page.wait("document.querySelector('#version').textContent")
        self.settle()
        return self.page

    def settle(self):
        page_checks.settle(self.page)

    def clean(self, but=()):
        """No errors, no violation of the policy, no address but weir's."""
        self.assertEqual([one for one in self.page.complaints if not any(word in one for word in but)], [])
        self.assertEqual([url for url in self.page.requests if not url.startswith((self.mock.url + "/", "blob:", "data:"))], [])


class Agreement(PageCase):
    """What is shown is what the document says."""

    def check(self, name, *needed):
        self.serve(name)
        self.page.evaluate("document.querySelector('#pipeline-table').open = true; document.querySelector('#ledger input').checked = true")
        self.settle()
        self.mock.show(self.mock.document)
        self.settle()
        shown = page_checks.shown_values(self.page)
        wrong = page_checks.disagreements(self.mock.document, shown)
        self.assertEqual(wrong, [])
        there = {one["of"] for one in shown}
        missing = [pointer for pointer in needed if pointer not in there]
        self.assertEqual(missing, [], "of the document, but not on the page")
        self.clean()

    def test_running(self):
        document = documents.made("running")
        self.check("running", "/status/state", "/run/number", "/run/seconds", *(f"/rates/{name}" for name in ("packets_per_s", "gbps", "events_per_s", "lost_per_s")),
                   *(f"/where/{i}/{name}" for i in range(4) for name in ("title", "packets", "evidence")), "/bottleneck/sentence",
                   *(f"/pipeline/stages/{i}/busy" for i in range(3)), "/pipeline/ports/0/received", "/pipeline/sinks/0/written", "/pipeline/longest_poll_s",
                   *(f"/pipeline/levels/{name}" for name in document["pipeline"]["levels"]),
                   *(f"/pipeline/rings/{i}/{name}" for i in range(len(document["pipeline"]["rings"])) for name in ("used", "size", "highest", "times_full", "dropped")),
                   *(f"/sources/{name}/{i}" for i in range(4) for name in ("label", "packets", "missing", "per_s", "last_seen_s")),
                   *(f"/runs/{i}/{name}" for i in range(6) for name in ("number", "events", "lost_packets", "lossless")),
                   "/ledger/packets/received", "/ledger/packets/dropped/late", "/ledger/bytes/stored", "/ledger/events/written")

    def test_losing(self):
        self.check("losing", *(f"/losses/{i}/{name}" for i in range(3) for name in ("packets", "per_s")), *(f"/findings/{i}/text" for i in range(3)))
        self.assertEqual(self.page.text("#where tbody tr:nth-child(2) .number"), "unknown")

    def test_sixteen_lcores(self):
        document = documents.made("sixteen")
        self.check("sixteen", *(f"/pipeline/stages/{i}/busy" for i in range(16)))
        text = self.page.text("#pipeline svg")
        for stage in document["pipeline"]["stages"]:
            self.assertIn(stage["name"], text)
            self.assertIn(f"lcore {stage['lcore']}", text)
        self.assertIn("descriptors3.2: 17 dropped", text)
        self.assertEqual(self.page.evaluate("document.querySelectorAll('#pipeline .edge.dropped').length"), 1)
        self.assertEqual(page_checks.overlapping_boxes(self.page), [])

    def test_other_situations(self):
        for name in ("idle", "thousand", "unknown", "lost_before", "fused", "read_only"):
            with self.subTest(name):
                self.check(name)

    def test_nodes_of_a_cluster(self):
        common = [*(f"/cluster/nodes/{i}/{name}" for i in range(3) for name in ("name", "role", "up")), "/cluster/node", "/cluster/lost_blocks/builder_down"]
        self.check("builder", *common, "/cluster/manager/manages",
                   *(f"/cluster/builder/readouts/{i}/{name}" for i in range(2) for name in ("received", "missing/node_down", "missing/not_held", "missing/late")))
        hidden = "document.querySelectorAll('#cluster thead th[hidden]').length"
        self.assertEqual(self.page.evaluate(hidden), 0)
        self.check("readout", *common, *(f"/cluster/readout/builders/{i}/handed_over" for i in range(2)))
        self.assertEqual(self.page.evaluate(hidden), 3, "parts that a readout node does not miss")
        self.check("manager", *common, "/cluster/manager/manages")
        self.check("running")
        self.assertTrue(self.page.evaluate("document.querySelector('#cluster').hidden"))
    def test_updates(self):
        """An update leaves out what has not changed; the page keeps that."""
        self.serve("running")
        changed = documents.made("losing")
        changed["time"] = "2026-11-25T16:00:03.123Z"
        del changed["history"], changed["runs"]
        self.mock.show(changed)
        self.page.wait("document.querySelector('#headline').textContent.startsWith('Losing')")
        self.settle()
        self.assertEqual(self.page.evaluate("document.querySelectorAll('#runs tbody tr').length"), 6)
        self.assertEqual(page_checks.disagreements({**documents.made("running"), **changed}, page_checks.shown_values(self.page)), [])
        self.clean()

    def test_run_details(self):
        self.serve("running")
        self.page.click("[data-run='4']")
        self.page.wait("document.querySelector('.details')")
        text = self.page.text(".details")
        for words in ("/data/det-000004", "9,312,098", "balanced", "duration reached"):
            self.assertIn(words, text)
        self.assertEqual(self.page.evaluate("document.activeElement.dataset.run"), "4")
        self.assertEqual(page_checks.disagreements(self.mock.document, page_checks.shown_values(self.page)), [])


class Verdicts(PageCase):
    def verdict(self, name):
        self.serve(name)
        return self.page.evaluate("[document.querySelector('#verdict').dataset.level, document.querySelector('#headline').textContent, document.querySelector('#detail').textContent]")

    def test_words(self):
        for name, document, level, headline, detail in verdicts.table():
            with self.subTest(name):
                found = self.verdict(document)
                self.assertEqual(found[:2], [level, headline])
                self.assertIn(detail, found[2])

    def test_a_sink_that_fails(self):
        document = documents.made("running")
        document["pipeline"]["sinks"][0].update(error="No space left on device", lost=40)
        self.serve(document)
        self.assertEqual(self.page.text("#headline"), "Losing data: 40 events not written, in the sink events")
        self.assertIn("No space left on device", self.page.text("#detail"))

    def test_nothing_came(self):
        document = documents.made("running")
        document["ledger"]["packets"]["received"] = 0
        self.serve(document)
        self.assertEqual(self.page.text("#headline"), "Nothing has come yet")

    def test_never_good_news_without_evidence(self):
        """Whatever is not known or not zero, the verdict is not `Nothing lost`."""
        self.serve("running")
        for place in range(4):
            for packets in (None, 1):
                with self.subTest(place=place, packets=packets):
                    document = documents.made("running")
                    document["where"][place]["packets"] = packets
                    self.mock.show(document)
                    self.page.wait(f"document.querySelector('#where tbody tr:nth-child({place + 1}) .number').textContent === '{'unknown' if packets is None else '1'}'")
                    self.assertNotEqual(self.page.evaluate("document.querySelector('#verdict').dataset.level"), "ok")


class Connections(PageCase):
    def test_lost_and_found(self):
        self.serve("running")
        self.mock.go(down=True)
        self.page.wait("document.querySelector('#verdict').dataset.level === 'stale'")
        self.page.wait("/connection lost, last heard [1-9]\\d* s ago/.test(document.querySelector('#heard').textContent)")
        self.assertRegex(self.page.text("#headline"), r"^Not known: connection lost, last heard \d+ s ago$")
        self.assertEqual(self.page.text("#detail"), "It was: Nothing lost.")
        self.mock.document = documents.made("losing")
        self.mock.go(down=False)
        self.page.wait("document.querySelector('#heard').textContent === 'live'")
        self.page.wait("document.querySelector('#headline').textContent.startsWith('Losing')")

    def test_silence(self):
        """The connection stands, but nothing comes."""
        self.serve("running")
        self.mock.silent = True
        self.page.wait("document.querySelector('#heard').dataset.heard === 'stale'")
        self.assertRegex(self.page.text("#heard"), r"^last heard \d+ s ago$")
        self.assertRegex(self.page.text("#headline"), r"^Not known: nothing heard, last heard \d+ s ago$")
        self.clean()

    def test_weir_that_comes_later(self):
        """The page was open before weir answers for the first time: it says so, and then shows it."""
        self.serve("running")
        self.mock.silent = True
        blocked = {"urls": ["*/api/0.1/weir"]}
        self.page.call("Network.setBlockedURLs", **blocked)
        self.page.call("Page.reload")
        self.page.wait("document.querySelector('#headline')?.textContent === 'Not known: weir does not answer'")
        self.assertEqual(self.page.text("#heard"), "no connection; trying again")
        self.page.call("Network.setBlockedURLs", urls=[])
        self.mock.silent = False
        self.page.wait("document.querySelector('#headline').textContent === 'Nothing lost'")

    def test_at_most_five_draws_a_second(self):
        self.serve("running")
        self.page.evaluate("window.draws = 0; new MutationObserver(() => ++window.draws).observe(document.querySelector('#run'), {subtree: true, childList: true, characterData: true})")
        draws = lambda: self.page.evaluate("window.draws")
        begun = time.monotonic()
        seconds = 100
        while time.monotonic() < begun + 2 or draws() < 2:
            document = documents.made("running")
            seconds += 1
            document["run"]["seconds"] = seconds
            self.mock.show(document)
            time.sleep(0.02)
        drawn = draws()
        self.assertLessEqual(drawn, 5 * (time.monotonic() - begun) + 3)  # and what is on its way


class Safety(PageCase):
    def test_names_are_text(self):
        self.serve("hostile")
        self.assertIn("<img src=x", self.page.text("#who"))
        self.assertEqual(self.page.evaluate("document.querySelectorAll('img, main script').length"), 0)
        self.assertNotIn("owned", self.page.evaluate("document.title").replace("document.title='owned'", ""))
        self.assertLessEqual(*self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]"))
        self.clean()

    def test_no_markup_from_strings(self):
        """Nothing that turns text into markup or code is in the sources, nor a style or a script in the page."""
        for path, file in served_files().items():
            text = file.read_text()
            if file.suffix == ".js":
                for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser", "localStorage"):
                    self.assertNotIn(word, text, path)
            if file.suffix == ".html":
                for word in ("<style", " style=", "onclick", "javascript:", "http://", "https://"):
                    self.assertNotIn(word, text, path)
            if file.suffix == ".css":
                self.assertNotIn("url(", text, path)

    def test_the_policy_holds(self):
        """What the checks above would miss: a violation is seen by them."""
        self.serve("running")
        self.page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))")
        self.page.wait("true")
        self.assertFalse(self.page.evaluate("Boolean(window.ran)"))
        self.assertTrue(any("Content Security Policy" in one for one in self.page.complaints), self.page.complaints)


class Commands(PageCase):
    def buttons(self):
        return self.page.evaluate("[...document.querySelectorAll('#commands button')].filter((one) => one.checkVisibility()).map((one) => one.dataset.command)")

    def give(self, token):
        self.page.wait("document.querySelector('dialog[open] #token')")
        self.page.evaluate("document.querySelector('#token').focus()")
        self.page.type(token)
        self.page.key("Enter")

    def test_only_what_is_allowed(self):
        for name, allowed in (("idle", ["start"]), ("running", ["stop", "new_run", "snapshot", "flight_record", "abort"]), ("read_only", [])):
            with self.subTest(name):
                self.serve(name)
                self.assertEqual(self.buttons(), allowed)

    def test_token(self):
        """It is asked for once, refused if it is wrong, and kept in this tab only."""
        self.serve("running")
        self.page.click("[data-command=stop]")
        self.give("wrong")
        self.page.wait("/token was refused: the token is another/.test(document.querySelector('dialog[open]')?.textContent ?? '')")
        self.assertEqual(self.mock.commands, [])
        self.give(self.mock.token)
        self.page.wait("sessionStorage.length === 1 && !document.querySelector('dialog[open]')")
        self.wait_for_commands(1)
        self.assertEqual(self.mock.commands[0], ("/api/0.1/weir/command/execute", "application/json", {"value": "stop"}))
        self.page.click("[data-command=snapshot]")
        self.wait_for_commands(2)
        self.assertEqual(self.mock.commands[1][2], {"value": "snapshot"})
        self.assertEqual(self.page.evaluate("[localStorage.length, document.cookie]"), [0, ""])
        self.clean(but=("401",))

    def wait_for_commands(self, number):
        end = time.monotonic() + chromium.PATIENCE_S
        while len(self.mock.commands) < number and time.monotonic() < end:
            self.page.wait("true")
            time.sleep(0.02)
        self.assertEqual(len(self.mock.commands), number)

    def test_all_nodes_of_a_cluster(self):
        """What a node hears of the others, and commands for all of them."""
        self.serve("builder")
        self.assertTrue(self.page.evaluate("document.querySelector('#nodes').hidden"), "it does not say which node it is")
        self.assertNotIn("/cluster", self.mock.requests)
        self.mock.cluster = documents.all_nodes()
        self.mock.show({**documents.made("builder"), "node": "bu0"})
        self.page.wait("!document.querySelector('#nodes').hidden")
        text = self.page.text("#nodes")
        for words in ("2 of 3 nodes answer; running, run 7", "Start all: run 7, started on 3 nodes", "bu0 lacks parts of ru1: 1,234 node down, 0 not held, 2 late"):
            self.assertIn(words, text)
        rows = self.page.evaluate("[...document.querySelectorAll('#nodes tbody tr')].map((row) => [row.dataset.level, ...[...row.cells].map((cell) => cell.textContent)])")
        self.assertEqual(rows[0], ["losing", "ru0", "readout", "running", "7", "2 min 0 s", "1.250", "12.5 k /s", "1,003", "bu0 31 %"])
        self.assertEqual(rows[1][:4], ["lost", "ru1", "readout", "not reached: http://<b>h</b>:9321 does not answer"])
        self.assertEqual(rows[2][-1], "", "a wait of 1 % is none")
        self.page.click("#nodes [data-command=stop]")
        self.give(self.mock.token)
        self.wait_for_commands(1)
        self.assertEqual(self.mock.commands[0], ("/cluster", "application/json", {"execute": "stop"}))
        self.clean()

    def test_abort_asks_first(self):
        self.serve("running")
        self.page.evaluate(f"sessionStorage.setItem('weir-token', '{self.mock.token}')")
        self.page.click("[data-command=abort]")
        self.page.wait("document.querySelector('dialog[open]')")
        self.page.key("Escape")
        self.page.wait("!document.querySelector('dialog[open]')")
        self.page.click("[data-command=abort]")
        self.page.wait("document.querySelector('dialog[open]')")
        self.assertEqual(self.mock.commands, [])
        self.page.click("dialog[open] button.main")
        self.wait_for_commands(1)
        self.assertEqual(self.mock.commands[0][2], {"value": "abort"})

    def test_what_became_of_it(self):
        self.serve("running")
        self.assertFalse(self.page.shown("#said"))
        document = documents.made("running")
        document["command"]["last"] = {"command": "new_run", "accepted": "2026-11-25T16:01:00Z", "done": True, "message": "", "error": "the disk is full"}
        self.mock.show(document)
        self.page.wait("document.querySelector('#said').checkVisibility()")
        self.assertEqual(self.page.text("#said"), "⚠ New run failed: the disk is full")


class Use(PageCase):
    def test_fits(self):
        """Nothing has to be scrolled sideways, on a phone, a desk and a wall."""
        self.serve("running")
        for name in ("losing", "sixteen", "thousand", "idle", "hostile", "builder"):
            self.mock.show(documents.made(name))
            for width, height in ((400, 860), (320, 600), (1024, 768), (3840, 2160)):
                with self.subTest(f"{name} at {width}"):
                    self.page.emulate(width=width, height=height)
                    self.settle()
                    self.assertLessEqual(*self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]"))
                    self.assertEqual(page_checks.sticking_out(self.page), [])

    def test_first_screen(self):
        """Whether, where and why, without scrolling."""
        self.serve("losing", width=1440, height=900)
        for selector in ("#verdict", "#where", "#losses", "#findings", "#charts"):
            self.assertLessEqual(self.page.evaluate(f"document.querySelector('{selector}').getBoundingClientRect().bottom"), 900, selector)

    def test_contrast(self):
        """Of all text at least 4.5, in both schemes."""
        self.serve("running")
        self.page.evaluate("document.querySelector('#pipeline-table').open = true")
        for name in ("losing", "running", "unknown", "idle", "lost_before", "thousand", "builder"):
            self.mock.show(documents.made(name))
            for dark in (False, True):
                with self.subTest(name, dark=dark):
                    self.page.emulate(dark=dark)
                    self.settle()
                    self.assertEqual(page_checks.weak_text(self.page), [])

    def test_contrast_when_weir_is_away(self):
        self.serve("losing")
        self.mock.go(down=True)
        self.page.wait("document.querySelector('#verdict').dataset.level === 'stale'")
        for dark in (False, True):
            with self.subTest(dark=dark):
                self.page.emulate(dark=dark)
                self.settle()
                self.assertEqual(page_checks.weak_text(self.page), [])

    def test_keyboard(self):
        """Everything that can be pressed is reached with Tab, in the order of the page, and shows that it has the focus."""
        self.serve("losing")
        wanted = self.page.evaluate("[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]')].filter((one) => one.checkVisibility() && !one.disabled).length")
        reached, outlines = set(), []
        for step in range(wanted + 5):
            self.page.key("Tab")
            found = self.page.evaluate("(() => { const node = document.activeElement; node.dataset.reached ??= String(document.querySelectorAll('[data-reached]').length);"
                                       "const style = getComputedStyle(node); return [node.dataset.reached, style.outlineStyle, parseFloat(style.outlineWidth), node.tagName]; })()")
            if found[3] == "BODY":
                break
            reached.add(found[0])
            outlines.append(found[1:3])
        self.assertEqual(len(reached), wanted)
        self.assertTrue(all(style != "none" and width >= 2 for style, width in outlines), outlines)

    def test_sources_by_keyboard(self):
        self.serve("thousand")
        self.assertIn("det0 udp 50614", self.page.text(".selected"), "the one that lags is described before anybody asks")
        self.page.evaluate("document.querySelector('canvas.grid').focus()")
        self.page.key("ArrowRight")
        self.assertIn("614: det0 udp 50615", self.page.text(".selected"))
        self.assertEqual(self.page.text(".sources .summary"), "1,000 sources: 1 lags behind, 1 is silent, 1 never sent, 3 miss packets.")
        labels = self.page.evaluate("[...document.querySelectorAll('table.sources tbody th')].map((one) => one.textContent)")
        self.assertEqual(labels[:6], [f"det0 udp {50001 + i}" for i in (613, 77, 800, 400, 999, 5)])
        self.page.evaluate("document.querySelector('.sources input').focus()")
        self.page.type("50734")
        self.page.wait("document.querySelectorAll('table.sources tbody tr').length === 1")
        self.assertEqual(self.page.text("table.sources tbody th"), "det0 udp 50734")

    def test_sources_stand_out(self):
        """The cell of the one that lags has pixels that no other cell has, also where all colours are taken away."""
        self.serve("thousand")
        self.assertGreater(page_checks.difference_of_cell(self.page, 613), 3 * page_checks.difference_of_cell(self.page, 612))

    def test_a_thousand_are_cheap(self):
        """No node of the page is made for a source."""
        self.serve("running")
        few = self.page.evaluate("document.querySelectorAll('*').length")
        self.mock.show(documents.made("thousand"))
        self.page.wait("document.querySelector('.sources .summary').textContent.startsWith('1,000')")
        self.assertLess(self.page.evaluate("document.querySelectorAll('*').length"), few + 100)

    def test_semantics(self):
        self.serve("losing")
        self.assertEqual(self.page.evaluate("[document.querySelector('#spoken').getAttribute('aria-live'), document.querySelector('#spoken').textContent]"),
                         ["polite", "Losing data: 12 packets/s late, in weir"])
        self.assertEqual(self.page.evaluate("document.documentElement.lang"), "en")
        self.assertEqual(page_checks.unnamed(self.page), [])

    def test_guides(self):
        """What to do is read without a network: the section of the guide, and Escape closes it."""
        self.serve("losing")
        self.page.click("#findings button")
        self.page.wait("document.querySelector('dialog.guide h3')")
        self.assertEqual(self.page.text("dialog.guide h3"), "late")
        self.assertIn("raise timeout_ms above its lag", self.page.text("dialog.guide"))
        self.assertNotIn("evicted", self.page.text("dialog.guide h3"))
        self.page.key("Escape")
        self.page.wait("!document.querySelector('dialog[open]')")
        self.assertFalse(self.page.shown("#findings li:nth-child(3) button"), "no link to what is not served")
        self.clean()

    def test_guides_that_are_served(self):
        """The page and meson agree on which these are."""
        script = (pathlib.Path(served_files()["/assets/guide.js"])).read_text()
        for path in served_files():
            if path.endswith(".md"):
                self.assertIn(f"'{path.split('/')[-1]}'", script)


class Pictures(PageCase):
    def open_picture(self, document="running", kind="f32"):
        document = documents.made(document)
        document["picture"]["type"] = kind
        mock_pixels = picture(kind=kind)
        self.mock = MockWeir(document)
        self.mock.pixels, self.mock.pixel_kind = mock_pixels, kind
        self.addCleanup(self.mock.__exit__)
        self.page = browser.open(self.mock.url + "/", height=2400)
        self.addCleanup(self.page.close)
        self.page.wait("/mean/.test(document.querySelector('canvas.pixels').getAttribute('aria-label'))")

    def colour_at(self, x, y):
        return self.page.evaluate(f"[...document.querySelector('canvas.pixels').getContext('2d').getImageData({x}, {y}, 1, 1).data]")

    def pick(self, control, value):
        self.page.evaluate(f"(() => {{ const node = document.querySelectorAll('.controls select, .controls input')[{control}];"
                           f"if (node.type === 'checkbox') node.checked = {str(bool(value)).lower()}; else node.value = '{value}'; node.dispatchEvent(new Event('change')); }})()")

    def test_pixels(self):
        self.open_picture()
        label = self.page.evaluate("document.querySelector('canvas.pixels').getAttribute('aria-label')")
        self.assertIn("Event 94100: 512 by 256 pixels", label)
        self.assertIn("to 5,000", label)
        self.assertIn("1 pixel not a number", label)
        self.assertEqual(self.colour_at(1, 0)[:3], [226, 60, 160])
        self.assertEqual(self.colour_at(256, 128)[:3], [0xfd, 0xe7, 0x25], "the brightest is the map's last colour")
        self.pick(4, "grey")
        self.assertEqual(self.colour_at(256, 128)[:3], [255, 255, 255])
        self.pick(0, "full")
        self.assertEqual(self.colour_at(0, 0)[:3], [255, 255, 255])
        linear = self.colour_at(256, 128)[0]
        self.assertLess(linear, 100, "a fifth of the range")
        self.pick(3, True)
        self.assertGreater(self.colour_at(256, 128)[0], linear + 50)
        self.clean(but=('willReadFrequently',))

    def test_entered_limits(self):
        self.open_picture()
        self.pick(4, "grey")
        self.pick(1, "0")
        self.pick(2, "10000")
        self.assertAlmostEqual(self.colour_at(0, 0)[0], 128, delta=1)
        self.assertEqual(self.page.evaluate("document.querySelector('.controls select').value"), "set")

    def test_types(self):
        for kind in ("u8", "u16", "i32", "f64"):
            with self.subTest(kind):
                self.open_picture(kind=kind)
                self.assertIn("255" if kind == "u8" else "5,000", self.page.evaluate("document.querySelector('canvas.pixels').getAttribute('aria-label')"))

    def test_reading_pixels(self):
        self.open_picture(kind="u16")
        self.page.evaluate("document.querySelector('canvas.pixels').focus()")
        self.page.key("ArrowRight")
        self.page.key("ArrowDown", shift=True)
        self.assertRegex(self.page.text(".event output"), r"^column 257, row 138: \d+$")

    def test_held(self):
        self.open_picture()
        self.page.evaluate("document.querySelector('.controls button').click()")
        asked = self.mock.requests.count("/picture")
        document = documents.made("running")
        document["picture"].update(generation=10, event=95000)
        document["run"]["seconds"] = 130
        self.mock.show(document)
        self.page.wait("/2 min 10 s/.test(document.querySelector('#run').textContent)")
        time.sleep(0.7)  # for nothing to come: a picture is asked for twice a second at most
        self.assertEqual(self.mock.requests.count("/picture"), asked)
        self.assertIn("94100", self.page.text(".event p"))

    def test_a_new_one(self):
        self.open_picture()
        document = documents.made("running")
        document["picture"].update(generation=10, event=95000)
        self.mock.show(document)
        for _ in range(10 * chromium.PATIENCE_S):  # documents go on; the picture is asked for at most twice a second
            if "95000" in self.page.evaluate("document.querySelector('canvas.pixels').getAttribute('aria-label')"):
                break
            time.sleep(0.1)
            self.mock.show(document)
        self.assertIn("Event 95000", self.page.evaluate("document.querySelector('canvas.pixels').getAttribute('aria-label')"))

    def test_none(self):
        self.serve("idle")
        self.assertFalse(self.page.shown("canvas.pixels"))
        self.assertIn("no run", self.page.text("#picture"))
        self.assertNotIn("/picture", self.mock.requests)

    def test_wrong_size(self):
        document = documents.made("running")
        self.mock = MockWeir(document)
        self.mock.pixels = b"\0" * 10
        self.addCleanup(self.mock.__exit__)
        self.page = browser.open(self.mock.url + "/", height=2400)
        self.addCleanup(self.page.close)
        self.page.wait("/10 bytes for 512 × 256 pixels of f32/.test(document.querySelector('#picture').textContent)")
        self.clean()


if __name__ == "__main__":
    if chromium.program() is None:
        print("1..0 # SKIP there is no program 'chromium' here (Debian: chromium)")
        sys.exit(0)
    with chromium.Chromium() as browser:
        main()
