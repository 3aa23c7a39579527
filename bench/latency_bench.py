#!/usr/bin/env python3
"""From the arrival of a small event's last packet to weir's decision: the event is in an output buffer, or vetoed. `weir run` on the
simulated detector (a DPDK ring device in the process) at a moderate rate, with everything on one lcore, and with rx, builder and
worker on lcores of their own where there are CPUs for them. Beside it, in the same run, what one hand-off between two lcores takes.
Fails where a packet was lost or an event was incomplete.
usage: latency_bench.py WEIR HANDOFF [--turns N] [--seconds S] [--rate EVENTS_PER_S] [--json FILE]"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

CONFIG = """[[port]]
name = "det0"
device = "sim,format=ejfat,bytes=512,rate={rate}"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [19522, 19523]
format = "ejfat"
[events]
sources = 2
memory = "256MiB"
timeout_ms = 2000
[[sink]]
kind = "null"
[lcores]
rx = [{rx}]
build = [{build}]
work = [{work}]
idle = "{idle}"
"""
QUANTILES = ("p50", "p99", "p99.9", "longest")


def run(weir, folder, lcores, options, idle):
    report, settings = folder / "report.json", folder / "run.toml"
    settings.write_text(CONFIG.format(rate=options.rate, rx=lcores[0], build=lcores[1], work=lcores[2], idle=idle))
    done = subprocess.run([weir, "run", "--config", settings, "--report", report, "--duration", str(options.seconds), "--quiet"],
                          capture_output=True, text=True, timeout=options.seconds + 60)
    if done.returncode != 0:
        sys.exit(f"latency_bench: weir run: exit {done.returncode}\n{done.stdout}{done.stderr}")
    found = json.loads(report.read_text())
    lost = sum(found["packets"]["dropped"].values())
    if lost or not found["balanced"] or sum(v for k, v in found["events"]["incomplete"].items() if k != "end_of_run"):
        sys.exit(f"latency_bench: {lost} packets dropped, incomplete: {found['events']['incomplete']}: no latency is told of a run with losses")
    if found["latency_ns"]["events"] == 0:
        sys.exit("latency_bench: no event came")
    return found["latency_ns"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir")
    parser.add_argument("handoff")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=20000, help="events per second")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    one = cpus[-1]
    layouts = {"one lcore, spinning": ((one, one, one), "spin"), "one lcore, sleeping when idle": ((one, one, one), "sleep")}
    if len(cpus) >= 4:  # one is left for the simulated detector
        layouts["three lcores, spinning"] = (tuple(cpus[-3:]), "spin")
    else:
        print(f"three lcores: left out, there are {len(cpus)} CPUs and the simulated detector needs one")
    results = {name: [] for name in layouts}
    with tempfile.TemporaryDirectory(prefix="weir-latency-") as folder:
        for _ in range(options.turns):
            for name, (lcores, idle) in layouts.items():
                results[name].append(run(options.weir, pathlib.Path(folder), lcores, options, idle))
    print(f"{options.rate} events/s of 2 messages of up to 512 bytes, {options.turns} turns of {options.seconds} s; us, median over the turns [lowest, highest]; no loss")
    table = {}
    for name, turns in results.items():
        table[name] = {"events": sum(turn["events"] for turn in turns)}
        text = []
        for quantile in QUANTILES:
            values = sorted(turn[quantile] / 1000 for turn in turns)
            table[name][quantile] = {"median": statistics.median(values), "lowest": values[0], "highest": values[-1]}
            text.append(f"{quantile} {statistics.median(values):.1f} [{values[0]:.1f}, {values[-1]:.1f}]")
        print(f"  {name:30}  {'  '.join(text)}  ({table[name]['events']} events)")
    handoff = subprocess.run([options.handoff], capture_output=True, text=True, timeout=300)
    print("one hand-off between two lcores, in the same run:\n" + handoff.stdout)
    if options.json:
        options.json.write_text(json.dumps({"rate": options.rate, "latency_us": table, "handoff": handoff.stdout}, indent=1) + "\n")


if __name__ == "__main__":
    main()
