#!/usr/bin/env python3
"""What it costs a run to be watched: `weir run` at a fixed rate, in turns without [serve], with it and nobody looking, and with viewers of
the page's updates, each of whom also takes the picture and the metrics as a browser and Prometheus would.
usage: watch_bench.py WEIR [--viewers N] [--rate EVENTS_PER_S] [--seconds S] [--turns N] [--json FILE]"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request

CONFIG = """[[port]]
name = "det0"
device = "sim,format=jungfrau,rate={rate},seed=1"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001, 50002]
format = "jungfrau"
[events]
sources = 2
[[sink]]
kind = "events"
path = "{folder}/run"
sync = "never"
[lcores]
rx = [{cpu}]
build = [{cpu}]
work = [{cpu}]
"""
SERVE = """[serve]
listen = "127.0.0.1:{port}"
socket = "{folder}/s"
updates_per_s = 5
"""
PORT = 19321


class Viewer(threading.Thread):
    """Reads the updates until it is told to stop."""

    def __init__(self, stop):
        super().__init__(daemon=True)
        self.stop, self.updates = stop, 0

    def run(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/events", timeout=10) as stream:
            for line in stream:
                self.updates += line.startswith(b"data:")
                if self.stop.is_set():
                    return


def poll_others(stop):
    """What a browser and Prometheus ask besides: the picture once a second, metrics every five."""
    for second in range(1000000):
        for path in ["/picture", *(["/metrics"] if second % 5 == 0 else [])]:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=10).read()
            except OSError:
                pass
        if stop.wait(1):
            return


def one_run(options, viewers):
    """ns of the lcore per packet, and packets that were lost, and updates that each viewer got per second."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-", dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        text = CONFIG.format(rate=options.rate, folder=folder, cpu=max(os.sched_getaffinity(0)))
        if viewers is not None:
            text += SERVE.format(port=PORT, folder=folder)
        (folder / "c.toml").write_text(text)
        weir = subprocess.Popen([options.weir, "run", "--config", folder / "c.toml", "--report", folder / "r.json", "--quiet"], stderr=subprocess.DEVNULL)
        stop = threading.Event()
        watchers = []
        time.sleep(1)
        if viewers:
            watchers = [Viewer(stop) for _ in range(viewers)]
            watchers.append(threading.Thread(target=poll_others, args=[stop], daemon=True))
            for watcher in watchers:
                watcher.start()
        time.sleep(options.seconds)
        stop.set()
        weir.send_signal(signal.SIGINT)
        weir.wait()
        for watcher in watchers:
            watcher.join(5)
        report = json.loads((folder / "r.json").read_text())
        assert report["balanced"], report
        packets = report["packets"]["received"]
        busy_s = sum(stage["busy"] for stage in report["stages"].values()) * report["seconds"]
        lost = sum(report["packets"]["dropped"].values()) + (report["device_missed"] or 0)
        updates = [watcher.updates / options.seconds for watcher in watchers if isinstance(watcher, Viewer)]
        return busy_s * 1e9 / packets, lost, statistics.mean(updates) if updates else None


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("weir")
    parser.add_argument("--viewers", type=int, default=10)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    cases = {"without [serve]": None, "nobody looks": 0, f"{options.viewers} viewers": options.viewers}
    found = {case: [] for case in cases}
    for _ in range(options.turns):
        for case, viewers in cases.items():
            found[case].append(one_run(options, viewers))
    base = statistics.median(cost for cost, _, _ in found["without [serve]"])
    results = {"rate": options.rate, "turns": options.turns, "cpus": os.cpu_count(), "load": os.getloadavg()[0], "cases": {}}
    for case, runs in found.items():
        costs = [cost for cost, _, _ in runs]
        lost = sum(lost for _, lost, _ in runs)
        updates = [each for _, _, each in runs if each is not None]
        results["cases"][case] = {"ns_per_packet": statistics.median(costs), "min": min(costs), "max": max(costs), "lost_packets": lost,
                                  "updates_per_s": statistics.mean(updates) if updates else None}
        seen = f", {statistics.mean(updates):.1f} updates/s each" if updates else ""
        print(f"{case:18} {statistics.median(costs):7.1f} ns of the lcore per packet ({min(costs):.1f} to {max(costs):.1f})"
              f"  x {statistics.median(costs) / base:.2f}, {lost} packets lost{seen}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
