#!/usr/bin/env python3
"""Replays a capture that lies in the page cache, beside what else reads the same file in the same run: `dd bs=4M`, libpcap with
its own buffer and with one of 4 MiB, and weir's reader alone; `weir replay` also with its start and its end, and so with an lcore that
sleeps when idle, and `spead2_recv`. The readers take turns; medians, with the least and the most. Fails instead of reporting a rate if a packet, an event or a heap is missing.
The capture is of a JUNGFRAU module, or with --payload of SPEAD heaps in packets of N bytes.
usage: replay_bench.py WEIR CAPTURE_READ [--gib N] [--turns N] [--payload N [--spead2 SPEAD2_RECV]] [--json FILE] [--folder DIR]"""
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
{stream}
[events]
sources = {sources}
[lcores]
idle = "{idle}"
[[sink]]
kind = "null"
"""


class Jungfrau:
    packets, frame_bytes, sources = 256, 8298, 2  # of an event; of a frame with its record
    stream = 'udp_dst = [50001, 50002]\nformat = "jungfrau"'
    send = ()


class Spead:
    sources = 1
    stream = 'udp_dst = 7148\nformat = "spead"'

    def __init__(self, payload):
        self.packets = 64 if payload > 1024 else 32
        self.heap_bytes, self.frame_bytes = self.packets * payload, payload + 114
        # IP, UDP, packet header and six items
        self.send = ("--format", "spead", "--bytes-min", self.heap_bytes, "--bytes", self.heap_bytes, "--mtu", payload + 84)


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


def spead2_recv(program, path, kind, heaps):
    begin = time.monotonic()
    done, cpu = run(program, "--quiet", "--mem-pool", "--mem-lower", kind.heap_bytes, "--mem-upper", kind.heap_bytes, path)
    seconds = time.monotonic() - begin
    found = {name: int(value) for name, value in re.findall(r"^(\w+): (\d+)$", done.stdout, re.M)}
    assert f"Received {heaps} heaps" in done.stdout and found["packets"] == kind.packets * heaps, done.stdout
    return seconds, cpu


def replay(weir, path, folder, packets, events, whole, idle="pause"):
    """`whole`: from the start of the program to its end, and its CPU time; else the packets alone."""
    report = folder / "report.json"
    begin = time.monotonic()
    cpu = run(weir, "replay", path, "--config", folder / f"{idle}.toml", "--report", report, "--quiet", "--require-lossless")[1]
    seconds = time.monotonic() - begin
    found = json.loads(report.read_text())
    lost = packets - found["packets"]["placed"]
    assert lost == 0 and found["balanced"] and found["events"]["complete"] == events, f"{lost} packets lost"
    return (seconds, cpu) if whole else (found["seconds"], None)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("weir")
    parser.add_argument("capture_read")
    parser.add_argument("--gib", type=float, default=2)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--payload", type=int)
    parser.add_argument("--spead2")
    parser.add_argument("--json")
    parser.add_argument("--folder", help="where the capture goes (default: a temporary folder)")
    options = parser.parse_args()
    if options.spead2 and not options.payload:
        parser.error("--spead2 needs --payload")
    kind = Spead(options.payload) if options.payload else Jungfrau()
    events = max(1, int(options.gib * (1 << 30) / (kind.packets * kind.frame_bytes)))
    packets = kind.packets * events
    with tempfile.TemporaryDirectory(prefix="weir-bench-", dir=options.folder) as name:
        folder = pathlib.Path(name)
        for idle in ("pause", "sleep"):
            (folder / f"{idle}.toml").write_text(CONFIG.format(stream=kind.stream, sources=kind.sources, idle=idle))
        capture = folder / "bench.pcap"
        run(options.weir, "send", *kind.send, "--sources", kind.sources, "--events", events, "--to", capture, "--quiet")
        size = capture.stat().st_size
        readers = {"dd": lambda: dd(capture, size),
                   "libpcap": lambda: read(options.capture_read, "libpcap", capture, packets),
                   "libpcap, 4 MiB": lambda: read(options.capture_read, "libpcap-4m", capture, packets),
                   "weir's reader": lambda: read(options.capture_read, "weir", capture, packets),
                   "weir replay": lambda: replay(options.weir, capture, folder, packets, events, False),
                   "from start to end": lambda: replay(options.weir, capture, folder, packets, events, True),
                   "the same, sleeping": lambda: replay(options.weir, capture, folder, packets, events, True, "sleep")}
        if options.spead2:
            readers["spead2_recv"] = lambda: spead2_recv(options.spead2, capture, kind, events)
        for reader in readers.values():
            reader()  # the page cache, and everybody once
        turns = {name: [] for name in readers}
        for _ in range(options.turns):
            for name, reader in readers.items():
                turns[name].append(reader())
        load = os.getloadavg()[0]
    results = {"bytes": size, "packets": packets, "lost": 0, "turns": options.turns, "load": load,
               "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "cases": {}}
    print(f"{size / 1e9:.2f} GB, {packets} packets, none lost; {options.turns} turns; load {load:.1f}")
    for name, found in turns.items():
        rates = [size * 1e-9 / seconds for seconds, _ in found]
        ratios = [own / base for own, base in zip(rates, [size * 1e-9 / seconds for seconds, _ in turns["dd"]])]
        case = {"gb_per_s": statistics.median(rates), "gb_per_s_min": min(rates), "gb_per_s_max": max(rates),
                "of_dd": statistics.median(ratios), "of_dd_min": min(ratios), "of_dd_max": max(ratios)}
        if found[0][1] is not None:
            case["gb_per_cpu_s"] = statistics.median(size * 1e-9 / cpu for _, cpu in found if cpu > 0)
        results["cases"][name] = case
        cpu = f"  {case['gb_per_cpu_s']:5.2f} GB per CPU second" if "gb_per_cpu_s" in case else ""
        print(f"{name:18} {case['gb_per_s']:5.2f} GB/s ({min(rates):.2f} to {max(rates):.2f})  {100 * case['of_dd']:3.0f} % of dd "
              f"({100 * min(ratios):.0f} to {100 * max(ratios):.0f}){cpu}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
