#!/usr/bin/env python3
"""Micro benchmarks beside others, in turns: `scripts/bench ratios FILTER --of NAME | --pairs WORD [--turns N] [--seconds S]`.

--of NAME compares all with one of them, --pairs library compares each NAME with NAME/library. Each turn runs all of them once, one after the other, so that a ratio compares what ran within a second or two of each
other; printed are the medians over the turns, with the smallest and the largest."""
import argparse
import json
import os
import statistics
import subprocess
import sys


def one_turn(program: str, names: str, seconds: float) -> dict[str, float]:
    """CPU time of an iteration, in ns, by name."""
    out = subprocess.run([program, f"--benchmark_filter={names}", f"--benchmark_min_time={seconds}", "--benchmark_format=json"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    unit = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    return {row["name"]: row["cpu_time"] * unit[row["time_unit"]] for row in json.loads(out)["benchmarks"]}


def spread(values: list[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench ratios", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("filter", help="regular expression of the names of those that are compared")
    beside = parser.add_mutually_exclusive_group(required=True)
    beside.add_argument("--of", metavar="NAME", help="the benchmark that all are compared with")
    beside.add_argument("--pairs", metavar="WORD", help="each is compared with the one that has /WORD after its name")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.1, help="least time for each, in each turn")
    options = parser.parse_args()
    names = f"^{options.of}$|{options.filter}" if options.of else options.filter
    turns = [one_turn(options.program, names, options.seconds) for _ in range(options.turns)]
    beside_of = {name: options.of or f"{name}/{options.pairs}" for name in turns[0]}
    compared = [name for name, other in beside_of.items() if other in turns[0]]
    if not compared:
        print("scripts/bench: nothing to compare with", file=sys.stderr)
        return 1
    print(f"{options.turns} turns, load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; median (least to most)\n")
    print("| benchmark | ms | beside | its rate | its time |\n|---|---|---|---|---|")
    for name in compared:
        other = beside_of[name]
        times = [turn[name] / 1e6 for turn in turns]
        rates = [100 * turn[other] / turn[name] for turn in turns]
        ratios = [turn[name] / turn[other] for turn in turns]
        print(f"| {name} | {spread(times, '.3g')} | {other} | {spread(rates, '.0f')} % | {spread(ratios, '.2f')} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
