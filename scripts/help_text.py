"""What `weir --help` and `weir COMMAND --help` say, for the scripts that make man pages and completion of it."""

import re
import subprocess
import sys


def said(program, *words):
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout.rstrip("\n")


def summary_of(command, overview):
    """The sentence about a command in `weir --help`, which may go on in lines that are indented further."""
    found = re.search(rf"(?m)^  {command} {{2,}}(\S.*(?:\n {{6,}}\S.*)*)$", overview)
    if not found:
        sys.exit(f"`weir --help` does not list {command}")
    return re.sub(r"\s+", " ", found[1])
