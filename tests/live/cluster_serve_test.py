#!/usr/bin/env python3
"""A cluster whose nodes are services: one run for all of them, with one number, begun and ended at any of them; how all are is asked at one;
a node that is not there, or cannot begin, is named, and nothing of the run stays.

usage: cluster_serve_test.py WEIR
"""

import json
import os
import signal
import socket
import subprocess
import threading

import live
from cluster_test import node_tables, stream_tables

NODES = {"ma": "manager", "ru0": "readout", "ru1": "readout", "bu0": "builder", "bu1": "builder"}
STREAMS = {"ru0": (50001, 50002), "ru1": (50003, 50004)}
# An interface of the kernel says what it dropped, and nobody says what the wire did: no sequence numbers.
UNKNOWN = "ru0 lossless unknown; ru1 lossless unknown"
SENT = ("--format", "ejfat", "--sources", 4, "--bytes", 4000, "--port", 50001)


def configuration(folder):
    """One file for all nodes of this host."""
    tables = node_tables(NODES)
    for place, name in enumerate(NODES):
        tables = tables.replace(f'name = "{name}"\n', f'name = "{name}"\nserve = "127.0.0.1:{9400 + place}"\n')
    return f"""name = "det"
[cluster]
transports = "tcp"
silence_ms = 20000
timeout_ms = 20000
block = 4
{tables}
[[port]]
name = "det0"
device = "kernel,iface=det0"
address = "{live.RECEIVER}/24"
{stream_tables(STREAMS, 'format = "ejfat"', True)}
[events]
sources = 4
memory = "64MiB"
timeout_ms = 20000
[[sink]]
kind = "events"
path = "runs/{{name}}-{{run:06}}/{{node}}"
[lcores]
idle = "sleep"
[serve]
socket = "{folder}/{{node}}.sock"
token_file = "{folder}/token"
reports = "{folder}/runs/{{name}}-{{run:06}}"
run_log = "{folder}/{{node}}.log"
updates_per_s = 5
"""


class Service:
    """A node as `weir serve`, by these words."""

    def __init__(self, folder, name, words, environment=None):
        self.name = name
        self.lines = []
        self.serving = threading.Event()
        self.process = subprocess.Popen(words, cwd=folder, env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("serving"):
                self.serving.set()
        self.serving.set()

    def said(self):
        return f"--- {self.name}\n" + "\n".join(self.lines[-25:])

    def wait_serving(self):
        self.serving.wait(live.PATIENCE_S)
        if self.process.poll() is not None or not any(line.startswith("serving") for line in self.lines):
            raise AssertionError(self.said())

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(live.PATIENCE_S)
        self.process.stdout.close()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(live.PATIENCE_S)
        self.reader.join(live.PATIENCE_S)
        assert self.process.returncode == 0, self.said()


class ClusterCase(live.Case):
    """Two readout nodes at one cable, two builders and a manager."""

    def setUp(self):
        super().setUp()
        self.network = live.Network()
        self.addCleanup(self.network.close)
        (self.folder / "cluster.toml").write_text(configuration(self.folder))
        (self.folder / "runs").mkdir()
        token = self.folder / "token"
        token.write_text("open sesame\n")
        token.chmod(0o640)
        self.services = {}

    def start_words(self, name, words, environment=None):
        self.services[name] = Service(self.folder, name, words, environment)
        self.addCleanup(self.services[name].close)

    def start_services(self, *names):
        for name in names or NODES:
            self.start_words(name, [live.Weir.program, "serve", "--config", "cluster.toml", "--node", name])
        for name in names or NODES:
            self.services[name].wait_serving()

    def weir_text(self, *words, status=0):
        done = subprocess.run([live.Weir.program, *map(str, words)], capture_output=True, text=True, timeout=live.PATIENCE_S, cwd=self.folder)
        everything = "\n".join([done.stdout, done.stderr, *(service.said() for service in self.services.values())])
        self.assertEqual(done.returncode, status, everything)
        return done.stdout + done.stderr

    def ctl(self, node, *words, status=0):
        return self.weir_text("ctl", "--socket", self.folder / f"{node}.sock", *words, status=status)

    def cluster(self, node="ma"):
        return json.loads(self.ctl(node, "--cluster", "--json"))

    def states(self):
        return {node["name"]: node.get("state") for node in self.cluster()["nodes"]}

    def node_in(self, document, name):
        return next(node for node in document["nodes"] if node["name"] == name)

    def take(self, events, first=1):
        """Sends so many events to both readout nodes, and waits until both have them."""
        before = {name: self.received(name) for name in STREAMS}
        self.send(*SENT, "--events", events, "--rate", 500, "--first-event", first, "--to", f"udp:{live.RECEIVER}:50001", where=self.network.there())
        live.wait_for(lambda: all(self.received(name) >= before[name] + events for name in STREAMS), "events at both readout nodes")

    def received(self, name):
        answer = json.loads(self.ctl(name, "get", "ledger/events/complete", "--json"))
        return answer["value"]

    def inspect(self, run):
        return json.loads(self.weir_text("inspect", self.folder / "runs" / f"det-{run:06}", "--json"))

    def check_run(self, run, events):
        """One folder, with both builders' events and all reports, is a whole run."""
        folder = self.folder / "runs" / f"det-{run:06}"
        self.assertEqual({path.name for path in folder.glob("*") if not path.name.startswith(".")},
                         {"bu0", "bu1", *(f"det-{name}-{run}.json" for name in NODES)})
        for builder in ("bu0", "bu1"):
            self.assertEqual(json.loads((folder / builder / "manifest.json").read_text())["run"], run)
        self.check_events(run, events)

    def check_events(self, run, events):
        """Together they are whole events, each once."""
        found = self.inspect(run)
        self.assertTrue(found["verified"])
        totals = found["cluster"]["totals"]
        self.assertEqual((totals["events"], totals["complete"], totals["more_than_once"]["total"]), (events, events, 0))


class ClusterServeTest(ClusterCase):
    def test_one_run_after_the_other(self):
        self.start_services()
        self.assertEqual(set(self.states().values()), {"idle"})
        self.assertRegex(self.ctl("bu1", "--cluster", "start", "--comment", "lysozyme"), r"run 1, started on 5 nodes")
        document = self.cluster("ru0")
        self.assertEqual((document["state"], document["run"], document["name"]), ("running", 1, "det"))
        self.assertIn("all nodes are in run 1", self.ctl("ma", "--cluster", "start", status=1))
        self.take(40)
        self.assertRegex(self.ctl("ru1", "--cluster", "new-run"), rf"run 1 ended: {UNKNOWN}; run 2, started on 5 nodes")
        self.take(24, first=1)
        text = self.weir_text("top", "--socket", self.folder / "bu0.sock", "--cluster", "--once")
        self.assertRegex(text, r"cluster det: 5 of 5 nodes answer +running  run 2")
        self.assertRegex(text, r"(?m)^ru1 +readout +running +2 ")
        self.assertRegex(self.ctl("ma", "--cluster", "stop"), rf"run 2 ended: {UNKNOWN}")
        self.assertEqual(set(self.states().values()), {"idle"})
        self.assertIn("no node is in a run", self.ctl("ma", "--cluster", "stop", status=1))
        self.check_run(1, 40)
        self.check_run(2, 24)
        manifest = json.loads((self.folder / "runs" / "det-000001" / "bu0" / "manifest.json").read_text())
        self.assertEqual(manifest["comment"], "lysozyme")
        for service in self.services.values():
            service.end()

    def test_a_node_that_is_not_there(self):
        config = self.folder / "cluster.toml"
        config.write_text(config.read_text().replace("[cluster]", "[cluster]\njoin_wait_ms = 3600000"))  # nobody waits for who is left out
        self.start_services("ma", "ru0", "ru1", "bu0")
        refused = self.ctl("ru0", "--cluster", "start", status=1)
        self.assertRegex(refused, r"nothing was started: bu1 is not reached")
        document = self.cluster("ru0")
        self.assertFalse(self.node_in(document, "bu1")["reached"])
        self.assertEqual(document["state"], "idle", "what is not reached has no say")
        self.assertIn("there is no node bu7", self.ctl("ru0", "--cluster", "start", "--without", "bu7", status=1))
        self.assertIn("no builder", self.ctl("ru0", "--cluster", "start", "--without", "bu0", "--without", "bu1", status=1))
        self.assertRegex(self.ctl("ru0", "--cluster", "start", "--without", "bu1"), r"run 1, started on 4 nodes")
        self.take(16, first=0)  # whole blocks
        live.wait_for(lambda: self.received("bu0") == 16, "events at the builder that is there")
        self.assertIsNone(next((line for line in self.services["ru0"].lines if "bu1" in line), None), "it is missed")
        self.assertRegex(self.ctl("ru0", "--cluster", "stop"), rf"run 1 ended: {UNKNOWN}\n")
        self.check_events(1, 16)
        self.assertRegex(self.ctl("ru0", "--cluster", "start", "--without", "bu1"), r"run 2, started on 4 nodes")
        self.take(16, first=0)
        self.start_services("bu1")
        self.assertEqual(self.node_in(self.cluster(), "bu1")["state"], "idle")
        # By itself it would not know of the others' run: nobody works with it, and it says why.
        self.ctl("bu1", "start")
        live.wait_for(lambda: any("is in run 2, and this node in none" in line for line in self.services["bu1"].lines), "why it is alone")
        self.ctl("bu1", "abort")
        self.assertRegex(self.ctl("ma", "--cluster", "start"), r"run 2 goes on, now with bu1")
        self.take(16, first=16)
        stopped = self.ctl("ru0", "--cluster", "stop")
        self.assertRegex(stopped, rf"run 2 ended: {UNKNOWN}")
        self.check_events(2, 32)
        self.assertRegex(self.ctl("bu1", "--cluster", "start"), r"run 4, started on 5 nodes", "the run that it had for itself was the third")
        self.take(16)
        self.assertRegex(self.ctl("bu1", "--cluster", "stop"), rf"run 4 ended: {UNKNOWN}")
        self.check_run(4, 16)

    def test_a_node_that_cannot_begin(self):
        self.start_services()
        with socket.create_server(("127.0.0.1", 7475)):  # where bu1 is to listen for the others
            refused = self.ctl("bu0", "--cluster", "start", status=1)
        self.assertRegex(refused, r"run 1 was not started: bu1: .*7475")
        live.wait_for(lambda: set(self.states().values()) == {"idle"}, "all nodes idle again")
        self.assertRegex(self.ctl("bu0", "--cluster", "start"), r"run 2, started on 5 nodes")
        self.take(12)
        self.assertRegex(self.ctl("ru0", "--cluster", "abort"), r"given up on 5 nodes")
        self.assertEqual(set(self.states().values()), {"idle"})

    def test_only_who_has_the_token(self):
        self.start_services("ma", "ru0", "ru1", "bu0", "bu1")
        url = ("--url", "http://127.0.0.1:9401", "--cluster")
        self.assertRegex(self.weir_text("ctl", *url, "start", status=1), r"token")
        wrong = self.folder / "wrong"
        wrong.write_text("abracadabra\n")
        wrong.chmod(0o640)
        self.weir_text("ctl", *url, "--token-file", wrong, "start", status=1)
        self.assertEqual(set(self.states().values()), {"idle"})
        self.assertRegex(self.weir_text("ctl", *url, "--token-file", self.folder / "token", "start"), "run 1, started on 5 nodes")
        self.assertIn("is for one node", self.weir_text("ctl", *url, "snapshot", status=2))
        self.weir_text("ctl", *url, "--token-file", self.folder / "token", "abort")


if __name__ == "__main__":
    live.main(sandbox_required=True)
