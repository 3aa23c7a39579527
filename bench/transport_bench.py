#!/usr/bin/env python3
"""The same events as UDP fragments and as RoCEv2 messages (SEND and WRITE, UC and RC), from `weir send` through one memif link into the
same `weir run`: events/s, Gb/s of payload, CPU time per packet on both sides, and what was lost and why, without losses on the way and with
0.1 % and 1 %. Fails instead of reporting where an account does not balance, or where a reliable connection lost something.
usage: transport_bench.py WEIR [--quick] [--seconds S] [--turns N] [--json FILE] [--commit ID]"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PATH_MTU = 4096
HEADERS = {"udp": 20 + 8 + 20}  # IPv4, UDP and the EJFAT header: UDP packets carry as much as those of RoCE
SOURCES = 2
CONFIG = """[[port]]
name = "link"
device = "net_memif0,role=server,socket={socket},socket-abstract=no,bsize=10240,rsize=11"
address = "10.1.0.2/24"
[[stream]]
port = "link"
{stream}
[events]
sources = 2
memory = "512MiB"
timeout_ms = 20000
[[sink]]
kind = "null"
[lcores]
rx = [{cpu}]
build = [{cpu}]
work = [{cpu}]
idle = "sleep"
"""
UDP = 'transport = "udp"\nudp_dst = [19522, 19523]\nformat = "ejfat"'
ROCE = """transport = "roce"
qp = [0x11, 0x12]
format = "message"
event = "immediate"
service = "{service}"
region = {{ va = 0x10000000, bytes = "16MiB", rkey = 0x1234, count = 2, stride = 0x10000000 }}"""
PEER = "\npeer = [{ qp = 0x11 }, { qp = 0x12 }]"
TRANSPORTS = {
    "udp": (UDP, ("--format", "ejfat")),
    "uc-write": (ROCE.format(service="uc"), ("--format", "message", "--transport", "roce-write", "--service", "uc")),
    "uc-send": (ROCE.format(service="uc"), ("--format", "message", "--transport", "roce-send", "--service", "uc")),
    "rc-write": (ROCE.format(service="rc") + PEER, ("--format", "message", "--transport", "roce-write", "--service", "rc")),
    "rc-send": (ROCE.format(service="rc") + PEER, ("--format", "message", "--transport", "roce-send", "--service", "rc")),
}


def cpu_seconds(pid):
    """Time on a CPU of all threads of a process that have not ended."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except OSError:
            pass
    return total * 1e-9


class Receiver:
    def __init__(self, weir, folder, stream, cpu):
        self.report, self.socket = folder / "report.json", folder / "link.sock"
        for file in (self.report, self.socket):
            file.unlink(missing_ok=True)
        (folder / "run.toml").write_text(CONFIG.format(socket=self.socket, stream=stream, cpu=cpu))
        self.errors = open(folder / "run.txt", "w+")
        self.process = subprocess.Popen([weir, "run", "--config", folder / "run.toml", "--report", self.report], stdout=subprocess.DEVNULL,
                                        stderr=self.errors, text=True)
        end = time.monotonic() + 30
        while "running" not in self.said():
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                sys.exit(f"transport_bench: weir run did not come up:\n{self.said()}")
            time.sleep(0.05)
        self.cpu_at_start = cpu_seconds(self.process.pid)

    def said(self):
        return pathlib.Path(self.errors.name).read_text()

    def end(self):
        time.sleep(0.1)
        cpu = cpu_seconds(self.process.pid) - self.cpu_at_start
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        if status != 0:
            sys.exit(f"transport_bench: weir run ended with {status}:\n{self.said()}")
        report = json.loads(self.report.read_text())
        if not report["balanced"]:
            sys.exit(f"transport_bench: the account does not balance: {json.dumps(report['packets'])}\n{self.said()}")
        return report, cpu


def send(weir, folder, transport, size, loss, cpu, *limit):
    """The sender's account, with the time that it had on a CPU."""
    report = folder / "sent.json"
    mtu = PATH_MTU + HEADERS.get(transport, 0)
    command = ["taskset", "-c", cpu, weir, "send", *TRANSPORTS[transport][1], "--sources", SOURCES, "--bytes", size, "--bytes-min", size, "--mtu", mtu,
               "--drop", loss, *limit, "--quiet", "--report", report, "--to",
               f"device:net_memif0,role=client,socket={folder / 'link.sock'},socket-abstract=no,bsize=10240,rsize=11"]
    if transport.startswith("rc"):
        command += ["--depth", 64, "--window", 256, "--timeout", 67, "--retry", 100]
    before = os.times()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    after = os.times()
    if done.returncode != 0:
        sys.exit(f"transport_bench: {transport}: weir send failed:\n{done.stdout}{done.stderr}")
    account = json.loads(report.read_text())
    account["process_cpu_seconds"] = after.children_user + after.children_system - before.children_user - before.children_system
    return account


def measure(options, folder, transport, size, loss, cpus, start_cpu):
    receiver = Receiver(options.weir, folder, TRANSPORTS[transport][0], cpus[1])
    try:
        sent = send(options.weir, folder, transport, size, loss, cpus[0], "--duration", options.seconds)
        report, cpu = receiver.end()
    finally:
        receiver.process.kill()
        receiver.process.wait()
    complete, seconds = report["events"]["complete"], sent["seconds"]
    if complete != sent["events"]["whole"] and transport.startswith("rc"):
        sys.exit(f"transport_bench: {transport}: {sent['events']['whole']} events were acknowledged, {complete} are complete: {json.dumps(report['packets'])}")
    packets = max(1, sent["packets"]["sent"])
    return {
        "events_per_s": complete / seconds, "gbps": complete * SOURCES * size * 8e-9 / seconds, "packets_per_s": packets / seconds,
        "send_ns_per_packet": max(0.0, sent["process_cpu_seconds"] - start_cpu) * 1e9 / packets,
        "receive_ns_per_packet": cpu * 1e9 / max(1, report["packets"]["received"]),
        "events": sent["events"]["sent"], "complete": complete, "dropped_on_the_way": sent["packets"]["dropped"],
        "sent_again": sent.get("recovery", {}).get("retransmitted", 0),
        "lost_by_weir": {cause: count for cause, count in report["packets"]["dropped"].items() if count},
        "incomplete": {cause: count for cause, count in report["events"]["incomplete"].items() if count},
        "not_seen_at_all": sent["events"]["sent"] - complete - sum(report["events"]["incomplete"].values()),
    }


def row(turns):
    """The median turn's numbers, and their spread."""
    middle = sorted(turns, key=lambda turn: turn["events_per_s"])[len(turns) // 2]
    rates = [turn["events_per_s"] for turn in turns]
    return {**middle, "events_per_s_min": min(rates), "events_per_s_max": max(rates),
            "receive_ns_per_packet": statistics.median(turn["receive_ns_per_packet"] for turn in turns)}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("weir")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--turns", type=int)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    options.seconds = options.seconds or (0.3 if options.quick else 2)
    options.turns = options.turns or (1 if options.quick else 3)
    sizes, losses = ((4096, 65536), (0, 0.01)) if options.quick else ((1024, 4096, 8192, 65536), (0, 0.001, 0.01))
    cpus = sorted(os.sched_getaffinity(0))[:2]
    cpus = cpus if len(cpus) == 2 else cpus * 2
    results = {"commit": options.commit, "path_mtu": PATH_MTU, "sources": SOURCES, "seconds": options.seconds, "turns": options.turns, "cases": []}
    print(f"{'bytes':>6} {'loss':>6} {'transport':10}{'events/s':>10}{'Gb/s':>8}{'send ns':>9}{'recv ns':>9}{'again':>8}  lost or incomplete")
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        folder = pathlib.Path(name)
        # What a sender takes before its first packet is no cost of packets.
        starting = Receiver(options.weir, folder, TRANSPORTS["udp"][0], cpus[1])
        try:
            start_cpu = send(options.weir, folder, "udp", 1024, 0, cpus[0], "--events", 1)["process_cpu_seconds"]
        finally:
            starting.process.kill()
            starting.process.wait()
        for size in sizes:
            for loss in losses:
                found = {transport: [] for transport in TRANSPORTS}
                for _ in range(options.turns):  # transports take turns, so that what the machine does meanwhile meets all of them
                    for transport, turns in found.items():
                        turns.append(measure(options, folder, transport, size, loss, cpus, start_cpu))
                for transport, turns in found.items():
                    case = {"bytes": size, "loss": loss, "transport": transport, **row(turns)}
                    results["cases"].append(case)
                    why = ", ".join(f"{cause} {count}" for cause, count in {**case["lost_by_weir"], **case["incomplete"]}.items()) or "nothing"
                    print(f"{size:6} {loss:6.1%} {transport:10}{case['events_per_s']:10.0f}{case['gbps']:8.2f}{case['send_ns_per_packet']:9.0f}"
                          f"{case['receive_ns_per_packet']:9.0f}{case['sent_again']:8}  {why}", flush=True)
    results["load"] = os.getloadavg()[0]
    results["when"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
