#!/usr/bin/env python3
"""The receivers of `weir bench` beside what people know, in the same run over the same link, in turns: up to which rate of a fixed ladder
does each lose nothing in most trials, and how much does it lose at the next rate? `udp-socket` beside a plain recvmmsg program and iperf3,
`dpdk-udp` beside dpdk-testpmd (rxonly), both on net_af_packet; then `weir run` beside testpmd on memif, which waits for its reader and so
has a rate in place of a ladder. weir bench, the plain program and testpmd get their packets from weir bench's sender `sendmmsg`; iperf3
only takes its own. Needs root. Fails instead of reporting where an account does not add up.
usage: neighbours_bench.py WEIR PACED_SENDER PLAIN_RECEIVER LINK_SENDER [--quick] [--turns N] [--json FILE] [--commit ID]"""
import argparse
import ctypes
import json
import os
import pathlib
import platform
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

import link_bench

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
ADDRESS, CONTROL = "10.98.0.2", "10.98.1.2"  # of the receiver, for packets and for what the two sides of weir bench say to each other
IPERF_PORT = 5201
MTU = 9000
WIDTH = 100
WARM_UP_S = 0.2  # as weir bench does it: a trial before the trial, which counts for nothing
PATIENCE_S = 30
LADDERS = {False: (0.18, 0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8, 11, 16, 22), True: (0.25, 0.5, 1, 2, 4, 8, 16)}
# How far iperf3's sender may stay below its rate; weir bench's own rule is as strict.
SLOWEST = 0.98
HOLD = """import socket, sys
held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
held.bind((sys.argv[1], 0))
print(held.getsockname()[1], flush=True)
sys.stdin.read()"""


def fail(what):
    sys.exit(f"neighbours_bench: {what}")


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process(subprocess.Popen):
    """A program that ends with the block it is used in, and with this process whatever that dies of."""

    def __init__(self, command, **more):
        super().__init__([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent, bufsize=0, **more)
        self.said = b""

    def __exit__(self, *_):
        self.kill()
        self.wait()
        self.stdin.close()
        self.stdout.close()

    def read_until(self, pattern):
        """The match of the first place that fits, in what has not been read yet."""
        end = time.monotonic() + PATIENCE_S
        while (found := re.search(pattern, self.said)) is None:
            ready = select.select([self.stdout], [], [], max(0, end - time.monotonic()))[0]
            more = os.read(self.stdout.fileno(), 65536) if ready else b""
            if not more:
                fail(f"{' '.join(self.args[:8])} ... did not say {pattern!r} but:\n{self.said.decode(errors='replace')}")
            self.said += more
        self.said = self.said[found.end():]
        return found

    def ask(self, words, pattern):
        self.stdin.write(words.encode())
        return self.read_until(pattern)


def output_of(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, preexec_fn=die_with_parent, timeout=120, **more)
    if done.returncode != 0:
        fail(f"{' '.join(done.args[:8])} ... ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Link:
    """Two network namespaces: that of this process from now on, which sends, and another that receives. Neither has a name, so there is nothing
    to take away: the kernel does that when the last process in them ends, and all of them end with this one."""

    def __init__(self, cpus):
        self.cpus = cpus
        if LIBC.unshare(CLONE_NEWNET) != 0:
            fail(f"a network namespace: {os.strerror(ctypes.get_errno())} (needs root)")
        self.holder = Process(["unshare", "--net", "sh", "-c", "echo ready; exec cat"])
        self.holder.read_until(b"ready")
        # Without IPv6 and with fixed neighbours nothing but the packets goes over the link, so that every frame counts.
        there = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]
        for place in ([], there):
            for what in ("all", "default"):
                output_of([*place, "sysctl", "-qw", f"net.ipv6.conf.{what}.disable_ipv6=1"])
            output_of([*place, "ip", "link", "set", "lo", "up"])
        for number in (0, 1):
            name = f"bench{number}"
            output_of(["ip", "link", "add", name, "mtu", MTU, "type", "veth", "peer", "name", name, "mtu", MTU, "netns", self.holder.pid])
            for place, host in (([], 1), (there, 2)):
                output_of([*place, "ip", "address", "add", f"10.98.{number}.{host}/24", "dev", name])
                output_of([*place, "ip", "link", "set", name, "up"])
            macs = [json.loads(output_of([*place, "ip", "-json", "link", "show", name]))[0]["address"] for place in ([], there)]
            for place, host, mac in (([], 2, macs[1]), (there, 1, macs[0])):
                output_of([*place, "ip", "neighbour", "replace", f"10.98.{number}.{host}", "lladdr", mac, "dev", name, "nud", "permanent"])

    def at_sender(self, *command):
        return ["taskset", "-c", self.cpus[0], *command]

    def at_receiver(self, *command, cpus=None):
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "taskset", "-c", cpus or self.cpus[1], *command]


def packets_of(size, gbps, seconds):
    return max(1, round(gbps * 1e9 / 8 / size * seconds))


def trial_of(name, size, sent, received, lost, seconds, why):
    """One trial; the end of everything if its account is wrong."""
    if not 0 <= received <= sent or lost != sent - received:
        fail(f"{name}, {size} B: {sent} packets were sent, {received} received and {lost} lost, which does not add up")
    return {"sent": sent, "received": received, "lost": lost, "loss_ratio": lost / sent if sent else 0, "reached_gbps": sent * size * 8e-9 / seconds,
            "valid": why == "", "why": why}


class Paced:
    """Trials from weir bench's sender; who receives is asked for its count before and after."""
    sender = "sendmmsg"

    def __init__(self, link, programs):
        self.link, self.programs = link, programs

    def send(self, port, size, gbps, seconds):
        words = (ADDRESS, port, "bench0", size, gbps, seconds)
        return json.loads(output_of(self.link.at_sender(self.programs["paced_sender"], *words)))

    def counted(self, port, size, gbps, seconds, count):
        self.send(port, size, gbps, WARM_UP_S)
        before = count()
        sent = self.send(port, size, gbps, seconds)
        received = count() - before
        return trial_of(self.name, size, sent["sent"], received, sent["sent"] - received, sent["took_s"], sent["why"])


class Plain(Paced):
    name = "plain recvmmsg"

    def trial(self, size, gbps, seconds):
        with Process(self.link.at_receiver(self.programs["plain_receiver"], ADDRESS)) as receiver:
            port = int(receiver.read_until(rb"(\d+)\n")[1])
            return self.counted(port, size, gbps, seconds, lambda: int(receiver.ask("\n", rb"(\d+)\n")[1]))


class Testpmd(Paced):
    """On the same ring as dpdk-udp: 64 MiB, frames of 16 KiB. A socket that nobody reads keeps the kernel from refusing the packets."""
    name = "dpdk-testpmd"

    def trial(self, size, gbps, seconds):
        device = "net_af_packet0,iface=bench0,framesz=16384,blocksz=65536,framecnt=4096"
        command = link_bench.testpmd(device, self.link.cpus[1], 16768, "--interactive", "--auto-start")
        cpus = ",".join(str(cpu) for cpu in self.link.cpus)
        # Line by line, or its answers stay in a buffer.
        with Process(self.link.at_receiver(sys.executable, "-c", HOLD, ADDRESS)) as holder, \
                Process(self.link.at_receiver("stdbuf", "-oL", *command, cpus=cpus), stderr=subprocess.STDOUT) as receiver:
            port = int(holder.read_until(rb"(\d+)\n")[1])
            receiver.read_until(b"nb forwarding ports=1")
            trial = self.counted(port, size, gbps, seconds, lambda: self.count(receiver))
            receiver.ask("quit\n", b"Bye")
            receiver.wait()  # it takes away what DPDK has in files
            return trial

    @staticmethod
    def count(receiver):
        """Once it does not change any more."""
        last = -1
        while True:
            now = int(receiver.ask("show port stats 0\n", rb"RX-packets:\s*(\d+)")[1])
            if now == last:
                return now
            last = now
            time.sleep(0.05)


class Iperf3:
    """`lost` is what its server says. What the server never learns of, because it stops to count when the client ends, is `not_seen`."""
    name, sender = "iperf3 -u", "iperf3"

    def __init__(self, link, _):
        self.link = link

    def run(self, size, gbps, seconds):
        command = self.link.at_sender("iperf3", "--client", ADDRESS, "--port", IPERF_PORT, "--udp", "--length", size, "--bitrate", round(gbps * 1e9),
                                      "--blockcount", packets_of(size, gbps, seconds), "--json")
        with Process(self.link.at_receiver("iperf3", "--server", "--one-off", "--forceflush", "--port", IPERF_PORT)) as server:
            server.read_until(b"listening on")
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, preexec_fn=die_with_parent, timeout=120)
        return json.loads(done.stdout)

    def trial(self, size, gbps, seconds):
        self.run(size, gbps, WARM_UP_S)
        said = self.run(size, gbps, seconds)
        if "error" in said:  # its two sides lose each other now and then on a busy machine
            return {**trial_of(self.name, size, 0, 0, 0, seconds, said["error"]), "not_seen": 0}
        sent, received = said["end"]["sum_sent"], said["end"]["sum_received"]
        lost, got = received["lost_packets"], received["bytes"] // size
        not_seen = sent["packets"] - got - lost
        if not_seen < 0 or received["bytes"] % size != 0:
            fail(f"iperf3, {size} B: {sent['packets']} packets were sent, {received['bytes']} bytes received and {lost} lost, which does not add up")
        reached, asked = sent["bytes"] * 8e-9 / sent["seconds"], packets_of(size, gbps, seconds)
        why = f"its sender reached {reached:.3g} Gb/s" if reached < SLOWEST * gbps else ""
        if sent["packets"] < asked:
            why = f"its sender sent {sent['packets']} of {asked} packets"
        return {**trial_of(self.name, size, got + lost, got, lost, sent["seconds"], why), "reached_gbps": reached, "not_seen": not_seen}


class WeirBench:
    sender = "sendmmsg"

    def __init__(self, link, programs, transport, folder):
        self.link, self.programs, self.name, self.out = link, programs, transport, folder / "weir.json"

    def trial(self, size, gbps, seconds):
        self.out.unlink(missing_ok=True)
        output_of(self.link.at_sender(self.programs["weir"], "bench", "--client", CONTROL, "--address", ADDRESS, "--transport", self.name, "--bytes", size,
                                      "--at", f"{gbps}Gb/s", "--seconds", seconds, "--json", self.out, "--quiet"))
        point = json.loads(self.out.read_text())["results"][0]
        if point["not_available"]:
            fail(f"{self.name}, {size} B: {point['not_available']}")
        trial = point["trials"][0]
        if not trial["intended"] >= trial["offered"] >= trial["sent"] or trial["taken"] < trial["received"] + trial["duplicates"]:
            fail(f"{self.name}, {size} B: the account of weir bench does not add up: {json.dumps(trial)}")
        found = trial_of(self.name, size, trial["sent"], trial["received"], sum(trial["lost"].values()), trial["took_s"], trial["why"])
        return {**found, "lost_in": {layer: count for layer, count in trial["lost"].items() if count}, "remarks": point["remarks"]}


class Climb:
    """A receiver on its way up the ladder, for one size. A rate is good if most of its trials lost nothing. The climb ends after two rates in a row
    that are not, or that the sender could not send, because a pause of the machine can spoil one."""

    def __init__(self, receiver, size, turns):
        self.receiver, self.size, self.turns = receiver, size, turns
        self.rungs = []  # {"gbps", "trials"}
        self.ended = False

    def begin(self, gbps):
        self.rungs.append({"gbps": gbps, "trials": []})

    def add_trial(self, turn, seconds):
        for _ in range(2):
            trial = {"turn": turn, **self.receiver.trial(self.size, self.rungs[-1]["gbps"], seconds)}
            self.rungs[-1]["trials"].append(trial)
            if trial["valid"]:
                return

    def finish(self):
        self.ended = len(self.rungs) > 1 and not self.good(self.rungs[-1]) and not self.good(self.rungs[-2])

    @staticmethod
    def valid(rung):
        return [trial for trial in rung["trials"] if trial["valid"]]

    def measured(self, rung):
        return len(self.valid(rung)) > self.turns // 2

    def good(self, rung):
        lossless = sum(trial["lost"] == 0 for trial in self.valid(rung))
        return self.measured(rung) and lossless > len(self.valid(rung)) // 2

    def own_limit(self, turn):
        """The highest rate up to which a turn lost nothing at any rate; 0: none."""
        limit = 0
        for rung in self.rungs:
            for trial in self.valid(rung):
                if trial["turn"] == turn and trial["lost"] > 0:
                    return limit
                if trial["turn"] == turn:
                    limit = rung["gbps"]
        return limit

    def result(self):
        measured = [rung for rung in self.rungs if self.measured(rung)]
        good = [i for i, rung in enumerate(measured) if self.good(rung)]
        best = good[-1] if good else -1
        above = measured[best + 1] if best + 1 < len(measured) else None
        trials = [trial for rung in self.rungs for trial in rung["trials"]]
        invalid = [trial["why"] for trial in trials if not trial["valid"]]
        return {"receiver": self.receiver.name, "sender": self.receiver.sender, "bytes": self.size,
                "no_loss_gbps": measured[best]["gbps"] if good else None,
                # Nothing was lost at the most that could be sent, or at the end of the ladder: the receiver may be faster.
                "at_least": bool(good) and above is None, "turns_gbps": [self.own_limit(turn) for turn in range(self.turns)],
                "reached_gbps": statistics.median(trial["reached_gbps"] for trial in self.valid(measured[best])) if good else None,
                "above": above and {"gbps": above["gbps"], **spread([trial["loss_ratio"] for trial in self.valid(above)])},
                "irregular": len(good) != best + 1, "invalid": len(invalid), "invalid_why": invalid[-1] if invalid else "", "rungs": self.rungs}


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def number(value):
    return "0" if value == 0 else f"{value:.2g}" if value < 1 else f"{value:.3g}"


HEAD = f"{'bytes':>5}  {'receiver':16}{'sender':10}{'no loss':>9}{'min..max':>12}{'reached':>9}   lost at the next rate (min..max)"


def row(found):
    best = found["no_loss_gbps"]
    rate = ("≥ " if found["at_least"] else "") + number(best) + ("*" if found["irregular"] else "") if best else "none" if found["above"] else "no result"
    limits = found["turns_gbps"]
    line = f"{found['bytes']:5}  {found['receiver']:16}{found['sender']:10}{rate:>9}{number(min(limits)) + '..' + number(max(limits)):>12}"
    line += f"{'' if best is None else number(found['reached_gbps']):>9}   "
    loss = found["above"]
    if loss is None:
        return line + ("the sender can do no more" if found["invalid"] else "the ladder ends")
    return line + f"{number(loss['gbps'])}: {number(loss['median'])} ({number(loss['min'])}..{number(loss['max'])})"


def climb_all(receivers, size, turns, seconds, ladder):
    """Rate by rate, and at each rate the receivers in turns, so that what the machine does meanwhile meets all of them."""
    climbs = [Climb(receiver, size, turns) for receiver in receivers]
    for gbps in ladder:
        climbing = [climb for climb in climbs if not climb.ended]
        if not climbing:
            break
        for climb in climbing:
            climb.begin(gbps)
        for turn in range(turns):
            print(f"{size} B at {gbps} Gb/s: turn {turn + 1} of {turns}, {len(climbing)} receivers", file=sys.stderr, flush=True)
            for climb in climbing if turn % 2 == 0 else reversed(climbing):
                climb.add_trial(turn, seconds)
        for climb in climbing:
            climb.finish()
    return [climb.result() for climb in climbs]


def on_memif(programs, sizes, turns, seconds, cpus, folder):
    """The parts of scripts/bench link, with frames of the same sizes."""
    receivers = {"weir run": lambda *rest: link_bench.Weir(programs["weir"], *rest), "dpdk-testpmd": link_bench.Testpmd}
    found = []
    for size in sizes:
        rates = {name: [] for name in receivers}
        for turn in range(turns):
            print(f"{size} B on memif: turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
            for name in sorted(receivers, reverse=turn % 2 == 0):
                rates[name].append(link_bench.turn(receivers[name], programs["link_sender"], folder, size + 42, seconds, cpus))
        for name, trials in rates.items():
            if any(lost < 0 for _, lost in trials):
                fail(f"memif, {name}, {size} B: more packets were received than sent: {trials}")
            found.append({"receiver": name, "sender": "link_sender", "bytes": size, "gbps": spread([rate * size * 8e-9 for rate, _ in trials]),
                          "lost": [lost for _, lost in trials]})
    return found


def memif_row(found):
    rates = found["gbps"]
    return (f"{found['bytes']:5}  {found['receiver']:16}{number(rates['median']):>9}  {number(rates['min']) + '..' + number(rates['max']):>14}"
            f"   {sum(found['lost'])} of all turns")


def say(text):
    print(textwrap.fill(text, WIDTH, subsequent_indent="    "))


def report(results):
    say(f"Highest rate of the ladder at which most of {results['turns']} trials of {results['seconds']} s lost nothing. Gb/s of UDP payload.")
    print(HEAD)
    for found in results["receivers"]:
        print(row(found))
    say("min..max: how far the worst and the best turn came. reached: the rate that the sender kept at \"no loss\". Losses are medians.")
    say("≥: nothing was lost at the most that the sender could do; the receiver may be faster.")
    say("iperf3 only receives from itself: its sender is another, and its loss is what its server counts.")
    if any(found["irregular"] for found in results["receivers"]):
        say("*: at a lower rate most trials lost something.")
    for found in results["receivers"]:
        if found["invalid"]:
            say(f"{found['bytes']} B, {found['receiver']}: {found['invalid']} invalid trials, not counted; the last: {found['invalid_why']}")
    print(f"\nmemif: it waits for its reader, so this is the most that goes through. Gb/s of UDP payload.\n"
          f"{'bytes':>5}  {'receiver':16}{'median':>9}  {'min..max':>14}   lost")
    for found in results["memif"]:
        print(memif_row(found))


def options_of():
    parser = argparse.ArgumentParser(usage=__doc__)
    for program in ("weir", "paced_sender", "plain_receiver", "link_sender"):
        parser.add_argument(program)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    if options.turns is not None and options.turns < 1:
        parser.error("--turns: at least 1")
    options.turns = options.turns or (3 if options.quick else 5)
    return options


def measure(options, cpus, folder):
    programs = {name: os.path.abspath(path) for name, path in vars(options).items() if name in ("weir", "paced_sender", "plain_receiver", "link_sender")}
    sizes = (2048, 8240) if options.quick else (2048, 4096, 8240)
    seconds = 0.3 if options.quick else 0.5
    results = {"commit": options.commit, "kernel": platform.release(), "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "turns": options.turns,
               "seconds": seconds, "ladder_gbps": LADDERS[options.quick], "load_before": os.getloadavg()[0], "receivers": []}
    os.environ["WEIR_BENCH_TOKEN"] = "neighbours"
    link = Link(cpus)
    with link.holder, Process(link.at_receiver(programs["weir"], "bench", "--server", "--listen", CONTROL, "--quiet"), stderr=subprocess.STDOUT) as server:
        server.read_until(b"waiting at")
        receivers = [WeirBench(link, programs, "udp-socket", folder), Plain(link, programs), Iperf3(link, programs),
                     WeirBench(link, programs, "dpdk-udp", folder), Testpmd(link, programs)]
        for size in sizes:
            results["receivers"] += climb_all(receivers, size, options.turns, seconds, LADDERS[options.quick])
    results["memif"] = on_memif(programs, sizes, options.turns, 2 * seconds, cpus, folder)
    results["load"] = os.getloadavg()[0]
    return results


def ended_by(signum, _):
    print(f"neighbours_bench: ended by {signal.Signals(signum).name}, without results", file=sys.stderr, flush=True)
    sys.exit(128 + signum)


def main():
    options = options_of()
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        fail("needs two CPUs, one for the sender")
    for program, package in (("iperf3", "iperf3"), ("dpdk-testpmd", "dpdk-dev"), ("nsenter", "util-linux"), ("ip", "iproute2")):
        if shutil.which(program) is None:
            fail(f"needs {program} (Debian: {package})")
    # What is in `finally` and `with` is done for every end but SIGKILL, and the kernel ends what is left then.
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, ended_by)
    with tempfile.TemporaryDirectory(prefix="weir-neighbours-") as name:
        results = measure(options, cpus, pathlib.Path(name))
    report(results)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
