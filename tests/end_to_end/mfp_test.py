#!/usr/bin/env python3
"""Multi-fragment packets through `[[reduce]] kind = "mfp"`: what `weir inspect --export` gives is read here by the tables of
docs/reference/reduce/mfp.md, and compared with the fragments that were sent."""
import json
import random
import struct
import sys

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips

from mfp_packets import MISSING, block, padded, read_events, read_mep
from packets import ejfat, pcap_bytes, stamped, udp, EJFAT_PORT
from support import FUSED, ROOT, ZSTD, Case, config, main, stream, weir as command

sys.path.insert(0, str(ROOT / "python"))
import made_up_run  # noqa: E402
import numpy  # noqa: E402
import weir  # noqa: E402

SPREAD = '[lcores]\nrx = [0]\nbuild = [1]\nwork = [2, 3]\nidle = "sleep"\n'
class Mfp(Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(4)

    def fragments(self, count):
        return [(self.random.randrange(90), self.random.randbytes(self.random.choice([0, 20, 100, 300]))) for _ in range(count)]

    def packets(self, number, message, source, lost=()):
        step = 1400
        pieces = [(at, message[at:at + step]) for at in range(0, len(message), step)]
        return [udp(ejfat(number, data, at, len(message)), EJFAT_PORT + source) for i, (at, data) in enumerate(pieces) if i not in lost]

    def blocks(self, name, sent, lost=()):
        """A capture of blocks of 300 events: `sent` is {first event: [fragments of each source]}."""
        frames = []
        for number, sources in sent.items():
            for source, fragments in enumerate(sources):
                drop = [i for n, s, i in lost if (n, s) == (number, source)]
                frames += self.packets(number, block(number, fragments), source, drop)
        self.random.shuffle(frames)
        return self.path(name, pcap_bytes(stamped(frames)))

    def run_with(self, capture, keys="", more="", events="timeout_ms = 2000\n", topology=FUSED):
        text = config(stream(format="ejfat"), events=events, more=f'[[reduce]]\nkind = "mfp"\n{keys}{more}{topology}')
        return self.replay(capture, text)

    def exported(self, result, number):
        out = self.path(f"{result.run.name}-{number}.bin")
        command("inspect", result.run, "--export", number, out, trap=False)
        return out.read_bytes()

    def reducer(self, result):
        return next(r for r in result.report["reduce"] if r["kind"] == "mfp")

    def test_blocks_become_multi_event_packets_in_both_orders(self):
        sent = {1000 + 300 * i: [self.fragments(300), self.fragments(300)] for i in range(5)}
        capture = self.blocks("blocks.pcap", sent)
        for output, read in (("mep", read_mep), ("events", read_events)):
            for more, topology in (("", FUSED), (ZSTD, SPREAD)):
                result = self.run_with(capture, f'output = "{output}"\nsource_ids = [0x1001, 7]\nversion = 3\n', more, topology=topology)
                self.assertEqual(result.report["events"]["written"], 5)
                for number, sources in sent.items():
                    ids, versions, first, found = read(self.exported(result, number))
                    self.assertEqual((ids, versions, first), ((0x1001, 7), (3, 3), number))
                    self.assertEqual(found, sources)
                    block = weir.open(result.run)[number].multi_event()
                    self.assertEqual((block.first_event, len(block), block.source_ids.tolist(), block.versions.tolist()), (number, 300, [0x1001, 7], [3, 3]))
                    self.assertEqual(list(block), [[fragments[i][1] for fragments in sources] for i in range(300)])
                    self.assertEqual(block.types.tolist(), [[kind for kind, _ in fragments] for fragments in sources])
                counted = self.reducer(result)
                self.assertEqual((counted["blocks"], counted["events"], counted["fragments"], counted["missing_fragments"]), (5, 1500, 3000, 0))

    def test_an_array_that_does_not_fit_is_an_error_of_the_run(self):
        run = weir.open(self.run_with(self.blocks("b.pcap", {1000: [self.fragments(300), self.fragments(300)]})).run)
        packet = run[1000].payload()
        self.assertEqual(run[1000].array().tobytes(), packet)
        for wrong in (("<u2", (8, 1024)), ("u1", len(packet) + 1), ("<u8", (3, 3)), ("V7",)):
            with self.assertRaisesRegex(weir.RunError, "event 0:1000", msg=wrong):
                run[1000].array(*wrong)

    def test_lost_packets_are_missing_fragments_and_nothing_else(self):
        sent = {1: [self.fragments(300), self.fragments(300)], 301: [self.fragments(300), self.fragments(300)]}
        # One packet from the fragments of one source, and the head of the other block's.
        capture = self.blocks("lossy.pcap", sent, lost=[(1, 0, 4), (301, 1, 0)])
        result = self.run_with(capture, events="timeout_ms = 50\n")
        _, _, _, found = read_mep(self.exported(result, 1))
        self.assertEqual(found[1], sent[1][1])
        gaps = [i for i, (kind, data) in enumerate(found[0]) if kind == MISSING]
        begin, place = 4 * 1400, len(block(1, sent[1][0])) - sum(len(d) for _, d in sent[1][0])
        expected = []
        for i, (_, data) in enumerate(sent[1][0]):
            if data and place < begin + 1400 and place + len(data) > begin:
                expected.append(i)
            place += len(data)
        self.assertEqual(gaps, expected)
        self.assertTrue(all(found[0][i] == sent[1][0][i] for i in range(300) if i not in gaps))
        _, _, _, found = read_mep(self.exported(result, 301))
        self.assertEqual(found[0], sent[301][0])
        self.assertEqual(found[1], [(MISSING, b"")] * 300)
        self.assertEqual(self.reducer(result)["missing_fragments"], len(expected) + 300)

    def test_inspect_says_what_is_in_a_packet(self):
        def about(ident, version, fragments):
            arrived = [(kind, len(data)) for kind, data in fragments if kind != MISSING]
            return {"id": ident, "version": version, "types": sorted({kind for kind, _ in arrived}), "bytes": sum(size for _, size in arrived),
                    "largest": max((size for _, size in arrived), default=0), "missing_fragments": len(fragments) - len(arrived)}

        sent = {1000: [self.fragments(300), self.fragments(300)], 1300: [self.fragments(300), [(7, b"x" * 8)] * 300]}
        capture = self.blocks("inspected.pcap", sent, lost=[(1000, 1, 0)])
        for output in ("mep", "events"):
            result = self.run_with(capture, f'output = "{output}"\nsource_ids = [0x8001, 7]\nversions = [3, 4]\n', events="timeout_ms = 50\n")
            found = {event["id"]: event["multi_event"] for event in result.inspect["events"]}
            order = {"mep": "sources"}.get(output, output)
            gone = {1000: [sent[1000][0], [(MISSING, b"")] * 300], 1300: sent[1300]}
            expected = {number: {"order": order, "first_event": number, "events": 300, "sources": [about(0x8001, 3, sources[0]), about(7, 4, sources[1])]}
                        for number, sources in gone.items()}
            self.assertEqual(found, expected)
            size = sum(source["bytes"] for packet in expected.values() for source in packet["sources"])
            self.assertEqual(result.inspect["run"]["multi_event"], {"blocks": 2, "events": 600, "fragments": 1200, "missing_fragments": 300, "bytes": size})
            text = command("inspect", result.run, trap=False).stdout
            text = " ".join(text.split())
            self.assertIn("300 events from 1000 on, 300 of 600 fragments", text)
            self.assertIn("300 events from 1300 on, 600 fragments", text)
            self.assertIn("600 events in 2 multi-event packets", text)
            self.assertIn("source 0x7, version 4: 600 fragments, 2400 B, 8 B each, the largest 8 B; 300 missing; type 7", text)
            # Of a payload that is not read nothing is said.
            quick = json.loads(command("inspect", result.run, "--quick", "--json", trap=False).stdout)
            self.assertFalse(any("multi_event" in part for part in [*quick["events"], quick["run"]]))
            quick = " ".join(command("inspect", result.run, "--quick", trap=False).stdout.split())
            self.assertRegex(quick, r" 1000 \w+ .* reduced to ")
            self.assertNotIn("fragments", quick)

    def test_a_packet_that_cannot_be_understood_is_not_verified(self):
        run = made_up_run.Run(self.path("odd"))
        run.put(made_up_run.Event(3, numpy.ones((1, 8, 32), "<f4"), content=2))
        run.close()
        done = command("inspect", run.folder, status=1, trap=False)
        self.assertIn("event 0:3: its multi-event packet cannot be read: ", " ".join(done.stdout.split()))
        self.assertIs(json.loads(command("inspect", run.folder, "--json", status=1, trap=False).stdout)["verified"], False)

    def test_multi_event_packets_that_are_cut_or_damaged_are_refused_in_python(self):
        fragments = self.fragments(5)
        one = block(3, fragments)
        packet = struct.pack("<HHIQ", 1, 5, 0, len(one)) + bytes(8) + bytes(4) + one
        self.assertEqual(list(weir.MultiEvent(packet)), [[data] for _, data in fragments])
        for size in range(len(packet)):
            with self.assertRaises(weir.RunError):
                weir.MultiEvent(packet[:size])
        for at in range(28):  # of the head every number is checked, but source, version and what is reserved
            damaged = bytearray(packet)
            damaged[at] ^= 0xff
            if at not in (4, 5, 6, 7, *range(16, 24)):
                with self.assertRaises(weir.RunError, msg=at):
                    weir.MultiEvent(damaged)

    def test_packets_that_contradict_each_other_stay_as_received(self):
        fragments = self.fragments(10)
        good = block(5, fragments)
        frames = self.packets(5, good, 0) + self.packets(5, block(6, fragments), 1)
        frames += self.packets(9, good, 0) + self.packets(9, good + b"more", 1)
        result = self.run_with(self.path("odd.pcap", pcap_bytes(stamped(frames))))
        counted = self.reducer(result)
        self.assertEqual((counted["problems.mismatch"], counted["problems.length"], counted["events"]), (1, 1, 0))
        self.assertEqual(self.exported(result, 5), good + block(6, fragments))
        self.assertEqual(self.exported(result, 9), good + good + b"more")
        contents = {event["id"]: event.get("content", "received") for event in result.inspect["events"]}
        self.assertEqual(contents, {5: "received", 9: "received"})

    def test_a_layout_of_ones_own(self):
        fragments = self.fragments(20)
        body = b"".join(padded(struct.pack(">H", len(d)) + d, 4) for _, d in fragments)
        message = struct.pack(">HHI", 0xbeef, 20, 77) + body
        frames = self.packets(77, message, 0) + self.packets(77, message, 1)
        keys = ('layout = { byte_order = "big", header_bytes = 8, magic = { offset = 0, bytes = 2, value = 0xbeef }, fragments = { offset = 2, bytes = 2 }, '
                'first_event = { offset = 4, bytes = 4 }, length = false, type_bytes = 0, size_bytes = 0, fragment_align = 4, '
                'size_in_fragment = { offset = 0, bytes = 2, adds = 2 } }\n')
        capture = self.path("own.pcap", pcap_bytes(stamped(frames)))
        result = self.run_with(capture, keys)
        _, _, first, found = read_mep(self.exported(result, 77))
        self.assertEqual(first, 77)
        self.assertEqual(found, [[(0, struct.pack(">H", len(d)) + d) for _, d in fragments]] * 2)
        # What is printed reads back.
        settings = self.path("own.toml", config(stream(format="ejfat"), more=f'[[reduce]]\nkind = "mfp"\n{keys}'))
        printed = command("replay", capture, "--config", settings, "--print-config", trap=False).stdout
        again = self.path("again.toml", printed)
        self.assertEqual(command("replay", capture, "--config", again, "--print-config", trap=False).stdout, printed)

    def test_what_a_layout_cannot_be_is_said(self):
        capture = self.path("none.pcap", pcap_bytes([]))
        for keys, words in (('layout = "lhcb-2031"\n', "lhcb-2019"),
                            ("layout = { header_bytes = 8 }\n", "beyond the header"),
                            ("source_ids = [1, 2, 3]\n", "one for each source")):
            settings = self.path("bad.toml", config(stream(format="ejfat"), more=f'[[reduce]]\nkind = "mfp"\n{keys}'))
            self.assertIn(words, command("replay", capture, "--config", settings, "--out", self.path("x"), status=2, trap=False).stderr)


if __name__ == "__main__":
    main()
