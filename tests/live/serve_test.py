#!/usr/bin/env python3
"""`weir serve`: runs that come and go in one process, every change of state, and what happens when something fails on the way.

usage: serve_test.py WEIR DISK_FAULTS
"""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import live
import network_test
from stop_test import SIMULATED, config

API = "/api/0.1/weir/"
DATAGRAMS = """
name = "live"
[[port]]
name = "det0"
device = "DEVICE"
address = "10.1.0.2/24"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001]
format = "message"
event = "arrival"
[events]
sources = 1
memory = "128MiB"
timeout_ms = 200
[[sink]]
kind = "events"
path = "runs/{name}-{run:06}"
[lcores]
idle = "sleep"
"""


class Local(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=live.PATIENCE_S)
        self.unix = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(live.PATIENCE_S)
        self.sock.connect(self.unix)


class Service:
    """One `weir serve`, and a client of it."""

    def __init__(self, folder, text, *options, environment=None):
        self.folder = folder
        self.socket = folder / "weir.sock"
        (folder / "runs").mkdir(exist_ok=True)
        (folder / "reports").mkdir(exist_ok=True)
        config_file = folder / "serve.toml"
        config_file.write_text(f"""{text}
[serve]
listen = "127.0.0.1:0"
socket = "{self.socket}"
reports = "{folder}/reports"
run_log = "{folder}/log.jsonl"
token_file = "{folder}/token"
updates_per_s = 5
""")
        self.lines = []
        self.serving = threading.Event()
        self.process = subprocess.Popen([live.Weir.program, "serve", "--config", str(config_file), *map(str, options)], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, cwd=folder, env=environment)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.serving.wait(live.PATIENCE_S)
        if self.process.poll() is not None or not any(line.startswith("serving") for line in self.lines):
            self.close()
            raise AssertionError("weir serve did not get going:\n" + "\n".join(self.lines))
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", "\n".join(self.lines)).group(1))

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("serving"):
                self.serving.set()
        self.serving.set()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(live.PATIENCE_S)
        self.process.stderr.close()

    def end(self, number=signal.SIGTERM, status=0):
        self.process.send_signal(number)
        self.process.wait(live.PATIENCE_S)
        self.reader.join(live.PATIENCE_S)
        assert self.process.returncode == status, f"exit status {self.process.returncode}\n" + "\n".join(self.lines[-20:])

    def ask(self, method, path, body=None):
        connection = Local(self.socket)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if text else None
        finally:
            connection.close()

    def get(self, path):
        status, body = self.ask("GET", API + path)
        assert status == 200, (path, status, body)
        return next(iter(body.values())) if set(body) <= {"value", path.split("/")[-1]} else body

    def command(self, name, status=202):
        """Asks for it; if it is taken, waits until it is done. Returns what became of it."""
        answered, body = self.ask("PUT", API + "command/execute", name)
        assert answered == status, (name, answered, body)
        if status != 202:
            return body
        live.wait_for(lambda: self.get("command/last/done"), f"end of {name}")
        return self.get("command/last")

    def state(self):
        return self.get("status/state")

    def wait_packets(self, count=1):
        """Until the run has so many in messages."""
        live.wait_for(lambda: self.get("ledger/packets/placed") >= count, f"{count} packets")

    def wait_events(self, count):
        live.wait_for(lambda: self.get("ledger/events/complete") >= count, f"{count} events")

    def log(self):
        return [json.loads(line) for line in (self.folder / "log.jsonl").read_text().splitlines()]

    def transitions(self):
        return [(line["from"], line["to"]) for line in self.log() if line["event"] == "state"]

    def report(self, run):
        return json.loads((self.folder / "reports" / f"live-{run}.json").read_text())


class ServeTest(live.Case):
    def service(self, text=None, *options, **more):
        service = Service(self.folder, text or config(SIMULATED), *options, **more)
        self.addCleanup(service.close)
        return service

    def verify(self, path):
        done = subprocess.run([live.Weir.program, "inspect", str(path), "--json"], capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_three_runs_and_their_accounts(self):
        service = self.service()
        self.assertEqual(service.state(), "idle")
        for run in (1, 2, 3):
            self.assertEqual(service.command("start")["error"], "")
            self.assertEqual(service.state(), "running")
            service.wait_events(4)
            self.assertEqual(service.command("stop")["error"], "")
            self.assertEqual(service.state(), "idle")
            report = service.report(run)
            self.assertTrue(report["balanced"])
            self.assertGreater(report["events"]["complete"], 3)
            self.assertEqual(report["stopped_by"], "stopped by command")
            inspected = self.verify(self.folder / "runs" / f"live-{run}")
            self.assertEqual(len(inspected["events"]), report["events"]["written"])
            self.assertEqual(inspected["ledger"]["events"], report["events"])
        runs = service.get("runs")
        self.assertEqual([run["number"] for run in runs], [3, 2, 1])
        self.assertEqual(service.transitions(), [("idle", "arming"), ("arming", "running"), ("running", "stopping"), ("stopping", "idle")] * 3)
        service.end()
        self.assertEqual(service.log()[-1]["to"], "ended")

    def test_as_soon_as_a_run_is_said_to_run_there_is_its_account(self):
        service = self.service()
        documents = []
        over = threading.Event()

        def ask_on():
            while not over.is_set():
                documents.append(service.get(""))

        asking = threading.Thread(target=ask_on)
        asking.start()
        self.addCleanup(asking.join)
        self.addCleanup(over.set)
        in_run = lambda number: [one for one in list(documents) if one["status"]["state"] == "running" and one["run"]["number"] == number]
        for number in (1, 2, 3, 4, 5):
            service.command("start")
            live.wait_for(lambda: in_run(number), f"document of run {number}")
            service.command("stop")
        over.set()
        asking.join()
        running = [document for document in documents if document["status"]["state"] == "running"]
        self.assertEqual({document["run"]["number"] for document in running}, {1, 2, 3, 4, 5})
        for document in running:
            self.assertIn("ledger", document, document["run"])
            self.assertNotIn("balanced", document["ledger"], "that is of the run before")
        service.end()

    def test_what_a_state_does_not_allow_is_refused(self):
        service = self.service(None, "--start")
        live.wait_for(lambda: service.state() == "running", "run")
        self.assertEqual(set(service.get("command/allowed")), {"stop", "new_run", "snapshot", "abort"})
        self.assertIn("not possible while running", service.command("start", status=409)["error"])
        self.assertIn("pcapng", service.command("flight_record", status=409)["error"])
        service.command("fly", status=404)
        service.command("stop")
        self.assertEqual(service.get("command/allowed"), ["start"])
        for command in ("stop", "new_run", "snapshot", "abort"):
            self.assertIn("allowed: start", service.command(command, status=409)["error"])
        service.end()

    def test_new_run_snapshot_and_abort(self):
        service = self.service(None, "--start")
        live.wait_for(lambda: service.state() == "running", "run")
        service.wait_packets()
        snapshot = json.loads(pathlib.Path(service.command("snapshot")["message"]).read_text())
        self.assertGreater(snapshot["packets"]["received"], 0)
        self.assertNotIn("balanced", snapshot)
        self.assertEqual(service.command("new_run")["error"], "")
        self.assertEqual(service.get("run/number"), 2)
        self.assertEqual(service.report(1)["stopped_by"], "the next run begins")
        service.command("abort")
        self.assertEqual(service.state(), "idle")
        self.assertEqual(service.report(2)["stopped_by"], "aborted")
        self.assertTrue(service.report(2)["balanced"])
        self.assertEqual(service.transitions()[3:6], [("stopping", "idle"), ("idle", "arming"), ("arming", "running")])
        service.end()

    def test_limits_and_comment_are_those_of_the_next_run(self):
        service = self.service()
        self.assertEqual(service.ask("PUT", API + "config", {"events": 10, "comment": "lysozyme 3"})[0], 200)
        service.command("start")
        live.wait_for(lambda: service.state() == "idle", "end by the number of events")
        report = service.report(1)
        self.assertEqual(report["stopped_by"], "config/events")
        self.assertEqual(report["comment"], "lysozyme 3")
        self.assertGreaterEqual(report["events"]["complete"], 10)
        self.assertEqual(self.verify(self.folder / "runs" / "live-1")["run"].get("comment", "lysozyme 3"), "lysozyme 3")
        self.assertEqual(service.ask("PUT", API + "config/events", {"value": None})[0], 200)
        self.assertEqual(service.ask("PUT", API + "config/duration_s", 0.4)[0], 200)
        service.command("start")
        live.wait_for(lambda: service.state() == "idle", "end by time")
        self.assertEqual(service.report(2)["stopped_by"], "config/duration_s")
        self.assertEqual(service.ask("PUT", API + "config/duration_s", -1)[0], 400)
        self.assertEqual(service.ask("PUT", API + "config/name", "other")[0], 404)
        service.end()

    def test_a_disk_that_fails_in_arm(self):
        service = self.service()
        runs = self.folder / "runs"
        runs.rename(self.folder / "away")
        runs.write_text("a file where the folder was")
        last = service.command("start")
        self.assertIn("runs", last["error"])
        self.assertEqual(service.state(), "idle")
        self.assertEqual(service.get("status/error"), last["error"])
        self.assertEqual(service.transitions(), [("idle", "arming"), ("arming", "idle")])
        self.assertEqual(service.log()[-1]["error"], last["error"], "the log says why")
        runs.unlink()
        (self.folder / "away").rename(runs)
        self.assertEqual(service.command("start")["error"], "")
        self.assertEqual(service.get("status/error"), "")
        service.wait_packets()
        service.command("stop")
        self.assertEqual(list(runs.glob(".*.part")), [])
        service.end()

    def test_a_disk_that_fails_while_it_runs(self):
        if "ASAN_OPTIONS" in os.environ:
            self.skipTest("a library in front of malloc")
        environment = {**os.environ, "LD_PRELOAD": disk_faults, "WEIR_FAULTS": "write/.live-1:3-3:5"}
        service = self.service(None, "--start", environment=environment)
        live.wait_for((self.folder / "reports" / "live-1.json").exists, "end of the run")
        live.wait_for(lambda: service.state() == "idle", "idle")
        self.assertIn("Input/output error", service.get("status/error"))
        report = service.report(1)
        self.assertIn("Input/output error", report["error"])
        self.assertTrue(report["balanced"])
        [line] = [line for line in service.log() if line["to"] == "idle" and line["event"] == "state"]
        self.assertEqual((line["run"], line["error"], line["stop_reason"]), (1, report["error"], "the sink failed"))
        self.assertEqual(service.command("start")["error"], "", "the service goes on")
        service.wait_packets()
        service.command("stop")
        self.assertEqual(service.get("status/error"), "")
        service.end()

    def test_clients_that_die_in_the_middle(self):
        service = self.service()
        request = (f"PUT {API}command/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n").encode()
        half = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        half.connect(str(service.socket))
        half.sendall(request + b'"st')
        half.close()
        time.sleep(0.3)  # for nothing to happen
        self.assertEqual(service.state(), "idle", "half a command is none")
        whole = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        whole.connect(str(service.socket))
        whole.sendall(request + b'"start"')
        self.assertEqual(whole.recv(1), b"H")  # it is being done, and the client dies
        whole.close()
        live.wait_for(lambda: "stop" in service.get("command/allowed"), "run that a dead client asked for")
        service.command("stop")
        service.end()

    def test_a_signal_ends_the_run_and_the_service(self):
        service = self.service(None, "--start")
        live.wait_for(lambda: service.state() == "running", "run")
        service.wait_packets()
        service.end()
        report = service.report(1)
        self.assertEqual(report["stopped_by"], "SIGTERM")
        self.assertTrue(report["balanced"])
        self.assertFalse(service.socket.exists())
        self.verify(self.folder / "runs" / "live-1")

    def test_the_watchdog_is_fed_between_runs(self):
        live.repeated(self.feed_between_runs, attempts=3)

    def feed_between_runs(self, attempt):
        watchdog_s = 4
        (self.folder / "notify").unlink(missing_ok=True)
        notified = live.Notified(self.folder / "notify")
        self.addCleanup(notified.close)
        environment = {**os.environ, **notified.environment, "WATCHDOG_USEC": str(watchdog_s * 1_000_000)}
        environment.pop("WATCHDOG_PID", None)
        service = self.service(None, "--start", environment=environment)
        live.wait_for(lambda: service.state() == "running", "run")
        service.wait_packets()
        service.command("stop")
        begin = time.monotonic()
        with live.Stalls(service.process.pid) as stalls:
            time.sleep(3 * watchdog_s)
        end = time.monotonic()
        patience = sum("WATCHDOG_USEC=3600000000" in text for _, text in notified.heard)
        feeds = [begin, *(at for at, text in notified.heard if "WATCHDOG=1" in text and begin < at < end), end]
        pause = max(b - a for a, b in zip(feeds, feeds[1:]))
        if pause >= watchdog_s and stalls.longest_s > watchdog_s / 4:
            service.close()
            raise live.Disturbed(f"somebody stood still for {stalls.longest_s:.1f} s")
        self.assertLess(pause, watchdog_s, "it has not been fed while there is no run")
        self.assertGreaterEqual(patience, 2, "it waits while a run is armed, and while it is closed")
        service.end()

    def test_an_abort_that_goes_past_another_command(self):
        service = self.service(None, "--start")
        live.wait_for(lambda: service.state() == "running", "run")
        for _ in range(20):  # the control thread takes a command every two milliseconds
            service.ask("PUT", API + "command/execute", "stop")
            service.ask("PUT", API + "command/execute", "abort")
            live.wait_for(lambda: service.state() == "idle", "idle")
            live.wait_for(lambda: "start" in service.get("command/allowed"), "start")
            self.assertEqual(service.command("start")["error"], "", "nothing is left of the abort")
            service.wait_packets()
        service.end()

    def test_an_abort_ends_the_wait_for_consumers(self):
        text = config(SIMULATED) + """
[[sink]]
kind = "stream"
listen = "tcp://127.0.0.1:*"
start_timeout_ms = 60000
"""
        service = self.service(text)
        service.ask("PUT", API + "command/execute", "start")
        live.wait_for(lambda: service.state() == "arming", "start")
        time.sleep(0.5)  # for nothing to happen
        self.assertEqual(service.state(), "arming", "it waits for a consumer")
        service.ask("PUT", API + "command/execute", "abort")
        live.wait_for(lambda: service.state() == "idle", "idle")  # and not because its wait is over, as it says below
        live.wait_for(lambda: "start" in service.get("command/allowed"), "end of the abort")
        self.assertIn("somebody asked for that", service.get("status/error"))
        self.assertEqual(list((self.folder / "runs").glob(".*.part")), [])
        service.ask("PUT", API + "command/execute", "start")
        live.wait_for(lambda: service.state() == "arming", "start")
        service.end()

    def test_nothing_listens_but_what_is_configured(self):
        service = self.service()
        inodes = {os.readlink(f"/proc/{service.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{service.process.pid}/fd")
                  if os.path.islink(f"/proc/{service.process.pid}/fd/{fd}")}
        listening = []
        for family in ("tcp", "tcp6"):
            for line in pathlib.Path(f"/proc/{service.process.pid}/net/{family}").read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                    listening.append(words[1])
        self.assertEqual(listening, [f"0100007F:{service.port:04X}"])
        service.end()


class DeviceTest(live.Case):
    """A device of the kernel that stays up between runs."""

    def setUp(self):
        super().setUp()
        self.network = live.Network()
        self.addCleanup(self.network.close)

    def send(self, count, mark):
        with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(count):
                sender.sendto(mark * 200, (live.RECEIVER, 50001))
                time.sleep(0.0005)  # so that no ring overflows

    def answers(self):
        """Whether the port answers ping, which it has to be found for by ARP."""
        with self.network.socket_there(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as pinger:
            pinger.settimeout(1)
            request = struct.pack("!BBHHH", 8, 0, 0, 7, 1) + bytes(24)
            request = request[:2] + struct.pack("!H", network_test.checksum(request)) + request[4:]
            for _ in range(live.PATIENCE_S):
                pinger.sendto(request, (live.RECEIVER, 0))
                try:
                    packet, sender = pinger.recvfrom(2000)
                    if sender[0] == live.RECEIVER and packet[20] == 0:
                        return True
                except TimeoutError:
                    pass
            return False

    def runs_on(self, device):
        service = Service(self.folder, DATAGRAMS.replace("DEVICE", device))
        self.addCleanup(service.close)
        self.assertTrue(self.answers(), "the port answers before the first run")
        starts = []
        for run in (1, 2, 3):
            self.send(50, b"b")  # of no run
            begin = time.monotonic()
            self.assertEqual(service.command("start")["error"], "")
            starts.append(time.monotonic() - begin)
            self.send(100 * run, b"r")
            service.wait_packets(100 * run)
            service.command("stop")
            report = service.report(run)
            self.assertTrue(report["balanced"])
            self.assertEqual(report["events"]["complete"], 100 * run)
            self.assertEqual(report["packets"]["placed"], 100 * run)
            self.assertEqual(sum(report["packets"]["dropped"].values()), 0)
        self.assertTrue(self.answers(), "the port answers between runs")
        print(f"{device}: start to running, asked over the socket: {', '.join(f'{1e3 * s:.0f}' for s in starts)} ms", file=sys.stderr)
        service.end()

    def test_kernel_device(self):
        self.runs_on("kernel,iface=det0")

    def test_packet_mmap(self):
        self.runs_on("net_af_packet0,iface=det0")


if __name__ == "__main__":
    disk_faults = os.path.abspath(sys.argv[2])
    live.main(sandbox_required=True, more_arguments=1)
