"""The commands that the documentation shows: found in its pages, in the comments of the shipped files, and in the help texts.

A command is a line of an indented block or of a fenced `sh` block that begins with a program; a backslash at its end joins the
next line, and what stands after two spaces and a # is a remark.
"""

import pathlib
import re
import shutil

# Programs that need not be installed where the pages are read.
PROGRAMS = {"weir", "ip", "ethtool", "ping", "meson", "ninja", "scripts/demo", "scripts/test", "scripts/install-deps", "scripts/bench", "scripts/guest",
            "scripts/soak",
            "dpdk-telemetry.py", "dpdk-testpmd", "dpdk-devbind.py", "ib_send_bw", "ib_write_bw", "rdma", "tcpdump", "h5clear", "h5dump",
            "modprobe", "sudo", "apt", "systemctl", "journalctl", "lintian",
            "scripts/package", "scripts/make-image", "scripts/appliance-setup", "weir-setup", "dpkg", "mmdebstrap", "qemu-system-x86_64", "mkdocs"}
SHELL = ("sh", "bash", "shell", "console")


class Command:
    def __init__(self, page, line, text):
        self.page, self.line = page, line
        self.text = re.split(r"\s{2,}#", text)[0].strip()

    def __str__(self):
        return f"{self.page}:{self.line}: `{self.text}`"


def is_command(text):
    first, _, rest = text.strip().partition(" ")
    if first in PROGRAMS:
        return True
    return bool(re.fullmatch(r"[a-z][a-z0-9._/-]*", first)) and rest[:1] not in ("=", "") and first != "import" and bool(shutil.which(first))


def joined(page, lines):
    """Commands of (number, text), those over several lines joined."""
    number, text = 0, ""
    for at, line in lines:
        number = number if text else at
        text += line.strip() + " "
        if text.rstrip().endswith("\\"):
            text = text.rstrip()[:-1]
            continue
        if is_command(text):
            yield Command(page, number, re.sub(r"(?<=\S) (?=\s*--|\s*\\)", " ", text))
        text = ""


def blocks_of_markdown(text):
    """Lines that are shell: of indented blocks that follow an empty line, and of fenced blocks that say sh."""
    fence, before, inside = None, "", False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fence = line[3:].strip() if fence is None else None
        elif fence is not None:
            if fence in SHELL:
                yield number, line
        else:
            inside = line.startswith("    ") and (inside or not before.strip())
            if inside:
                yield number, line
        before = line


def of_markdown(page, text):
    return list(joined(page, blocks_of_markdown(text)))


def of_comments(page, text):
    """In comments, commands are indented by three spaces or more."""
    lines = [(number, line[1:]) for number, line in enumerate(text.split("\n"), 1) if re.match(r"#   +\S", line)]
    return list(joined(page, lines))


def of_help(page, text):
    lines = [(number, re.split(r"(?<=\S)\s{3,}", line.strip())[0]) for number, line in enumerate(text.split("\n"), 1)
             if re.match(r"  +\S", line)]
    return [command for command in joined(page, lines) if command.text.startswith("weir ")]


def in_tree(root):
    """All commands by page, in the order of the page."""
    root = pathlib.Path(root)
    pages = {}
    for file in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        pages[str(file.relative_to(root))] = of_markdown(str(file.relative_to(root)), file.read_text())
    for folder in ("examples", "formats", "flows", "pmd-config"):
        for file in sorted(path for path in (root / folder).iterdir() if path.is_file()):
            pages[str(file.relative_to(root))] = of_comments(str(file.relative_to(root)), file.read_text())
    return {page: found for page, found in pages.items() if found}


def blocks_in_tree(root, *languages):
    """[(page, line, text), ...]: fenced blocks of these languages in README and docs/, and of TOML indented ones too."""
    root, found = pathlib.Path(root), []
    for file in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        page, text = str(file.relative_to(root)), file.read_text()
        for block in re.finditer(r"(?m)^```(\w+)\n(.*?)^```", text, re.S):
            if block[1] in languages:
                found.append((page, text.count("\n", 0, block.start()) + 2, block[2]))
        if "toml" in languages:
            text = re.sub(r"(?ms)^```.*?^```", lambda fenced: "\n" * fenced[0].count("\n"), text)
            for block in re.finditer(r"(?m)^(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)", text):
                if re.match(r" {4}\[+[a-z.]+\]+\s*(#|$)", block[1]):
                    found.append((page, text.count("\n", 0, block.start()) + 1, re.sub(r"(?m)^ {4}", "", block[1])))
    return sorted(found, key=lambda block: block[:2])


def commands_in_other_blocks(root):
    """[(page, line, text), ...]: what begins with a program of PROGRAMS in a fenced block that is of no language, or of one that is none of these."""
    root, found = pathlib.Path(root), []
    for file in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        text = file.read_text()
        for block in re.finditer(r"(?m)^```([^\n]*)\n(.*?)^```", text, re.S):
            if block[1].strip() not in (*SHELL, "toml", "python", "json"):
                for at, line in enumerate(block[2].split("\n")):
                    if (line.strip().removeprefix("$ ").split() or [""])[0] in PROGRAMS:
                        found.append((str(file.relative_to(root)), text.count("\n", 0, block.start()) + 2 + at, line.strip()))
    return found


def mentioned(page, text):
    """`weir ...` and `scripts/...` in running text and in tables: commands that are not run, but whose options must be there."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        for words in re.findall(r"`(weir [a-z]+ [^`]*|scripts/[\w.]+[^`]*)`", line):
            found.append(Command(page, number, words))
    return found
