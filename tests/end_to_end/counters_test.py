#!/usr/bin/env python3
"""One small replay for every counter: what ends there, how much of it, and nothing anywhere else. Together with the number
of records in the file, which the program does not make up, taking away a single increment makes one of these fail."""
import random
import resource
import signal
import struct

from packets import (EJFAT_PORT, RC, UC, START_NS, datagram, ejfat, ethernet, ipv4, jungfrau, pcap_bytes, reth, roce, roce_message, stamped, udp)
from support import FUSED, Case, Replay, config, main, stream, weir

# These cannot be provoked by a replay.
NOT_IN_A_REPLAY = {
    "packets": {"in_flight": "is zero at the end of every run, which every test of this folder checks",
                "dropped.roce.reset": "needs somebody who disconnects a queue pair: tests/roce",
                "dropped.malformed.udp_checksum": "is found by devices only: tests/live/ports_test.py provokes it"},
    "messages": {},
    "events": {"vetoed": "no reducer of this version rejects events",
               "incomplete.node_down": "needs a cluster: tests/live/cluster_kill_test.py provokes it",
               "dropped.not_taken": "needs a consumer of a stream that is not there: stream_test.py provokes it",
               "dropped.reduce_error": "needs a message that is not of the size of its stream, which no decoder lets through: tests/reduce"},
}

EJFAT = config(stream(format="ejfat", sources=1), sources=1)
MIRROR = EJFAT.replace("[[port]]", '[[port]]\ndecapsulate = ["erspan", "vxlan", "mpls", "gre"]', 1)
ROCE = config(stream("roce", "message", sources=1), sources=1)


def responder(service="rc", **keys):
    if service == "rc":
        keys = {"peer": "{ qp = 0x77 }", "psn": "[0]", **keys}
    return config(stream("roce", "message", sources=1, service=f'"{service}"', **keys), sources=1)


JUNGFRAU = config(stream(sources=1), sources=1)
BY_HEADER = config(stream(format="ejfat", sources=1, source_by='"header"', source_ids=[4]), sources=1)
NULL = 'kind = "null"'
BUSY = FUSED + '[[reduce]]\nkind = "zstd"\nlevel = 19\n'  # a worker so slow that everything before it fills up


def event(number, data=b"data", **more):
    return udp(ejfat(number, data, **more), EJFAT_PORT)


def vxlan(frame):
    return udp(bytes.fromhex("0800000000000500") + frame, 4789)


def noise(count, seed=1):
    return random.Random(seed).randbytes(count)


def split(data, size):
    return [data[at:at + size] for at in range(0, len(data), size)]


def ack(psn):
    return roce(0x11, psn, extension=bytes(4))


# counter -> (configuration, frames, further packets that are placed): each frame that is not placed ends in the counter.
SIMPLE = {
    "placed": (EJFAT, [event(n) for n in (1, 2, 3)], 3),
    "control": (EJFAT, [udp(struct.pack("!2sBBIQIQ", b"LC", 2, 0, 1, n, 100, n), EJFAT_PORT) for n in (1, 2)], 0),
    "unsteered": (EJFAT, [udp(b"?", port) for port in (9, 5353)], 0),
    "not_for_us.arp": (EJFAT, [ethernet(bytes(28), 0x0806)] * 2, 0),
    "not_for_us.icmp": (EJFAT, [ethernet(ipv4(bytes(8), protocol=1))] * 3, 0),
    "not_for_us.ethertype": (EJFAT, [ethernet(bytes(46), 0x88cc)] * 2, 0),
    "not_for_us.ip_protocol": (EJFAT, [ethernet(ipv4(bytes(20), protocol=6))] * 4, 0),
    "not_for_us.roce_response": (ROCE, [ack(n) for n in range(2)], 0),
    "not_for_us.roce_request": (ROCE, [roce(0x0c, 5, extension=reth(64))] * 2, 0),
    "not_for_us.roce_management": (ROCE, [roce(0x81, 0, bytes(16)), roce(0x64, 1, bytes(256), qp=1, extension=bytes(8))], 0),
    "not_for_us.roce_v1": (ROCE, [ethernet(bytes(80), 0x8915)] * 2, 0),
    "dropped.malformed.truncated": (EJFAT, [(START_NS, event(1)[:40], len(event(1)))] * 2, 0),
    "dropped.malformed.ethernet": (EJFAT, [bytes(10), udp(ejfat(1, b"x"), EJFAT_PORT, vlan=(5, 6, 7))], 0),
    "dropped.malformed.ip_header": (EJFAT, [udp(ejfat(1, b"x"), EJFAT_PORT, first=0x65), udp(ejfat(1, b"x"), EJFAT_PORT, first=0x44)], 0),
    "dropped.malformed.ip_length": (EJFAT, [udp(ejfat(1, b"x"), EJFAT_PORT, total=2000), udp(ejfat(1, b"x"), EJFAT_PORT, total=19)], 0),
    "dropped.malformed.ip_checksum": (EJFAT, [udp(ejfat(1, b"x"), EJFAT_PORT, checksum=0x1234)], 0),
    "not_for_us.encapsulated": (MIRROR, [ethernet(bytes.fromhex("00010140") + bytes([0x10]) * 60, 0x8847)], 0),
    "dropped.malformed.encapsulation": (MIRROR, [udp(bytes(8), 4789), ethernet(ipv4(bytes.fromhex("100088be"), protocol=47))], 0),
    "dropped.malformed.nested": (MIRROR, [vxlan(vxlan(vxlan(event(1)))), vxlan(vxlan(event(2)))], 1),
    "dropped.ip_fragment.encapsulated": (MIRROR, [ethernet(ipv4(bytes(40), protocol=47, flags=0x2000))], 0),
    "dropped.malformed.ip_fragment": (EJFAT, [udp(ejfat(1, b"x"), EJFAT_PORT, flags=0x2000), ethernet(ipv4(b"", flags=7))], 0),
    "dropped.ip_fragment.timeout": (EJFAT, [ethernet(ipv4(bytes(16), flags=0x2000)), ethernet(ipv4(b"end", flags=7))], 0),
    "dropped.ip_fragment.too_many": (EJFAT, [ethernet(ipv4(bytes(8), flags=0x2000 | n)) for n in range(140)], 0),
    "dropped.ip_fragment.conflict": (EJFAT, [ethernet(ipv4(data * 16, flags=0x2000)) for data in (b"a", b"b")], 0),
    "dropped.ip_fragment.roce": (ROCE, [ethernet(ipv4(part, flags=flags)) for part, flags in
                                        zip(split(roce(UC.send_only, 5, bytes(2048))[34:], 1024), (0x2000, 0x2000 | 128, 256))], 0),
    "dropped.malformed.udp_length": (EJFAT, [ethernet(ipv4(datagram(ejfat(1, b"x"), EJFAT_PORT, length=n))) for n in (7, 500)], 0),
    "dropped.malformed.oversized": (EJFAT, [event(1, bytes(20000))] * 2, 0),
    "dropped.malformed.header": (EJFAT, [udp(b"no such header, but long enough", EJFAT_PORT), udp(b"short", EJFAT_PORT)], 0),
    "dropped.malformed.payload_length": (EJFAT, [event(1, b"", total=100)] * 2, 0),
    "dropped.malformed.packet_number": (JUNGFRAU, [udp(jungfrau(1, 128), 50001)] * 2, 0),
    "dropped.malformed.range": (EJFAT, [event(1, b"1234", offset=8, total=10)] * 2, 0),
    "dropped.malformed.source": (BY_HEADER, [event(1, source=5)] * 2, 0),
    "dropped.malformed.message_size": (EJFAT, [event(1, b"x", total=1 << 30)] * 2, 0),
    "dropped.malformed.roce_header": (ROCE, [roce(0x1f, 0), roce(0x24, 1, flags=1)], 0),
    "dropped.malformed.roce_length": (ROCE, [roce(UC.send_first, 0, bytes(100)), roce(UC.send_last, 9)], 0),
    "dropped.malformed.bad_icrc": (ROCE, [roce(UC.send_only, 0, b"data", bad_crc=True)] * 2, 0),
    "dropped.duplicate": (EJFAT, [event(1, b"12", total=4)] * 3 + [event(1, b"34", offset=2, total=4)], 2),
    "dropped.conflict": (EJFAT, [event(1, b"1234", total=8), event(1, b"3456", offset=2, total=8), event(1, b"345", offset=3, total=8),
                                 event(1, b"5678", offset=4, total=8)], 2),
    "dropped.too_fragmented": (EJFAT, [event(1, b"x", offset=2 * n, total=4000) for n in range(1030)], 1024),
    "dropped.late": (EJFAT, [event(1, total=8), (START_NS + 3 * 10**9, event(2)), (START_NS + 3 * 10**9, event(1, offset=4, total=8))], 2),
    "dropped.roce.sequence": (responder(), [roce(RC.send_only_immediate, n, b"data", extension=bytes(4)) for n in (5, 6)], 0),
    "dropped.roce.gap": (responder("uc"), [roce(UC.send_middle, 3, bytes(1024)), roce(UC.send_last, 4, bytes(9))], 0),
    "dropped.roce.invalid_request": (responder(), [roce(RC.send_middle, 0, bytes(1024))], 0),
    "dropped.roce.access": (responder(), [roce(RC.write_only_immediate, 0, b"data", extension=reth(4) + bytes(4))], 0),
    "dropped.roce.operation": (responder(), [roce(RC.send_only, 0, b"data")], 0),
    "dropped.roce.key": (responder(pkey="0x8001"), [roce(RC.send_only, n, b"data") for n in (0, 1)], 0),
    "dropped.roce.peer": (responder(peer='{ qp = 0x77, address = "10.9.9.9" }'), [roce(RC.send_only, n, b"data") for n in (0, 1)], 0),
    "dropped.roce.service": (responder(), [roce(UC.send_only, n, b"data") for n in (0, 1)], 0),
    "dropped.unbound": (ROCE, [roce(UC.send_first, 0, bytes(1024)), roce(UC.send_middle, 1, bytes(1024))], 0),
}


class Counters(Case):
    def exactly(self, text, frames, expected, *args):
        records = [f if isinstance(f, tuple) else (START_NS + i * 1000, f) for i, f in enumerate(frames)]
        result = self.replay(self.path(f"c{self.runs}.pcap", pcap_bytes(records)), text, *args)
        self.assertEqual(result.report["packets"]["received"], len(frames))
        self.assertEqual(result.packets, {name: count for name, count in expected.items() if count > 0})
        return result

    def balanced(self, result):
        super().balanced(result)
        report = result.report
        for kind in ("messages", "events"):
            for key, value in report[kind].items():
                flat = {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}
                SEEN[kind].update(name for name, count in flat.items() if count > 0)

    def count(self, result, kind, **expected):
        for name, value in expected.items():
            counters = result.report[kind]
            for part in name.split("__"):
                counters = counters[part]
            self.assertEqual(counters, value, f"{kind}.{name}")

    def test_each_kind_of_packet(self):
        for name, (text, frames, placed) in SIMPLE.items():
            with self.subTest(counter=name):
                expected = {"placed": placed}
                if name != "placed":
                    expected[name] = len(frames) - placed
                self.exactly(text.replace('kind = "events"\npath = "unused"', NULL), frames, expected, "--allow-empty")
                SEEN["packets"].add(name)

    def test_behind_a_fatal_answer(self):
        frames = [roce(RC.send_only, 0, b"data")] + [roce(RC.send_only_immediate, n, b"data", extension=bytes(4)) for n in (0, 1, 2)]
        self.exactly(responder(), frames, {"dropped.roce.operation": 1, "dropped.roce.flushed": 3})
        SEEN["packets"].add("dropped.roce.flushed")

    def test_not_ready(self):
        # One event may be open and a few queued, and the worker cannot keep up. A sender that does not listen goes on all
        # the same: after the first packet that found no room everything is out of sequence.
        text = config(stream("roce", "message", sources=1, service='"rc"', peer="{ qp = 0x77 }", ack_every=1), sources=1,
                      events="window = 1\n", sink=NULL, more=BUSY)
        frames = [roce(RC.send_only_immediate, n, noise(4000, n), extension=struct.pack("!I", n)) for n in range(400)]
        result = self.replay(self.path("busy.pcap", pcap_bytes(stamped(frames))), text, "--drop")
        placed = result.report["packets"]["placed"]
        self.assertEqual(result.packets, {"placed": placed, "dropped.roce.not_ready": 1, "dropped.roce.sequence": 399 - placed})
        answers = result.report["roce"]["answers"]
        self.assertEqual({k: v for k, v in answers.items() if v}, {"ack": placed, "rnr_nak": 1})
        self.count(result, "events", complete=placed, written=placed)  # what was acknowledged is there
        SEEN["packets"].add("dropped.roce.not_ready")

    def test_no_room_for_fragments(self):
        # 256 pieces for losses and 46 (64 KiB at MTU 1500) for the one source, so 151 datagrams, of which each lacks its rest.
        frames = [ethernet(ipv4(bytes(16), flags=0x2000, source=f"10.2.{n // 250}.{n % 250}")) for n in range(1000)]
        self.exactly(EJFAT.replace('kind = "events"\npath = "unused"', NULL), frames,
                     {"dropped.ip_fragment.timeout": 151, "dropped.ip_fragment.no_room": 849})
        SEEN["packets"].add("dropped.ip_fragment.no_room")

    def test_dropped_by_a_rule(self):
        self.path("r.flow", "flow create 0 ingress pattern eth / ipv4 / udp dst is 9 / end actions drop / end\n")
        settings = EJFAT.replace('device = "net_null0"\n', 'device = "net_null0"\nflows = "r.flow"\n')
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped([event(1), udp(b"?", 9), event(2), udp(b"?", 9)]))), settings)
        self.assertEqual(result.packets, {"placed": 2, "dropped.flow_rule": 2})
        SEEN["packets"].add("dropped.flow_rule")

    def test_complete_events(self):
        result = self.exactly(EJFAT, [event(1), event(2)], {"placed": 2})
        self.count(result, "messages", opened=2, delivered=2)
        self.count(result, "events", opened=2, complete=2, written=2)
        self.assertEqual(result.report["bytes"]["placed"], 8)
        self.assertEqual(result.report["bytes"]["received"], 2 * len(event(1)))
        self.assertEqual(result.report["sources"], [{"id": 0, "packets": 2, "missing_packets": 0, "refused": 0, "numbers_missing": {"total": 0, "ranges": [], "numbers_left_out": 0}}])

    def test_incomplete_at_the_end_and_by_time(self):
        records = [(START_NS, event(1, total=8)), (START_NS + 3 * 10**9, event(2, total=8))]
        result = self.exactly(EJFAT, records, {"placed": 2})
        self.count(result, "events", opened=2, complete=0, incomplete__timeout=1, incomplete__end_of_run=1, written=2)

    def test_ended_with_gaps(self):
        def frame(number, lost=None):
            at = 4 * number
            rows = [roce(UC.write_only, at + i, bytes(256), extension=reth(256, 0x1000 + 1024 * number + 256 * i, 5)) for i in range(3)]
            end = roce(UC.write_only_immediate, at + 3, bytes(256), extension=reth(256, 0x1000 + 1024 * number + 768, 5) + struct.pack("!I", number))
            return [row for i, row in enumerate([*rows, end]) if i != lost]
        region = '{ va = 0x1000, bytes = 1024, rkey = 5, count = 4, backing = "memory" }'
        text = config(stream("roce", "message", sources=1, service='"uc"', region=region), sources=1)
        result = self.exactly(text, [*frame(0), *frame(1, lost=1), *frame(2)], {"placed": 11})
        self.count(result, "events", opened=3, complete=2, incomplete__ended=1, written=3)

    def test_evicted(self):
        result = self.exactly(config(stream(format="ejfat", sources=1), sources=1, events="window = 2\n"),
                              [event(n, total=8) for n in range(1, 6)], {"placed": 5})
        self.count(result, "events", opened=5, incomplete__evicted=3, incomplete__end_of_run=2, written=5)

    def test_incomplete_dropped(self):
        result = self.exactly(config(stream(format="ejfat", sources=1), sources=1, events='incomplete = "drop"\n'),
                              [event(1, total=8), event(2)], {"placed": 2})
        self.count(result, "events", opened=2, complete=1, incomplete__timeout=1, dropped__incomplete=1, written=1)

    def test_messages_without_a_place(self):
        # A lone MIDDLE has no number; a number that has been before, in a message of its own, is a repetition.
        frames = [roce(UC.send_middle, 50, bytes(256))] + roce_message(b"one", 100, 1) + roce_message(b"two", 101, 2) + roce_message(b"one", 102, 1)
        result = self.exactly(ROCE, frames, {"placed": 2, "dropped.duplicate": 1, "dropped.unbound": 1})
        self.count(result, "messages", opened=4, delivered=2, refused__duplicate=1, refused__unbound=1)

    def test_message_for_an_event_that_has_left(self):
        two = config(stream("roce", "message"))
        here, there = roce_message(b"one", 100, 1), roce_message(b"one", 5, 1, qp=0x12)
        beat = roce_message(b"two", 101, 2)
        records = [(START_NS, here[0]), (START_NS + 3 * 10**9, beat[0]), (START_NS + 3 * 10**9 + 1000, there[0])]
        result = self.exactly(two, records, {"placed": 2, "dropped.late": 1})
        self.count(result, "messages", opened=3, delivered=2, refused__late=1)
        self.count(result, "events", incomplete__timeout=1, incomplete__end_of_run=1)

    def test_message_of_another_size(self):
        text = config(stream("roce", "message", sources=1, event='"count"', message_bytes=600), sources=1)
        frames = roce_message(bytes(600), 0, mtu=256) + roce_message(bytes(600), 3, mtu=256) + roce_message(bytes(700), 6, mtu=256)
        result = self.exactly(text, frames, {"placed": 6, "dropped.conflict": 3})
        self.count(result, "messages", opened=3, delivered=2, refused__conflict=1)
        self.count(result, "events", opened=2, complete=2)

    def test_refused_at_the_window(self):
        # Two may be open, and nothing more of them comes: those that began first stay.
        text = config(stream(format="ejfat", sources=1), sources=1, events='window = 2\noverload = "refuse-new"\n')
        result = self.exactly(text, [event(n, total=8) for n in range(1, 6)], {"placed": 2, "dropped.no_room": 3})
        self.count(result, "messages", opened=5, delivered=2, refused__no_room=3)
        self.count(result, "events", opened=2, refused__no_room=3, incomplete__end_of_run=2, written=2)
        self.assertEqual(sorted(result.events), [(0, 1), (0, 2)])
        SEEN["packets"].add("dropped.no_room")

    def test_prescaled(self):
        # From three open ones of four on only every fifth is taken; the two halves of 1 to 3 come at the end.
        text = config(stream(format="ejfat", sources=1), sources=1, events='window = 4\noverload = "prescale:5"\n')
        frames = [event(n, total=8) for n in range(1, 8)] + [event(n, offset=4, total=8) for n in (1, 2, 3)] + [event(8), event(9)]
        result = self.exactly(text, frames, {"placed": 9, "dropped.prescaled": 3})
        self.count(result, "messages", opened=9, delivered=6, refused__prescaled=3)
        self.count(result, "events", opened=6, refused__prescaled=3, complete=5, incomplete__timeout=1, written=6)
        self.assertEqual(sorted(number for _, number in result.events), [1, 2, 3, 5, 8, 9])
        self.assertEqual(result.report["overload"], {"policy": "prescale:5", "input_waits": True, "times": 1, "kept": 1, "refused": 3})
        SEEN["packets"].add("dropped.prescaled")

    def test_no_room_for_further_events(self):
        # One event may be open and a few queued; the worker cannot keep up, and --drop does not wait for it.
        text = config(stream(format="ejfat", sources=1), sources=1, events="window = 1\n", sink=NULL, more=BUSY)
        frames = [event(n, noise(8000, n)) for n in range(1, 400)]
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), text, "--drop")
        placed, refused = result.report["packets"]["placed"], result.report["packets"]["dropped"]["queue_full"]
        self.assertEqual(result.packets, {"placed": placed, "dropped.queue_full": refused})
        self.assertGreater(refused, 0)
        self.count(result, "messages", opened=399, delivered=placed, refused__queue_full=refused)
        self.count(result, "events", opened=placed, refused__queue_full=refused, complete=placed, written=placed)
        SEEN["packets"].add("dropped.queue_full")

    def test_no_room_for_the_rest_of_an_event(self):
        # 256 buffers: the worker still has most of them when the second event begins, and then there are too few for the rest of it.
        text = config(stream(format="ejfat", sources=1, max_message_bytes='"1MB"'), sources=1, events='memory = "1MiB"\n', sink=NULL, more=BUSY)
        frames = [event(n, noise(4000, p), offset=4000 * p, total=4000 * 200) for n in (1, 2) for p in range(200)]
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), text, "--drop")
        self.assertEqual(result.packets, {"placed": 200, "dropped.no_room": 200})
        self.count(result, "messages", opened=2, delivered=1, refused__no_room=1)
        self.count(result, "events", opened=2, complete=1, incomplete__no_room=1, dropped__no_room=1, written=1)

    def test_full_rings(self):
        frames = [event(n, noise(8000, n)) for n in range(1, 400)] + [event(n, b"x") for n in range(400, 5000)]
        capture = self.path("c.pcap", pcap_bytes(stamped(frames, step_ns=10_000)))
        text = config(stream(format="ejfat", sources=1), sources=1, sink=NULL, more=BUSY)
        result = self.replay(capture, text, "--drop")
        self.assertGreater(result.report["packets"]["dropped"]["ring_full.capture"], 0)
        SEEN["packets"].add("dropped.ring_full.capture")
        # The first rx lcore only steers; the second, which has the stream, also compresses.
        steer = BUSY.replace("rx = [0]", "rx = [0, 1]").replace("build = [0]\nwork = [0]", "build = [1]\nwork = [1]")
        streams = stream(format="ejfat", sources=1, first=1), stream(format="ejfat", sources=1)
        result = self.replay(capture, config(*streams, sources=1, sink=NULL, more=steer), "--drop", "--pace", "recorded")
        self.assertGreater(result.report["packets"]["dropped"]["ring_full.steer"], 0)
        SEEN["packets"].add("dropped.ring_full.steer")

    def test_a_sink_that_fails(self):
        frames = [event(n, noise(8000, n)) for n in range(1, 1000)]
        capture = self.path("c.pcap", pcap_bytes(stamped(frames)))
        settings = self.path("c.toml", EJFAT)

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))

        done = weir("replay", capture, "--config", settings, "--out", self.folder / "run1", "--report", self.folder / "run1.json",
                    status=1, preexec_fn=small_files)
        self.assertIn("File too large", done.stderr)
        result = Replay(self.folder, "run1")
        self.balanced(result)
        self.assertEqual(result.packets, {"placed": result.report["packets"]["received"]})
        events = result.report["events"]
        self.assertGreater(events["dropped"]["write_error"], 0)
        self.assertGreater(events["written"], 0)
        self.assertEqual(events["written"] + events["dropped"]["write_error"], events["complete"])

    def test_zz_every_counter_has_a_case(self):
        text = weir("explain", "--markdown", trap=False).stdout
        for section in text.split("\n## ")[1:]:
            kind = section.split()[0]
            if kind not in SEEN:
                continue  # of devices, rings and levels, which a replay has not got or does not end in
            names = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
            self.assertGreater(len(names), 6)
            self.assertEqual(names - SEEN[kind], set(NOT_IN_A_REPLAY[kind]), f"{kind} without a case, or with one in spite of the list")


SEEN = {"packets": set(), "messages": set(), "events": set()}

if __name__ == "__main__":
    main()
