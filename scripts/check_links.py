#!/usr/bin/env python3
"""Checks that references to pages lead somewhere: links and anchors in Markdown, and names of pages in code and comments.

- A relative link in a Markdown page leads to a file or a folder of this tree, and its anchor to a heading of that page.
- `docs/….md`, wherever it is written, exists, with its anchor; likewise a folder, `docs/….../`, and a name alone, `READING.md`.
- docs/README.md has a link to every page of docs/.

One line per broken reference; exit status 1 if there is any. The changelog may name pages that have moved since.
usage: check_links.py [ROOT]
"""

import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True

from tidy import project_files  # noqa: E402

LINK = re.compile(r"(?<!\\)\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
PAGE = re.compile(r"(?<![\w/.])(docs/[\w./-]*\.md)\b(?:#([\w-]+))?")
FOLDER = re.compile(r"(?<![\w/.])(docs/(?:[\w-]+/)+)(?![\w.-])")
NAME_ALONE = re.compile(r"(?<![\w/.-])([A-Z][A-Z_]+\.md)\b")
NAMES_NOT_CHECKED = {"CHANGELOG.md", "tests/checks/checks_test.py", "scripts/check_links.py"}
INDEX = "docs/README.md"


def prose(text):
    """(number, line) of a page outside fenced blocks, without what stands in backticks."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"\s*(```+|~~~+)", line)
        if found and (fence is None or found[1].startswith(fence)):
            fence = found[1] if fence is None else None
        elif fence is None:
            yield number, re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", lambda m: " " * len(m[0]), line)


def anchors(text):
    """The anchors that GitHub and most other renderers give to a page's headings."""
    found = set()
    fence = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fence = not fence
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if not heading or fence:
            continue
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        number = 0
        while (f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


class Tree:
    def __init__(self, root):
        self.root = root
        self.texts = {}
        for name in project_files(root):
            try:
                self.texts[name] = (root / name).read_text()
            except UnicodeDecodeError:
                continue
        self.pages = {name: anchors(text) for name, text in self.texts.items() if name.endswith(".md")}
        self.page_names = {pathlib.PurePath(name).name for name in self.pages}

    def wrong_with(self, path, anchor):
        """Why nothing is there, or None."""
        if path.startswith("..") or not (self.root / path).exists():
            return f"there is no {path}"
        if anchor and anchor not in self.pages.get(path, ()):
            return f"{path} has no heading for #{anchor}"
        return None

    def broken_links(self, name):
        for number, line in prose(self.texts[name]):
            for target in LINK.findall(line):
                if re.match(r"[a-z][a-z+.-]*:", target):
                    continue
                path, _, anchor = target.partition("#")
                path = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                wrong = self.wrong_with(path, anchor)
                if wrong:
                    yield f"{name}:{number}: ({target}): {wrong}"

    def broken_names(self, name):
        for number, line in enumerate(self.texts[name].split("\n"), 1):
            if name in self.pages:
                line = LINK.sub("](", line)  # broken_links has them
            for path, anchor in PAGE.findall(line):
                wrong = self.wrong_with(path, anchor)
                if wrong:
                    yield f"{name}:{number}: {wrong}"
            for folder in FOLDER.findall(line):
                if not (self.root / folder).is_dir():
                    yield f"{name}:{number}: there is no {folder}"
            for page in NAME_ALONE.findall(line):
                if page not in self.page_names:
                    yield f"{name}:{number}: no page is called {page}"

    def not_in_index(self):
        listed = {os.path.normpath(os.path.join("docs", target.partition("#")[0]))
                  for _, line in prose(self.texts.get(INDEX, "")) for target in LINK.findall(line)}
        for name in self.pages:
            if name.startswith("docs/") and name != INDEX and name not in listed:
                yield f"{INDEX}: has no link to {name}"


def check_tree(root):
    tree = Tree(pathlib.Path(root))
    problems = []
    for name in tree.texts:
        if name in tree.pages:
            problems += tree.broken_links(name)
        if name not in NAMES_NOT_CHECKED:
            problems += tree.broken_names(name)
    return problems + [*tree.not_in_index()]


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    problems = check_tree(root)
    for problem in problems:
        print(problem)
    print(f"links: {len(problems)} broken")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
