#!/usr/bin/env python3
"""What a run says of packets that are missing: who lacks them, how many they are, and whether the recording only begins or ends there.
Each case is a capture of which it is known what was left out of it."""
import random
import struct

from packets import START_NS, ejfat, jungfrau, pcap_bytes, stamped, udp
from support import Case, config, main, stream

FIRST_PORT = 6000
DAQ = ('[[format]]\nname = "daq"\nheader_bytes = 16\nevent = { offset = 0, bytes = 8 }\nsource = { offset = 8, bytes = 2 }\n'
       'total = { offset = 12, bytes = 4 }\n')


def board(number, source, size=100):
    """A message that is one packet, whose header says its size."""
    return udp(struct.pack("<QHHI", number, source, 0, size) + bytes(size), FIRST_PORT + source)


def boards(events, sources=4, lost=lambda number, source: False, step_ns=200_000):
    """Records of boards that send an event each `step_ns`, a microsecond apart."""
    return [(START_NS + number * step_ns + 1000 * source, board(number, source, 100 + number % 7))
            for number in range(events) for source in range(sources) if not lost(number, source)]


def daq(sources=4, timeout_ms=5):
    return DAQ + config(stream(format="daq", sources=sources, first=FIRST_PORT), sources=sources, events=f"timeout_ms = {timeout_ms}\n")


class MissingCase(Case):
    def run_of(self, records, settings, *args, name="c"):
        return self.replay(self.path(f"{name}.pcap", pcap_bytes(records)), settings, *args)

    def losses(self, result):
        return [f for f in result.report["findings"] if f["loss"]]


class Boards(MissingCase):
    """Sources whose message is one packet: the header says its size, the configuration does not."""
    def test_a_board_that_stops(self):
        for timeout_ms in (5, 2000):  # closed in mid-run, or all open at its end
            records = boards(100, lost=lambda number, source: source == 2 and number >= 40)
            result = self.run_of(records, daq(timeout_ms=timeout_ms), name=f"stops{timeout_ms}")
            self.assertEqual(result.report["lossless"], "no")
            self.assertEqual([s["missing_packets"] for s in result.report["sources"]], [0, 0, 60, 0])
            self.assertIn("60 packets never came", result.report["evidence"][0])
            finding, = self.losses(result)
            self.assertEqual(finding["packets"], 60)
            for word in ("source 2", "stopped", "60 events", "0.008 s after the first packet", "event 39"):
                self.assertIn(word, finding["sentence"])

    def test_a_board_that_begins_late(self):
        result = self.run_of(boards(100, lost=lambda number, source: source == 1 and number < 30), daq())
        self.assertEqual(result.report["sources"][1]["missing_packets"], 30)
        finding, = self.losses(result)
        self.assertEqual(finding["packets"], 30)
        for word in ("source 1", "began late", "30 events"):
            self.assertIn(word, finding["sentence"])

    def test_a_board_that_is_away_for_a_while(self):
        result = self.run_of(boards(100, lost=lambda number, source: source == 3 and 30 <= number < 60), daq())
        finding, = self.losses(result)
        self.assertEqual(finding["packets"], 30)
        self.assertIn("30 of 30 are of source 3", finding["sentence"])

    def test_single_packets(self):
        result = self.run_of(boards(100, lost=lambda number, source: (number, source) in ((10, 1), (50, 3))), daq(timeout_ms=2000))
        self.assertEqual([s["missing_packets"] for s in result.report["sources"]], [0, 1, 0, 1])
        finding, = self.losses(result)
        self.assertEqual(finding["packets"], 2)
        for word in ("1 of source 1", "1 of source 3"):
            self.assertIn(word, finding["sentence"])
        self.assertNotIn("cable", finding["sentence"])
        # Every source had gone on to later events: the end of the run has nothing to do with it.
        self.assertEqual(result.report["events"]["incomplete"]["timeout"], 2)
        self.assertEqual(result.report["events"]["incomplete"]["end_of_run"], 0)

    def test_the_cause_is_the_same_for_several_builders(self):
        records = boards(200, lost=lambda number, source: number % 20 == 3 and source == 0)
        lcores = "[lcores]\nrx = [0]\nbuild = [0, 1, 2]\nwork = [1, 2]\nidle = \"pause\"\n"
        result = self.run_of(records, daq(timeout_ms=2000) + lcores)
        self.assertEqual(result.report["events"]["incomplete"]["timeout"], 10)
        self.assertEqual(result.report["sources"][0]["missing_packets"], 10)


class Guesses(MissingCase):
    """Messages of several packets whose number no header says."""
    def test_ejfat_with_variable_sizes(self):
        draw = random.Random(11)
        records, lost, at = [], 0, START_NS
        for number in range(1, 201):
            for source in range(3):
                size = draw.randrange(100, 6000)
                absent = number > 1 and draw.random() < 0.03
                for offset in range(0, size, 1000):
                    at += 1000
                    if absent or draw.random() < 0.03:
                        lost += 1
                        continue
                    data = bytes(min(1000, size - offset))
                    records.append((at, udp(ejfat(number, data, offset, size, source), 19522 + source)))
        result = self.run_of(records, config(stream(format="ejfat", sources=3), sources=3))
        missing = sum(s["missing_packets"] for s in result.report["sources"])
        self.assertLess(abs(missing - lost), 0.15 * lost, (missing, lost))
        self.assertTrue(all(s["missing_guessed"] > 0 for s in result.report["sources"]))
        self.assertIn(f"about {missing} packets never came", result.report["evidence"])
        finding = self.losses(result)[0]
        self.assertIs(finding["about"], True)
        self.assertEqual(finding["packets"], missing)
        self.assertIn(f"about {missing}: packets never came", result.output)

    def test_a_small_piece_says_little_of_the_others(self):
        # Of every other message only the last, small piece comes.
        records = []
        for number in range(1, 41):
            for i, (offset, size) in enumerate(((0, 1000), (1000, 1000), (2000, 1000), (3000, 40))):
                if number % 2 == 0 and i < 3 or (number == 1 and i < 3):
                    continue
                records.append((START_NS + number * 100_000 + i, udp(ejfat(number, bytes(size), offset, 3040), 19522)))
        result = self.run_of(records, config(stream(format="ejfat", sources=1), sources=1))
        self.assertEqual(result.report["sources"][0]["missing_packets"], 3 * 21)

    def test_what_a_format_fixes_is_exact(self):
        frames = [udp(jungfrau(n, p), 50001 + s) for n in range(1, 13) for p in range(128) for s in range(2)
                  if (n * 128 + p) % 97 and not (s == 1 and n == 5)]
        lost = 12 * 2 * 128 - len(frames)
        result = self.run_of(stamped(frames), config(stream(), sources=2))
        self.assertEqual(sum(s["missing_packets"] for s in result.report["sources"]), lost)
        self.assertNotIn("about", result.output)
        self.assertIn(f"{lost} packets never came", result.report["evidence"])


class Numbers(MissingCase):
    """Counters that do not count on for ever."""
    def test_a_number_of_two_fields(self):
        # A second and the packet in it, as LOFAR and VDIF have them: the second begins again at 0 four times.
        text = ('[[format]]\nname = "lofar"\nbyte_order = "little"\nheader_bytes = 8\n'
                'event = [{ offset = 0, bytes = 4 }, { offset = 4, bytes = 4, count = 50 }]\n')
        packets = {n: udp(struct.pack("<II", 1_700_000_000 + n // 50, n % 50) + bytes(64), FIRST_PORT) for n in range(17, 217)}
        settings = text + config(stream(format="lofar", sources=1, first=FIRST_PORT), sources=1)
        whole = self.run_of(stamped(packets.values()), settings, "--require-lossless")
        self.assertEqual(whole.report["numbers_missing"]["total"], 0)
        self.assertEqual(whole.report["numbers_missing"]["first"], 1_700_000_000 * 50 + 17)
        self.assertEqual(whole.report["events"]["complete"], 200)
        lossy = self.run_of(stamped([p for n, p in packets.items() if n not in (49, 50, 120)]), settings)
        self.assertEqual(lossy.report["lossless"], "no")
        self.assertEqual(lossy.report["numbers_missing"]["total"], 3)
        # A number that the second field cannot have.
        wrong = udp(struct.pack("<II", 1_700_000_000, 50) + bytes(64), FIRST_PORT)
        refused = self.run_of(stamped([*packets.values(), wrong]), settings)
        self.assertEqual(refused.packets, {"placed": 200, "dropped.malformed.header": 1})

    def test_a_counter_that_leaves_out_zero(self):
        text = '[[format]]\nname = "gvsp"\nbyte_order = "big"\nheader_bytes = 8\nevent = { offset = 2, bytes = 2 }\n'
        packets = [udp(struct.pack("!HHI", 0, n % 65536, 0) + bytes(64), FIRST_PORT) for n in [*range(65500, 65536), *range(1, 40)]]
        settings = text + config(stream(format="gvsp", sources=1, first=FIRST_PORT), sources=1)
        result = self.run_of(stamped(packets), settings, "--require-lossless")
        self.assertEqual(result.report["numbers_missing"]["total"], 0)
        self.assertIn("event numbers go from 65535 to 1", result.report["evidence"][0])
        lossy = self.run_of(stamped(packets[:10] + packets[11:]), settings)
        self.assertEqual((lossy.report["lossless"], lossy.report["numbers_missing"]["total"]), ("no", 1))
        # A description that says how wide the counter is says that 0 is one of its numbers.
        said = self.run_of(stamped(packets), settings.replace("bytes = 2 }", "bytes = 2, wrap_bits = 16 }"))
        self.assertEqual((said.report["lossless"], said.report["numbers_missing"]["total"]), ("no", 1))


class Edges(MissingCase):
    """A recording begins and ends where it does, not where an event does."""
    def test_sources_that_begin_and_end_a_packet_apart(self):
        records = boards(100)[2:-1]
        result = self.run_of(records, daq())
        self.assertEqual(result.report["lossless"], "unknown", result.report["evidence"])
        self.assertEqual(self.losses(result), [])
        self.assertEqual({f["page"].split("#")[1] for f in result.report["findings"]}, {"end-of-run"})
        self.assertNotIn("cable", result.output)

    def test_a_loss_beside_the_edges_is_one(self):
        records = [r for i, r in enumerate(boards(100)) if 2 <= i < 399 and i != 200]
        result = self.run_of(records, daq())
        self.assertEqual(result.report["lossless"], "no")
        finding, = self.losses(result)
        self.assertEqual(finding["packets"], 1)

    def frames(self, count):
        return stamped([udp(jungfrau(n, p), 50001 + s) for n in range(1, count + 1) for p in range(128) for s in range(2)])

    def test_a_capture_that_ends_in_an_event(self):
        records = self.frames(4)[:-100]  # tcpdump -c
        result = self.run_of(records, config(stream(), sources=2))
        self.assertEqual(result.report["lossless"], "unknown", result.report["evidence"])
        remark, = result.report["findings"]
        self.assertEqual((remark["loss"], remark["packets"]), (False, 100))
        self.assertIn("after the capture ended", remark["sentence"])

    def test_a_range_that_ends_in_an_event(self):
        result = self.run_of(self.frames(4), config(stream(), sources=2), "--to", "+900us")
        self.assertEqual(result.report["lossless"], "unknown", result.report["evidence"])
        self.assertEqual(self.losses(result), [])

    def test_a_loss_in_the_last_event(self):
        records = self.frames(4)
        del records[-100]
        result = self.run_of(records, config(stream(), sources=2))
        self.assertEqual(result.report["lossless"], "no")
        self.assertEqual([f["packets"] for f in self.losses(result)], [1])

    def test_a_board_that_stops_before_the_end_is_no_edge(self):
        result = self.run_of(boards(100, lost=lambda number, source: source == 2 and number >= 97), daq(timeout_ms=2000))
        self.assertEqual(result.report["lossless"], "no")
        self.assertEqual(result.report["sources"][2]["missing_packets"], 3)


if __name__ == "__main__":
    main()
