#!/usr/bin/env python3
"""The Python reader beside numpy.fromfile: a run of raw JUNGFRAU events in the page cache, read as arrays with every checksum checked, and
its segments read as plain bytes, in turns.

usage: python_bench.py WEIR [--mib N] [--rounds N] [--json FILE]

A rate is payload over wall time: the median of the rounds, and the least and the greatest; then over CPU time. One process at a time, one
thread. A busy machine makes wall times worthless; the quotients of the medians, and CPU times, suffer less.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
if "WEIR_BENCH_PYTHON" not in os.environ:
    try:
        import numpy
    except ImportError:  # another Python of this machine may have it
        os.execve("/usr/bin/python3", ["/usr/bin/python3", *sys.argv], {**os.environ, "WEIR_BENCH_PYTHON": "1"})
import numpy  # noqa: E402

sys.path.insert(0, str(ROOT / "python"))
import weir  # noqa: E402
from weir import _crc32c  # noqa: E402

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
kind = "events"
path = "unused"
"""
EVENT_BYTES = 2 << 20


def make(program, folder, mib):
    events = max(8, (mib << 20) // EVENT_BYTES)
    once = min(events, 100)
    (folder / "c.toml").write_text(CONFIG)
    subprocess.run([program, "send", "--sources", "2", "--events", str(once), "--to", folder / "c.pcap", "--quiet"], check=True)
    subprocess.run([program, "replay", folder / "c.pcap", "--config", folder / "c.toml", "--loop", str(max(1, events // once)), "--out",
                    folder / "run", "--quiet"], check=True)
    return folder / "run"


def fromfile(path):
    return sum(numpy.fromfile(file, numpy.uint8).size for file in sorted(path.glob("events-*.weir")))


def arrays(path):
    with weir.open(path) as run:
        return sum(event.array().nbytes for event in run)


def verify(path):
    with weir.open(path) as run:
        problems = run.verify()
        assert not problems, problems
        return run.manifest["payload_bytes"]


def with_crc(name, read):
    """The same reading with another implementation of the checksum."""
    def function(path):
        before = weir._payload.crc32c, weir._scan.crc32c
        weir._payload.crc32c = weir._scan.crc32c = _crc32c.chosen([name])[1]
        try:
            return read(path)
        finally:
            weir._payload.crc32c, weir._scan.crc32c = before
    return function


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir")
    parser.add_argument("--mib", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json")
    options = parser.parse_args()
    ways = {"numpy.fromfile": fromfile}
    for name in _crc32c.IMPLEMENTATIONS:
        try:
            _crc32c.chosen([name])
        except ImportError:
            print(f"no CRC-32C by {name} here")
            continue
        ways[f"weir arrays, CRC by {name}"] = with_crc(name, arrays)
    ways[f"weir verify, CRC by {_crc32c.IMPLEMENTATION}"] = verify
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        path = make(options.weir, pathlib.Path(folder), options.mib)
        rates, by_cpu = ({way: [] for way in ways} for _ in range(2))
        for way in ways.values():
            way(path)  # into the page cache, and tables into memory
        for _ in range(options.rounds):
            for way, read in ways.items():
                start, cpu = time.perf_counter(), time.process_time()
                size = read(path)
                rates[way].append(size / (time.perf_counter() - start) / 1e9)
                by_cpu[way].append(size / (time.process_time() - cpu) / 1e9)
    base = statistics.median(rates["numpy.fromfile"])
    print(f"{'GB/s':32} {'median':>7} {'least':>7} {'most':>7} {'of fromfile':>12} {'per CPU s':>10}")
    for way, values in rates.items():
        median = statistics.median(values)
        print(f"{way:32} {median:7.2f} {min(values):7.2f} {max(values):7.2f} {median / base:12.2f} {statistics.median(by_cpu[way]):10.2f}")
    if options.json:
        machine = {"cpus": os.cpu_count(), "numpy": numpy.__version__, "python": sys.version.split()[0]}
        pathlib.Path(options.json).write_text(json.dumps({"gb_per_s": rates, "gb_per_cpu_s": by_cpu, "machine": machine}, indent=1) + "\n")


if __name__ == "__main__":
    main()
