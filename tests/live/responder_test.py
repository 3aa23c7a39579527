#!/usr/bin/env python3
"""`weir run` as the other end of reliable connections on a kernel interface. The requester is written here, from the wire format
and not with weir's code: go-back-N, an acknowledgement asked for at the end of each message, losses on both ways on purpose.
Whatever it saw acknowledged has to be in an event, once and intact. usage: responder_test.py WEIR
"""

import hashlib
import random
import resource
import select
import socket
import struct
import time
import zlib

import live

PROFILE = live.ROOT / "pmd-config/net_af_packet.toml"
QP, PEER_QP, PMTU, FIRST_PSN = 0x11, 0x77, 1024, 0xFFFFF0
WEIR_MAC, OWN_MAC = bytes.fromhex("020000000002"), bytes.fromhex("02000000000a")


def config(stream="", events="", more=""):
    return f"""name = "rc"
[[port]]
name = "det0"
device = "net_af_packet0,iface=det0"
profile = "{PROFILE}"
[[stream]]
port = "det0"
transport = "roce"
qp = [{QP}]
format = "message"
service = "rc"
peer = {{ qp = {PEER_QP}, address = "{live.SENDER}" }}
psn = [{FIRST_PSN}]
path_mtu = {PMTU}
{stream}
[events]
sources = 1
memory = "64MiB"
timeout_ms = 20000
{events}
[[sink]]
kind = "events"
path = "unused"
[lcores]
idle = "sleep"
{more}
"""


def crc(ip):
    masked = bytearray(ip)
    for at in (1, 8, 10, 11, 26, 27, 32):
        masked[at] = 0xFF
    return struct.pack("<I", zlib.crc32(bytes(8 * [0xFF]) + masked))


def request(opcode, psn, extension, data, ask):
    pad = -len(data) % 4
    bth = struct.pack("!BBHII", opcode, pad << 4 | 0x40, 0xFFFF, QP, (0x80000000 if ask else 0) | psn)
    body = bth + extension + data + bytes(pad)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + 8 + len(body) + 4, 0, 0x4000, 64, 17, 0,
                       socket.inet_aton(live.SENDER), socket.inet_aton(live.RECEIVER))
    total = sum(struct.unpack("!10H", head))
    head = head[:10] + struct.pack("!H", 0xFFFF ^ ((total & 0xFFFF) + (total >> 16))) + head[12:]
    ip = head + struct.pack("!HHHH", 0xC111, 4791, 8 + len(body) + 4, 0) + body
    return WEIR_MAC + OWN_MAC + b"\x08\x00" + ip + crc(ip)


class Requester:
    """Sends messages, with their number as the immediate, until all are acknowledged."""

    def __init__(self, network, messages, write=None, lost=0.0, window=64, seed=1):
        self.random = random.Random(seed)
        self.lost = lost
        self.window = window
        self.packets = []  # (opcode, extension, data, ask), one per PSN
        for number, data in enumerate(messages):
            parts = [data[i:i + PMTU] for i in range(0, len(data), PMTU)]
            for i, part in enumerate(parts):
                last = i + 1 == len(parts)
                operation = (4 if last else 0) if i == 0 else (2 if last else 1)
                reth = struct.pack("!QII", *write, len(data)) if write and i == 0 else b""
                self.packets.append(((6 if write else 0) + operation + (1 if last else 0), reth + (struct.pack("!I", number) if last else b""), part, last))
        self.answers = {"ack": 0, "rnr": 0, "sequence": 0}
        self.acknowledged = 0  # packets
        self.repeated = 0
        self.fatal = None
        self.socket = network.socket_there(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.socket.bind(("gen0", 0x0800))

    def run(self, patience_s=live.PATIENCE_S):
        end, sent, waiting_since = time.monotonic() + patience_s, 0, time.monotonic()
        while self.acknowledged < len(self.packets) and self.fatal is None:
            if time.monotonic() > end:
                raise AssertionError(f"only {self.acknowledged} of {len(self.packets)} packets acknowledged: {self.answers}")
            while sent < min(self.acknowledged + self.window, len(self.packets)):
                opcode, extension, data, ask = self.packets[sent]
                ask = ask or sent + 1 == self.acknowledged + self.window
                if self.random.random() >= self.lost:
                    self.socket.send(request(opcode, (FIRST_PSN + sent) & 0xFFFFFF, extension, data, ask))
                sent += 1
            before = self.acknowledged
            back = self.listen(0.02)
            if self.acknowledged > before:
                waiting_since = time.monotonic()
            elif back is None and time.monotonic() - waiting_since > 0.1:
                back, waiting_since = self.acknowledged, time.monotonic()
            if back is not None:
                self.repeated += sent - back
                sent = back

    def listen(self, patience_s):
        """Takes what has come; where to go back to, if asked to."""
        back = None
        while select.select([self.socket], [], [], patience_s)[0]:
            frame = self.socket.recv(9000)
            patience_s = 0
            if frame[:6] != OWN_MAC or frame[23] != 17 or frame[34:38] != struct.pack("!HH", 0xC111, 4791):
                continue
            assert crc(frame[14:58]) == frame[58:62], "iCRC of an answer"
            assert sum(struct.unpack("!10H", frame[14:34])) % 0xFFFF == 0, "IPv4 checksum of an answer"
            assert frame[42] == 0x11 and int.from_bytes(frame[47:50], "big") == PEER_QP
            if self.random.random() < self.lost:
                continue
            ahead = (int.from_bytes(frame[51:54], "big") - FIRST_PSN - self.acknowledged) & 0xFFFFFF
            at = self.acknowledged + (ahead if ahead < 1 << 23 else ahead - (1 << 24))
            syndrome = frame[54]
            if syndrome < 0x20:
                self.answers["ack"] += 1
                self.acknowledged = max(self.acknowledged, at + 1)
            elif syndrome < 0x40 or syndrome == 0x60:  # what came before it is acknowledged with it
                self.answers["rnr" if syndrome < 0x40 else "sequence"] += 1
                self.acknowledged = max(self.acknowledged, at)
                back = at
            else:
                self.fatal = syndrome
        return None if back is None else max(back, self.acknowledged)


class ResponderTest(live.Case):
    @classmethod
    def setUpClass(cls):
        if not live.is_real_root() and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < 256 << 20:
            raise live.unittest.SkipTest("net_af_packet locks its rings in memory: needs root, or a higher `ulimit -l`")
        cls.network = live.Network()

    @classmethod
    def tearDownClass(cls):
        cls.network.close()

    def exchange(self, text, requester):
        run = self.weir(text)
        run.wait_running()
        self.addCleanup(requester.socket.close)
        requester.run()
        run.stop()
        run.end()
        self.assert_account(run)
        return run

    def assert_all_there(self, run, messages):
        events = run.inspect()["events"]
        self.assertEqual([event["id"] for event in sorted(events, key=lambda event: event["id"])], list(range(len(messages))))
        for event in events:
            self.assertTrue(event["complete"])
            self.assertEqual(event["sha256"], hashlib.sha256(messages[event["id"]]).hexdigest())
        self.assertEqual(run.report["messages"]["refused"], dict.fromkeys(run.report["messages"]["refused"], 0))

    def test_delivers_everything_although_packets_and_answers_are_lost(self):
        messages = [random.Random(n).randbytes(1 + 997 * (n % 9)) for n in range(120)]
        requester = Requester(self.network, messages, lost=0.03)
        run = self.exchange(config(), requester)
        self.assert_all_there(run, messages)
        self.assertGreater(run.report["packets"]["dropped"]["roce.sequence"], 0)
        self.assertGreater(requester.answers["sequence"], 0)
        self.assertEqual(run.report["roce"]["queue_pairs"][0]["msn"], len(messages))

    def test_holds_a_sender_back_that_is_faster_than_the_sink(self):
        messages = [random.Random(n).randbytes(20_000) for n in range(60)]
        requester = Requester(self.network, messages, write=(0x10000, 5))
        region = 'region = { va = 0x10000, bytes = "64KiB", rkey = 5 }'
        run = self.exchange(config(region, "window = 1", '[[reduce]]\nkind = "zstd"\nlevel = 19\n'), requester)
        self.assert_all_there(run, messages)
        self.assertEqual(run.report["packets"]["dropped"]["no_room"], 0)
        self.assertEqual(run.report["roce"]["answers"]["rnr_nak"] > 0, requester.answers["rnr"] > 0)

    def test_a_frame_that_has_begun_needs_no_second_place(self):
        # As many frames as there are places for events (window = 1: one open, and 20 on their way to the sink), each of
        # them begun before the first one goes on.
        frames, part = 21, 1000
        contents = [random.Random(n).randbytes(2 * part) for n in range(frames)]
        requester = Requester(self.network, [])
        for at in (0, part):
            requester.packets += [(10, struct.pack("!QII", 0x10000 + 4096 * n + at, 5, part), contents[n][at:at + part], True) for n in range(frames)]
        requester.packets += [(11, struct.pack("!QIII", 0x10000 + 4096 * n, 5, 0, n), b"", True) for n in range(frames)]
        region = 'region = { va = 0x10000, bytes = 2000, rkey = 5, count = 21, stride = 4096, backing = "memory" }'
        run = self.exchange(config(region, "window = 1"), requester)
        self.assert_all_there(run, contents)
        self.assertEqual(run.report["packets"]["dropped"]["unbound"], 0)

    def without_psn(self, messages, strangers):
        """Packets of somebody who takes the peer's address come first; nobody said at which PSN the peer begins."""
        requester = Requester(self.network, messages)
        text = config().replace(f"psn = [{FIRST_PSN}]\n", "")
        run = self.weir(text)
        run.wait_running()
        self.addCleanup(requester.socket.close)
        for psn in strangers:
            requester.socket.send(request(5, psn, struct.pack("!I", 99), b"nothing", True))
        requester.run()
        run.stop()
        run.end()
        self.assert_account(run)
        self.assert_all_there(run, messages)
        return requester

    def test_a_strangers_packet_is_not_where_the_peer_begins(self):
        messages = [random.Random(n).randbytes(1 + 997 * (n % 9)) for n in range(40)]
        self.without_psn(messages, [(FIRST_PSN + 5000) & 0xFFFFFF, 0x5000])

    def test_one_packet_is_taken_when_it_comes_again(self):
        requester = self.without_psn([b"only"], [])
        self.assertEqual(requester.answers["sequence"], 0)
        self.assertGreater(requester.repeated, 0, "one packet alone is no evidence")

    def test_a_fatal_answer_ends_the_connection_and_nothing_else(self):
        requester = Requester(self.network, [b"within", b"outside" * 20], write=(0x10000, 5))
        run = self.exchange(config('region = { va = 0x10000, bytes = 100, rkey = 5 }'), requester)
        self.assertEqual((requester.fatal, requester.acknowledged), (0x62, 1))
        self.assertEqual(run.report["roce"]["queue_pairs"][0]["state"], "error")
        self.assert_all_there(run, [b"within"])


if __name__ == "__main__":
    live.main(sandbox_required=True)
