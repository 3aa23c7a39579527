#!/usr/bin/env python3
"""The same events as UDP fragments and as RoCEv2 messages (SEND and WRITE, UC and RC), from `weir send` through one memif link into the
same `weir run`, by `weir bench`: as fast as they go, without losses on the way and with 0.1 % and 1 %. Fails instead of reporting where a
trial says nothing, or where a reliable connection lost something.
usage: transport_bench.py WEIR [--quick] [--seconds S] [--turns N] [--json FILE] [--commit ID]"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

TRANSPORTS = ("dpdk-udp", "dpdk-roce-write", "dpdk-roce-send", "dpdk-roce-write-rc", "dpdk-roce-send-rc")


def measured(options, sizes, loss):
    """What weir bench found: packets of 4096 bytes at most, events of two messages."""
    command = [options.weir, "bench", "--loopback", "--over", "memif", "--sender", "weir", "--depth", "assemble", "--transport", ",".join(TRANSPORTS),
               "--bytes", 4096, "--message-bytes", ",".join(map(str, sizes)), "--sources", 2, "--at", "max", "--seconds", options.seconds,
               "--repeats", options.turns, "--quiet"]
    if loss:
        command += ["--sender-fault", f"drop={loss}"]
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        out = pathlib.Path(folder) / "results.json"
        done = subprocess.run([*map(str, command), "--json", out], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"transport_bench: {done.stderr}")
        return json.loads(out.read_text())


def case_of(points, size, loss):
    """The repeats of one transport and size, as medians."""
    trials = [trial for point in points for trial in point["trials"] if trial["valid"]]
    why = [point["not_available"] for point in points if point["not_available"]]
    if why or not trials:
        sys.exit(f"transport_bench: {points[0]['transport']}, {size} bytes: {why[0] if why else points[0]['trials'][0]['why']}")
    of_event = 2 * points[0]["packets_per_message"]
    transport = points[0]["transport"]
    if transport.endswith("-rc") and any(trial["loss_ratio"] for trial in trials):
        sys.exit(f"transport_bench: {transport}, {size} bytes: a reliable connection lost something: {trials}")
    rates = [trial["messages"] / trial["took_s"] for trial in trials]
    per_packet = lambda side: statistics.median(trial["cpu_s"][side] * 1e9 / max(1, trial["sent"]) for trial in trials)
    return {"transport": transport, "bytes": size, "loss": loss, "turns": len(trials),
            "events_per_s": statistics.median(rates), "events_per_s_min": min(rates), "events_per_s_max": max(rates),
            "gbps": statistics.median(rates) * of_event * points[0]["bytes"] * 8e-9,
            "send_ns_per_packet": per_packet("sender"), "receive_ns_per_packet": per_packet("receiver"),
            "lost": statistics.median(trial["loss_ratio"] for trial in trials)}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("weir")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--turns", type=int)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    options.seconds = options.seconds or (0.3 if options.quick else 1)
    options.turns = options.turns or (1 if options.quick else 3)
    sizes, losses = ((4096, 65536), (0, 0.01)) if options.quick else ((1024, 4096, 65536), (0, 0.001, 0.01))
    results = {"commit": options.commit, "sources": 2, "seconds": options.seconds, "turns": options.turns, "cases": []}
    print(f"{'bytes':>6} {'loss':>6} {'transport':20}{'events/s':>10}{'min..max':>20}{'Gb/s':>8}{'send ns':>9}{'recv ns':>9}{'lost':>9}")
    for loss in losses:
        found = measured(options, sizes, loss)
        results["hosts"] = found["hosts"]
        for size in sizes:
            for transport in TRANSPORTS:
                # A message has whole packets: as many of 4096 bytes as go into it, or a shorter one.
                points = [point for point in found["results"] if point["transport"] == transport
                          and point["packets_per_message"] == max(1, size // (min(size, 4096) - 20)) and point["bytes"] == min(size, 4096)]
                case = case_of(points, size, loss)
                results["cases"].append(case)
                spread = f"{case['events_per_s_min']:.0f}..{case['events_per_s_max']:.0f}"
                print(f"{size:6} {loss:6.1%} {transport:20}{case['events_per_s']:10.0f}{spread:>20}{case['gbps']:8.2f}{case['send_ns_per_packet']:9.0f}"
                      f"{case['receive_ns_per_packet']:9.0f}{case['lost']:9.2%}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
