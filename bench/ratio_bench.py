#!/usr/bin/env python3
"""Micro benchmarks beside one of them, in turns: `scripts/bench ratios REFERENCE FILTER [--turns N] [--seconds S]`.

Each turn runs all of them once, one after the other, so that a ratio compares what ran within a second or two of each
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
    parser.add_argument("reference", help="name of the benchmark that the others are compared with")
    parser.add_argument("filter", help="regular expression of the others' names")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.1, help="least time for each, in each turn")
    options = parser.parse_args()
    turns = [one_turn(options.program, f"^{options.reference}$|{options.filter}", options.seconds) for _ in range(options.turns)]
    if options.reference not in turns[0]:
        print(f"scripts/bench: there is no benchmark '{options.reference}'", file=sys.stderr)
        return 1
    load = os.getloadavg()[0]
    print(f"{options.turns} turns, load average {load:.1f} on {os.cpu_count()} CPUs; median (least to most)\n")
    print(f"| benchmark | ms | rate, of {options.reference} | time, of it |\n|---|---|---|---|")
    for name in turns[0]:
        times = [turn[name] / 1e6 for turn in turns]
        rates = [100 * turn[options.reference] / turn[name] for turn in turns]
        ratios = [turn[name] / turn[options.reference] for turn in turns]
        print(f"| {name} | {spread(times, '.3g')} | {spread(rates, '.0f')} % | {spread(ratios, '.2f')} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
