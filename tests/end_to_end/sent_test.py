#!/usr/bin/env python3
"""Captures of `weir send`, with faults, through `weir replay`: every event, digest, gap and count against two independent
accounts: the sender's report, and a plain reading of the capture. Contents do not depend on faults, so the same command
without faults says what the bytes are."""
import collections
import hashlib
import struct

from packets import EJFAT_PORT, JUNGFRAU_PORT, QUEUE_PAIR, ROCE_PORT, read_pcap
from support import Case, config, gaps, main, stream

FAULTS = ("--drop", "0.01", "--duplicate", "0.02", "--truncate", "0.01", "--reorder", "40")
FEW = ("--drop", "0.001", "--duplicate", "0.02", "--truncate", "0.001", "--reorder", "200")  # a frame has hundreds of packets
Piece = collections.namedtuple("Piece", "source event offset data total")


def datagrams(records):
    """(port, payload, is cut) of every UDP frame."""
    for _, frame in records:
        at = 18 if frame[12:14] == b"\x81\x00" else 14
        length = struct.unpack_from("!H", frame, at + 2)[0]
        yield struct.unpack_from("!H", frame, at + 22)[0], frame[at + 28:at + length], at + length > len(frame)


def jungfrau_piece(port, payload, size):
    number, _, packet = struct.unpack_from("<QII", payload)
    return Piece(port - JUNGFRAU_PORT, number, 8192 * packet, payload[48:], size)


def ejfat_piece(port, payload):
    at = 16 if payload[:2] == b"LB" else 0
    _, _, offset, total, number = struct.unpack_from("!HHIIQ", payload, at)
    return Piece(port - EJFAT_PORT, number, offset, payload[at + 20:], total)


def dune_piece(port, payload):
    word, time = struct.unpack_from("<QQ", payload)
    assert (word >> 26) & 0xff == port - JUNGFRAU_PORT and (word >> 52) * 8 == len(payload) - 16 == 7184
    return Piece(port - JUNGFRAU_PORT, time, 0, payload[16:], 7184)


def ess_piece(port, payload):
    length, queue = struct.unpack_from("<HB", payload, 6)
    assert payload[1:5] == b"\0ESS" and length == len(payload) and queue == port - 9000
    seconds, ticks = struct.unpack_from("<II", payload, 10)
    return Piece(port - 9000, seconds << 32 | ticks, 0, payload[30:], len(payload) - 30)


def spead_piece(port, payload):
    assert payload[:4] == bytes.fromhex("53040206")
    words = struct.unpack_from(f"!{payload[7]}Q", payload, 8)
    items = {w >> 48 & 0x7fff: w & (1 << 48) - 1 for w in words}
    assert items[1] == items[0x1600] and items[0x4101] == port - 7148
    data = payload[8 + 8 * len(words):]
    assert len(data) == items[4]
    return Piece(port - 7148, items[1], items[3], data, items[2])


class Expected:
    """What a receiver of the capture must find, for formats in which every packet names its place."""
    def __init__(self, capture, piece):
        self.cut = self.duplicates = self.placed = 0
        self.events = collections.defaultdict(lambda: collections.defaultdict(dict))
        self.sizes = {}
        for port, payload, cut in datagrams(read_pcap(capture)):
            if cut:
                self.cut += 1
                continue
            part = piece(port, payload)
            seen = self.events[part.event][part.source]
            self.duplicates += part.offset in seen
            self.placed += part.offset not in seen
            seen.setdefault(part.offset, part.data)
            self.sizes[part.event, part.source] = part.total

    def digest(self, event):
        sources = self.events[event]
        return hashlib.sha256(b"".join(sources[s][at] for s in sorted(sources) for at in sorted(sources[s]))).hexdigest()

    def missing(self, event, source):
        if source not in self.events[event]:
            return None
        return gaps([(at, at + len(data)) for at, data in self.events[event][source].items()], self.sizes[event, source])


class SentCase(Case):
    """The comparison of a run with the two accounts."""
    def check_sender(self, result, account):
        self.assertEqual(result.report["packets"]["received"], account["packets"]["sent"])
        self.assertEqual(result.report["bytes"]["received"], account["bytes"]["frames"])
        self.assertEqual(result.report["events"]["complete"], account["events"]["whole"])

    def check_udp(self, command, text, piece, absent, faults=FAULTS):
        """`absent`: what is said of a source of which nothing came."""
        whole, _ = self.send("clean.pcap", *command)
        capture, account = self.send("faulty.pcap", *command, *faults)
        result = self.replay(capture, text)
        self.check_sender(result, account)
        clean, expected = Expected(whole, piece), Expected(capture, piece)
        dropped = result.report["packets"]["dropped"]
        self.assertEqual(expected.cut, account["packets"]["truncated"])
        self.assertEqual(dropped["malformed.ip_length"] + dropped["malformed.truncated"], expected.cut)
        self.assertEqual(dropped["duplicate"], expected.duplicates)
        self.assertEqual(result.report["packets"]["placed"], expected.placed)
        self.assertEqual(result.report["events"]["opened"], account["events"]["sent"] - account["events"]["empty"])
        self.assertEqual({number for _, number in result.events}, set(expected.events))
        sources = sorted({s for event in clean.events.values() for s in event})
        complete = 0
        for (epoch, number), event in result.events.items():
            self.assertEqual(epoch, 0)
            self.assertEqual(event["sha256"], expected.digest(number), f"event {number}")
            missing = {s["id"]: s["missing"] for s in event["sources"] if s["missing"]}
            should = {s: expected.missing(number, s) for s in sources if expected.missing(number, s) != []}
            should = {s: absent if ranges is None else ranges for s, ranges in should.items()}
            self.assertEqual(missing, should, f"event {number}")
            self.assertEqual(event["complete"], not should)
            if event["complete"]:
                complete += 1
                self.assertEqual(event["sha256"], clean.digest(number))
        # The faults must have made both kinds.
        self.assertGreater(complete, 0)
        self.assertLess(complete, len(result.events))
        return result


class Sent(SentCase):
    def test_jungfrau(self):
        result = self.check_udp(("--sources", 2, "--events", 8, "--seed", 3), config(stream()),
                                lambda port, payload: jungfrau_piece(port, payload, 1 << 20), [[0, 1 << 20]], FEW)
        missing = sum(s["missing_packets"] for s in result.report["sources"])
        ranges = [g for e in result.inspect["events"] for s in e["sources"] for g in s["missing"]]
        self.assertEqual(missing, sum(length for _, length in ranges) // 8192)

    def test_jungfrau_on_two_interfaces(self):
        self.check_udp(("--sources", 4, "--interfaces", 2, "--events", 6, "--seed", 4, "--vlan", 7),
                       config(stream(sources=4, interfaces=2), sources=4),
                       lambda port, payload: jungfrau_piece(port, payload, 1 << 19), [[0, 1 << 19]], FEW)

    def test_ejfat(self):
        self.check_udp(("--format", "ejfat", "--sources", 3, "--events", 60, "--bytes", 40000, "--mtu", 1500, "--seed", 5),
                       config(stream(format="ejfat", sources=3), sources=3), ejfat_piece, "all")

    def test_dune(self):
        self.check_udp(("--format", "dune", "--sources", 3, "--events", 150, "--seed", 10, "--first-psn", 4000),
                       config(stream(format="dune", sources=3), sources=3), dune_piece, "all")

    def test_ess(self):
        self.check_udp(("--format", "ess", "--sources", 3, "--events", 150, "--bytes", 1500, "--seed", 11),
                       config(stream(format="ess", sources=3, first=9000, packets_per_pulse=1), sources=3), ess_piece, "all")

    def test_spead(self):
        self.check_udp(("--format", "spead", "--sources", 3, "--events", 60, "--bytes", 40000, "--mtu", 1500, "--seed", 12),
                       config(stream(format="spead", sources=3, first=7148), sources=3), spead_piece, "all")

    def test_loss_between_numbered_packets(self):
        for name, first in (("dune", JUNGFRAU_PORT), ("ess", 9000)):
            capture, account = self.send(f"{name}.pcap", "--format", name, "--sources", 2, "--events", 400, "--drop", "0.05",
                                         "--duplicate", "0.02", "--reorder", 30, "--seed", 20)
            result = self.replay(capture, config(stream(format=name, first=first)))
            # What is lost before the first and after the last packet that came, nobody can see.
            sequences = [set(), set()]
            for port, payload, _ in datagrams(read_pcap(capture)):
                at = struct.unpack_from("<I", payload, 26)[0] if name == "ess" else struct.unpack_from("<Q", payload)[0] >> 40 & 0xfff
                sequences[port - first].add(at)
            lost = [max(s) - min(s) + 1 - len(s) for s in sequences]
            self.assertEqual([s["missing_packets"] for s in result.report["sources"]], lost)
            self.assertLessEqual(abs(sum(lost) - account["packets"]["dropped"]), 4)
            self.assertEqual(result.report["wire_loss"], sum(lost))

    def test_ejfat_behind_a_load_balancer(self):
        for version in (2, 3):
            with self.subTest(version=version):
                self.folder = self.folder / str(version)
                self.folder.mkdir()
                self.check_udp(("--format", "ejfat", f"--lb={version}", "--sources", 2, "--events", 60, "--seed", 6),
                               config(stream(format="ejfat")), ejfat_piece, "all")
                self.folder = self.folder.parent

    def test_loss_on_the_wire(self):
        # Nothing is thrown away here, so what is missing was lost before.
        capture, account = self.send("c.pcap", "--sources", 2, "--events", 5, "--drop", "0.02", "--duplicate", "0.01")
        result = self.replay(capture, config(stream()))
        self.assertEqual(account["events"]["empty"], 0)
        self.assertEqual(result.report["wire_loss"], account["packets"]["dropped"])
        for here, there in zip(result.report["sources"], account["sources"], strict=True):
            self.assertEqual(here["packets"], there["emitted"])
            self.assertEqual(here["missing_packets"], there["dropped"])
        segment = (result.run / "events-000000.weir").stat().st_size
        self.assertLess(0, segment - result.report["bytes"]["stored"])
        self.assertLess(segment - result.report["bytes"]["stored"], 8192, "the segment's own head is all there is besides")

    def test_lossless_is_lossless(self):
        capture, account = self.send("c.pcap", "--sources", 2, "--events", 3, "--duplicate", "0.1", "--reorder", 30)
        result = self.replay(capture, config(stream()), "--require-lossless")
        self.check_sender(result, account)
        self.assertEqual(result.report["wire_loss"], 0)
        self.assertEqual(result.report["packets"]["dropped"]["duplicate"], account["packets"]["duplicated"])


class RoceMessages:
    """Messages of a capture of UC traffic, read by packet number: which packets make which message."""
    def __init__(self, capture):
        self.packets = collections.defaultdict(dict)  # queue pair -> packet number -> (opcode, immediate, data)
        self.cut = self.repeated = 0
        for port, payload, cut in datagrams(read_pcap(capture)):
            assert port == ROCE_PORT
            if cut:
                self.cut += 1
                continue
            opcode, flags, _, qp, psn = struct.unpack_from("!BBHII", payload)
            step = (opcode & 31) % 6 if opcode & 31 < 6 else (opcode & 31) - 6
            at = 12 + (16 if opcode & 31 >= 6 and step in (0, 4, 5) else 0)
            immediate = struct.unpack_from("!I", payload, at)[0] if step in (3, 5) else None
            at += 4 if immediate is not None else 0
            packets = self.packets[qp - QUEUE_PAIR]
            self.repeated += psn in packets
            packets[psn] = (step, immediate, payload[at:len(payload) - 4 - (flags >> 4 & 3)])

    def events(self):
        """event -> source -> [(psn, offset, data)]; of a capture without losses."""
        found = collections.defaultdict(dict)
        for source, packets in self.packets.items():
            first = next(p for p in packets if packets[p][0] in (0, 4, 5) and (p - 1) % (1 << 24) not in packets)
            message, offset = [], 0
            for psn in ((first + i) % (1 << 24) for i in range(len(packets))):
                step, immediate, data = packets[psn]
                message.append((psn, offset, data))
                offset += len(data)
                if immediate is not None:
                    found[immediate][source] = message
                    message, offset = [], 0
        return found


class SentRoce(Case):
    def check(self, command, text, faults):
        whole, _ = self.send("clean.pcap", *command)
        capture, account = self.send("faulty.pcap", *command, *faults)
        result = self.replay(capture, text)
        clean, came = RoceMessages(whole), RoceMessages(capture)
        packets, dropped = result.report["packets"], result.report["packets"]["dropped"]
        self.assertEqual(packets["received"], account["packets"]["sent"])
        self.assertEqual(result.report["events"]["complete"], account["events"]["whole"])
        self.assertEqual(dropped["malformed.ip_length"] + dropped["malformed.truncated"], came.cut)
        # Each number once: in an event, or (without its message's end) without one.
        self.assertLessEqual(dropped["duplicate"], came.repeated)
        self.assertEqual(packets["placed"] + dropped["unbound"] + dropped["duplicate"] + dropped["late"], packets["received"] - came.cut)
        events = clean.events()
        self.assertEqual(len(events), account["events"]["sent"])
        for (_, number), event in result.events.items():
            sources = events[number]
            here = {s: [p for p in m if p[0] in came.packets[s]] for s, m in sources.items()}
            self.assertEqual(event["complete"], all(len(here[s]) == len(sources[s]) for s in sources), f"event {number}")
            if event["complete"]:
                data = b"".join(data for s in sorted(sources) for _, _, data in sources[s])
                self.assertEqual(event["sha256"], hashlib.sha256(data).hexdigest(), f"event {number}")
                continue
            for source in event["sources"]:
                message = sources[source["id"]]
                size = sum(len(data) for _, _, data in message)
                true = gaps([(at, at + len(data)) for _, at, data in here[source["id"]]], size)
                if isinstance(source["missing"], list):
                    # What is proven of a message may be less than what came, never more; with both ends it is exact.
                    got = {message[0][0], message[-1][0]} <= {p[0] for p in here[source["id"]]}
                    if got or not source["missing"]:
                        self.assertEqual(source["missing"], true, f"event {number}")
                    self.assertGreaterEqual(sum(g[1] for g in source["missing"]), sum(g[1] for g in true))
                else:
                    self.assertTrue(true, f"event {number}")
        return result, came

    def test_sends(self):
        result, _ = self.check(("--format", "message", "--transport", "roce-send", "--sources", 2, "--events", 80, "--mtu", 1024, "--seed", 7),
                               config(stream("roce", "message")), FAULTS)
        self.assertGreater(result.report["events"]["complete"], 0)

    def test_writes(self):
        result, _ = self.check(("--format", "message", "--transport", "roce-write", "--sources", 2, "--events", 80, "--mtu", 512,
                                "--first-psn", (1 << 24) - 100, "--seed", 8), config(stream("roce", "message")), FAULTS)
        ranges = [s for e in result.inspect["events"] for s in e["sources"] if isinstance(s["missing"], list) and s["missing"]]
        self.assertTrue(ranges, "with a loss in the middle of a WRITE, what is missing is known")

    def test_duplicates_and_reordering_lose_nothing(self):
        for transport in ("roce-send", "roce-write"):
            with self.subTest(transport=transport):
                self.folder = self.folder / transport
                self.folder.mkdir()
                result, came = self.check(("--format", "message", "--transport", transport, "--sources", 3, "--events", 40, "--mtu", 256,
                                           "--bytes", 9000, "--seed", 9), config(stream("roce", "message", sources=3), sources=3),
                                          ("--duplicate", "0.1", "--reorder", 30))
                self.assertEqual(result.report["packets"]["dropped"]["duplicate"], came.repeated)
                self.assertEqual(result.report["events"]["complete"], 40)
                self.folder = self.folder.parent

    def test_flipped_bits_cost_their_packets_and_nothing_else(self):
        capture, account = self.send("c.pcap", "--format", "message", "--transport", "roce-write", "--sources", 2, "--events", 60, "--mtu", 512,
                                     "--corrupt", "0.05", "--duplicate", "0.05", "--seed", 10)
        self.assertGreater(account["packets"]["corrupted"], 20)
        result = self.replay(capture, config(stream("roce", "message")))
        self.assertEqual(result.report["packets"]["dropped"]["malformed.bad_icrc"], account["packets"]["corrupted"])
        self.assertEqual(result.report["events"]["complete"], account["events"]["whole"])

    def test_ejfat_inside_rdma_messages(self):
        capture, account = self.send("c.pcap", "--format", "ejfat", "--transport", "roce-write", "--sources", 2, "--events", 30,
                                     "--duplicate", "0.05", "--reorder", 10)
        result = self.replay(capture, config(stream("roce", "ejfat")), "--require-lossless")
        self.assertEqual(result.report["events"]["complete"], account["events"]["whole"])
        plain, _ = self.send("u.pcap", "--format", "ejfat", "--sources", 2, "--events", 30)
        expected = Expected(plain, ejfat_piece)
        self.assertEqual({n: e["sha256"] for (_, n), e in result.events.items()}, {n: expected.digest(n) for n in expected.events})


if __name__ == "__main__":
    main()
