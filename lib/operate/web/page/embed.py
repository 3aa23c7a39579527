#!/usr/bin/env python3
"""Puts the files of the page into the program: writes a C++ file with their bytes as literals.

usage: embed.py OUTPUT FILE...        (index.html becomes "/", any other file "/assets/NAME")
"""
import pathlib
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".md": "text/markdown; charset=utf-8",
}
ESCAPES = {ord("\n"): r"\n", ord("\t"): r"\t", ord('"'): r"\"", ord("\\"): r"\\", ord("?"): r"\?"}


def path_of(file):
    return "/" if file.name == "index.html" else f"/assets/{file.name}"


def literals(content):
    """Lines of string literals, which the compiler joins. Bytes that are no ASCII are octal: such an escape ends after three digits."""
    for line in content.splitlines(keepends=True):
        text = "".join(ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in line)
        yield f'    "{text}"\n'


def main():
    output, *files = map(pathlib.Path, sys.argv[1:])
    text = "// Made by lib/operate/web/page/embed.py; edit the files of the page instead.\n#include \"web/asset.hpp\"\n\n#include <array>\n\nnamespace weir::web {\n\nnamespace {\n\n"
    entries = ""
    for index, file in enumerate(files):
        content = file.read_bytes()
        text += f"// {file.name}\nconstexpr char page_file_{index}[] =\n{''.join(literals(content))}    \"\";\n"
        entries += f'    Asset{{"{path_of(file)}", "{TYPES[file.suffix]}", {{page_file_{index}, {len(content)}}}}},\n'
    text += f"\nconstexpr std::array page_files = {{\n{entries}}};\n\n}}  // namespace\n\n"
    text += "std::span<const Asset> page_assets() {\n    return page_files;\n}\n\n}  // namespace weir::web\n"
    output.write_text(text)


if __name__ == "__main__":
    main()
