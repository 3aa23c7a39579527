#!/usr/bin/env python3
"""What sinks take end to end, and what a slow one costs: `weir replay --loop` of one JUNGFRAU capture in the page cache into each of them,
in turns, on the same disk.

usage: sinks_bench.py WEIR FOLDER [--mib N] [--rounds N] [--json FILE]

The rate is that of a replay that waits for its sink, until all of it is synced: payload over the report's seconds. The loss is that of
the same replay with --drop --pace, where packets come at RATE times the rate of the events sink through the page cache and wait for
nobody: the part of the events that were not written whole.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import struct
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
memory = "128MiB"
sources = 2
[[sink]]
{sink}
"""
SINKS = {
    "null": 'kind = "null"',
    "events, page cache": 'kind = "events"\npath = "unused"\ndirect = "off"',
    "events, direct": 'kind = "events"\npath = "unused"\ndirect = "auto"',
    "hdf5": 'kind = "hdf5"\npath = "unused"',
}
EVENT_MIB = 2  # of two modules
RATE = 1.5


class Bench:
    def __init__(self, weir, folder, mib):
        self.weir, self.folder = weir, folder
        events = min(200, max(8, mib // EVENT_MIB))
        self.loops = max(1, round(mib / EVENT_MIB / events))
        self.events = events * self.loops
        self.capture = folder / "c.pcap"
        subprocess.run([weir, "send", "--sources", "2", "--events", str(events), "--to", self.capture, "--quiet"], check=True)
        self.capture.read_bytes()  # into the page cache

    def replay(self, sink, *more):
        (self.folder / "c.toml").write_text(CONFIG.format(sink=SINKS[sink]))
        out = [] if sink == "null" else ["--out", self.folder / "run"]
        os.sync()  # what the run before has left behind is not this one's
        subprocess.run([self.weir, "replay", self.capture, "--config", self.folder / "c.toml", "--loop", str(self.loops),
                        "--report", self.folder / "r.json", "--quiet", *out, *more], check=True)
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        report = json.loads((self.folder / "r.json").read_text())
        assert report["balanced"], report
        return report

    def rate(self, sink):
        report = self.replay(sink)
        assert report["events"]["written"] == self.events, report["events"]
        how = report.get("sinks", [{}])[0] if sink != "null" else {}
        return self.events * EVENT_MIB / report["seconds"], how

    def loss(self, sink, mib_per_s):
        """With the capture at this rate, waiting for nobody."""
        report = self.replay(sink, "--drop", "--pace", f"x{mib_per_s / self.recorded_mib_per_s():.6g}")
        whole = report["events"]["complete"] - sum(report["events"]["dropped"].values())
        return 1 - whole / self.events

    def recorded_mib_per_s(self):
        """By the time stamps of the capture."""
        size = self.capture.stat().st_size
        with open(self.capture, "rb") as file:
            magic, = struct.unpack("<I", file.read(4))
            file.seek(24)
            seconds, fraction, length, _ = struct.unpack("<IIII", file.read(16))
            file.seek(size - length - 16)
            last_seconds, last_fraction, last_length, _ = struct.unpack("<IIII", file.read(16))
        assert length == last_length, "packets of one length"
        unit = 1e-9 if magic == 0xa1b23c4d else 1e-6
        duration = last_seconds - seconds + (last_fraction - fraction) * unit
        return self.events / self.loops * EVENT_MIB / duration


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("folder")
    parser.add_argument("--mib", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    rates = {sink: [] for sink in SINKS}
    losses = {sink: [] for sink in SINKS}
    how = {}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="weir-sinks-bench-") as name:
        bench = Bench(options.weir, pathlib.Path(name), options.mib)
        for turn in range(options.rounds):
            for sink in SINKS if turn % 2 == 0 else reversed(SINKS):
                rate, how[sink] = bench.rate(sink)
                rates[sink].append(rate)
        wanted = RATE * statistics.median(rates["events, page cache"])
        for _ in range(options.rounds):
            for sink in SINKS:
                losses[sink].append(bench.loss(sink, wanted))
    print(f"{bench.events} events of {EVENT_MIB} MiB, {options.rounds} rounds; medians, smallest and largest")
    print(f"{'sink':20} {'MiB/s, waiting':>28}   lost at {wanted:.0f} MiB/s, not waiting")
    for sink in SINKS:
        low, high = min(losses[sink]), max(losses[sink])
        text = f"{statistics.median(rates[sink]):.0f} ({min(rates[sink]):.0f} to {max(rates[sink]):.0f})"
        note = how[sink].get("note") or ("O_DIRECT" if how[sink].get("direct") else "")
        print(f"{sink:20} {text:>28}   {statistics.median(losses[sink]):.1%} ({low:.1%} to {high:.1%})  {note}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"events": bench.events, "rates_mib_per_s": rates, "lost": losses,
                                                          "offered_mib_per_s": wanted, "load": os.getloadavg()[0], "how": how}, indent=1) + "\n")


if __name__ == "__main__":
    main()
