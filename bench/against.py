#!/usr/bin/env python3
"""`weir bench --loopback` of two programs in turns, so that what the machine does meanwhile meets both, and then `weir bench compare`.

usage: against.py BEFORE AFTER [--turns N] [--keep FOLDER] [-- OPTIONS OF weir bench]      BEFORE, AFTER: two programs `weir`
Exit status: that of the comparison, 1 if something is worse; 2 if it did not come to one.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

OWN_OPTIONS = ("--json", "--html", "--quiet", "--loopback", "--server", "--client")


def fail(what):
    print(f"against.py: {what}", file=sys.stderr)
    sys.exit(2)


def measured(weir, options, turn, folder):
    """The points of one turn of a program."""
    out = folder / "turn.json"
    out.unlink(missing_ok=True)
    done = subprocess.run([weir, "bench", "--loopback", *options, "--json", out, "--quiet"])
    if done.returncode != 0:
        fail(f"{weir} bench ended with {done.returncode}")
    results = json.loads(out.read_text())
    out.unlink()
    repeats = 1 + max((point["repeat"] for point in results["results"]), default=0)
    for point in results["results"]:
        point["repeat"] += turn * repeats
    return results


def compared(given, options, folder):
    programs = {"before": os.path.abspath(given.before), "after": os.path.abspath(given.after)}
    all_results = {}
    for turn in range(given.turns):
        # Who begins changes from turn to turn, in case the second always finds a warmer machine.
        for name in sorted(programs, reverse=turn % 2 == 0):
            print(f"turn {turn + 1} of {given.turns}: {name}", file=sys.stderr, flush=True)
            results = measured(programs[name], options, turn, folder)
            all_results.setdefault(name, {**results, "results": []})["results"] += results["results"]
    for name, results in all_results.items():
        (folder / f"{name}.json").write_text(json.dumps(results))
    return subprocess.run([programs["after"], "bench", "compare", folder / "before.json", folder / "after.json"]).returncode


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--keep", help="a folder for before.json and after.json")
    own = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    options = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    given = parser.parse_args(own)
    if given.turns < 1:
        parser.error("--turns: at least 1")
    for option in options:
        if option.split("=")[0] in OWN_OPTIONS:
            parser.error(f"{option} is given by this script (--keep FOLDER keeps the results)")
    # So that the scratch folder is taken away, and the program that measures ends with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="weir-against-") as scratch:
        folder = pathlib.Path(given.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return compared(given, options, folder)
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    sys.exit(main())
