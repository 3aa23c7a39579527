#!/usr/bin/env python3
"""clang-tidy on each layer and the program, as they are compiled: a layer in one piece, because most of the time goes into matching the
headers. What was found clean is not looked at again until a byte of it changes: of its files and headers, of how it is compiled, of
.clang-tidy, or the version of clang-tidy. Exit status 1 if anything is found.
usage: clang_tidy.py BUILD [JOBS]
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLEAN = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "weir-clang-tidy"
KEPT_S = 30 * 86400


@functools.cache
def digest_of(path):
    """Checkouts of the same files have the same one, wherever they lie."""
    return hashlib.sha256(path.read_bytes().replace(os.fsencode(ROOT), b"")).digest()


def dependencies(build):
    """By output: the files that the compiler has read. Nothing of what is not compiled, or has changed since."""
    found, files = {}, []
    for line in subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout.splitlines():
        if match := re.match(r"(\S+): #deps .*\((VALID|STALE)\)", line):
            files = []
            if match[2] == "VALID":
                found[match[1]] = files
        elif line.startswith("    "):
            files.append(build / line.strip())
    return {output: files for output, files in found.items() if files and is_newer(build / output, files)}


def is_newer(output, files):
    try:
        return output.stat().st_mtime_ns >= max(path.stat().st_mtime_ns for path in files)
    except OSError:
        return False


def key_of(build, entry, files, tools):
    """Of all that clang-tidy's answer depends on."""
    key = hashlib.sha256(tools + entry["command"].replace(str(ROOT), "").encode())
    for path in files:
        key.update(os.path.realpath(path).replace(str(ROOT), "").encode() + digest_of(path))
    return key.hexdigest()


def look(build, path, clean):
    """What clang-tidy finds; `clean`: where it is noted that it finds nothing."""
    done = subprocess.run(["clang-tidy", "-p", build, "--quiet", "--extra-arg=-Wno-unknown-warning-option", path],
                          capture_output=True, text=True)
    if done.returncode == 0 and clean is not None:
        clean.touch()
    return done.returncode, done.stdout + done.stderr


def make_room():
    """Whether what is clean can be noted."""
    try:
        CLEAN.mkdir(parents=True, exist_ok=True)
        for old in CLEAN.iterdir():
            if time.time() - old.stat().st_mtime > KEPT_S:
                old.unlink(missing_ok=True)
        return os.access(CLEAN, os.W_OK)
    except OSError:
        return False


def main():
    build, jobs = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    entries = [entry for entry in json.loads((build / "compile_commands.json").read_text())
               if re.match(r"(lib|app)/.*-unity\d+\.cpp\.o$", entry["output"])]
    if not entries:
        sys.exit(f"clang_tidy.py: nothing of {build} is compiled in one piece")
    keeps = make_room()
    tools = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout + (ROOT / ".clang-tidy").read_bytes()
    known = dependencies(build)
    waiting = []
    for entry in entries:
        files = known.get(entry["output"])
        clean = CLEAN / key_of(build, entry, files, tools) if keeps and files else None
        if clean is not None and clean.exists():
            clean.touch()
        else:
            waiting.append((build / entry["directory"] / entry["file"], clean))
    print(f"{len(entries) - len(waiting)} of {len(entries)} as they were when they were found clean", flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for status, said in pool.map(lambda one: look(build, *one), waiting):
            if status != 0:
                failed = 1
                print("\n".join(line for line in said.splitlines() if not re.search(r"warnings generated|^Suppressed|^Use -header", line)))
    sys.exit(failed)


if __name__ == "__main__":
    main()
