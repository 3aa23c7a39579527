#!/usr/bin/env python3
"""scripts/site: the documentation as HTML pages, whose links lead somewhere and which fetch nothing."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "site"

loader = importlib.machinery.SourceFileLoader("site_script", str(SCRIPT))
site = importlib.util.module_from_spec(importlib.util.spec_from_loader("site_script", loader))
loader.exec_module(site)


def has_mkdocs():
    return any(subprocess.run([python, "-c", "import mkdocs"], capture_output=True).returncode == 0 for python in (sys.executable, "/usr/bin/python3"))


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-site-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)


class Site(Folder):
    def test_all_pages_are_built_and_what_they_link_to(self):
        if not has_mkdocs():
            self.skipTest("there is no mkdocs")
        done = subprocess.run([SCRIPT, self.folder / "out"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for page in (ROOT / "docs").rglob("*.md"):
            built = (self.folder / "out" / page.relative_to(ROOT)).with_suffix(".html")
            if page.name == "README.md":
                built = built.with_name("index.html")
            self.assertTrue(built.exists(), built)
        first = (self.folder / "out" / "index.html").read_text()
        for text in ("docs/start/FIRST_RUN.html", "docs/reference/formats/jungfrau.html", "CHANGELOG.html", "LICENSE"):
            self.assertIn(f'href="{text}"', first)

    def test_a_folder_that_is_no_site_is_left_alone(self):
        if not has_mkdocs():
            self.skipTest("there is no mkdocs")
        (self.folder / "mine").touch()
        done = subprocess.run([SCRIPT, self.folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is no site", done.stderr)
        self.assertTrue((self.folder / "mine").exists())


class Parts(Folder):
    def test_the_menu_has_every_page_of_the_contents(self):
        menu = site.menu((ROOT / "docs" / "README.md").read_text())
        self.assertEqual([name for name, _ in menu], ["Start", "Guides", "Reference", "Wire formats", "Reducers", "Internals"])
        pages = [page for _, section in menu for _, page in section]
        self.assertEqual(set(pages), {str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")} - {"docs/README.md"})
        self.assertEqual(len(pages), len(set(pages)))

    def test_lists_need_no_empty_line_and_links_to_folders_lead_to_their_lists(self):
        tree, out = self.folder / "tree", self.folder / "out"
        (tree / "things").mkdir(parents=True)
        (tree / "things" / "some.toml").touch()
        (tree / "CHANGELOG.md").touch()
        (tree / "README.md").write_text("Words:\n- one [of](things/)\n- `[code](stays)`\n```\n- [too](as-it-is)\n```\n")
        self.addCleanup(setattr, site, "ROOT", site.ROOT)
        site.ROOT = tree
        site.Sources(out).copy()
        self.assertEqual((out / "README.md").read_text(),
                         "Words:\n\n- one [of](things/index.md)\n- `[code](stays)`\n```\n- [too](as-it-is)\n```\n")
        self.assertEqual((out / "things" / "index.md").read_text(), "# things\n\n- [some.toml](some.toml)\n")
        self.assertTrue((out / "things" / "some.toml").exists())
        (tree / "README.md").write_text("[nowhere](no.md)")
        with self.assertRaisesRegex(SystemExit, "README.md: no.md leads nowhere"):
            site.Sources(out).copy()

    def test_faults_are_found(self):
        (self.folder / "b.html").write_text('<h2 id="here">x</h2>')
        good = '<a href="b.html#here">b</a><a href="https://example.org">outside</a><a href="#top" id="top">top</a><img src="data:x">'
        for text, fault in ((good, ""), ('<a href="c.html">c</a>', "a.html: c.html leads nowhere"),
                            ('<a href="b.html#there">b</a>', "a.html: b.html#there: there is no such anchor"),
                            ('<script src="https://example.org/x.js"></script>', "a.html: https://example.org/x.js would be fetched from the network"),
                            ('<link href="//example.org/x.css">', "a.html: //example.org/x.css would be fetched from the network")):
            (self.folder / "a.html").write_text(text)
            self.assertEqual(list(site.faults(self.folder)), [fault] if fault else [])


if __name__ == "__main__":
    unittest.main()
