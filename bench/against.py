#!/usr/bin/env python3
"""`weir bench --loopback` of two programs in turns, so that what the machine does meanwhile meets both, and then `weir bench compare`.

usage: against.py BEFORE AFTER [--turns N] [--keep FOLDER] [-- OPTIONS OF weir bench]      BEFORE, AFTER: two programs `weir`
Exit status: that of the comparison, 1 if something is worse.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def measured(weir, options, turn, folder):
    """The points of one turn of a program."""
    out = folder / "turn.json"
    subprocess.run([weir, "bench", "--loopback", *options, "--json", out, "--quiet"], check=True)
    results = json.loads(out.read_text())
    for point in results["results"]:
        point["repeat"] = turn
    return results


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--keep", help="a folder for before.json and after.json")
    own = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    options = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    given = parser.parse_args(own)
    programs = {"before": given.before, "after": given.after}
    all_results = {}
    with tempfile.TemporaryDirectory(prefix="weir-against-") as scratch:
        folder = pathlib.Path(given.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for turn in range(given.turns):
            # Who begins changes from turn to turn, in case the second always finds a warmer machine.
            for name in sorted(programs, reverse=turn % 2 == 0):
                print(f"turn {turn + 1} of {given.turns}: {name}", file=sys.stderr, flush=True)
                results = measured(programs[name], options, turn, folder)
                all_results.setdefault(name, {**results, "results": []})["results"] += results["results"]
        for name, results in all_results.items():
            (folder / f"{name}.json").write_text(json.dumps(results))
        return subprocess.run([given.after, "bench", "compare", folder / "before.json", folder / "after.json"]).returncode


if __name__ == "__main__":
    sys.exit(main())
