#!/usr/bin/env python3
"""`weir run` with everything on one lcore, and `dpdk-testpmd` in rxonly mode, on the same memif link, taking turns: the rate at
which a sender on the other CPU gets rid of EJFAT events, and what was lost. memif waits for its reader, so the sender's rate is the
reader's. Fails instead of reporting a rate where weir lost a packet or left an event incomplete.
usage: link_bench.py WEIR LINK_SENDER [--turns N] [--seconds S] [--json FILE]"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """[[port]]
name = "link"
device = "net_memif0,role=server,socket={socket},socket-abstract=no,bsize=10240,rsize=11"
[[stream]]
port = "link"
transport = "udp"
udp_dst = [50001, 50002]
format = "ejfat"
[events]
sources = 2
memory = "256MiB"
timeout_ms = 2000
[[sink]]
kind = "null"
[lcores]
rx = [{cpu}]
build = [{cpu}]
work = [{cpu}]
idle = "spin"
"""


def wait_for(condition, what, process):
    end = time.monotonic() + 30
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"link_bench: {what} did not come up:\n{process.communicate(timeout=5)}")
        time.sleep(0.05)


class Weir:
    def __init__(self, program, folder, socket, cpu):
        self.report = folder / "report.json"
        self.report.unlink(missing_ok=True)
        (folder / "run.toml").write_text(CONFIG.format(socket=socket, cpu=cpu))
        self.process = subprocess.Popen([program, "run", "--config", folder / "run.toml", "--report", self.report, "--quiet"],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def wait(self, socket):
        wait_for(socket.exists, "weir run", self.process)
        time.sleep(0.5)

    def taken(self, sent):
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate(timeout=60)[0]
        found = json.loads(self.report.read_text())
        complete = found["events"]["complete"]
        if found["packets"]["placed"] != sent["packets"] or complete != sent["events"] or not found["balanced"]:
            sys.exit(f"link_bench: weir lost something: sent {sent}\n{json.dumps(found['packets'])}\n{json.dumps(found['events'])}\n{said}")
        return found["packets"]["placed"]


def testpmd(device, cpu, buffer_bytes, *options):
    """The command of a dpdk-testpmd that only receives, on one CPU."""
    return ["dpdk-testpmd", "--lcores", f"0,{cpu + 1}@{cpu}", "--no-huge", "-m", "768", "--no-pci", "--no-telemetry", "--no-shconf",
            "--vdev", device, "--", "--forward-mode=rxonly", f"--mbuf-size={buffer_bytes}", "--total-num-mbufs=16384", "--nb-cores=1", *options]


class Testpmd:
    def __init__(self, folder, socket, cpu):
        device = f"net_memif0,role=server,socket={socket},socket-abstract=no,bsize=10240,rsize=11"
        # Line by line: "Press enter" would stay in a buffer.
        self.process = subprocess.Popen(["stdbuf", "-oL", *testpmd(device, cpu, 10368)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, cwd=folder)

    def wait(self, socket):
        """Its socket is there long before it answers, and a memif that finds nobody does not ask again."""
        said = []
        for line in self.process.stdout:
            said.append(line)
            if "Press enter" in line:
                return
        sys.exit(f"link_bench: dpdk-testpmd did not come up:\n{''.join(said)}")

    def taken(self, _):
        said = self.process.communicate("\n", timeout=60)[0]
        return int(re.findall(r"RX-packets: (\d+)", said)[-1])


def turn(start, sender, folder, frame_bytes, seconds, cpus):
    socket = folder / "link.sock"
    socket.unlink(missing_ok=True)
    receiver = start(folder, socket, cpus[1])
    try:
        receiver.wait(socket)
        device = f"net_memif0,role=client,socket={socket},socket-abstract=no,bsize=10240,rsize=11"
        with subprocess.Popen(["taskset", "-c", str(cpus[0]), sender, device, str(frame_bytes), str(seconds)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as sending:
            sent = json.loads(sending.stdout.readline() or sys.exit("link_bench: the sender failed"))
            time.sleep(0.2)
            taken = receiver.taken(sent)
            sending.stdin.close()
    finally:
        receiver.process.kill()
        receiver.process.wait()
    return sent["timed_packets"] / sent["seconds"], sent["packets"] - taken


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("weir")
    parser.add_argument("sender")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        sys.exit("link_bench: needs two CPUs, one for the sender")
    if shutil.which("dpdk-testpmd") is None:
        sys.exit("link_bench: needs dpdk-testpmd (Debian: dpdk-dev)")
    receivers = {"testpmd rxonly": Testpmd, "weir run": lambda *rest: Weir(options.weir, *rest)}
    results = {"turns": options.turns, "seconds": options.seconds, "cases": []}
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        for frame_bytes in (9000, 1024):
            found = {receiver: [] for receiver in receivers}
            for _ in range(options.turns):
                for receiver, start in receivers.items():
                    found[receiver].append(turn(start, options.sender, pathlib.Path(name), frame_bytes, options.seconds, cpus))
            ratios = [own / base for (own, _), (base, _) in zip(found["weir run"], found["testpmd rxonly"])]
            for receiver, turns in found.items():
                rates = [rate for rate, _ in turns]
                case = {"frame_bytes": frame_bytes, "receiver": receiver, "mpps": statistics.median(rates) / 1e6, "mpps_min": min(rates) / 1e6,
                        "mpps_max": max(rates) / 1e6, "lost": sum(lost for _, lost in turns)}
                line = (f"{frame_bytes} B  {receiver:15} {case['mpps']:6.2f} Mpps ({case['mpps_min']:.2f} to {case['mpps_max']:.2f})  "
                        f"{case['mpps'] * frame_bytes * 8 / 1e3:6.1f} Gb/s  lost {case['lost']}")
                if receiver == "weir run":
                    case["of_testpmd"], case["of_testpmd_min"], case["of_testpmd_max"] = statistics.median(ratios), min(ratios), max(ratios)
                    line += f"  {100 * case['of_testpmd']:.0f} % of testpmd ({100 * min(ratios):.0f} to {100 * max(ratios):.0f})"
                results["cases"].append(case)
                print(line, flush=True)
    results["load"] = os.getloadavg()[0]
    results["when"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
