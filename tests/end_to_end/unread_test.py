#!/usr/bin/env python3
"""What of a capture is not read is in the account: where reading ends, holes of zeros, interfaces of other kinds. Nothing is called
lossless that was not seen to its end, and nobody is blamed for what lies behind it."""
import gzip
import json
import struct

from packets import EJFAT_PORT, START_NS, ejfat, pcap_bytes, pcapng_bytes, stamped, udp
from support import Case, config, main, stream, weir

TWO = config(stream(format="ejfat"), events="timeout_ms = 100\n")
STEP_NS = 1_000_000


def packet(number, source, piece):
    return udp(ejfat(number, bytes([number, source]) * 100, offset=200 * piece, total=400), EJFAT_PORT + source)


def event(number, sources=(0, 1)):
    return [packet(number, source, piece) for source in sources for piece in range(2)]


def whole(events, first=1):
    return [frame for number in range(first, first + events) for frame in event(number)]


def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng(interfaces, packets):
    """Interfaces are (link type, snapshot length), packets (interface, time in ns, frame)."""
    out = [block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1))]
    out += [block(1, struct.pack("<HHIHHB3xHH", link, 0, snap, 9, 1, 9, 0, 0)) for link, snap in interfaces]
    out += [block(6, struct.pack("<5I", which, time >> 32, time & 0xffffffff, len(frame), len(frame)) + frame) for which, time, frame in packets]
    return b"".join(out)


class Unread(Case):
    def says(self, result, lossless, *words):
        """In the report, the summary, the manifest and inspect."""
        report = result.report
        self.assertEqual(report["lossless"], lossless, report["evidence"])
        self.assertIn(f"lossless  {lossless}: {report['evidence'][0]}", result.output)
        self.assertEqual(result.inspect["run"]["evidence"], report["evidence"])
        for word in words:
            self.assertIn(word, " ".join(report["evidence"]))

    def not_blamed(self, result):
        self.assertEqual([finding["sentence"] for finding in result.report["findings"] if finding["loss"]], [])
        for word in ("never came", "sent nothing", "cable"):
            self.assertNotIn(word, result.output)

    def test_where_reading_ends(self):
        good = stamped(whole(5), step_ns=STEP_NS)
        pcap, ng = pcap_bytes(good), pcapng_bytes(good)
        more = pcap_bytes(stamped(event(6)[:1]))[24:]
        wrong_length = bytearray(pcapng_bytes(good + good[-1:]))
        wrong_length[-2] ^= 1
        ends = {"inside a packet": pcap + more[:-1], "inside a record's header": pcap + more[:7], "record of": pcap + b"\xff" * 200,
                "inside a block": pcapng_bytes(good + good[-1:])[:-1], "lengths at the two ends": bytes(wrong_length),
                "zeros where records": pcap + bytes(4096), "zeros where a block": ng + bytes(64),
                "gzip data are cut off": gzip.compress(pcap + more[:0])[:-5]}
        for words, data in ends.items():
            with self.subTest(words):
                name = f"c{self.runs}.cap"
                result = self.replay(self.path(name, data), TWO, "--require-lossless", status=3)
                self.says(result, "unknown", name, words)
                self.not_blamed(result)
                self.assertEqual(result.report["packets"]["placed"], len(good), result.output)
                self.assertEqual([e["complete"] for e in result.inspect["events"]], 5 * [True])
                self.assertIn(words, " ".join(result.report["warnings"]))
                self.assertIn(words, " ".join(result.report["capture"]["unread"]))
                self.assertIn("whether the run was lossless is not known", result.output)
                known = self.replay(self.path(name, data), TWO, "--require-lossless=known")
                self.assertIn("warning: --require-lossless", known.output)
        self.assertEqual(self.replay(self.path("whole.cap", pcap), TWO, "--require-lossless").report["capture"]["unread"], [])

    def test_what_is_open_at_the_cut_is_nobodys_fault(self):
        # Nothing of source 1 has come by then; and half of an event of both.
        for frames in ([frame for number in range(1, 6) for frame in event(number, [0])], whole(5) + event(6)[:3]):
            data = pcap_bytes(stamped(frames, step_ns=STEP_NS)) + b"cut"
            result = self.replay(self.path(f"c{self.runs}.pcap", data), TWO, "--require-lossless", status=3)
            self.says(result, "unknown", "inside a record's header", "the end of what could be read cut")
            self.not_blamed(result)
            self.assertIn("may be there", result.output)

    def test_one_of_two_captures_is_cut(self):
        # The other one goes on for many time-outs.
        time = [(START_NS + number * 20 * STEP_NS, number) for number in range(1, 101)]
        def of(source, until=100):
            return [(at + piece, packet(number, source, piece)) for at, number in time for piece in range(2) if number <= until]
        half, other = pcap_bytes(of(0, 30)) + b"cut", of(1)
        result = self.replay([self.path("a.pcap", half), self.path("b.pcap", pcap_bytes(other))], TWO, "--require-lossless", status=3)
        self.says(result, "unknown", "a.pcap", "cut 70 events off")
        self.not_blamed(result)
        self.assertEqual(result.report["events"]["complete"], 30)
        # A loss of the other one is a loss all the same, and so is one long before the cut.
        del other[161]
        self.says(self.replay([self.folder / "a.pcap", self.path("c.pcap", pcap_bytes(other))], TWO), "no", "1 packet never came", "a.pcap")
        early = of(0, 30)
        del early[9]
        result = self.replay([self.path("d.pcap", pcap_bytes(early) + b"cut"), self.folder / "b.pcap"], TWO)
        self.says(result, "no", "1 packet never came", "1 event is incomplete", "d.pcap")

    def test_interfaces_that_differ(self):
        frames = stamped(whole(6), step_ns=STEP_NS)
        both = [(n // 2 % 2, time, frame) for n, (time, frame) in enumerate(frames)]
        result = self.replay(self.path("snap.pcapng", pcapng([(1, 262144), (1, 65535)], both)), TWO, "--require-lossless")
        self.assertEqual(result.report["packets"]["placed"], len(frames))
        # All that is needed is on Ethernet.
        radio = [packet for n, (time, frame) in enumerate(frames) for packet in ((n % 3 % 2 * 2, time, frame), (1, time, bytes(3000)))]
        result = self.replay(self.path("radio.pcapng", pcapng([(1, 0), (105, 4000), (1, 2000)], radio)), TWO, "--require-lossless")
        self.assertEqual((result.report["capture"]["other_link"], result.report["capture"]["records"]), (len(frames), 2 * len(frames)))
        self.assertEqual(result.report["packets"]["received"], len(frames))
        self.assertIn("105 (IEEE802_11", " ".join(result.report["warnings"]))
        # A source is on the other one.
        cooked = [(which, time, bytes(20) + frame[14:] if which else frame) for which, time, frame in both]
        for interfaces in ([(1, 262144), (276, 262144)], [(276, 262144), (1, 262144)]):
            packets = [(which if interfaces[0][0] == 1 else 1 - which, time, frame) for which, time, frame in cooked]
            result = self.replay(self.path(f"any{self.runs}.pcapng", pcapng(interfaces, packets)), TWO, "--require-lossless", status=3)
            self.says(result, "unknown", "12 packets of the capture's other interfaces were not read")
            self.assertEqual((result.report["packets"]["placed"], result.report["capture"]["other_link"]), (12, 12))
            self.assertIn("276", " ".join(result.report["warnings"]))
            self.assertEqual([finding for finding in result.report["findings"] if finding["loss"]], [])
            self.assertIn("are not read", " ".join(finding["sentence"] for finding in result.report["findings"]))
        self.assertIn("other_link", weir("explain", "capture.other_link").stdout)

    def test_probe_reads_the_same(self):
        frames = stamped(whole(6), step_ns=STEP_NS)
        zeros = self.path("zeros.pcap", pcap_bytes(frames) + bytes(65536))
        found = json.loads(weir("probe", zeros, "--json").stdout)
        self.assertEqual(found["packets"], len(frames))
        self.assertIn("65536 bytes", found["cut_off"])
        differ = self.path("d.pcapng", pcapng([(105, 10), (1, 9000), (1, 0)], [(n % 3, time, frame) for n, (time, frame) in enumerate(frames)]))
        done = weir("probe", differ, "--json")
        self.assertEqual(json.loads(done.stdout)["packets"], 2 * len(frames) // 3)
        self.assertIn("8 packets are left out", json.loads(done.stdout)["cut_off"])


if __name__ == "__main__":
    main()
