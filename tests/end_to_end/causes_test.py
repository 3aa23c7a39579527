#!/usr/bin/env python3
"""The cause that a run names for what is missing: the sender's other ports, a setting that does not fit, a header of
another detector. Each case is a capture in which the cause is known."""
import json
import random
import re
import struct

from packets import datagram, ejfat, ethernet, ipv4, jungfrau, pcap_bytes, spead, stamped, udp
from support import ROOT, Case, config, digest, main, stream, weir

ROUND_ROBIN_SOURCE = "10.1.0.10"


def frame_of(number, port, packets=128, source=ROUND_ROBIN_SOURCE, module=0):
    return [udp(jungfrau(number, packet, module=module), port, source=source) for packet in packets_of(packets)]


def packets_of(packets):
    return packets if isinstance(packets, range) else range(packets)


class CauseCase(Case):
    def capture(self, frames, name="c.pcap"):
        return self.path(name, pcap_bytes(stamped(frames)))

    def finding(self, result, counter):
        found = [f for f in result.report["findings"] if f["counter"] == counter]
        self.assertTrue(found, result.report["findings"])
        return found[0]


class OnTheWay(CauseCase):
    """What a kernel, a switch or a network makes of the detector's packets."""
    SMALL = """[[format]]
name = "small"
header_bytes = 16
event = { offset = 0, bytes = 8 }
index = { offset = 8, bytes = 4 }
magic = { offset = 12, bytes = 4, value = 0xCAFE }
payload_bytes = 1024
packets = 8
"""

    def test_datagrams_that_were_handed_over_as_one_are_no_wrong_geometry(self):
        def part(event, index):
            return struct.pack("<QII", event, index, 0xCAFE) + bytes([index]) * 1024

        text = config(stream(format="small", sources=1), sources=1, more=self.SMALL)
        for count in (2, 4, 8):
            with self.subTest(count=count):
                frames = [udp(b"".join(part(n, at + i) for i in range(count)), 50001) for n in range(1, 11) for at in range(0, 8, count)]
                result = self.replay(self.capture(frames), text)
                first = result.report["findings"][0]
                self.assertEqual((first["counter"], first["packets"]), ("dropped.malformed.payload_length", len(frames)))
                self.assertIn(f"{count * 1040} bytes = {count} x 1040", first["sentence"])
                self.assertIn("ethtool -K DEV gro off", first["sentence"])
                self.assertNotIn("geometry", result.output)
        # Another length is no sum of packets, though it is a multiple.
        frames = [udp(part(n, 0) + bytes(1040), 50001) for n in range(1, 11)]
        result = self.replay(self.capture(frames), text)
        self.assertIn("geometry", result.report["findings"][0]["sentence"])

    def test_a_stamp_far_ahead_is_named_as_the_cause(self):
        # Two datagrams to an event; the clock is 160 s ahead for one packet, while three events are open.
        half = 100
        frames = [udp(ejfat(n, bytes(half), offset=at * half, total=2 * half), 19522)
                  for first in range(1, 40, 3) for at in (0, 1) for n in range(first, first + 3)]
        records = stamped(frames)
        time, frame = records[38]
        records[38] = (time + 160 * 10**9, frame)
        text = config(stream(format="ejfat", sources=1), sources=1)
        result = self.replay(self.path("ahead.pcap", pcap_bytes(records)), text)
        self.assertGreater(result.packets["dropped.late"], 0)
        sentence = self.finding(result, "dropped.late")["sentence"]
        self.assertIn("run back by up to 160.0 s", sentence)
        self.assertIn("a clock was set", sentence)
        # A little disorder is none.
        frames = stamped(frames)
        frames[10], frames[11] = frames[11], frames[10]
        self.assertNotIn("run back", self.replay(self.path("swapped.pcap", pcap_bytes(frames)), text).output)

    def test_what_the_packets_are_inside_of_is_named(self):
        inner = udp(jungfrau(1, 0), 50001)

        def gre(kind, more=b"", flags=0):
            return ethernet(ipv4(struct.pack("!HH", flags, kind) + more + inner, protocol=47))

        cases = {
            "ERSPAN I over GRE": (gre(0x88be), 38),
            "ERSPAN II over GRE": (gre(0x88be, bytes(4) + b"\x10" + bytes(7), 0x1000), 50),
            "ERSPAN III over GRE": (gre(0x22eb, bytes(4) + b"\x20" + bytes(11), 0x1000), 54),
            "Ethernet over GRE": (gre(0x6558, bytes(4), 0x2000), 42),
            "MPLS": (ethernet(bytes.fromhex("00010140") + inner[14:], 0x8847), 0),
            "0x9100": (ethernet(bytes.fromhex("00058100") + b"\0\5" + inner[12:], 0x9100), 0),
            "VXLAN": (udp(b"\x08" + bytes(7) + inner, 4789), 50),
            "Geneve": (udp(bytes.fromhex("0000655800000500") + inner, 6081), 50),
            "IP in IP": (ethernet(ipv4(inner[14:], protocol=4)), 0),
        }
        for name, (frame, front) in cases.items():
            with self.subTest(name=name):
                result = self.replay(self.capture([frame] * 20), config(stream(sources=1), sources=1), "--allow-empty")
                found = [f for f in result.report["findings"] if name in f["sentence"]]
                self.assertEqual([f["packets"] for f in found], [20], result.report["findings"])
                self.assertIn("20 packets", found[0]["sentence"])
                tunnel = next((tunnel for word, tunnel in (("ERSPAN", "erspan"), ("GRE", "gre"), ("MPLS", "mpls"), ("VXLAN", "vxlan"))
                               if word in name), None)
                if tunnel:
                    self.assertIn(f'decapsulate = ["{tunnel}"]', found[0]["sentence"])
                self.assertEqual("editcap" in found[0]["sentence"], front > 0 and not tunnel)
                if front and not tunnel:
                    self.assertIn(f"editcap -L -C {front} ", found[0]["sentence"])
                    self.assertEqual(frame[front:], inner)
        plain = self.replay(self.capture([inner, ethernet(ipv4(bytes(20), protocol=6)), ethernet(bytes(46), 0x88cc)]),
                            config(stream(sources=1), sources=1))
        self.assertNotIn("others inside", plain.output)


class RoundRobin(CauseCase):
    """One module that sends each frame whole to the next of its UDP ports."""
    def frames(self, count=12, ports=(50001, 50002)):
        return [f for n in range(count) for f in frame_of(n + 1, ports[n % len(ports)])]

    def test_the_ports_that_are_not_configured_are_possible_losses(self):
        result = self.replay(self.capture(self.frames(ports=(50001, 50002, 50003))), config(stream(sources=1), sources=1))
        self.assertEqual(result.report["events"]["complete"], 4)
        first = result.report["findings"][0]
        self.assertEqual((first["counter"], first["packets"]), ("packets.unsteered", 8 * 128))
        self.assertIn("50002", first["sentence"])
        self.assertIn("the address that", first["sentence"])
        self.assertNotIn("other traffic", result.output)
        self.assertEqual(result.report["lossless"], "unknown")
        self.assertIn("look like this detector's", result.report["evidence"][0])
        senders = result.report["unmatched"]["senders"]
        self.assertEqual([(s["packets"], bool(s["why"])) for s in senders], [(512, True), (512, True)])
        self.assertEqual(result.report["unmatched"]["possible_losses"], 1024)

    def test_traffic_of_others_is_no_loss(self):
        others = [udp(bytes(40), 5353, source="10.1.0.77") for _ in range(9)]
        result = self.replay(self.capture(self.frames(ports=(50001,)) + others), config(stream(sources=1), sources=1))
        self.assertEqual(result.report["unmatched"]["possible_losses"], 0)
        self.assertEqual(result.report["unmatched"]["packets"], 9)
        finding = self.finding(result, "packets.unsteered")
        self.assertIs(finding["loss"], False)
        self.assertIn("UDP port 5353 from 10.1.0.77", finding["sentence"])

    def test_another_address_with_the_same_format(self):
        # Neither the address nor the port is near a configured one: the header gives it away.
        result = self.replay(self.capture(self.frames(ports=(50001,)) + frame_of(1, 61000, source="10.9.0.1")),
                             config(stream(sources=1), sources=1))
        self.assertEqual(result.report["unmatched"]["possible_losses"], 128)
        self.assertIn("reads as jungfrau", result.report["unmatched"]["senders"][0]["why"])

    def test_all_other_senders_are_listed(self):
        others = [udp(bytes(40), 6000 + i, source="10.2.0.1") for i in range(30) for _ in range(i + 1)]
        result = self.replay(self.capture(self.frames(count=2, ports=(50001,)) + others), config(stream(sources=1), sources=1))
        senders = result.report["unmatched"]["senders"]
        self.assertEqual(len(senders), 16)
        self.assertEqual(result.report["unmatched"]["packets"], 465)
        # The most frequent ones are named in the summary, and that there are more.
        for port in (6029, 6028, 6027):
            self.assertIn(f"UDP port {port}", result.output)

    def test_all_ports_as_one_source(self):
        settings = config(stream(sources=4, source_by='"address"', src=[ROUND_ROBIN_SOURCE]), sources=1)
        result = self.replay(self.capture(self.frames(20, (50001, 50002, 50003, 50004))), settings, "--require-lossless")
        self.assertEqual((result.report["events"]["complete"], result.packets), (20, {"placed": 20 * 128}))

    def test_the_example(self):
        """Two modules, each of which takes the four ports in turn."""
        text = (ROOT / "examples" / "round-robin.toml").read_text()
        frames = []
        for number in range(1, 17):
            whole = [frame_of(number, 50001 + (number - 1) % 4 + 10 * m, source=f"10.1.0.{10 + m}", module=m) for m in (0, 1)]
            frames += [frame for pair in zip(*whole) for frame in pair]
        random.Random(5).shuffle(frames[-1000:])
        result = self.replay(self.capture(frames), text, "--require-lossless")
        self.assertEqual((result.report["events"]["complete"], result.packets), (16, {"placed": 16 * 256}))


class SeveralSenders(CauseCase):
    """Detectors that send to one UDP port under the same numbers."""
    FRAMES = 7

    def pixels(self, sender, number, packet):
        return random.Random(f"{sender} {number} {packet}").randbytes(8192)

    def packets(self, sender, number, pixels_of=None):
        source = f"10.1.0.{10 + sender}"
        return [udp(jungfrau(number, packet, self.pixels(sender if pixels_of is None else pixels_of, number, packet)), 50001, source=source)
                for packet in range(128)]

    def in_turn(self):
        for number in range(1, self.FRAMES + 1):
            for pair in zip(self.packets(1, number), self.packets(0, number)):
                yield from pair

    def test_in_turn_no_event_is_of_both_and_both_are_named(self):
        capture = self.capture(self.in_turn())
        result = self.replay(capture, config(stream(sources=1), sources=1), "--require-lossless", status=3)
        self.balanced(result)
        self.assertEqual(result.report["events"]["complete"], self.FRAMES)
        self.assertEqual(result.report["packets"]["dropped"]["conflict"], self.FRAMES * 128)
        self.assertEqual(result.report["packets"]["dropped"]["duplicate"], 0)
        self.assertEqual(result.report["lossless"], "no")
        finding = self.finding(result, "dropped.conflict")
        for text in ("10.1.0.10", "10.1.0.11", 'senders = "any"', f"{self.FRAMES * 128} packets from"):
            self.assertIn(text, finding["sentence"])
        self.assertEqual([(s["address"], s["packets"]) for s in result.report["sources"][0]["senders"]],
                         [("10.1.0.11", self.FRAMES * 128), ("10.1.0.10", self.FRAMES * 128)])
        for number in range(1, self.FRAMES + 1):
            pixels = b"".join(self.pixels(1, number, packet) for packet in range(128))
            self.assertEqual(result.digests[0, number], digest(pixels), number)

    def test_by_address_they_are_two_sources(self):
        settings = config(stream(sources=1, source_by='"address"', src=["10.1.0.10", "10.1.0.11"]), sources=2)
        result = self.replay(self.capture(self.in_turn()), settings, "--require-lossless")
        self.assertEqual(result.report["events"]["complete"], self.FRAMES)
        self.assertNotIn("senders", result.report["sources"][0])

    def halves(self):
        """One detector that sends the packets of a frame from two addresses in turn."""
        for number in range(1, self.FRAMES + 1):
            pairs = zip(self.packets(1, number, pixels_of=0), self.packets(0, number))
            yield from (pair[packet % 2] for packet, pair in enumerate(pairs))

    def test_any_sender_is_taken_on_request(self):
        capture = self.capture(self.halves())
        refused = self.replay(capture, config(stream(sources=1), sources=1), "--require-lossless", status=3)
        self.assertEqual(refused.report["events"]["complete"], 0)
        self.assertEqual(refused.report["packets"]["dropped"]["conflict"], self.FRAMES * 64)
        result = self.replay(capture, config(stream(sources=1, senders='"any"'), sources=1), "--require-lossless")
        self.assertEqual(result.report["events"]["complete"], self.FRAMES)

    def test_udp_source_ports_may_differ(self):
        frames = [bytearray(frame) for number in range(1, 4) for frame in frame_of(number, 50001)]
        for i, frame in enumerate(frames):
            frame[34:36] = struct.pack(">H", 40000 + i)
        result = self.replay(self.capture(map(bytes, frames)), config(stream(sources=1), sources=1), "--require-lossless")
        self.assertEqual(result.report["events"]["complete"], 3)

    def test_the_two_interfaces_of_a_module_have_two_addresses(self):
        def packets(number):
            for packet in range(64):
                for row in (0, 1):
                    data = bytearray(jungfrau(number, packet))
                    data[34] = row
                    yield udp(bytes(data), 50001, source=f"10.1.0.{10 + row}")
        settings = config(stream(sources=1, source_by='"header"', source_ids=[0], interfaces=2), sources=1)
        result = self.replay(self.capture(f for n in range(1, 6) for f in packets(n)), settings, "--require-lossless")
        self.assertEqual(result.report["events"]["complete"], 5)

    def test_a_number_that_stands_still_is_no_copy(self):
        frames = [udp(jungfrau(1, packet, self.pixels(0, image, packet)), 50001) for image in range(8) for packet in range(128)]
        result = self.replay(self.capture(frames), config(stream(sources=1), sources=1), "--require-lossless", status=3)
        self.balanced(result)
        self.assertEqual(result.report["events"]["complete"], 1)
        self.assertEqual(result.report["packets"]["dropped"]["conflict"], 7 * 128)
        self.assertIn("number stands still", self.finding(result, "dropped.conflict")["sentence"])

    def test_two_boards_that_count_each_for_itself_are_both_named(self):
        text = '[[format]]\nname = "board"\nheader_bytes = 4\nevent = { offset = 0, bytes = 4 }\n'
        frames = [udp(struct.pack("<I", n) + bytes(100), 50001, source=f"10.1.0.{board}") for i in range(200) for board, n in ((10, i), (11, 3000 + i))]
        result = self.replay(self.capture(frames), config(stream(format="board", sources=1), sources=1, events="timeout_ms = 1000\nstride = 1\n", more=text))
        sentence = self.finding(result, "events.opened")["sentence"]
        self.assertIn("200 packets from 10.1.0.10, 200 packets from 10.1.0.11", sentence)
        self.assertIn("If each counts for itself, that is no loss", sentence)

    def test_a_link_that_is_seen_twice_makes_copies(self):
        frames = [frame for number in range(1, 6) for packet in self.packets(0, number) for frame in (packet, packet)]
        result = self.replay(self.capture(frames), config(stream(sources=1), sources=1), "--require-lossless")
        self.assertEqual(result.report["packets"]["dropped"]["duplicate"], 5 * 128)
        self.assertEqual(result.report["packets"]["dropped"]["conflict"], 0)


class Geometry(CauseCase):
    """The same packets missing in every event."""
    def said(self, frames, settings, *words):
        result = self.replay(self.capture(frames), settings)
        self.assertEqual(result.report["events"]["complete"], 0)
        sentence = [f["sentence"] for f in result.report["findings"] if f["page"].endswith("#same-missing")][0]
        for word in words:
            self.assertIn(word, sentence)
        self.assertNotIn("cable", result.output)
        self.assertEqual(len([f for f in result.report["findings"] if f["loss"]]), 1, result.report["findings"])
        return result

    def test_fewer_rows(self):
        frames = [f for n in range(1, 9) for f in frame_of(n, 50001, range(32, 96))]
        self.said(frames, config(stream(sources=1), sources=1), "the same", "`rows = 256`")

    def test_two_interfaces(self):
        frames = [f for n in range(1, 9) for port in (50001, 50002) for f in frame_of(n, port, 64)]
        self.said(frames, config(stream()), "`interfaces = 2`")

    def test_fewer_bits(self):
        def packet(number, index):
            return udp(struct.pack("<QIIQQHHHHIHBB", number, 0, index, 0, 0, 31, 0, 0, 0, 0, 0, 1, 2) + bytes(4096), 50001)
        frames = [packet(n, p) for n in range(1, 9) for p in range(32)]
        self.said(frames, config(stream(format="eiger", sources=1), sources=1), "`bit_depth = 8`")

    def test_declared_packets(self):
        text = ('[[format]]\nname = "mine"\nheader_bytes = 8\nevent = { offset = 0, bytes = 4 }\nindex = { offset = 4, bytes = 4 }\n'
                'payload_bytes = 100\npackets = 8\n')
        frames = [udp(struct.pack("<II", n, p) + bytes(100), 50001) for n in range(1, 9) for p in range(6)]
        self.said(frames, text + config(stream(format="mine", sources=1), sources=1), "`packets = 6`")

    def test_a_bad_link_is_no_setting(self):
        draw = random.Random(3)
        frames = [f for n in range(1, 13) for f in frame_of(n, 50001) if draw.random() > 0.3]
        result = self.replay(self.capture(frames), config(stream(sources=1), sources=1))
        self.assertNotIn("the same", "".join(f["sentence"] for f in result.report["findings"]))
        self.assertIn("cable", result.output)


class Malformed(CauseCase):
    def one_finding(self, frames, settings, counter):
        result = self.replay(self.capture(frames), settings)
        self.assertNotIn("sent nothing", result.output)
        return self.finding(result, counter)["sentence"]

    def test_ids_are_named(self):
        frames = [udp(ejfat(n, bytes(50), source=s), 19522) for n in range(1, 21) for s in (7, 9)]
        frames += [udp(ejfat(n, bytes(50), source=1), 19522) for n in range(1, 21)]
        settings = config(stream(format="ejfat", sources=1, source_by='"header"', source_ids=[1, 2]))
        sentence = self.one_finding(frames, settings, "dropped.malformed.source")
        for word in ("7 (20 packets)", "9 (20 packets)", "`source_ids`", "1, 2"):
            self.assertIn(word, sentence)

    def test_the_detector_is_named(self):
        cases = (("eiger", lambda n: jungfrau(n, n, kind=1)), ("moench", lambda n: jungfrau(n, n, bytes(6400), kind=5)),
                 ("mythen3", lambda n: jungfrau(n, n, kind=6)), ("ejfat", lambda n: ejfat(n, bytes(100))),
                 ("ejfat", lambda n: ejfat(n, bytes(100), balancer=2)), ("spead", lambda n: spead(n, bytes(100), total=100)),
                 ("header version 3", lambda n: jungfrau(n, n, version=3)))
        for name, packet in cases:
            with self.subTest(detector=name):
                sentence = self.one_finding([udp(packet(n), 50001) for n in range(1, 40)], config(stream(sources=1), sources=1),
                                            "dropped.malformed.header")
                self.assertIn(name, sentence)

    def test_a_newer_header_of_the_own_format_is_no_other_detector(self):
        cases = (("ejfat", lambda n: ejfat(n, bytes(100), version=3), "RE header version 3"),
                 ("ejfat", lambda n: ejfat(n, bytes(100), balancer=2, version=3), 'load balancer header "LB" version 2, RE header version 3'),
                 ("ejfat", lambda n: ejfat(n, bytes(100), balancer=4), 'load balancer header "LB" version 4, RE header version 1'),
                 ("jungfrau", lambda n: jungfrau(n, n, version=3), "slsDetector header version 3"))
        for name, packet, what in cases:
            with self.subTest(format=name, header=what):
                sentence = self.one_finding([udp(packet(n), 50001) for n in range(1, 40)],
                                            config(stream(format=name, sources=1, first=50001), sources=1), "dropped.malformed.header")
                self.assertIn(what, sentence)
                self.assertNotIn("look like", sentence)

    def test_the_other_byte_order(self):
        text = ('[[format]]\nname = "mine"\nbyte_order = "little"\nheader_bytes = 8\nevent = { offset = 0, bytes = 4 }\n'
                'magic = { offset = 4, bytes = 4, value = 0x12345678 }\n')
        frames = [udp(struct.pack(">II", n, 0x12345678) + bytes(100), 50001) for n in range(1, 9)]
        sentence = self.one_finding(frames, text + config(stream(format="mine", sources=1), sources=1), "dropped.malformed.header")
        self.assertIn('byte_order = "big"', sentence)


class Sources(CauseCase):
    def test_fewer_than_the_streams_have(self):
        frames = [f for n in range(1, 9) for m in (0, 1) for f in frame_of(n, 50001 + m, source=f"10.1.0.{10 + m}")]
        result = self.replay(self.capture(frames), config(stream(), sources=1))
        self.assertTrue([w for w in result.report["warnings"] if "events.sources" in w and "2 sources" in w], result.report["warnings"])
        self.assertIn("warning: ", result.output)
        if result.report["packets"]["dropped"]["late"] > 0:
            self.assertIn("`sources = 2`", self.finding(result, "dropped.late")["sentence"])

    def test_the_srs_example_reads_what_the_help_sends(self):
        text = re.sub(r"\s+(\\\s+)?", " ", weir("send", "--help").stdout)  # it is wrapped for the terminal
        command = re.search(r"weir send (--format srs .*) --to srs\.pcap", text)[1].replace("formats/", f"{ROOT}/formats/").split()
        capture, account = self.send("srs.pcap", *command)
        settings = (ROOT / "examples" / "srs.toml").read_text().replace("../formats", f"{ROOT}/formats")
        result = self.replay(capture, settings, "--require-lossless")
        self.assertEqual(result.packets, {"placed": account["packets"]["sent"]})


class EndOfRun(CauseCase):
    def run_device(self, device, *args, text=stream(sources=1), events="timeout_ms = 20000\n"):
        settings = self.path("live.toml", config(text, sources=1, events=events).replace('"net_null0"', f'"{device}"'))
        # Without the malloc trap: libpcap, which reads for net_pcap, takes memory at its first packet.
        done = weir("run", "--config", settings, "--report", self.path("live.json"), "--out", self.folder / "live", *args, status=None, trap=False)
        report = json.loads((self.folder / "live.json").read_text())
        return done, report

    def test_losses_of_earlier_events_are_losses(self):
        # The time-out is far away, so every event with a loss is still open when the run ends: when the detector has sent all.
        done, report = self.run_device("sim,rate=100,events=60,drop=0.002,seed=3")
        # All but the last ones are older than a whole event.
        incomplete = report["events"]["incomplete"]["timeout"]
        self.assertGreater(incomplete, 3)
        lost = [f for f in report["findings"] if f["loss"]]
        self.assertTrue(lost, done.stdout)
        self.assertGreaterEqual(lost[0]["packets"], incomplete)
        self.assertEqual(report["lossless"], "no")

    def test_rates_are_over_the_time_in_which_packets_came(self):
        capture, account = self.send("c.pcap", "--sources", 1, "--events", 40)
        done, report = self.run_device(f"net_pcap0,rx_pcap={capture}", "--idle-exit", 2)
        rates = report["rates"]
        self.assertEqual(report["packets"]["placed"], account["packets"]["sent"])
        self.assertLess(rates["active"]["seconds"], 0.7 * rates["run"]["seconds"])
        self.assertAlmostEqual(rates["active"]["packets_per_s"] * rates["active"]["seconds"], report["packets"]["received"], delta=1)
        self.assertIn("s in which packets came", done.stdout)


class ReceiveQueue(CauseCase):
    """A detector that sends all at once to an lcore that sleeps now and then."""

    def run_with(self, descriptors):
        text = config(stream(sources=1), sources=1, more='[lcores]\nidle = "sleep"')
        text = text.replace('"net_null0"', f'"sim,rate=1000000,events=31"\nrx_descriptors = {descriptors}')
        weir("run", "--config", self.path("queue.toml", text), "--report", self.path("queue.json"), "--out", self.folder / f"of{descriptors}")
        return json.loads((self.folder / "queue.json").read_text())

    def test_a_short_one_is_what_limits_the_run(self):
        report = self.run_with(64)
        self.assertGreater(report["device_missed"], 0)
        self.assertEqual(report["bottleneck"]["part"], "queue", report["bottleneck"])
        self.assertEqual(report["lossless"], "no")

    def test_one_with_room_for_all_loses_nothing(self):
        report = self.run_with(4096)
        self.assertEqual((report["device_missed"], report["packets"]["placed"]), (0, 31 * 128))
        self.assertNotEqual(report["bottleneck"]["part"], "queue")


class Sent(CauseCase):
    def test_nobody_listens(self):
        report = self.path("s.json")
        done = weir("send", "--format", "ejfat", "--events", 20, "--to", "udp:127.0.0.1:9", "--report", report)
        account = json.loads(report.read_text())
        self.assertEqual(account["packets"]["handed_over"], account["packets"]["sent"])
        self.assertIsNone(account["events"]["known_received"])
        self.assertGreater(account["network_errors"]["port_unreachable"], 0)
        self.assertIn("NOT RECEIVED", done.stdout)
        self.assertIn("received: not known", done.stdout)


if __name__ == "__main__":
    main()
