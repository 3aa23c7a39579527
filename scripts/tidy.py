#!/usr/bin/env python3
"""Keeps the house tidy: a limit on the length of functions, words that must not be merged, habits of headers.

With --headers it compiles every header on its own that no source begins with: --compiler C++ and the flags after `--`;
--layers core,wire those of these layers only.
One line per violation; exit status 1 if there is any. The limit is a ratchet: lower it when the code allows it.
usage: tidy.py [ROOT]
       tidy.py --headers [ROOT] --compiler g++ [--layers LIST] -- FLAGS...
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

FUNCTION_LINES_MAX = 70
CODE = {".cpp", ".hpp", ".in"}
TEXT = CODE | {".py", ".sh", ".md", ".toml", ".build", ".yml", ""}
# Spelt with brackets so that this file does not contain what it looks for.
BANNED = [
    (re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b"), "unfinished work has no place in a commit: do it, or open an issue"),
    (re.compile(r"\bfor no[w]\b|\bstu[b]\b|\bnot implemente[d] yet\b", re.IGNORECASE), "say what it does, not what it will do"),
]
PATHS = (re.compile(r"(?<![\w.])/(work|home)/[a-z]|\.\./share[d]\b"), "a path of one machine")
IN_APP = [
    (re.compile(r"\bf?printf?\s*\(\s*stderr\b|\bstd::cerr\b|,\s*stderr\s*\)|\bperror\s*\("), "standard error may fail: core::print_stderr"),
]
IN_LIB = [
    (re.compile(r"\b(printf|fprintf|vprintf|puts|perror)\s*\(|\bprint\s*\(\s*stderr\b|\bstd::(cout|cerr)\b"), "the library does not print: fmt into a string, let app/ show it"),
    (re.compile(r"\brand\s*\(\s*\)"), "use <random> with a seed that can be printed"),
]
IN_HEADERS = [(re.compile(r"^\s*using\s+namespace\b", re.MULTILINE), "a header must not open a namespace for everybody")]
IN_TESTS = [
    (re.compile(r"^TEST(?:_F|_P)?\(\s*(?:[a-z]\w*|\w*_\w*|\w+,\s*(?:[a-z]\w*|\w*_\w*))(?=[,)])", re.MULTILINE),
     "suites and cases are in CamelCase, as GoogleTest asks for"),
]
SHELVES = ("data", "operate", "tools")  # of lib/, where headers are included from
NOT_CHECKED = {"scripts/tidy.py", "tests/checks/checks_test.py", "LICENSE"}


def project_files(root):
    """Everything that is, or could be, committed; the whole tree where there is no git."""
    git = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if git.returncode == 0:
        names = git.stdout.splitlines()
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if not p.relative_to(root).parts[0].startswith(("build", "."))]
    return sorted(n for n in names if (root / n).is_file() and pathlib.PurePath(n).suffix in TEXT)


def without_text(code):
    """The code with comments, strings and characters blanked, line by line the same length in lines."""
    pattern = re.compile(
        r'R"(?P<tag>[^()\s\\]{0,16})\((?:.|\n)*?\)(?P=tag)"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'')
    # A ' between digits is a separator, not a character.
    code = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "_", code)
    code = pattern.sub(lambda m: "\n" * m.group().count("\n") or " ", code)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", lambda m: "\n" * m.group().count("\n"), code, flags=re.MULTILINE)


def functions(code):
    """(first line, last line, head) of every function body: a brace outside functions whose head has parentheses."""
    stack = []  # True for scopes that hold declarations
    parentheses = 0
    head_start = 0
    open_function = None
    text = without_text(code)
    for at, char in enumerate(text):
        if char == "(":
            parentheses += 1
        elif char == ")":
            parentheses -= 1
        elif char == "{":
            head = text[head_start:at]
            declares = all(stack) and parentheses == 0
            is_scope = declares and re.search(r"\b(namespace|class|struct|union|enum|extern)\b", head) and not re.search(r"\)\s*(const|noexcept|override|final|->.*)*\s*$", head)
            if declares and not is_scope and "(" in head and not head.rstrip().endswith("=") and open_function is None:
                first = text.count("\n", 0, head_start + len(head) - len(head.lstrip())) + 1
                open_function = (len(stack), first, " ".join(head.split()))
            stack.append(bool(is_scope))
            head_start = at + 1
        elif char == "}":
            if stack:
                stack.pop()
            if open_function is not None and len(stack) == open_function[0]:
                yield open_function[1], text.count("\n", 0, at) + 1, open_function[2]
                open_function = None
            head_start = at + 1
        elif char == ";" and parentheses == 0:
            head_start = at + 1


def match_lines(patterns, text, name):
    for pattern, why in patterns:
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{name}:{line}: '{found.group().strip()}': {why}"


def check_text(name, text):
    problems = []
    path = pathlib.PurePath(name)
    problems += match_lines(BANNED, text, name)
    if path.parts[0] != "tests":
        problems += match_lines([PATHS], text, name)
    if path.suffix not in CODE:
        return problems
    if path.parts[0] == "app":
        problems += match_lines(IN_APP, without_text(text), name)
    if path.parts[0] == "lib":
        problems += match_lines(IN_LIB, without_text(text), name)
    if path.parts[0] == "tests":
        problems += match_lines(IN_TESTS, text, name)
    if path.suffix == ".hpp":
        problems += match_lines(IN_HEADERS, text, name)
        if "#pragma once" not in text:
            problems.append(f"{name}: a header starts with #pragma once")
    for first, last, head in functions(text):
        if last - first + 1 > FUNCTION_LINES_MAX:
            problems.append(f"{name}:{first}: {last - first + 1} lines; the limit is {FUNCTION_LINES_MAX}: {head[:80]}")
    return problems


def check_tree(root):
    problems = []
    for name in project_files(root):
        if name in NOT_CHECKED:
            continue
        try:
            text = (root / name).read_text()
        except UnicodeDecodeError:
            continue
        problems += check_text(name, text)
        if text.startswith("#!") and not os.access(root / name, os.X_OK):
            problems.append(f"{name}: starts with #! but is not executable")
    return problems


def complaint(root, headers, compiler, flags):
    """What the compiler says first of a source that includes these, one after the other; None if nothing."""
    run = subprocess.run([compiler, "-fsyntax-only", "-x", "c++", *(f"-I{root / 'lib' / shelf}" for shelf in SHELVES), *flags, "-"], cwd=root,
                         input="".join(f'#include "{header}"\n' for header in headers), capture_output=True, text=True)
    first = next((line for line in run.stderr.splitlines() if "error" in line), run.stderr.strip()[:200])
    return None if run.returncode == 0 else first


def included_by(root, header, known):
    """The headers of ours that it includes, and those that they include. `known` remembers."""
    if header not in known:
        known[header] = set()
        text = next((root / "lib").glob(f"*/{header}")).read_text()
        for name in re.findall(r'^#include\s*"(.*)"', text, re.MULTILINE):
            if any((root / "lib").glob(f"*/{name}")):
                known[header] |= {name} | included_by(root, name, known)
    return known[header]


def chains(root, headers):
    """The headers in as few lists as there can be in which each includes the one before. So nothing is before a header that it does not
    include itself, and one source with the list compiles each as if it were alone: a matching of headers with the next one."""
    known = {}
    after = {a: [b for b in headers if a in included_by(root, b, known)] for a in headers}
    before = {}

    def match(a, tried):
        for b in after[a]:
            if b not in tried:
                tried.add(b)
                if b not in before or match(before[b], tried):
                    before[b] = a
                    return True
        return False

    for header in headers:
        match(header, set())
    following = {a: b for b, a in before.items()}
    for header in headers:
        if header not in before:
            chain = [header]
            while chain[-1] in following:
                chain.append(following[chain[-1]])
            yield chain


def compile_alone(root, chain, compiler, flags):
    if complaint(root, chain, compiler, flags) is None:
        return []
    alone = [(header, complaint(root, [header], compiler, flags)) for header in chain]
    return [f"{header}: does not compile alone: {why}" for header, why in alone if why is not None]


def is_first_of_its_source(root, header):
    """The .cpp of the same name begins with the header: a build of single files (-Dunity=off) compiles it alone."""
    source = (root / header).with_suffix(".cpp")
    first = re.search(r'^#include\s*[<"](.*)[>"]', source.read_text(), re.MULTILINE) if source.exists() else None
    return first is not None and header.split("/", 2)[2] == first.group(1)


def check_headers(root, compiler, flags, layers=None):
    headers = [n for n in project_files(root) if n.startswith("lib/") and n.endswith(".hpp") and not is_first_of_its_source(root, n)]
    headers = [n for n in headers if layers is None or n.split("/")[2] in layers]
    headers = [n.split("/", 2)[2] for n in headers]  # as they are included, without the shelf
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = pool.map(lambda chain: compile_alone(root, chain, compiler, flags), chains(root, headers))
    return sorted(problem for problems in found for problem in problems)


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser()
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent, type=pathlib.Path)
    parser.add_argument("--headers", action="store_true")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--layers", type=lambda text: text.split(","))
    options = parser.parse_args(arguments[:split])
    flags = arguments[split + 1 :]
    problems = check_headers(options.root, options.compiler, flags, options.layers) if options.headers else check_tree(options.root)
    for problem in problems:
        print(problem)
    print(f"tidy: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
