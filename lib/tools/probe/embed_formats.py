#!/usr/bin/env python3
"""Puts the described formats that are shipped into the program, for `weir probe` to try: writes a C++ file with their text.

Variants that a file keeps as comments, `# [[format]]` and its keys, are tried as well, so their comment signs go.

usage: embed_formats.py OUTPUT FILE...
"""
import pathlib
import re
import sys

VARIANT = re.compile(r"^# ?(?=\[\[format\]\]|\w+ = )")


def main():
    output, *files = map(pathlib.Path, sys.argv[1:])
    text = "// Made by lib/tools/probe/embed_formats.py from formats/*.toml; edit those instead.\n#include \"probe/shipped_formats.hpp\"\n\n"
    text += "#include <array>\n\nnamespace weir::probe {\n\nstd::span<const ShippedFile> shipped_files() {\n"
    text += "    static constexpr std::array files = {\n"
    for file in files:
        content = "".join(VARIANT.sub("", line) for line in file.read_text().splitlines(keepends=True))
        text += f'        ShippedFile{{"formats/{file.name}", R"toml({content})toml"}},\n'
    text += "    };\n    return files;\n}\n\n}  // namespace weir::probe\n"
    output.write_text(text)


if __name__ == "__main__":
    main()
