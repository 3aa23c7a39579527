#!/usr/bin/env python3
"""Tests of the scripts that judge: on small trees of their own, each kind of violation and failure is found and counted."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True

import check_layers  # noqa: E402
import check_links  # noqa: E402
import tidy  # noqa: E402


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.write("lib/meson.build", "shelves = {\n  'data' : ['core', 'wire', 'port'],\n  'operate' : ['run'],\n  'tools' : ['bench'],\n}\n")
        self.write("lib/data/core/meson.build", "sources = files()\n")
        self.write("lib/data/wire/meson.build", "uses = ['core']\n")
        self.write("lib/data/port/meson.build", "uses = ['wire']\nexternal = [dpdk_dep, fmt_dep]\n")
        self.write("app/main.cpp", '#include "port/port.hpp"\n#include "run.hpp"\n#include <rte_version.h>\nint main() {}\n')
        self.write("lib/data/core/units.hpp", "#pragma once\n#include <cstdint>\n")
        self.write("lib/data/wire/frame.hpp", '#pragma once\n#include "core/units.hpp"\n')
        self.write("lib/data/port/port.hpp", '#pragma once\n#include <rte_mbuf.h>\n#include "core/units.hpp"\n#include "wire/frame.hpp"\n')

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Layers(Tree):
    def problems(self):
        return check_layers.check_tree(self.root)

    def expect(self, text):
        found = self.problems()
        self.assertEqual(len(found), 1, found)
        self.assertIn(text, found[0])

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.problems(), [])

    def test_a_lower_layer_including_a_higher_one(self):
        self.write("lib/data/core/bad.hpp", '#pragma once\n#include "wire/frame.hpp"\n')
        self.expect("lib/data/core/bad.hpp:2: core must not include")

    def test_a_lower_layer_that_is_not_in_uses(self):
        self.write("lib/data/wire/meson.build", "uses = []\n")
        self.assertTrue(any("wire must not include" in p for p in self.problems()))

    def test_dpdk_below_port(self):
        for layer in ("core", "wire"):
            self.write(f"lib/data/{layer}/bad.cpp", "#include <rte_mbuf.h>\n")
            self.expect("must compile without DPDK")
            (self.root / f"lib/data/{layer}/bad.cpp").unlink()

    def test_dpdk_in_a_layer_that_does_not_name_it(self):
        self.write("lib/meson.build", "shelves = {\n  'data' : ['core', 'wire', 'port', 'options'],\n}\n")
        self.write("lib/data/options/meson.build", "uses = ['core']\nexternal = [fmt_dep]\n")
        self.write("lib/data/options/bad.cpp", "#include <rte_mbuf.h>\n")
        self.expect("options must compile without DPDK")

    def test_dpdk_in_quotes_or_in_a_folder(self):
        self.write("lib/data/core/bad.cpp", '#include "dpdk/rte_mbuf.h"\n')
        self.assertNotEqual(self.problems(), [])

    def test_relative_includes(self):
        self.write("lib/data/wire/bad.cpp", '#include "../port/port.hpp"\n')
        self.expect("climbs out")

    def test_including_the_program(self):
        self.write("lib/data/port/bad.cpp", '#include "app/run.hpp"\n')
        self.expect("never the program")

    def test_angle_brackets_do_not_hide_our_own(self):
        self.write("lib/data/core/bad.cpp", "#include <port/port.hpp>\n")
        self.expect("use quotes")

    def test_indented_directives(self):
        self.write("lib/data/core/bad.cpp", '  #  include "port/port.hpp"\n')
        self.expect("core must not include")

    def test_upper_shelves_do_not_use_each_other(self):
        self.write("lib/operate/run/run.hpp", "#pragma once\n")
        self.write("lib/tools/bench/meson.build", "uses = ['run']\n")
        with self.assertRaises(SystemExit):
            self.problems()
        self.write("lib/tools/bench/meson.build", "uses = ['core']\n")
        self.assertEqual(self.problems(), [])
        self.write("lib/tools/bench/bad.cpp", '#include "run/run.hpp"\n')
        self.expect("bench must not include")

    def test_a_folder_that_is_no_shelf(self):
        self.write("lib/more/extra/x.hpp", "#pragma once\n")
        self.expect("lib/more: not in the list")

    def test_a_layer_that_is_not_in_the_list(self):
        self.write("lib/data/extra/x.hpp", "#pragma once\n")
        self.expect("not in the list")

    def test_uses_upwards(self):
        self.write("lib/data/core/meson.build", "uses = ['port']\n")
        with self.assertRaises(SystemExit):
            self.problems()


class Links(Tree):
    def setUp(self):
        super().setUp()
        self.write("README.md", "# Top\n[all](docs/README.md), [one part](docs/guides/A.md#second-part-b), [folder](docs/guides), [away](https://x.org/y.md)\n")
        self.write("docs/README.md", "[A](guides/A.md)\n")
        self.write("docs/guides/A.md", "# A\n[here](#second-part-b), [top](../../README.md#top)\n\n## Second part: `b`!\n")
        self.write("lib/data/core/a.cpp", "// docs/guides/A.md#second-part-b, docs/guides/, A.md; other/docs/none.md\n")

    def expect(self, name, text, *parts):
        self.write(name, text)
        found = check_links.check_tree(self.root)
        self.assertEqual(len(found), len(parts), found)
        for problem, part in zip(found, parts):
            self.assertTrue(problem.startswith(name + ":"), problem)
            self.assertIn(part, problem)

    def test_a_clean_tree_passes(self):
        self.assertEqual(check_links.check_tree(self.root), [])

    def test_links_to_nothing(self):
        for target in ("guides/B.md", "A.md", "../none", "../../outside.md", "/docs/guides/A.md"):
            self.expect("docs/README.md", f"[A](guides/A.md)\n[bad]({target})\n", "there is no")

    def test_links_to_no_heading(self):
        self.expect("docs/README.md", "[A](guides/A.md#third)\n", "has no heading for #third")
        self.expect("docs/README.md", "[A](guides/A.md), [bad](#none)\n", "has no heading for #none")

    def test_what_only_looks_like_a_link_or_a_heading(self):
        self.expect("docs/README.md", "[A](guides/A.md) `[x](y)`\n```\n[x](y)\n# not a heading\n```\n")
        self.expect("docs/README.md", "[A](guides/A.md) [bad](#not-a-heading)\n```\n# not a heading\n```\n", "has no heading")

    def test_equal_headings_are_numbered(self):
        self.assertEqual(check_links.anchors("# A\n## B\n## B\n### B\n# C [d](e.md)\n"), {"a", "b", "b-1", "b-2", "c-d"})

    def test_names_in_code(self):
        self.expect("lib/data/core/a.cpp", 'say("docs/B.md");\n', "there is no docs/B.md")
        self.expect("lib/data/core/a.cpp", 'say("docs/guides/A.md#third");\n', "no heading for #third")
        self.expect("lib/data/core/a.cpp", "// see docs/formats/ and\n// GONE.md\n", "there is no docs/formats/", "no page is called GONE.md")

    def test_a_page_that_the_index_lacks(self):
        self.write("docs/guides/B.md", "# B\n")
        self.expect("docs/README.md", "[A](guides/A.md)\n", "has no link to docs/guides/B.md")


class Tidy(Tree):
    def expect(self, name, text, part):
        found = tidy.check_text(name, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_a_clean_tree_passes(self):
        self.assertEqual(tidy.check_tree(self.root), [])

    def test_long_functions_of_every_shape(self):
        body = "  f();\n" * tidy.FUNCTION_LINES_MAX
        heads = ["void f() {\n", "namespace a { namespace {\nint f(int x) noexcept {\n", "struct S {\n void f() const {\n",
                 "S::S(int a) : a_{a}, b_(a) {\n", "template <class T>\n  requires C<T>\nauto f(T t) -> std::vector<T> {\n",
                 "bool S::operator==(const S& o) const {\n", "S::~S() {\n", 'extern "C" {\nvoid f() {\n']
        for head in heads:
            text = head + body + "}\n" * head.count("{")
            self.assertEqual(len([p for p in tidy.check_text("lib/data/core/x.cpp", text) if "limit is" in p]), 1, head)

    def test_short_functions_and_long_tables(self):
        table = "constexpr int table[] = {\n" + "  1,\n" * 200 + "};\n"
        many = "void f() {\n  if (a) { g(); }\n  auto l = [] { return '{'; };\n}\n" * 60
        text = 'const char* s = "{{{"; // {{\nconst char* r = R"(\n{\n)";\nint n = 1\'000;\n'
        self.assertEqual(tidy.check_text("lib/data/core/x.cpp", text + table + many), [])

    def test_unfinished_words(self):
        for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X", "for " + "now", "a stu" + "b"):
            self.expect("docs/x.md", f"// {word}: later\n", "'")

    def test_words_that_only_look_unfinished(self):
        self.assertEqual(tidy.check_text("lib/data/core/x.cpp", "// stubborn, HACKING, for nowhere, XXXX\n"), [])

    def test_printing_in_the_library(self):
        for call in ('printf("x");', "std::cout << 1;"):
            self.expect("lib/data/core/x.cpp", call + "\n", "does not print")
            self.assertEqual(tidy.check_text("app/x.cpp", call + "\n"), [])
        for call in ('std::fprintf(stderr, "x");', 'fmt::print(stderr, "x");', "std::cerr << 1;", 'perror("x");'):
            self.expect("lib/data/core/x.cpp", call + "\n", "does not print")
            self.expect("app/x.cpp", call + "\n", "core::print_stderr")
        self.assertEqual(tidy.check_text("lib/data/core/x.cpp", '// printf("x")\nsnprintf(b, 3, "printf(");\n'), [])

    def test_paths_of_one_machine(self):
        self.expect("lib/data/core/x.cpp", 'open("/wo' + 'rk/main/x");\n', "one machine")
        self.expect("scripts/x", 'cat ../sha' + 'red/x\n', "one machine")
        self.assertEqual(tidy.check_text("tests/x.cpp", 'open("../sha' + 'red/x");\n'), [])

    def test_headers(self):
        self.expect("lib/data/core/x.hpp", "int x;\n", "#pragma once")
        self.expect("lib/data/core/x.hpp", "#pragma once\nusing namespace std;\n", "open a namespace")

    def test_names_of_tests(self):
        self.expect("tests/core/x_test.cpp", "TEST(run_writer, Closes) {}\n", "CamelCase")
        self.expect("tests/core/x_test.cpp", "TEST_F(RunWriter, closes_its_files) {}\n", "CamelCase")

    def test_scripts_that_cannot_be_run(self):
        self.write("scripts/x", "#!/bin/sh\n")
        self.assertIn("not executable", tidy.check_tree(self.root)[0])

    def test_a_header_that_does_not_compile_alone(self):
        (self.root / "lib/data/port/port.hpp").unlink()
        self.assertEqual(tidy.check_headers(self.root, "g++", ["-std=c++20"]), [])
        self.write("lib/data/core/needy.hpp", "#pragma once\ninline std::string f() { return {}; }\n")
        found = tidy.check_headers(self.root, "g++", ["-std=c++20"])
        self.assertEqual(len(found), 1, found)
        self.assertIn("core/needy.hpp: does not compile alone", found[0])
        self.assertEqual(len(tidy.check_headers(self.root, "g++", ["-std=c++20"], ["core"])), 1)
        self.assertEqual(tidy.check_headers(self.root, "g++", ["-std=c++20"], ["port"]), [])

    def test_headers_that_are_compiled_together_do_not_help_each_other(self):
        (self.root / "lib/data/port/port.hpp").unlink()
        self.write("lib/data/core/first.hpp", "#pragma once\n#include <string>\n")
        self.write("lib/data/core/second.hpp", '#pragma once\n#include "core/first.hpp"\ninline std::string f() { return {}; }\n')
        self.write("lib/data/core/third.hpp", '#pragma once\n#include "core/second.hpp"\ninline std::vector<int> g() { return {}; }\n')
        self.write("lib/data/core/other.hpp", "#pragma once\ninline std::string h() { return {}; }\n")
        self.assertIn(["core/first.hpp", "core/second.hpp", "core/third.hpp"], list(tidy.chains(self.root, [f"core/{n}.hpp" for n in ("third", "second", "first", "other")])))
        found = tidy.check_headers(self.root, "g++", ["-std=c++20"])
        self.assertEqual([problem.split(":")[0] for problem in found], ["core/other.hpp", "core/third.hpp"], found)

    def test_a_header_that_the_build_compiles_alone_is_not_compiled_again(self):
        (self.root / "lib/data/port/port.hpp").unlink()
        self.write("lib/data/core/needy.hpp", "#pragma once\ninline std::string f() { return {}; }\n")
        self.write("lib/data/core/needy.cpp", '#include <string>\n#include "core/needy.hpp"\n')
        self.assertEqual(len(tidy.check_headers(self.root, "g++", ["-std=c++20"])), 1)
        self.write("lib/data/core/needy.cpp", '// A comment.\n#include "core/needy.hpp"\n#include <string>\n')
        self.assertEqual(tidy.check_headers(self.root, "g++", ["-std=c++20"]), [])


class CountTests(Tree):
    JUNIT = """<testsuites><testsuite name="weir.weir:unit / core.Suite">
      <testcase name="a" status="run"/><testcase name="b" status="run"><failure message="no"/></testcase>
      <testcase name="c" status="run" result="skipped"><skipped message="needs\n root"/></testcase></testsuite>
      <testsuite name="weir"><testcase name="layers"/></testsuite></testsuites>"""

    def count(self, results, junit=JUNIT, log="testlog"):
        lines = [json.dumps({"name": f"weir:unit / {name}", "result": result}) for name, result in results.items()]
        self.write(f"meson-logs/{log}.json", "\n".join(lines) + "\n")
        self.write(f"meson-logs/{log}.junit.xml", junit)
        options = [] if log == "testlog" else ["--log", log]
        run = subprocess.run([sys.executable, SCRIPTS / "count_tests.py", self.root, *options], capture_output=True, text=True, check=True)
        return run.stdout.strip(), run.stderr

    def test_cases_and_plain_programs_add_up(self):
        counts, notes = self.count({"core": "FAIL", "layers": "OK"})
        self.assertEqual(counts, "2 1 1")
        self.assertIn("FAILED  core: Suite.b", notes)
        self.assertIn("skipped core: Suite.c: needs root", notes)

    def test_two_runs_in_one_folder_have_logs_of_their_own(self):
        self.assertEqual(self.count({"core": "FAIL", "layers": "OK"})[0], "2 1 1")
        self.assertEqual(self.count({"other": "OK"}, "<testsuites/>", log="guestlog")[0], "1 0 0")

    def test_a_program_that_crashed_after_passing_cases(self):
        good = '<testsuites><testsuite name="weir.core.S"><testcase name="a" status="run"/></testsuite></testsuites>'
        self.assertEqual(self.count({"core": "FAIL"}, good)[0], "1 1 0")
        self.assertEqual(self.count({"core": "OK"}, good)[0], "1 0 0")

    def test_what_steers_a_terminal_does_not_spoil_the_results(self):
        junit = '<testsuites><testsuite name="weir.core.S"><testcase name="a"><failure>\x1b[2J\x00BIOS</failure></testcase></testsuite></testsuites>'
        self.assertEqual(self.count({"core": "FAIL"}, junit)[0], "0 1 0")

    def test_tap_programs(self):
        tap = """<testsuites><testsuite name="weir.replay"><testcase name="1 a"/><testcase name="2 b"><failure/></testcase>
          <testcase name="3 c"><skipped/><system-out>needs root</system-out></testcase></testsuite></testsuites>"""
        counts, notes = self.count({"replay": "FAIL"}, tap)
        self.assertEqual(counts, "1 1 1")
        self.assertIn("skipped replay: 3 c: needs root", notes)

    def test_plain_programs_that_fail_hang_or_skip(self):
        counts, notes = self.count({"a": "FAIL", "b": "TIMEOUT", "c": "ERROR", "d": "SKIP", "e": "OK"}, "<testsuites/>")
        self.assertEqual(counts, "1 4 0")
        self.assertIn("b: TIMEOUT", notes)
        self.assertIn("FAILED  d: it did not say why", notes)

    def test_a_reason_that_nobody_allowed(self):
        tap = """<testsuites><testsuite name="weir.replay"><testcase name="1 a"><skipped/><system-out>not today</system-out></testcase>
          <testcase name="2 b"/></testsuite></testsuites>"""
        counts, notes = self.count({"replay": "OK"}, tap)
        self.assertEqual(counts, "1 1 0")
        self.assertIn("FAILED  replay: 1 a: not today (skipped, but", notes)

    def test_a_plain_program_that_skips_says_why(self):
        self.write("meson-logs/testlog.junit.xml", "<testsuites/>")
        line = {"name": "weir:guest / guest_pci", "result": "SKIP", "stdout": "skipped: there is no program 'qemu-system-x86_64'\n"}
        self.write("meson-logs/testlog.json", json.dumps(line) + "\n")
        run = subprocess.run([sys.executable, SCRIPTS / "count_tests.py", self.root], capture_output=True, text=True, check=True)
        self.assertIn("skipped guest_pci: there is no program 'qemu-system-x86_64'", run.stderr)


if __name__ == "__main__":
    unittest.main()
