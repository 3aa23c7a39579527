#!/usr/bin/env python3
"""Replays a JUNGFRAU capture that lies in the page cache, beside what else reads the same file in the same run: `dd bs=4M`,
libpcap with its own buffer and with one of 4 MiB, and weir's reader alone; `weir replay` also with its start and its end. The
readers take turns; medians, with the least and the most. Fails instead of reporting a rate if a packet or an event is missing.
usage: replay_bench.py WEIR CAPTURE_READ [--gib N] [--turns N] [--json FILE] [--folder DIR]"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

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
[[sink]]
kind = "null"
"""
EVENT_PACKETS = 256


def run(*command):
    before = os.times()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})
    after = os.times()
    return done, after.children_user + after.children_system - before.children_user - before.children_system


def dd(path, size):
    done, cpu = run("dd", f"if={path}", "of=/dev/null", "bs=4M")
    copied, seconds = re.search(r"(\d+) bytes .* ([\d.e-]+) s,", done.stderr).groups()
    assert int(copied) == size, done.stderr
    return float(seconds), cpu


def read(program, kind, path, packets):
    records, _, seconds, cpu = run(program, kind, path)[0].stdout.split()
    assert int(records) == packets, f"{kind}: {records} records of {packets}"
    return float(seconds), float(cpu)


def replay(weir, path, folder, events, whole):
    """`whole`: from the start of the program to its end, and its CPU time; else the packets alone."""
    report = folder / "report.json"
    begin = time.monotonic()
    cpu = run(weir, "replay", path, "--config", folder / "config.toml", "--report", report, "--quiet", "--require-lossless")[1]
    seconds = time.monotonic() - begin
    found = json.loads(report.read_text())
    lost = EVENT_PACKETS * events - found["packets"]["placed"]
    assert lost == 0 and found["balanced"] and found["events"]["complete"] == events, f"{lost} packets lost"
    return (seconds, cpu) if whole else (found["seconds"], None)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("weir")
    parser.add_argument("capture_read")
    parser.add_argument("--gib", type=float, default=2)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--json")
    parser.add_argument("--folder", help="where the capture goes (default: a temporary folder)")
    options = parser.parse_args()
    events = max(1, int(options.gib * (1 << 30) / (EVENT_PACKETS * 8298)))
    with tempfile.TemporaryDirectory(prefix="weir-bench-", dir=options.folder) as name:
        folder = pathlib.Path(name)
        (folder / "config.toml").write_text(CONFIG)
        capture = folder / "bench.pcap"
        run(options.weir, "send", "--sources", 2, "--events", events, "--to", capture, "--quiet")
        size = capture.stat().st_size
        readers = {"dd": lambda: dd(capture, size),
                   "libpcap": lambda: read(options.capture_read, "libpcap", capture, EVENT_PACKETS * events),
                   "libpcap, 4 MiB": lambda: read(options.capture_read, "libpcap-4m", capture, EVENT_PACKETS * events),
                   "weir's reader": lambda: read(options.capture_read, "weir", capture, EVENT_PACKETS * events),
                   "weir replay": lambda: replay(options.weir, capture, folder, events, False),
                   "from start to end": lambda: replay(options.weir, capture, folder, events, True)}
        for reader in readers.values():
            reader()  # the page cache, and everybody once
        turns = {name: [] for name in readers}
        for _ in range(options.turns):
            for name, reader in readers.items():
                turns[name].append(reader())
        load = os.getloadavg()[0]
    results = {"bytes": size, "packets": EVENT_PACKETS * events, "lost": 0, "turns": options.turns, "load": load,
               "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "cases": {}}
    print(f"{size / 1e9:.2f} GB, {EVENT_PACKETS * events} packets, none lost; {options.turns} turns; load {load:.1f}")
    for name, found in turns.items():
        rates = [size * 1e-9 / seconds for seconds, _ in found]
        ratios = [own / base for own, base in zip(rates, [size * 1e-9 / seconds for seconds, _ in turns["dd"]])]
        case = {"gb_per_s": statistics.median(rates), "gb_per_s_min": min(rates), "gb_per_s_max": max(rates),
                "of_dd": statistics.median(ratios), "of_dd_min": min(ratios), "of_dd_max": max(ratios)}
        if found[0][1] is not None:
            case["gb_per_cpu_s"] = statistics.median(size * 1e-9 / cpu for _, cpu in found if cpu > 0)
        results["cases"][name] = case
        cpu = f"  {case['gb_per_cpu_s']:5.2f} GB per CPU second" if "gb_per_cpu_s" in case else ""
        print(f"{name:17} {case['gb_per_s']:5.2f} GB/s ({min(rates):.2f} to {max(rates):.2f})  {100 * case['of_dd']:3.0f} % of dd "
              f"({100 * min(ratios):.0f} to {100 * max(ratios):.0f}){cpu}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
