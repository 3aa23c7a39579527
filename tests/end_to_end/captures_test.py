#!/usr/bin/env python3
"""The same packets in every kind of capture file, merged from several, cut anywhere, or not a capture at all."""
import hashlib
import os
import random
import struct
import threading

from packets import EJFAT_PORT, START_NS, ejfat, pcap_bytes, pcapng_bytes, roce_message, stamped, udp
from support import Case, config, main, stream, weir

TWO = config(stream(format="ejfat"))
ONE = config(stream(format="ejfat", sources=1), sources=1)


def frames(events, sources=2):
    return [udp(ejfat(n, bytes([n, s]) * 700, offset=700 * p, total=2800)[:20 + 700], EJFAT_PORT + s)
            for n in range(1, events + 1) for p in range(4) for s in range(sources)]


def digests(result):
    return {number: (event["sha256"], event["complete"]) for (_, number), event in result.events.items()}


class Captures(Case):
    def test_every_kind_of_file(self):
        # Whole microseconds, so that all kinds can say the same time.
        records = stamped(frames(10), step_ns=2000)
        expected = None
        for order in "<>":
            for kind in ("microseconds", "nanoseconds", "pcapng"):
                with self.subTest(kind=kind, order=order):
                    data = pcapng_bytes(records, order) if kind == "pcapng" else pcap_bytes(records, order, kind == "nanoseconds")
                    result = self.replay(self.path(f"{kind}{ord(order)}.cap", data), TWO, "--require-lossless")
                    self.assertEqual(result.report["packets"]["received"], len(records))
                    self.assertEqual(result.report["bytes"]["received"], sum(len(f) for _, f in records))
                    found = [(e["id"], e["sha256"], e["first_ns"], e["last_ns"]) for e in result.inspect["events"]]
                    self.assertEqual([f[2] for f in found], [START_NS + 16000 * n for n in range(10)])
                    expected = expected or found
                    self.assertEqual(found, expected)

    def test_captures_of_any_interface_and_without_a_link_layer(self):
        records = stamped(frames(10))
        whole = self.replay(self.path("ethernet.pcap", pcap_bytes(records)), TWO)
        sll = struct.pack("!HHH8sH", 0, 1, 6, bytes(8), 0x0800)
        sll2 = struct.pack("!HHIHBB8s", 0x0800, 0, 2, 1, 0, 6, bytes(8))
        for link, header in ((113, sll), (276, sll2), (101, b""), (12, b""), (0, struct.pack("<I", 2)), (108, struct.pack(">I", 2))):
            with self.subTest(link=link):
                data = pcap_bytes([(time, header + frame[14:]) for time, frame in records], link=link)
                result = self.replay(self.path(f"link{link}.pcap", data), TWO)
                self.assertEqual(digests(result), digests(whole))
                self.assertEqual(result.report["packets"]["placed"], len(records))
                self.assertEqual(result.report["bytes"]["received"], sum(len(f) for _, f in records))

    def test_several_captures_are_merged_by_time(self):
        records = stamped(frames(20))
        whole = self.replay(self.path("all.pcap", pcap_bytes(records)), TWO)
        r = random.Random(5)
        parts = [[], [], []]
        for record in records:
            r.choice(parts).append(record)
        files = [self.path("a.pcap", pcap_bytes(parts[0])), self.path("b.pcapng", pcapng_bytes(parts[1])),
                 self.path("c.pcap", pcap_bytes(parts[2], ">"))]
        result = self.replay(files, TWO, "--require-lossless")
        self.assertEqual(result.report["packets"]["received"], len(records))
        self.assertEqual(digests(result), digests(whole))
        self.assertEqual([e["first_ns"] for e in result.inspect["events"]], [e["first_ns"] for e in whole.inspect["events"]])

    def test_loop_of_several_files(self):
        records = stamped(frames(20), step_ns=5000)
        files = [self.path("a.pcap", pcap_bytes(records[::2])), self.path("b.pcap", pcap_bytes(records[1::2]))]
        once = self.replay(files, TWO, "--require-lossless")
        result = self.replay(files, TWO, "--loop", 3, "--require-lossless")
        self.assertEqual(result.report["packets"]["received"], 3 * len(records))
        self.assertEqual(set(result.events), {(0, n) for n in range(1, 61)})
        for (_, number), event in result.events.items():
            turn, there = (number - 1) // 20, once.events[0, (number - 1) % 20 + 1]
            self.assertEqual(event["sha256"], there["sha256"])
            self.assertEqual(event["first_ns"] - there["first_ns"], turn * (len(records) - 1) * 5000 + turn * ((len(records) - 1) * 5000 // len(records)))
        settings = self.path("c.toml", TWO)
        for wrong in (0, -1, "many"):
            weir("replay", *files, "--config", settings, "--out", self.folder / "out", "--loop", wrong, status=2)
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        for once in (pipe, "-"):
            self.assertIn("only once", weir("replay", once, "--config", settings, "--out", self.folder / "out", "--loop", 2, status=2).stderr)

    def test_cut_anywhere(self):
        records = stamped(frames(3, sources=1))
        size = 16 + len(records[0][1])
        for make, first in ((pcap_bytes, 24), (pcapng_bytes, None)):
            data = make(records)
            for cut in (1, 7, 15, 17, size // 2, size - 1, size + 3):
                with self.subTest(kind=make.__name__, cut=cut):
                    result = self.replay(self.path(f"{make.__name__}{cut}.cap", data[:-cut]), ONE)
                    lost = 1 if cut < size else 2
                    self.assertEqual(result.report["packets"]["received"], len(records) - lost)
                    self.assertIn("warning", result.output)
                    self.assertIn(".cap", result.report["warnings"][0])
                    self.assertEqual([e["complete"] for e in result.inspect["events"]], [True, True, False])
                    if first is None:
                        break

    def test_without_a_single_packet(self):
        for make in (pcap_bytes, pcapng_bytes):
            result = self.replay(self.path("none.cap", make([])), ONE, "--allow-empty")
            self.assertEqual(result.packets, {})
            self.assertEqual(result.inspect["events"], [])

    def test_what_is_not_a_capture(self):
        whole = pcap_bytes(stamped(frames(1)))
        for name, data, word in (("empty", b"", "empty"), ("text", b"# not a capture, but long enough to be one\n" * 9, "not a capture"),
                                 ("short", whole[:23], "cut.pcap"), ("radio", pcap_bytes([], link=127), "Ethernet")):
            with self.subTest(file=name):
                capture, settings = self.path("cut.pcap", data), self.path("c.toml", ONE)
                done = weir("replay", capture, "--config", settings, "--out", self.folder / "out", "--report", self.folder / "r.json", status=1)
                self.assertIn(word, done.stderr)
                self.assertIn("cut.pcap", done.stderr)
                self.assertEqual(sorted(os.listdir(self.folder)), ["c.toml", "cut.pcap"])
        done = weir("replay", self.folder / "nowhere.pcap", "--config", self.path("c.toml", ONE), "--out", self.folder / "out", status=1)
        self.assertRegex(done.stderr, "nowhere.pcap: .*No such file")
        # One of several is enough.
        done = weir("replay", self.path("good.pcap", whole), self.folder / "nowhere.pcap", "--config", self.folder / "c.toml",
                    "--out", self.folder / "out", status=1)
        self.assertEqual([name for name in os.listdir(self.folder) if "out" in name], [])

    def test_snap_length(self):
        records = [(time, frame[:100], len(frame)) for time, frame in stamped(frames(2))]
        result = self.replay(self.path("c.pcap", pcap_bytes(records, snap=100)), TWO)
        self.assertEqual(result.packets, {"dropped.malformed.truncated": len(records)})

    def test_time_that_runs_backwards(self):
        # The pipeline's time never does: nothing times out because of a stamp from the past or one that is far ahead.
        records = stamped(frames(6))
        result = self.replay(self.path("c.pcap", pcap_bytes([(2 * START_NS - t, f) for t, f in records])), TWO, "--require-lossless")
        self.assertEqual(len(result.events), 6)

    def damaged(self, r, good):
        """Bits flipped in headers, packets cut, padded, spliced and invented."""
        out = []
        for frame in map(bytearray, good):
            kind = r.random()
            if kind < 0.15:
                for _ in range(r.randrange(1, 5)):
                    frame[r.randrange(min(len(frame), 100))] ^= 1 << r.randrange(8)
            elif kind < 0.22:
                del frame[r.randrange(len(frame)):]
            elif kind < 0.27:
                frame += bytes(r.randrange(1, 60))
            elif kind < 0.30 and out:
                frame[:50] = r.choice(out)[:50]
            elif kind < 0.33:
                frame = r.randbytes(r.randrange(300))
            out.append(bytes(frame))
        return out

    def test_damaged_packets(self):
        seed = int(os.environ.get("WEIR_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
        print(f"# seed {seed}")
        r = random.Random(seed)
        for count in range(3):
            out = self.damaged(r, frames(60))
            result = self.replay(self.path(f"u{count}.pcap", pcap_bytes(stamped(out))), TWO)
            self.assertEqual(result.report["packets"]["received"], len(out))
            # The CRC covers all of a RoCE packet: what is called complete is what was sent.
            data = {n: bytes([n]) * (3000 + n) for n in range(1, 101)}
            good = [f for n in data for f in roce_message(data[n], 10 * n, n, verb="write" if n % 2 else "send")]
            out = self.damaged(r, good)
            result = self.replay(self.path(f"r{count}.pcap", pcap_bytes(stamped(out))),
                                 config(stream("roce", "message", sources=1), sources=1))
            complete = {n: e["sha256"] for (_, n), e in result.events.items() if e["complete"]}
            self.assertEqual(complete, {n: hashlib.sha256(data[n]).hexdigest() for n in complete})
            self.assertGreater(len(complete), 0)

    def test_an_event_is_complete_when_every_message_in_it_is_whole(self):
        """`sources` below the sources of the streams: one that has begun counts, one that sent nothing does not."""
        def of(number, source, pieces=2):
            return [udp(ejfat(number, bytes([number, source]) * 500, offset=1000 * p, total=2000), EJFAT_PORT + source) for p in range(pieces)]

        # Event 1: half of source 0, all of source 1. Event 2: source 1 alone. Event 3: both, source 0 begins first.
        sent = [*of(1, 0, pieces=1), *of(1, 1), *of(2, 1), of(3, 0)[0], *of(3, 1), of(3, 0)[1]]
        capture = self.path("c.pcap", pcap_bytes(stamped(sent)))
        result = self.replay(capture, config(stream(format="ejfat"), sources=1))
        self.assertEqual({number: event["complete"] for (_, number), event in result.events.items()}, {1: False, 2: True, 3: True})
        self.assertEqual([len(result.events[0, number]["sources"]) for number in (1, 2, 3)], [2, 1, 2])
        self.assertEqual(result.events[0, 1]["sources"][0]["missing"], [[1000, 1000]])
        self.assertEqual(result.packets, {"placed": len(sent)})
        dropped = self.replay(capture, config(stream(format="ejfat"), sources=1, events='timeout_ms = 2000\nincomplete = "drop"\n'))
        self.assertEqual(sorted(number for _, number in dropped.events), [2, 3])
        self.assertEqual(dropped.report["events"]["dropped"]["incomplete"], 1)

    def test_a_named_pipe(self):
        data = pcap_bytes(stamped(frames(4)))
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        try:
            result = self.replay(pipe, TWO, "--require-lossless")
        finally:
            writer.join()
        self.assertEqual(len(result.events), 4)


if __name__ == "__main__":
    main()
