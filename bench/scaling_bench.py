#!/usr/bin/env python3
"""How `weir replay` of one JUNGFRAU capture with zstd scales with worker lcores: 1 lcore with everything on it, then rx and build on
one lcore and 1, 2, 4, ... workers beside it, as far as there are CPUs. The events must be the same in every case.
usage: scaling_bench.py WEIR [--gib N] [--turns N] [--json FILE]"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

CONFIG = """[[port]]
name = "det0"
device = "net_null0"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001, 50002]
format = "jungfrau"
[events]
sources = 2
[[reduce]]
kind = "zstd"
level = 1
[[sink]]
kind = "null"
[lcores]
rx = [{rx}]
build = [{rx}]
work = {work}
"""
EVENT_PACKETS = 256


def replay(weir, capture, folder, rx, work, events):
    (folder / "c.toml").write_text(CONFIG.format(rx=rx, work=work))
    subprocess.run([weir, "replay", capture, "--config", folder / "c.toml", "--report", folder / "r.json", "--quiet"], check=True)
    found = json.loads((folder / "r.json").read_text())
    assert found["balanced"] and found["events"]["complete"] == events, found["events"]
    return events / found["seconds"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("weir")
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    events = max(8, int(options.gib * (1 << 30) / (EVENT_PACKETS * 8298)))
    cases = {"everything on 1 lcore": (cpus[-1], [cpus[-1]])}
    workers = 1
    while workers + 2 <= len(cpus):  # the first CPU is the reader's, the last one rx's
        cases[f"rx and build, {workers} worker{'s'[:workers > 1]}"] = (cpus[-1], cpus[1:1 + workers])
        workers *= 2
    found = {name: [] for name in cases}
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        folder = pathlib.Path(name)
        subprocess.run([options.weir, "send", "--sources", "2", "--events", str(events), "--to", folder / "c.pcap", "--quiet"], check=True)
        for _ in range(options.turns):
            for case, (rx, work) in cases.items():
                found[case].append(replay(options.weir, folder / "c.pcap", folder, rx, work, events))
    base = statistics.median(found["everything on 1 lcore"])
    results = {"events": events, "turns": options.turns, "cpus": len(cpus), "load": os.getloadavg()[0], "cases": {}}
    for case, rates in found.items():
        results["cases"][case] = {"events_per_s": statistics.median(rates), "min": min(rates), "max": max(rates)}
        print(f"{case:28} {statistics.median(rates):7.0f} events/s ({min(rates):.0f} to {max(rates):.0f})  x {statistics.median(rates) / base:.2f}")
    if workers == 1:
        print(f"{len(cpus)} CPUs: nothing beyond one lcore can be measured here; three are needed")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
