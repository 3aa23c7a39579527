#!/usr/bin/env python3
"""`weir ctl` against a server that behaves as weir's API does: over a UNIX socket and over TCP.

usage: ctl_test.py WEIR
"""

import http.server
import json
import os
import pathlib
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = sys.argv.pop() if len(sys.argv) > 1 else str(ROOT / "build" / "app" / "weir")
TOKEN = "s3cret"


class Api(http.server.BaseHTTPRequestHandler):
    """A tree, and commands that are done after some GETs of command/last."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "client"

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        found = self.server.document
        for part in filter(None, self.path.removeprefix("/api/0.1/weir").split("/")):
            if part not in found:
                return self.answer(404, {"error": f"there is nothing at {self.path}"})
            found = found[part]
        if self.path.endswith("command/last"):
            self.server.looks_until_done -= 1
            self.server.document["command"]["last"]["done"] = self.server.looks_until_done <= 0
        return self.answer(200, found if isinstance(found, dict) else {"value": found})

    def do_PUT(self):
        value = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.wants_token and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": "a token is needed"})
        self.server.puts.append((self.path, value))
        if self.path != "/api/0.1/weir/command/execute":
            return self.answer(200, {"value": value})
        if value == "stop":
            return self.answer(409, {"error": "stop is not possible while idle"})
        self.server.looks_until_done = self.server.looks
        self.server.document["command"]["last"] = {"command": self.server.last_command or value, "accepted": str(len(self.server.puts)), "done": False,
                                                   "message": self.server.message, "error": self.server.error}
        return self.answer(202, {"value": value, "message": f"{value}: under way"})


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self):
        request, _ = super().get_request()
        return request, ("local", 0)


class Ctl(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-ctl-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "token").write_text(TOKEN + "\n")
        (self.folder / "token").chmod(0o600)
        self.socket = self.folder / "det.sock"
        self.server = self.serve(UnixServer(str(self.socket), Api))

    def serve(self, server):
        server.document = {"name": "det", "host": "daq1", "status": {"state": "idle", "error": ""}, "losses": [{"cause": "late", "packets": 12, "per_s": 0.5}],
                           "where": [{"place": "kernel", "title": "in the kernel", "packets": None, "evidence": "nobody counts there"}],
                           "run": None, "command": {"last": {"command": "", "accepted": "", "done": True, "message": "", "error": ""}}}
        server.puts, server.looks, server.looks_until_done, server.error, server.last_command, server.wants_token = [], 3, 0, "", "", False
        server.message = "run 7"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return server

    def ctl(self, *args, status=0, where=None, environment=None, **options):
        where = ["--socket", str(self.socket)] if where is None else where
        done = subprocess.run([WEIR, "ctl", *where, *args], capture_output=True, text=True, timeout=60, env={**os.environ, **(environment or {})}, **options)
        self.assertEqual(done.returncode, status, done)
        return done.stderr if status else done.stdout

    def test_status_is_a_few_lines(self):
        text = self.ctl()
        self.assertTrue(text.startswith("det on daq1: idle\n"), text)
        self.assertIn("late 12 (0.5/s)", text)
        self.assertIn("in the kernel: unknown (nobody counts there)", text)
        self.assertEqual(json.loads(self.ctl("--json", "status")), self.server.document)

    def test_a_whole_document_is_told(self):
        self.server.document |= {"run": {"number": 7, "seconds": 75.0, "paths": ["/data/det-7"]}, "rates": {"gbps": 1.5, "packets_per_s": 2000.0, "events_per_s": 10.0},
                                 "findings": [{"severity": "warning", "text": "the disk is slow"}], "bottleneck": {"part": "x", "sentence": "The disk holds up."}}
        text = self.ctl("status")
        for words in ("run 7 for 1:15 min, /data/det-7", "1.500 Gbit/s, 2000 packets/s, 10 events/s", "warning: the disk is slow", "The disk holds up."):
            self.assertIn(words, text)

    def test_a_command_is_waited_for(self):
        self.assertEqual(self.ctl("start"), "run 7\n")
        self.assertLessEqual(self.server.looks_until_done, 0)
        self.assertEqual(self.server.puts, [("/api/0.1/weir/command/execute", "start")])
        self.assertEqual(self.ctl("new-run", "--no-wait"), "new_run: under way\n")
        self.assertGreater(self.server.looks_until_done, 0)
        self.assertEqual(json.loads(self.ctl("--json", "flight-record"))["command"], "flight_record")

    def test_what_goes_wrong_is_said(self):
        self.assertIn("stop: stop is not possible while idle", self.ctl("stop", status=1))
        self.server.error = "the disk is full"
        self.assertIn("start: the disk is full", self.ctl("start", status=1))
        self.server.error, self.server.looks = "", 1000000
        self.assertIn("snapshot is not done after 0.2 s", self.ctl("--wait", "0.2", "snapshot", status=1))
        self.server.looks, self.server.last_command = 1, "abort"
        self.assertIn("start was followed by abort", self.ctl("start", status=1))

    def test_who_answers_and_is_no_weir_is_said(self):
        for document in ({}, {"hello": "world"}, {"status": "ok"}, {"status": {"state": ""}}):
            self.server.document = document
            self.assertIn("answers something else than a weir", self.ctl(status=1))

    def test_nothing_that_the_other_side_says_steers_the_terminal(self):
        evil = "\x1b]0;title\x07\x1b[2J\u009b31m\r\x7f"
        self.server.document |= {"name": evil, "host": evil, "losses": [{"cause": evil, "packets": 12, "per_s": 0.5}],
                                 "where": [{"place": "kernel", "title": evil, "packets": None, "evidence": evil}],
                                 "findings": [{"severity": evil, "text": evil}], "bottleneck": {"part": "x", "sentence": evil},
                                 "run": {"number": 7, "seconds": 75.0, "paths": [evil]}}
        self.server.document["status"]["error"] = evil
        said = [self.ctl(), self.ctl("get", "name")]
        self.server.error = evil
        said.append(self.ctl("start", status=1))
        self.server.error, self.server.message = "", evil
        said.append(self.ctl("start"))
        for text in said:
            self.assertIn("]0;title", text)
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]")

    def test_a_word_that_is_nearly_a_command(self):
        self.assertIn("did you mean start?", self.ctl("strat", status=2))
        self.assertIn("did you mean flight-record?", self.ctl("flight-recrod", status=2))
        self.assertNotIn("did you mean", self.ctl("xyzzy", status=2))

    def test_help_has_each_command(self):
        text = self.ctl("--help")
        for name, words in (("status", "the default"), ("start", "begins a run"), ("stop", "ends it, and waits"), ("new-run", "begins the next"), ("snapshot", "the account so far"),
                            ("flight-record", "the flight recorder has"), ("abort", "without waiting"), ("get PATH", "a value"), ("set PATH VALUE", "what the next run is to be")):
            [line] = [line for line in text.splitlines() if line.startswith(f"  {name}  ")]
            self.assertIn(words, line)

    def test_values(self):
        self.assertEqual(self.ctl("get", "status/state"), "idle\n")
        self.assertEqual(json.loads(self.ctl("get", "status")), {"state": "idle", "error": ""})
        self.assertIn("nothing at", self.ctl("get", "status/none", status=1))
        for text, value in (("10", 10), ("1.5", 1.5), ("null", None), ("dark frames", "dark frames"), ('"10"', "10"), ("{\"a\": 1}", {"a": 1})):
            self.ctl("set", "config/x", text)
            self.assertEqual(self.server.puts[-1], ("/api/0.1/weir/config/x", value))

    def test_over_tcp_with_a_token(self):
        server = self.serve(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api))
        server.wants_token = True
        where = ["--url", f"127.0.0.1:{server.server_port}/"]
        self.assertIn("idle", self.ctl(where=where))
        self.assertIn("a token is needed", self.ctl("start", where=where, status=1))
        with_token = [*where, "--token-file", str(self.folder / "token")]
        self.assertEqual(self.ctl("start", where=with_token), "run 7\n")
        (self.folder / "token").chmod(0o644)
        self.assertIn("may be read by everybody", self.ctl("start", where=with_token, status=2))

    def test_the_only_socket_is_found(self):
        user = {"environment": {"XDG_RUNTIME_DIR": str(self.folder)}}
        if os.geteuid() == 0:  # the superuser has its sockets in /run, where others may be
            user |= {"user": 65534, "group": 65534, "extra_groups": []}
            try:
                subprocess.run([WEIR, "--version"], user=65534, capture_output=True, check=True)
            except (OSError, subprocess.CalledProcessError):
                self.skipTest("nobody may not run this program")
        self.folder.chmod(0o755)
        self.assertIn("no weir has a socket", self.ctl(where=[], status=1, **user))
        (self.folder / "weir").mkdir()
        for name in ("a", "b"):
            path = self.folder / "weir" / f"{name}.sock"
            self.serve(UnixServer(str(path), Api))
            path.chmod(0o666)
            if name == "a":
                self.assertIn("det on daq1", self.ctl(where=[], **user))
        self.assertIn("--name is one of a, b", self.ctl(where=[], status=2, **user))
        self.assertIn("det on daq1", self.ctl(where=["--name", "b"], **user))

    def test_something_else_answers(self):
        self.server.document = {"command": {"last": {"accepted": 5, "done": "yes"}}}
        self.assertIn("something else than a weir", self.ctl("start", status=1))


if __name__ == "__main__":
    unittest.main()
