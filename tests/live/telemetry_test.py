#!/usr/bin/env python3
"""DPDK's telemetry of a running weir: asked through its UNIX socket while data flows, its numbers only grow and end at those of the
report; several runs at once do not disturb each other.

usage: telemetry_test.py WEIR
"""

import json
import os
import pathlib
import socket
import subprocess

import live
from stop_test import config


class Client:
    """Speaks the protocol: a SEQPACKET socket that greets, then answers each command with one JSON object."""

    def __init__(self, name):
        root = "/var/run" if os.getuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp")
        self.folder = pathlib.Path(root) / "dpdk" / name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(live.PATIENCE_S)
        self.socket.connect(str(self.folder / "dpdk_telemetry.v2"))
        self.greeting = json.loads(self.socket.recv(1 << 16))

    def ask(self, command):
        self.socket.send(command.encode())
        answer = json.loads(self.socket.recv(self.greeting["max_output_len"]))
        return answer[command.split(",")[0]]


def flat(value, path=""):
    """Names as telemetry has them: a slash for a dot."""
    out = {}
    for key, inner in value.items():
        name = f"{path}/{key}" if path else key
        out.update(flat(inner, name) if isinstance(inner, dict) else {name.replace(".", "/"): inner})
    return out


class TelemetryTest(live.Case):
    def run_with(self, name, *options, rate=40):
        run = self.weir(config(f"sim,format=jungfrau,rate={rate},seed=3"), "--telemetry", name, *options, name=name)
        run.wait_running()
        client = Client(name)
        self.addCleanup(client.socket.close)
        return run, client

    def test_answers_grow_and_end_at_the_report(self):
        name = f"weir-test-{os.getpid()}"
        run, client = self.run_with(name)
        listed = client.ask("/")
        for command in ("ledger", "sources", "ports", "lcores", "rings", "events"):
            self.assertIn(f"/weir/{command}", listed)
        self.assertIn("account", str(client.ask("/help,/weir/ledger")))
        before = {}
        for _ in range(20):
            now = {f"{part}/{key}": value for part, values in client.ask("/weir/ledger").items() if isinstance(values, dict)
                   for key, value in values.items() if key != "in_flight" and isinstance(value, int)}
            self.assertGreater(len(now), 50)
            for key, value in before.items():
                self.assertGreaterEqual(now[key], value, key)
            before = now
        live.wait_for(lambda: client.ask("/weir/events")["complete"] >= 10, "events")
        self.assertEqual(client.ask("/weir/sources,1").keys(), {"1"})
        self.assertIsNone(client.ask("/weir/sources,7"))
        rings = client.ask("/weir/rings")
        self.assertLessEqual({"descriptors0", "events0", "full0", "memory", "buffers", "open"}, rings.keys())
        for ring in rings.values():
            self.assertLessEqual(ring["used"], ring["size"])
        last = {part: client.ask(f"/weir/{part}") for part in ("ledger", "sources", "ports", "lcores", "events")}
        run.stop()
        report = run.end()
        self.assert_account(run)
        final = {part: flat(report[part]) for part in ("packets", "bytes", "messages", "events")}
        for part, values in final.items():
            self.assertEqual(values.keys(), last["ledger"][part].keys())
            for key, value in values.items():
                if key != "in_flight":
                    self.assertLessEqual(last["ledger"][part][key], value, key)
        self.assertGreater(last["ledger"]["packets"]["placed"], 0)
        self.assertLessEqual(last["ports"]["det0"]["received"], report["devices"][0]["received"])
        self.assertLessEqual(last["lcores"]["rx0"]["received_packets"], report["packets"]["received"])
        self.assertLessEqual(last["sources"]["0"]["packets"], report["sources"][0]["packets"])
        self.assertFalse(client.folder.exists(), "left behind")

    def test_two_runs_at_once(self):
        first, one = self.run_with(f"weir-a-{os.getpid()}", rate=10)
        second, two = self.run_with(f"weir-b-{os.getpid()}", rate=20)
        self.assertNotEqual(one.greeting["pid"], two.greeting["pid"])
        refused = subprocess.run([live.Weir.program, "run", "--config", str(self.folder / f"weir-a-{os.getpid()}.toml"), "--telemetry",
                                  f"weir-a-{os.getpid()}", "--out", str(self.folder / "no")], capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("another program answers", refused.stderr)
        self.assertGreaterEqual(one.ask("/weir/ledger")["packets"]["received"], 0)
        self.assertGreaterEqual(two.ask("/weir/ledger")["packets"]["received"], 0)
        for run in (first, second):
            run.stop()
            run.end()
            self.assert_account(run)

    def test_off_unless_asked_for(self):
        file = self.folder / "c.toml"
        file.write_text(config("sim,format=jungfrau,events=2"))
        wrong = subprocess.run([live.Weir.program, "run", "--config", str(file), "--telemetry", "a/b"], capture_output=True, text=True,
                               timeout=live.PATIENCE_S)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("accepted: letters", wrong.stderr)


if __name__ == "__main__":
    live.main()
