#!/usr/bin/env python3
"""Clients that mean no good, while a run goes on: the readout loses nothing, the account balances, and whoever asks properly is answered.

usage: hostile_test.py WEIR
"""

import os
import random
import resource
import socket
import time

import live
from serve_test import API, Service
from stop_test import SIMULATED, config


class HostileTest(live.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "token").write_text("a token of some length")
        (self.folder / "token").chmod(0o600)
        # What may not cost events are the clients: a machine that stands still for a second, or its disk, is none of them.
        slow = SIMULATED.replace("rate=40", "rate=10")  # its queue lasts for a second and a half
        text = config(slow, memory="512MiB")
        self.service = Service(self.folder, text, "--start")
        self.addCleanup(self.service.close)
        live.wait_for(lambda: self.service.state() == "running", "run")
        self.sockets = []
        self.addCleanup(lambda: [one.close() for one in self.sockets])

    def connect(self):
        one = socket.create_connection(("127.0.0.1", self.service.port), timeout=5)
        self.sockets.append(one)
        return one

    def ask(self, raw):
        """The status that is answered; 0: the connection was closed without an answer."""
        with socket.create_connection(("127.0.0.1", self.service.port), timeout=live.PATIENCE_S) as one:
            try:
                one.sendall(raw)
                answer = one.recv(65536)
            except (BrokenPipeError, ConnectionResetError):
                return 0
            return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.") else 0

    def put(self, body, *headers, host="127.0.0.1", path="command/execute"):
        lines = [f"PUT {API}{path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
        return self.ask("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def assert_unharmed(self):
        """The run goes on, and has lost nothing."""
        self.assertEqual(self.service.state(), "running")
        self.service.wait_events(11)
        self.service.command("stop")
        report = self.service.report(1)
        self.assertTrue(report["balanced"])
        self.assertEqual(report["device_missed"], 0)
        self.assertEqual(sum(report["packets"]["dropped"].values()), 0, report["packets"]["dropped"])
        self.assertGreater(report["events"]["complete"], 10)
        self.assertEqual({cause for cause, events in report["events"]["incomplete"].items() if events} - {"end_of_run"}, set(), report["events"])
        self.service.end()

    def test_connections_that_say_nothing_or_little(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for number in range(1000):
            try:
                one = self.connect()
                if number % 2:
                    one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
            except OSError:
                pass  # turned away
        self.assertEqual(self.service.state(), "running", "over the UNIX socket")
        for _ in range(20):
            for one in self.sockets[:200]:
                try:
                    one.sendall(b"x")
                except OSError:
                    pass
            time.sleep(0.02)  # so that each byte is a packet of its own
        self.assert_unharmed()

    def test_garbage(self):
        numbers = random.Random(7)
        for size in (1, 10, 100, 1000, 10000, 200000):
            for _ in range(5):
                self.ask(numbers.randbytes(size) + b"\r\n\r\n")
        for path in ("/../../etc/passwd", "/assets/../../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/assets/..%2f..%2fetc%2fpasswd",
                     "/%00", API + "../../../etc/passwd", "/" + "a" * 100000):
            self.assertIn(self.ask(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()), (0, 400, 403, 404, 413, 414, 431), path[:80])
        self.assert_unharmed()

    def test_bodies_of_any_size_and_shape(self):
        token = "Authorization: Bearer a token of some length"
        for body in (b"", b"{", b'{"execute": ', b"[" * 10000, b'{"a":' * 5000, b"\xff\xfe", b'"\\ud800"', b"nul", b"1e999", b'{"execute": {"execute": "stop"}}'):
            self.assertIn(self.put(body, token), (400, 404, 409, 413), body[:30])
        for size in (65536 + 1, 1 << 20, 1 << 24):
            self.assertIn(self.put(b" " * size, token), (0, 413))
        self.assertIn(self.ask(f"PUT {API}command HTTP/1.1\r\nHost: 127.0.0.1\r\n{token}\r\nContent-Length: 99999999999999\r\n\r\nx".encode()), (0, 400, 413))
        self.assert_unharmed()

    def test_changes_by_who_may_not(self):
        stop = b'"stop"'
        self.assertEqual(self.put(stop), 401)
        self.assertEqual(self.put(stop, "Authorization: Bearer wrong"), 401)
        good = "Authorization: Bearer a token of some length"
        self.assertEqual(self.put(stop, good, "Origin: http://evil.example"), 403)
        self.assertEqual(self.put(stop, good, host="evil.example"), 403)
        self.assertEqual(self.ask(b"GET /api/0.1/weir HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403, "by a name of its own (rebinding)")
        answers = [self.put(stop, f"Authorization: Bearer guess {guess}") for guess in range(12)]
        self.assertEqual(answers[-1], 429, answers)
        self.assertEqual(self.put(stop, good), 429, "from the same address, also with the right one")
        self.assert_unharmed()

    def test_the_token_is_rotated(self):
        (self.folder / "new").write_text("the next token, longer")
        (self.folder / "new").chmod(0o600)
        os.replace(self.folder / "new", self.folder / "token")
        self.assertEqual(self.put(b'"snapshot"', "Authorization: Bearer a token of some length"), 401)
        self.assertEqual(self.put(b'"snapshot"', "Authorization: Bearer the next token, longer"), 202)
        (self.folder / "token").chmod(0o644)
        self.assertEqual(self.put(b'"snapshot"', "Authorization: Bearer the next token, longer"), 403, "everybody may read it")
        live.wait_for(lambda: self.service.get("command/last/done"), "snapshot")
        self.assert_unharmed()


if __name__ == "__main__":
    live.main(sandbox_required=True)
