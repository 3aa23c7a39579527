#!/usr/bin/env python3
"""`weir replay --loop`: each pass is after the one before in time and in numbers, in every format and for any number of events."""
import struct

from packets import (EJFAT_PORT, START_NS, ejfat, jungfrau, pcap_bytes, roce_message, stamped, udp)
from support import FUSED, Case, config, main, stream

PASSES = 3


def payload(number, source=0):
    return bytes([number & 0xff, source]) * 900


def ejfat_frames(numbers, sources=2):
    return [udp(ejfat(n, payload(n, s)[700 * p:700 * p + 700], offset=700 * p, total=1800), EJFAT_PORT + s)
            for n in numbers for p in range(3) for s in range(sources)]


def roce_frames(numbers, psn=0, immediate=True, framed=False):
    frames = []
    for n in numbers:
        data = (struct.pack("!HHIIQ", 0x1000, 0, 0, 1800, n) if framed else b"") + payload(n)
        sent = roce_message(data, psn, n if immediate else None)
        psn += len(sent)
        frames += sent
    return frames


DECLARED = """[[format]]
name = "narrow"
byte_order = "little"
header_bytes = 4
event = { offset = 0, bytes = 2 }
index = { offset = 2, bytes = 2 }
payload_bytes = 100
packets = 3
"""


def declared_frames(numbers):
    return [udp(struct.pack("<HH", n & 0xffff, p) + bytes([n & 0xff, p]) * 50, 40000 + s) for n in numbers for p in range(3) for s in range(2)]


# name -> (configuration, frames for these numbers, whether the ids are those numbers: else they count from 0)
FORMATS = {
    "ejfat": (config(stream(format="ejfat")), ejfat_frames, True),
    "jungfrau": (config(stream(sources=1), sources=1),
                 lambda numbers: [udp(jungfrau(n, p), 50001) for n in numbers for p in range(128)], True),
    "declared": (config(stream(format="narrow", first=40000), more=DECLARED), declared_frames, True),
    "datagrams": (config(stream(format="message", sources=1, first=40000, event='"arrival"'), sources=1),
                  lambda numbers: [udp(payload(n), 40000) for n in numbers], False),
    "roce immediate": (config(stream("roce", "message", sources=1), sources=1), roce_frames, True),
    "roce arrival": (config(stream("roce", "message", sources=1, event='"arrival"'), sources=1),
                     lambda numbers: roce_frames(numbers, immediate=False), False),
    "roce count": (config(stream("roce", "message", sources=1, event='"count"', message_bytes='"1800"'), sources=1),
                   lambda numbers: roce_frames(numbers, immediate=False), False),
    "roce format": (config(stream("roce", "ejfat", sources=1, event='"format"'), sources=1),
                    lambda numbers: roce_frames(numbers, immediate=False, framed=True), True),
    "roce wrapping": (config(stream("roce", "message", sources=1), sources=1),
                      lambda numbers: roce_frames(numbers, psn=(1 << 24) - 3), True),
}


class Loop(Case):
    def looped(self, name, text, frames, *args, passes=PASSES):
        return self.replay(self.path(f"{name.replace(' ', '-')}.pcap", pcap_bytes(stamped(frames))), text, "--loop", passes, *args)

    def test_every_format_with_one_two_and_many_events(self):
        for name, (text, frames, named) in FORMATS.items():
            for count in (1, 2, 30 if name != "jungfrau" else 5):
                with self.subTest(format=name, events=count):
                    first = 1 if named else 0
                    made = frames(range(1, count + 1))
                    result = self.looped(f"{name}{count}", text, made, "--require-lossless=known")
                    self.assertEqual(result.report["packets"]["received"], PASSES * len(made))
                    self.assertEqual(result.packets, {"placed": PASSES * len(made)})
                    self.assertEqual(sorted(result.events), [(0, first + n) for n in range(PASSES * count)])
                    self.assertEqual(result.report["events"]["complete"], PASSES * count)
                    self.assertEqual(result.report["capture"]["numbers_per_pass"], count)
                    self.assertEqual(result.report["capture"]["passes"], PASSES)
                    for (_, number), event in result.events.items():
                        self.assertEqual(event["sha256"], result.events[0, first + (number - first) % count]["sha256"])

    def test_numbers_with_gaps_and_large_ones(self):
        numbers = [1 << 50, (1 << 50) + 7, (1 << 50) + 21, (1 << 50) + 22, (1 << 50) + 49]
        result = self.looped("gaps", FORMATS["ejfat"][0], ejfat_frames(numbers), "--require-lossless=known")
        self.assertEqual(sorted(result.events), [(0, n + 50 * p) for p in range(PASSES) for n in numbers])

    def test_a_narrow_counter_that_wraps_in_the_capture(self):
        result = self.looped("wrap", FORMATS["declared"][0], declared_frames(range(65530, 65545)), "--require-lossless")
        self.assertEqual(len(result.events), PASSES * 15)
        self.assertEqual({epoch for epoch, _ in result.events}, {0})

    def test_a_wild_number_does_not_stretch_the_passes(self):
        for wild in (1 << 62, 5 | 1 << 40, (1 << 64) - 1000):
            frames = ejfat_frames(range(1, 21))
            frames.insert(60, udp(ejfat(wild, b"x" * 700, total=1800), EJFAT_PORT))
            result = self.looped(f"wild{wild}", FORMATS["ejfat"][0], frames)
            self.assertEqual(result.report["events"]["complete"], PASSES * 20)
            self.assertEqual(result.report["capture"]["numbers_per_pass"], 20)
            self.assertEqual(result.report["events"]["opened"], PASSES * 21)

    def test_what_is_incomplete_in_one_pass_is_so_in_all(self):
        # The last event, too: what is open at the end of a pass is not closed by the next one's packets.
        frames = [f for i, f in enumerate(ejfat_frames(range(1, 11))) if i not in (8, 57)]
        result = self.looped("holes", config(stream(format="ejfat"), events="timeout_ms = 1000\n"), frames)
        self.assertEqual(sorted(result.events), [(0, n) for n in range(1, 31)])
        self.assertEqual(sorted(n for (_, n), e in result.events.items() if not e["complete"]), [2, 10, 12, 20, 22, 30])
        frames = [f for n in range(1, 11) for f in roce_message(payload(n) * 2, 4 * n, n)]
        result = self.looped("roce-holes", FORMATS["roce immediate"][0], frames[:5] + frames[6:-3] + frames[-2:])
        self.assertEqual(sorted(n for (_, n), e in result.events.items() if not e["complete"]), [2, 10, 12, 20, 22, 30])
        self.assertEqual(result.report["capture"]["numbers_per_pass"], 10)

    def test_duplicates_and_late_packets_are_the_same_in_every_pass(self):
        frames = ejfat_frames(range(1, 11))
        frames = frames + frames[:7] + ejfat_frames([11])
        once = self.looped("once", FORMATS["ejfat"][0], frames, passes=1)
        result = self.looped("dup", FORMATS["ejfat"][0], frames)
        self.assertEqual(result.packets, {name: PASSES * count for name, count in once.packets.items()})
        self.assertEqual(result.report["events"]["complete"], PASSES * 11)

    def test_a_detector_that_restarts_in_the_capture(self):
        frames = ejfat_frames(range(1, 11)) + ejfat_frames(range(1, 11))
        result = self.looped("restart", FORMATS["ejfat"][0], frames, "--require-lossless")
        self.assertEqual(result.report["events"]["complete"], PASSES * 20)
        # One source only: then its numbers meet those of the other again in the next pass.
        frames = ejfat_frames(range(1, 11)) + [udp(ejfat(n, payload(n), total=1800), EJFAT_PORT) for n in range(1, 9)]
        once = self.looped("half", FORMATS["ejfat"][0], frames, passes=1)
        self.assertEqual(once.report["events"]["complete"], 10)
        result = self.looped("half3", FORMATS["ejfat"][0], frames)
        self.assertEqual(result.report["events"]["complete"], PASSES * 10)

    def test_on_two_rx_lcores(self):
        lcores = '[lcores]\nrx = [0, 1]\nbuild = [0]\nwork = [0]\nidle = "pause"\n'
        result = self.looped("spread", config(stream(format="ejfat"), more=lcores), ejfat_frames(range(1, 31)), "--require-lossless")
        self.assertEqual(sorted(result.events), [(0, n) for n in range(1, 91)])
        result = self.looped("fused", config(stream(format="ejfat"), more=FUSED), ejfat_frames(range(1, 31)), "--require-lossless")
        self.assertEqual(len(result.events), 90)

    def test_more_passes_than_a_packet_can_count(self):
        result = self.looped("many", config(stream(format="ejfat"), sink='kind = "null"'), ejfat_frames([7]), "--require-lossless", passes=700)
        self.assertEqual(result.report["events"]["complete"], 700)

    def test_time_goes_on(self):
        frames = ejfat_frames(range(1, 4))
        result = self.looped("time", FORMATS["ejfat"][0], frames, "--require-lossless")
        times = [result.events[0, n]["first_ns"] for n in range(1, 10)]
        self.assertEqual(times, sorted(times))
        self.assertEqual(times[0], START_NS)
        self.assertEqual(times[3] - times[0], (len(frames) - 1) * 1000 + (len(frames) - 1) * 1000 // len(frames))


if __name__ == "__main__":
    main()
