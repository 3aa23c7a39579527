#!/usr/bin/env python3
"""Queue pairs that weir answers, in replays: what it would have sent (--answers) is read without its code and compared with what
the captured Linux kernel sent, byte for byte where both decide it; and what was acknowledged is in an event."""
import hashlib
import json
import os
import pathlib
import random
import struct
import unittest
import zlib

from packets import RC, UC, pcap_bytes, reth, roce, roce_message, stamped
from support import Case, config, main, stream, weir

SHARED = pathlib.Path(os.environ.get("WEIR_SHARED") or pathlib.Path(__file__).resolve().parents[3] / "shared")
PEER = "{ qp = 0x77 }"


def frames_of(path):
    data, at = path.read_bytes(), 24
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    while at + 16 <= len(data):
        size = struct.unpack_from(order + "I", data, at + 8)[0]
        yield data[at + 16:at + 16 + size]
        at += 16 + size


def taken_apart(frame):
    """Of a RoCEv2 frame: the headers in which it differs from no other of its direction, and what it says. Checks the iCRC."""
    at = 12
    while frame[at:at + 2] == b"\x81\x00":
        at += 4
    ip = bytearray(frame[at + 2:])
    head = 20 if ip[0] >> 4 == 4 else 40
    size = head + struct.unpack_from("!H", ip, head + 4)[0]
    ip = ip[:size]
    bth = bytes(ip[head + 8:])
    masked = bytearray(ip[:-4])
    for byte in ((1, 8, 10, 11) if head == 20 else (1, 2, 3, 7)) + (head + 6, head + 7, head + 12):
        masked[byte] = 255
    if head == 40:
        masked[0] |= 15
    assert zlib.crc32(b"\xff" * 8 + masked) == struct.unpack("<I", bth[-4:])[0], "iCRC"
    link, address = frame[:at + 2], bytes(ip[12:20] if head == 20 else ip[8:40])
    if head == 20:
        assert sum(struct.unpack("!10H", ip[:20])) % 0xffff == 0, "IPv4 checksum"
    return {"link": link, "address": address, "ports": bytes(ip[head:head + 4]), "opcode": bth[0], "pkey": bth[2:4],
            "qp": int.from_bytes(bth[5:8], "big"), "psn": int.from_bytes(bth[9:12], "big"), "aeth": bth[12:16], "bth4": bth[4]}


class Responder(Case):
    def answered(self, capture, text, *args, **more):
        answers = self.path(f"answers{self.runs}.pcap")
        result = self.replay(capture, text, "--answers", answers, *args, **more)
        return result, [taken_apart(frame) for frame in frames_of(answers)]

    @unittest.skipUnless(SHARED.exists(), f"no captures under {SHARED}; set WEIR_SHARED")
    def test_answers_as_linux_did(self):
        for name, service, event, region in (
                ("rc_send_loss3_mtu1024_v4", "rc", "count", ""), ("rc_send_dup5_mtu1024_v4", "rc", "count", ""),
                ("rc_send_imm_mtu1024_v6", "rc", "immediate", ""), ("rc_send_imm_vlan100_mtu1024_v4", "rc", "immediate", ""),
                ("rc_send_psnwrap_mtu1024_v4", "rc", "count", ""), ("rc_write_imm_mtu1024_v4", "rc", "immediate", "write")):
            with self.subTest(capture=name):
                capture = SHARED / "data" / "rxe" / f"{name}.pcap"
                packets = [taken_apart(frame) for frame in frames_of(capture)]
                requests, theirs = [p for p in packets if p["opcode"] != 0x11], [p for p in packets if p["opcode"] == 0x11]
                keys = {"service": f'"{service}"', "event": f'"{event}"', "peer": f'{{ qp = {theirs[0]["qp"]} }}', "psn": f'[{requests[0]["psn"]}]'}
                if region:
                    first = next(f for f in frames_of(capture) if taken_apart(f)["opcode"] == 6)
                    va, key, _ = struct.unpack_from("!QII", first, 14 + 20 + 8 + 12)
                    keys["region"] = f'{{ va = {va}, bytes = "16MiB", rkey = {key} }}'
                text = config(stream("roce", "message", sources=1, first=requests[0]["qp"], **keys), sources=1)
                result, ours = self.answered(capture, text)
                self.assertEqual(ours, theirs)
                self.assertEqual(len(result.events), theirs[-1]["aeth"][3])  # MSN: messages completed
                self.assertTrue(all(event["complete"] for event in result.events.values()))
                self.assertEqual(result.report["roce"]["queue_pairs"][0]["state"], "ready")
                self.assertEqual(result.packets["not_for_us.roce_response"], len(theirs))

    def test_acknowledges_by_message_and_by_count(self):
        frames = roce_message(bytes(5000), 0, 1, kind=RC) + roce_message(bytes(700), 5, 2, kind=RC)
        capture = self.path("rc.pcap", pcap_bytes(stamped(frames)))
        for every, psns in ((0, []), (2, [1, 3, 4, 5]), (100, [4, 5])):
            text = config(stream("roce", "message", sources=1, service='"rc"', peer=PEER, ack_every=every), sources=1)
            result, answers = self.answered(capture, text)
            self.assertEqual([a["psn"] for a in answers], psns)
            self.assertEqual(result.packets, {"placed": 6})
            self.assertEqual(result.report["roce"]["answers"]["ack"], len(psns))
            for answer in answers:
                self.assertEqual((answer["qp"], answer["opcode"], answer["aeth"][0]), (0x77, 0x11, 0x1f))

    def test_one_queue_pair_in_error_leaves_others_alone(self):
        bad = [roce(RC.send_middle, 0, bytes(1024), qp=0x11), roce(RC.send_only_immediate, 1, b"x", qp=0x11, extension=bytes(4))]
        good = roce_message(bytes(3000), 0, 5, kind=RC, qp=0x12)
        text = config(stream("roce", "message", sources=2, service='"rc"', ack_every=100, peer="[{ qp = 0x77 }, { qp = 0x78 }]", psn="[0, 0]"), sources=1)
        result, answers = self.answered(self.path("two.pcap", pcap_bytes(stamped(bad[:1] + good + bad[1:]))), text)
        self.assertEqual([(a["qp"], a["aeth"][0]) for a in answers], [(0x77, 0x61), (0x78, 0x1f)])
        self.assertEqual([qp["state"] for qp in result.report["roce"]["queue_pairs"]], ["error", "ready"])
        self.assertEqual(result.packets, {"dropped.roce.invalid_request": 1, "dropped.roce.flushed": 1, "placed": 3})
        self.assertIn("qp 0x11", result.output)

    def test_congestion_is_notified(self):
        def marked(psn):
            frame = bytearray(roce(RC.send_only_immediate, psn, b"data", extension=struct.pack("!I", psn)))
            frame[15] |= 3  # not covered by the iCRC; the header checksum is
            frame[24:26] = bytes(2)
            return bytes(frame)
        text = config(stream("roce", "message", sources=1, service='"rc"', peer=PEER, cnp_interval_us=3), sources=1)
        result, answers = self.answered(self.path("ce.pcap", pcap_bytes(stamped([marked(n) for n in range(8)]))), text)
        self.assertEqual([(a["opcode"], a["bth4"], a["qp"]) for a in answers], 3 * [(0x81, 0x40, 0x77)])
        self.assertEqual(result.report["roce"]["answers"]["congestion"], 3)

    def test_writes_into_a_list_of_buffers(self):
        def write(psn, va, data, number):
            return roce(RC.write_only_immediate, psn, data, extension=reth(len(data), va, 5) + struct.pack("!I", number))
        region = '[{ va = 0x1000, bytes = 256, rkey = 5, count = 4, stride = "1KiB" }]'
        text = config(stream("roce", "message", sources=1, service='"rc"', peer=PEER, region=region, ack_every=1), sources=1)
        frames = [write(i, 0x1000 + 0x400 * (i % 4), bytes([i]) * 256, i) for i in range(8)] + [write(8, 0x1001, bytes(256), 8)]
        result, answers = self.answered(self.path("list.pcap", pcap_bytes(stamped(frames))), text)
        self.assertEqual([a["aeth"][0] for a in answers], 8 * [0x1f] + [0x62])
        self.assertEqual(len(result.events), 8)
        for (_, number), event in result.events.items():
            self.assertEqual(event["sha256"], hashlib.sha256(bytes([number]) * 256).hexdigest())

    def test_frames_are_scattered_over_memory(self):
        frames, expected, psn = [], {}, 0
        for number in range(12):
            data = random.Random(number).randbytes(8192)
            expected[number] = hashlib.sha256(data).hexdigest()
            rows = [(at, data[at:at + 1024]) for at in range(0, 8192, 1024)]
            random.Random(number).shuffle(rows)
            va = 0x100000 + 0x4000 * (number % 3)
            for i, (at, row) in enumerate(rows):
                end = i + 1 == len(rows)
                extension = reth(1024, va + at, 5) + (struct.pack("!I", number) if end else b"")
                frames.append(roce(RC.write_only_immediate if end else RC.write_only, psn, row, extension=extension))
                psn += 1
        capture = self.path("scatter.pcap", pcap_bytes(stamped(frames)))
        region = '{ va = 0x100000, bytes = "8KiB", rkey = 5, count = 3, stride = "16KiB", backing = "memory" }'
        text = config(stream("roce", "message", sources=1, service='"rc"', peer=PEER, region=region, ack_every=1), sources=1)
        # A replay has nobody who would repeat what finds a buffer lent: at a slow enough pace they are back in time.
        for step_ms in (2, 20, 200):
            slow = self.path("slow.pcap", pcap_bytes(stamped(frames, step_ns=step_ms * 1_000_000)))
            result, answers = self.answered(slow, text, "--pace", "recorded")
            if "dropped.roce.not_ready" not in result.packets:
                break
        self.assertEqual({number: event["sha256"] for (_, number), event in result.events.items()}, expected)
        self.assertEqual(result.packets, {"placed": len(frames)})
        self.assertEqual(len(answers), len(frames))
        # At once, some find theirs lent: what was acknowledged is right all the same.
        result, answers = self.answered(capture, text)
        self.assertLessEqual(set(result.packets), {"placed", "dropped.roce.not_ready", "dropped.roce.sequence", "dropped.unbound"})
        for (_, number), event in result.events.items():
            if event["complete"]:
                self.assertEqual(event["sha256"], expected[number])
        for wrong, said in ((text.replace('8KiB', '8GiB').replace('16KiB', '16GiB'), "bytes"), (text.replace('count = 3', 'count = 300000'), "events.memory"),
                            (text.replace('peer =', 'event = "count"\npeer ='), "immediate")):
            self.assertIn(said, weir("run", "--config", self.path("wrong.toml", wrong), "--print-config", status=2, trap=False).stderr)

    def test_unreliable_connection_never_mixes_messages(self):
        messages = [roce_message(bytes([n]) * 4000, 4 * n, n) for n in range(20)]
        frames = [f for n, message in enumerate(messages) for i, f in enumerate(message) if (n, i) not in ((3, 1), (7, 3), (8, 0), (12, 2))]
        text = config(stream("roce", "message", sources=1, service='"uc"'), sources=1)
        result = self.replay(self.path("uc.pcap", pcap_bytes(stamped(frames))), text)
        for (_, number), event in result.events.items():
            self.assertEqual(event["complete"], number not in (3, 7, 8, 12))
            if event["complete"]:
                self.assertEqual(event["sha256"], hashlib.sha256(bytes([number]) * 4000).hexdigest())
        self.assertEqual(sum(event["complete"] for event in result.events.values()), 16)
        self.assertEqual(result.report["packets"]["dropped"]["roce.gap"], 2 + 3 + 1)

    def test_a_loop_begins_anew_each_time(self):
        frames = roce_message(bytes(3000), 50, 1, kind=RC) + roce_message(bytes(30), 53, 2, kind=RC)
        text = config(stream("roce", "message", sources=1, service='"rc"', peer=PEER, ack_every=9), sources=1)
        result, answers = self.answered(self.path("loop.pcap", pcap_bytes(stamped(frames))), text, "--loop", 3)
        self.assertEqual(result.packets, {"placed": 12})
        self.assertEqual([a["psn"] for a in answers], 3 * [52, 53])

    def test_wrong_settings_are_named(self):
        good = {"service": '"rc"', "peer": PEER}
        for wrong, key, accepted in (
                ({"service": '"xrc"'}, "stream.service", "ud"), ({"peer": None}, "stream.peer", "qp = 0x11"), ({"peer": "{ }"}, "stream.peer.qp", "24 bits"),
                ({"peer": "[{ qp = 1 }, { qp = 2 }]"}, "stream.peer", "1, one for each"), ({"peer": '{ qp = 1, address = "x" }'}, "stream.peer.address", "IPv4"),
                ({"psn": "[1, 2]"}, "stream.psn", "one for each"), ({"psn": 1 << 24}, "stream.psn", "24 bits"), ({"path_mtu": 1000}, "stream.path_mtu", "1024"), ({"qkey": 1}, "stream.qkey", "ud"),
                ({"pkey": 65536}, "stream.pkey", "65535"), ({"rnr_timer_us": 1}, "stream.rnr_timer_us", "10"),
                ({"region": "{ va = 1, rkey = 2 }"}, "stream.region.bytes", "how many"), ({"region": '{ va = 1, rkey = 2, bytes = 8, count = 2, stride = 4 }'}, "stream.region.stride", "at least"),
                ({"region": '{ va = 1, rkey = 2, bytes = 8, qp = 9 }'}, "stream.region.qp", "one of the stream"), ({"region": '{ va = 1, rkey = 2, bytes = 8, size = 9 }'}, 'stream.region."size"', "stride"),
                ({"service": '"ud"', "peer": None}, "stream.qkey", "Q_Key"), ({"service": '"listen"'}, "stream.peer", '"rc" or "uc"'), ({"service": '"uc"', "ack_every": 3}, "stream.ack_every", "rc")):
            with self.subTest(wrong=wrong):
                keys = {k: v for k, v in {**good, **wrong}.items() if v is not None}
                settings = self.path("wrong.toml", config(stream("roce", "message", sources=1, **keys), sources=1))
                said = weir("run", "--config", settings, "--print-config", status=2, trap=False).stderr
                self.assertIn(f"wrong.toml:", said)
                self.assertIn(key + ":", said)
                self.assertIn(accepted, said)

    def test_what_is_printed_reads_back(self):
        region = '[{ va = 0x1000, bytes = 256, rkey = 5, count = 4, stride = "1KiB", qp = 0x12 }, { va = 0, bytes = "1MiB", rkey = 6, write = false }]'
        text = config(stream("roce", "message", sources=2, service='"rc"', peer='[{ qp = 1 }, { qp = 2, address = "fd00::1" }]', psn="[5, 6]", path_mtu=2048,
                             pkey="0x8001", rnr_timer_us=1000, ack_every=4, cnp_interval_us=0, region=region))
        first = weir("run", "--config", self.path("a.toml", text), "--print-config", trap=False).stdout
        second = weir("run", "--config", self.path("b.toml", first), "--print-config", trap=False).stdout
        self.assertEqual(first, second)
        for said in ("fd00::1", "0x8001", "write = false", "count = 4", "path_mtu = 2048"):
            self.assertIn(said, first)

    def test_answers_need_a_new_file(self):
        capture = self.path("rc.pcap", pcap_bytes([]))
        text = self.path("c.toml", config(stream("roce", "message", sources=1, service='"rc"', peer=PEER), sources=1))
        taken = self.path("taken", b"")
        self.assertIn("taken", weir("replay", capture, "--config", text, "--out", self.folder / "out", "--answers", taken, status=1).stderr)
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    main()
