#!/usr/bin/env python3
"""`weir bench` finds what is known beforehand: a receiver of a known rate, losses of a known number at a known place, a sender that
cannot do what it is asked for. Rates are low, so that a busy machine can keep to them.

usage: bench_test.py WEIR
"""

import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import live


class BenchTest(live.Case):
    @classmethod
    def setUpClass(cls):
        if not live.is_real_root():
            raise live.unittest.SkipTest("network namespaces and packet sockets need root")

    def bench(self, *options, status=0, prefix=()):
        """A measurement to its end; returns its results and what it said."""
        return live.repeated(lambda _: self.bench_once(*options, status=status, prefix=prefix))

    def bench_once(self, *options, status, prefix):
        out = self.folder / "bench.json"
        out.unlink(missing_ok=True)
        with live.Stalls() as stalls:
            done = subprocess.run([*prefix, live.Weir.program, "bench", *map(str, options), "--json", str(out)], capture_output=True, text=True,
                                  timeout=3 * live.PATIENCE_S)  # a search has many trials
        self.stood_still_s = stalls.longest_s
        if done.returncode != status and live.NOT_HEARD in done.stderr:
            raise live.Disturbed(done.stderr)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(out.read_text()) if out.exists() else None, done.stdout + done.stderr

    def valid_trial(self, *options, prefix=()):
        """The trial of `--at`, once more where the machine paused and the trial says so."""
        for _ in range(15):
            results, _ = self.bench(*options, prefix=prefix)
            trial = results["results"][0]["trials"][0]
            if trial["valid"]:
                return trial
        self.fail(f"fifteen invalid trials: {trial['why']}")

    @staticmethod
    def children_of(process):
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as children:
            return [int(child) for child in children.read().split()]

    def assert_account(self, trial):
        self.assertGreaterEqual(trial["intended"], trial["offered"])
        self.assertGreaterEqual(trial["offered"], trial["sent"])
        self.assertGreaterEqual(trial["taken"], trial["received"] + trial["duplicates"])
        arrived = trial["received"] if trial["assembled"] is None else trial["assembled"]
        self.assertEqual(sum(trial["lost"].values()), trial["sent"] - arrived)

    def test_a_throttled_receiver_is_found(self):
        rate, packet = 3000, 4096 * 8e-9
        # A machine that takes the CPU away for longer than the socket's buffer lasts (8 ms) is a slower receiver: so both sides go
        # before everything else here, and once more if that did not help.
        for _ in range(4):
            results, _ = self.bench("--loopback", "--transport", "udp-socket", "--bytes", 4096, "--receiver-fault", f"rate={rate}", "--most", "30kpps",
                                    prefix=("chrt", "-f", "10"))
            point = results["results"][0]
            off = max(abs((point[bound] or 0) / packet / rate - 1) for bound in ("lower_gbps", "conditional_gbps"))
            if off < 0.05:
                break
        self.assertLess(off, 0.05, point)
        for trial in point["trials"]:
            self.assert_account(trial)
            if trial["valid"] and trial["loss_ratio"] > 0.2:
                self.assertEqual(max(trial["lost"], key=trial["lost"].get), "kernel")

    @staticmethod
    def latency_s(trial):
        """The longest; 0 where the sender stamps nothing."""
        return trial["latency_s"]["max"] if trial["latency_s"] else 0

    def assert_all_received(self, trial, point, lost=0):
        held_up_s = max(self.stood_still_s, self.latency_s(trial))
        if trial["received"] + lost != trial["sent"] and held_up_s > 0.03:  # a ring may last no longer
            raise live.Disturbed(f"somebody was held up for {held_up_s:.2f} s: {point}")
        self.assertEqual(trial["received"] + lost, trial["sent"], point)

    def test_every_transport_receives_every_packet_at_a_low_rate(self):
        live.repeated(lambda _: self.receive_by_every_transport())

    def receive_by_every_transport(self):
        results, said = self.bench("--loopback", "--bytes", 2048, "--at", "2kpps", "--seconds", 0.5, "--depth", "receive,assemble")
        points = results["results"]
        by_depth = {depth: [point["transport"] for point in points if point["depth"] == depth] for depth in ("receive", "assemble")}
        self.assertGreaterEqual(len(by_depth["receive"]), 6)
        self.assertGreater(set(by_depth["assemble"]), set(by_depth["receive"]))  # and RoCE
        self.assertEqual(len({*by_depth["assemble"]}), len(by_depth["assemble"]))
        for point in points:
            if re.search("io_uring|XDP|xdp|RDMA|libibverbs", point["not_available"]):  # a kernel or a container may have none
                print(f"not measured here: {point['transport']}: {point['not_available']}", file=sys.stderr)
                continue
            self.assertEqual(point["not_available"], "", point)
            trial = point["trials"][0]
            self.assert_account(trial)
            if trial["valid"] and point["transport"] != "udp-socket":
                # A ring of blocks that are closed after milliseconds is short at a low rate; the kernel counts what did not fit.
                was_held_up = point["transport"] == "packet-mmap" and self.latency_s(trial) > 0.03
                self.assert_all_received(trial, point, trial["lost"]["kernel"] if was_held_up else 0)
                if point["depth"] == "assemble":
                    # A receiver that is held up in the middle of a message for longer than it waits gives the message up.
                    self.assertGreater(trial["assembled"], 0.8 * trial["sent"])
                else:
                    self.assertIsNone(trial["assembled"])
        self.assertIn("dpdk-udp", said)

    def every_packet(self, *options, prefix=()):
        return live.repeated(lambda _: self.every_packet_once(*options, prefix=prefix))

    def every_packet_once(self, *options, prefix):
        results, _ = self.bench("--loopback", "--bytes", 2048, "--at", "2kpps", "--seconds", 0.5, *options, prefix=prefix)
        for point in results["results"]:
            self.assertEqual(point["not_available"], "", point)
            trial = point["trials"][0]
            self.assert_account(trial)
            self.assertGreater(trial["sent"], 0)
            if trial["valid"]:
                self.assert_all_received(trial, point)
        return {(point["transport"], point["depth"]): point["sender"] for point in results["results"]}

    def test_a_dpdk_sender_loses_nothing(self):
        self.every_packet("--sender", "dpdk", "--transport", "packet-mmap,dpdk-udp,udp-tuned")
        roce = self.every_packet("--transport", "dpdk-roce-send,dpdk-roce-write")
        self.assertEqual(set(roce.values()), {"dpdk"})

    def test_over_memif_nobody_needs_rights(self):
        self.folder.chmod(0o777)
        senders = self.every_packet("--over", "memif", "--depth", "receive,assemble", prefix=("setpriv", "--reuid=65534", "--clear-groups"))
        self.assertEqual(senders, {("dpdk-udp", "receive"): "dpdk", ("dpdk-udp", "assemble"): "dpdk",
                                   ("dpdk-roce-send", "receive"): "dpdk", ("dpdk-roce-send", "assemble"): "weir send",
                                   ("dpdk-roce-write", "receive"): "dpdk", ("dpdk-roce-write", "assemble"): "weir send",
                                   ("dpdk-roce-send-rc", "assemble"): "weir send", ("dpdk-roce-write-rc", "assemble"): "weir send"})

    def test_loss_in_the_program_is_the_programs(self):
        trial = self.valid_trial("--loopback", "--transport", "packet-mmap", "--bytes", 500, "--receiver-fault", "loss=0.01", "--at", "20kpps",
                                 "--seconds", 5)
        self.assert_account(trial)
        # A busy machine may lose packets in the kernel, too: those are counted apart.
        self.assertLess(abs(trial["lost"]["application"] / trial["sent"] / 0.01 - 1), 0.15)

    def test_what_the_network_is_made_to_do_is_found(self):
        trial = self.valid_trial("--loopback", "--transport", "packet-mmap", "--bytes", 500, "--sender-fault", "drop=0.02,duplicate=0.01,reorder=4,seed=5",
                                 "--at", "4kpps", "--seconds", 5)
        self.assert_account(trial)
        self.assertLess(abs(trial["lost"]["wire"] / 400 - 1), 0.3)
        self.assertLess(abs(trial["duplicates"] / 200 - 1), 0.4)
        results, said = self.bench("--loopback", "--transport", "dpdk-roce-write", "--depth", "assemble", "--bytes", 1024, "--message-bytes", 8192, "--sources", 2,
                                   "--sender-fault", "drop=0.01", "--at", "100eps", "--seconds", 1)
        trial = results["results"][0]["trials"][0]
        self.assert_account(trial)
        self.assertGreater(trial["lost"]["wire"] + trial["lost"]["unknown"], 3)
        self.assertIn("on purpose: drop 0.01, seed 1", said)

    def test_an_event_is_a_message_of_each_source(self):
        results, _ = self.bench("--loopback", "--transport", "packet-mmap", "--depth", "assemble", "--bytes", 1000, "--message-bytes", 4000, "--sources", 3,
                                "--at", "100eps", "--seconds", 1)
        trial = results["results"][0]["trials"][0]
        self.assertEqual(trial["intended"], 100 * 3 * 4)
        if trial["valid"] and not sum(trial["lost"].values()):
            self.assertEqual(trial["messages"], 100)
            self.assertEqual(trial["assembled"], 1200)

    def test_as_fast_as_the_sender_can_and_in_bursts(self):
        results, said = self.bench("--loopback", "--transport", "packet-mmap", "--bytes", 1000, "--at", "max", "--seconds", 0.2)
        trial = results["results"][0]["trials"][0]
        self.assertGreater(trial["sent"], 100)
        self.assertEqual(trial["sent"], trial["intended"])
        self.assertIn("max", said)
        results, said = self.bench("--loopback", "--transport", "udp-socket", "--bytes", 2048, "--goal", "back-to-back", "--bursts", 2, "--search-seconds", 3)
        bursts = results["results"][0]["bursts"]
        self.assertEqual(len(bursts["packets"]), 2)
        self.assertGreater(min(bursts["packets"]), 0)
        self.assertGreaterEqual(bursts["implied_s"], bursts["corrected_s"])
        self.assertIn("RFC 9004", said)

    def test_packets_carry_a_file(self):
        content = self.folder / "frames.bin"
        content.write_bytes(os.urandom(600_000))
        for transport, sender in (("packet-mmap", "sendmmsg"), ("udp-tuned", "gso"), ("packet-mmap", "af-packet")):
            trial = self.valid_trial("--loopback", "--transport", transport, "--sender", sender, "--bytes", 1500, "--content", content, "--at", "2kpps",
                                     "--seconds", 0.5)
            self.assert_account(trial)
            self.assertEqual((trial["damaged"], trial["others"]), (0, 0))
            self.assertGreater(trial["received"] + trial["lost"]["kernel"], 900)
        _, said = self.bench("--loopback", "--content", self.folder / "none", "--at", "1kpps", status=1)
        self.assertIn("none: No such file", said)

    def test_loss_in_a_socket_is_the_kernels(self):
        trial = self.valid_trial("--loopback", "--transport", "udp-socket", "--bytes", 2000, "--receiver-fault", "pause=0.2,every=0.5", "--at", "5kpps",
                                 "--seconds", 1)
        self.assert_account(trial)
        self.assertGreater(trial["lost"]["kernel"], 200)
        self.assertEqual(trial["lost"]["kernel"], trial["sent"] - trial["received"])

    def test_a_sender_that_cannot_has_no_rate(self):
        results, said = self.bench("--loopback", "--transport", "packet-mmap", "--bytes", 1000, "--at", "500Gb/s", "--seconds", 0.3)
        trial = results["results"][0]["trials"][0]
        self.assertFalse(trial["valid"])
        self.assertIn("out in time", trial["why"])
        self.assertEqual(trial["loss_ratio"], 0)
        self.assertIn("invalid", said)

    def test_both_sides_by_themselves(self):
        with Hosts() as hosts:
            server = hosts.server(self)
            drops = []
            hosts.lose_every(50, drops)
            trial = self.valid_trial("--client", "10.7.0.2", "--token", "abc", "--transport", "packet-mmap", "--bytes", 1000, "--at", "2kpps", "--seconds", 4,
                                     prefix=hosts.at("client"))
            self.assert_account(trial)
            self.assertGreater(trial["lost"]["wire"], 100)
            # What the control connection sends is counted by the interfaces as well.
            self.assertLess(abs(trial["lost"]["wire"] - (trial["sent"] - trial["received"] - trial["lost"]["kernel"])), 20)
            _, said = self.bench("--client", "10.7.0.2", "--token", "wrong", "--at", "1kpps", status=1, prefix=hosts.at("client"))
            self.assertIn("the token is not the one", said)
            _, said = self.bench("--client", "10.7.0.2", "--token", "abc", "--address", "10.7.0.1", "--at", "1kpps", status=1, prefix=hosts.at("client"))
            self.assertIn("10.7.0.1 is no address of this host: nothing will be sent there", said)
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.wait(live.PATIENCE_S), 0)

    def test_the_end_of_one_side_is_the_end_of_the_other(self):
        with Hosts() as hosts:
            command = [*hosts.at("client"), live.Weir.program, "bench", "--client", "10.7.0.2", "--token", "abc", "--transport", "udp-tuned", "--bytes", "1000",
                       "--at", "2kpps", "--seconds", "600"]
            for victim in ("server", "client"):
                server = hosts.server(self)
                client = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
                self.addCleanup(client.kill)
                hosts.wait_for_packets(200)
                {"server": server, "client": client}[victim].kill()
                if victim == "server":
                    said = client.communicate(timeout=live.PATIENCE_S)[1]
                    self.assertEqual(client.returncode, 1)
                    self.assertIn("the other side has hung up", said)
                    sent = hosts.packets_sent()
                    time.sleep(0.5)  # for nothing to come
                    self.assertLess(hosts.packets_sent() - sent, 20, "somebody is still sending")
                else:
                    client.communicate()
                    self.assertTrue(self.said(server, "the other side has hung up"))
                    server.send_signal(signal.SIGINT)
                    self.assertEqual(server.wait(live.PATIENCE_S), 0)
                server.wait(live.PATIENCE_S)

    def test_strangers_hold_nobody_up_and_end_nothing(self):
        stranger = "import socket, sys; s = socket.create_connection(('10.7.0.2', 7474)); s.sendall(bytes.fromhex(sys.argv[1])); print('there', flush=True); sys.stdin.read()"
        with Hosts() as hosts:
            server = hosts.server(self)

            def connects(said):
                process = subprocess.Popen([*hosts.at("client"), sys.executable, "-c", stranger, said.encode().hex()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                self.addCleanup(lambda: (process.kill(), process.communicate()))
                self.assertEqual(process.stdout.readline(), "there\n")

            for said in ('{"type":"left","what":5}\n', '{"type":"error","what":[]}\n', '{"type":"hello","version":"x"}\n'):
                connects(said)
                self.assertTrue(self.said(server, "10.7.0.1: "))
            for said in ("", '{"type":'):
                connects(said)
            client = subprocess.Popen([*hosts.at("client"), live.Weir.program, "bench", "--client", "10.7.0.2", "--token", "abc", "--transport", "udp-tuned",
                                       "--bytes", "1000", "--at", "1kpps", "--seconds", "600"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            self.addCleanup(client.kill)
            hosts.wait_for_packets(200)
            _, said = self.bench("--client", "10.7.0.2", "--token", "abc", "--at", "1kpps", status=1, prefix=hosts.at("client"))
            self.assertIn("the server is busy with another client", said)
            self.assertIsNone(client.poll())
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.wait(live.PATIENCE_S), 0)

    def test_a_machine_that_was_held_up_goes_on(self):
        with Hosts() as hosts:
            server = hosts.server(self)
            client = subprocess.Popen([*hosts.at("client"), live.Weir.program, "bench", "--client", "10.7.0.2", "--token", "abc", "--transport", "udp-tuned",
                                       "--bytes", "1000", "--at", "1kpps", "--seconds", "5"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
            self.addCleanup(client.kill)
            hosts.wait_for_packets(200)
            processes = [client.pid, server.pid, *self.children_of(server.pid)]
            self.assertEqual(len(processes), 3)
            live.stand_still(*processes)
            time.sleep(5)  # longer than one side waits for a word of the other
            for process in processes:
                os.kill(process, signal.SIGCONT)
            said = client.communicate(timeout=live.PATIENCE_S)[1]
            self.assertEqual(client.returncode, 0, said)
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.wait(live.PATIENCE_S), 0)

    def test_who_goes_before_everything_else_still_says_that_it_lives(self):
        results, _ = self.bench("--loopback", "--transport", "packet-mmap", "--bytes", 1000, "--at", "20kpps", "--seconds", 6, prefix=("chrt", "-f", "10"))
        self.assertEqual(len(results["results"][0]["trials"]), 1)

    def test_a_server_whose_process_dies_says_so(self):
        with Hosts() as hosts:
            server = hosts.server(self)
            client = subprocess.Popen([*hosts.at("client"), live.Weir.program, "bench", "--client", "10.7.0.2", "--token", "abc", "--transport", "udp-tuned",
                                       "--bytes", "1000", "--at", "1kpps", "--seconds", "600"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
            self.addCleanup(client.kill)
            hosts.wait_for_packets(200)
            for process in self.children_of(server.pid):
                os.kill(process, signal.SIGSEGV)
            said = client.communicate(timeout=live.PATIENCE_S)[1]
            self.assertEqual(client.returncode, 1)
            self.assertIn("the server's process was ended by signal 11", said)
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.wait(live.PATIENCE_S), 0)

    def test_files_that_cannot_be_written_are_said(self):
        options = ("--loopback", "--transport", "packet-mmap", "--bytes", 1000, "--at", "1kpps", "--seconds", 0.1)
        for option in ("--json", "--html"):
            done = subprocess.run([live.Weir.program, "bench", *map(str, options), option, self.folder / "none" / "x"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout, "", "it measured before it looked")
            self.assertIn("No such file or directory", done.stderr)
            done = subprocess.run([live.Weir.program, "bench", *map(str, options), option, "/dev/full"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("No space left on device", done.stderr)
            self.assertIn("packet-mmap", done.stdout, "the results are gone")
            there = self.folder / "there"
            there.write_text("an hour of measuring")
            done = subprocess.run([live.Weir.program, "bench", *map(str, options), option, there], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(f"{there} exists already", done.stderr)
            self.assertEqual(there.read_text(), "an hour of measuring")

    def test_what_is_missing_after_is_worse_unless_allowed(self):
        results, _ = self.bench("--loopback", "--transport", "packet-mmap,udp-tuned", "--bytes", 1000, "--at", "1kpps", "--seconds", 0.1)
        before, after = self.folder / "before.json", self.folder / "after.json"
        before.write_text(json.dumps(results))
        results["results"].pop()
        after.write_text(json.dumps(results))
        for files, options, status, words in (((before, after), (), 1, "Missing after, which counts as worse: udp-tuned from sendmmsg"),
                                              ((before, after), ("--allow-missing",), 0, "Missing after, which was allowed: udp-tuned"),
                                              ((after, before), (), 0, "only in after")):
            done = subprocess.run([live.Weir.program, "bench", "compare", *files, *options], capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.assertIn(words, " ".join(done.stdout.split()))

    def test_what_cannot_be_is_said(self):
        for options, words in ((("--bytes", 2048), "weir bench needs one of --loopback, --server, --client HOST"),
                               (("--loopback", "--server"), "needs one of"),
                               (("--loopback", "--transport", "pigeon"), 'there is no transport "pigeon": udp-socket, udp-tuned'),
                               (("--loopback", "--goal", "fast"), 'there is no goal "fast": quick, ndr, pdr, rfc2544'),
                               (("--loopback", "--depth", "deep"), 'there is no depth "deep": receive, assemble, full'),
                               (("--loopback", "--bytes", 10), "packets of 10 bytes: they can have 60 to 65507"),
                               (("--loopback", "--at", "5parsec"), "--at: found '5parsec'; accepted: a rate"),
                               (("--loopback", "--at", "1", "--goal", "ndr"), "give one of them"),
                               (("--loopback", "--seconds", "1"), "--seconds goes with --at"),
                               (("--loopback", "--sender", "gso", "--transport", "packet-mmap"), "packet-mmap sees what gso joins as one frame"),
                               (("--loopback", "--receiver-fault", "slow"), "accepted: rate=, loss=, pause=, every="),
                               (("--loopback", "--table", "mine"), "--table: found 'mine'; accepted: ponsard2020, cms2014")):
            results, said = self.bench(*options, status=2)
            self.assertIsNone(results)
            self.assertIn(words, " ".join(said.split()), options)
        results, _ = self.bench("--loopback", "--transport", "dpdk-roce-write,packet-mmap", "--depth", "assemble,full", "--bytes", 3000, "--at", "1kpps",
                                "--seconds", 0.1)
        why = {(point["transport"], point["depth"]): point["not_available"] for point in results["results"]}
        self.assertIn("RoCE packets carry 256, 512", why["dpdk-roce-write", "assemble"])
        self.assertIn("packet-mmap has no depth full", why["packet-mmap", "full"])
        self.assertEqual(why["packet-mmap", "assemble"], "")

    @staticmethod
    def said(process, words):
        for line in process.stderr:
            if words in line:
                return True
        return False

    def test_interrupted_it_keeps_what_it_has(self):
        out = self.folder / "some.json"
        client = subprocess.Popen([live.Weir.program, "bench", "--loopback", "--transport", "packet-mmap", "--bytes", "1000", "--at", "1kpps", "--seconds", "0.3",
                                   "--repeats", "1000", "--json", str(out)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.addCleanup(client.kill)
        for line in client.stderr:
            if line.startswith("2/"):
                break
        client.send_signal(signal.SIGINT)
        client.communicate(timeout=live.PATIENCE_S)
        self.assertEqual(client.returncode, 1)
        self.assertGreaterEqual(len(json.loads(out.read_text())["results"]), 2)


class Hosts:
    """Two hosts and a switch between them, which may lose packets: three namespaces."""

    def __enter__(self):
        self.names = {name: f"bench-{name}-{os.getpid()}" for name in ("client", "server", "switch")}
        self.processes = []
        self.stop = threading.Event()
        self.thread = None
        for name in self.names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
        for host, number in (("client", 1), ("server", 2)):
            ip = lambda *words: subprocess.run(["ip", "-n", self.names[host], *words], check=True)
            ip("link", "add", "eth9", "mtu", "9000", "type", "veth", "peer", "name", f"port{number}", "netns", self.names["switch"], "mtu", "9000")
            ip("address", "add", f"10.7.0.{number}/24", "dev", "eth9")
            ip("link", "set", "eth9", "up")
            subprocess.run(["ip", "-n", self.names["switch"], "link", "set", f"port{number}", "up"], check=True)
            subprocess.run([*self.at(host), "ethtool", "-K", "eth9", "tso", "off", "gso", "off", "gro", "off", "tx", "off"], check=True, stdout=subprocess.DEVNULL)
        self.lose_every(0, [])
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stderr.close()
        self.end_switch()
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name])

    def at(self, host):
        return ["ip", "netns", "exec", self.names[host]]

    def server(self, case):
        process = subprocess.Popen([*self.at("server"), live.Weir.program, "bench", "--server", "--token", "abc"], stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        case.assertIn("waiting at", process.stderr.readline())
        return process

    def end_switch(self):
        if self.thread is not None:
            self.stop.set()
            self.thread.join()
            self.stop.clear()

    def lose_every(self, n, drops):
        """From now on every n-th UDP packet to the server is lost; 0: none. `drops` gets an entry for each."""
        self.end_switch()
        ports = []
        with open("/proc/self/ns/net") as here, open(f"/run/netns/{self.names['switch']}") as there:
            libc = ctypes.CDLL(None)
            libc.setns(there.fileno(), live.sandbox.CLONE_NEWNET)
            try:
                for name in ("port1", "port2"):
                    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
                    port.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
                    port.bind((name, 3))
                    port.settimeout(0.05)
                    ports.append(port)
            finally:
                libc.setns(here.fileno(), live.sandbox.CLONE_NEWNET)

        def forward(source, target, lossy):
            seen = 0
            while not self.stop.is_set():
                try:
                    frame, address = source.recvfrom(65536)
                except TimeoutError:
                    continue
                if address[2] == 4:  # PACKET_OUTGOING: our own
                    continue
                if lossy and n and len(frame) > 500 and frame[12:14] == b"\x08\x00" and frame[23] == 17:
                    seen += 1
                    if seen % n == 0:
                        drops.append(seen)
                        continue
                target.send(frame)

        def switch():
            back = threading.Thread(target=forward, args=(ports[1], ports[0], False))
            back.start()
            forward(ports[0], ports[1], True)
            back.join()
            for port in ports:
                port.close()

        self.thread = threading.Thread(target=switch)
        self.thread.start()

    def packets_sent(self):
        text = subprocess.run([*self.at("client"), "cat", "/proc/net/dev"], capture_output=True, text=True, check=True).stdout
        return int(re.search(r"eth9:(.*)", text)[1].split()[9])

    def wait_for_packets(self, count):
        begin = self.packets_sent()
        live.wait_for(lambda: self.packets_sent() > begin + count, f"{count} packets sent")


if __name__ == "__main__":
    live.main()
