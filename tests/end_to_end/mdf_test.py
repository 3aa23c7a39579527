#!/usr/bin/env python3
"""`weir export --to mdf`: what it writes is read here by the tables of docs/reference/reduce/mfp.md, and compared with the fragments that were
sent, or with the banks of a file that LHCb's own software wrote (not part of the project: WEIR_SHARED names the folder that has it in
data/)."""
import os
import pathlib
import random
import unittest

from mfp_packets import MISSING, block, read_mdf
from packets import ejfat, pcap_bytes, stamped, udp, EJFAT_PORT
from support import ROOT, ZSTD, Case, config, main, stream, weir as command

DATA = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared") / "data"
SAMPLE = DATA / "lhcb/MiniBrunel_2018_MinBias_FTv4_DIGI_retinacluster_v1.mdf"
STEP = 1400


class Mdf(Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(5)

    def packets(self, number, message, source, lost=()):
        pieces = [(at, message[at:at + STEP]) for at in range(0, len(message), STEP)]
        return [udp(ejfat(number, data, at, len(message)), EJFAT_PORT + source) for i, (at, data) in enumerate(pieces) if i not in lost]

    def run_of(self, frames, keys, sources=2, more="", events="timeout_ms = 2000\n"):
        """A run of the packets, which come in any order."""
        self.random.shuffle(frames)
        capture = self.path(f"capture{self.runs}.pcap", pcap_bytes(stamped(frames)))
        text = config(stream(format="ejfat", sources=sources), sources=sources, events=events, more=f'[[reduce]]\nkind = "mfp"\n{keys}{more}')
        return self.replay(capture, text)

    def mdf(self, result, *args, status=0):
        """The exported events, and what was said."""
        out = self.path(f"{result.run.name}.mdf")
        out.unlink(missing_ok=True)
        done = command("export", result.run, "--to", "mdf", "--out", out, *args, status=status, trap=False)
        return read_mdf(out.read_bytes()) if out.exists() else None, done.stderr

    def fragments(self, count, sizes=(0, 1, 2, 3, 20, 301)):
        return [(self.random.randrange(90), self.random.randbytes(self.random.choice(sizes))) for _ in range(count)]

    def test_each_event_has_a_bank_of_each_source(self):
        sent = {1000 + 30 * i: [self.fragments(30), self.fragments(30)] for i in range(4)}
        frames = [frame for number, sources in sent.items() for i, fragments in enumerate(sources) for frame in self.packets(number, block(number, fragments), i)]
        expected = [(0, [(*first[:1], 3, 0x8001, first[1]), (*second[:1], 255, 7, second[1])])
                    for sources in sent.values() for first, second in zip(*sources)]
        for output in ("mep", "events"):
            for more in ("", ZSTD):
                result = self.run_of(frames, f'output = "{output}"\nsource_ids = [0x8001, 7]\nversions = [3, 255]\n', more=more)
                events, said = self.mdf(result)
                self.assertEqual(events, expected)
                self.assertIn("4 events: 120 MDF events with 240 banks", said)
        self.assertEqual(self.mdf(result, "--event", "1030")[0], expected[30:60])

    def test_what_did_not_arrive_is_a_bank_that_says_so(self):
        whole, holed = self.fragments(40, [200]), self.fragments(40, [200])
        frames = self.packets(5, block(5, whole), 0) + self.packets(5, block(5, holed), 1, lost=[2])
        result = self.run_of(frames, "")
        events, _ = self.mdf(result)
        self.assertEqual([banks[0] for _, banks in events], [(kind, 0, 0, data) for kind, data in whole])
        places = [len(block(5, holed)) - 200 * (40 - i) for i in range(40)]
        missing = [place < 3 * STEP and place + 200 > 2 * STEP for place in places]
        self.assertEqual([banks[1] for _, banks in events], [(MISSING, 0, 1, b"") if gone else (kind, 0, 1, data) for gone, (kind, data) in zip(missing, holed)])
        self.assertTrue(any(missing) and not all(missing))
        self.assertIn("no event could be exported", self.mdf(result, "--complete", status=1)[1])

    def test_a_block_that_is_no_banks_is_left_out_and_said(self):
        good, long = self.fragments(3), [(1, bytes(65528)), (1, b"x")]
        frames = []
        for source in range(2):
            frames += self.packets(1, block(1, good), source) + self.packets(2, block(2 + source, good), source) + self.packets(9, block(9, long), source)
        result = self.run_of(frames, "")
        events, said = self.mdf(result, status=1)
        self.assertEqual([banks for _, banks in events], [[(kind, 0, 0, data), (kind, 0, 1, data)] for kind, data in good])
        self.assertIn("event 0:2 is left out: it was kept as received", said)
        self.assertIn("event 0:9 is left out: a fragment of source 0x0 has 65528 bytes, a raw bank at most 65527", said)
        self.assertIn("a fragment", self.mdf(result, "--event", "9", status=1)[1])
        result = self.run_of(self.packets(1, block(1, good), 0) + self.packets(1, block(1, good), 1), "version = 256\n")
        self.assertIn("version 256 of source 0x0 does not fit a raw bank", self.mdf(result, status=1)[1])
        # The largest that does.
        result = self.run_of([frame for source in range(2) for frame in self.packets(1, block(1, [(1, bytes(65527))]), source)], "")
        self.assertEqual([len(data) for *_, data in self.mdf(result)[0][0][1]], [65527, 65527])

    def test_runs_without_banks_are_refused(self):
        plain = self.replay(self.path("plain.pcap", pcap_bytes(stamped(self.packets(1, b"x" * 64, 0)))),
                            config(stream(format="ejfat", sources=1), sources=1))
        self.assertIn('what the reducer "mfp" puts together', self.mdf(plain, status=1)[1])
        fragments = [b"one", b"three"]
        message = b"\x02\0" + b"".join(len(data).to_bytes(2, "little") + data for data in fragments)
        keys = ("layout = { header_bytes = 2, first_event = { offset = 0, bytes = 1 }, fragments = { offset = 0, bytes = 1 }, length = false, type_bytes = 0, "
                "size_bytes = 0, size_in_fragment = { offset = 0, bytes = 2, adds = 2 } }\n")
        untyped = self.run_of(self.packets(1, message, 0), keys, sources=1)
        self.assertEqual([event["content"] for event in untyped.inspect["events"]], ["mep"])
        events, said = self.mdf(untyped, status=1)
        self.assertIsNone(events)
        self.assertIn("no table of types", said)
        self.assertIn("--source goes with", command("export", untyped.run, "--to", "mdf", "--source", "0", status=2, trap=False).stderr)
        for keys, words in (("versions = [1]\n", "versions has 1 numbers; accepted: 2"), ("version = 1\nversions = [1, 2]\n", "versions says it of each source")):
            settings = self.path("bad.toml", config(stream(format="ejfat"), more=f'[[reduce]]\nkind = "mfp"\n{keys}'))
            said = command("replay", self.path("capture0.pcap"), "--config", settings, "--out", self.path("x"), status=2, trap=False).stderr
            self.assertIn(words, said)

    @unittest.skipUnless(SAMPLE.exists(), f"there is no {SAMPLE}")
    def test_banks_of_a_real_file_come_back(self):
        """Of each source id one bank that is in all events. (In this file types have source ids of their own, which LHCb's sources of today
        have no longer.)"""
        events = [{bank[:3]: bank[3] for bank in banks} for _, banks in read_mdf(SAMPLE.read_bytes())]
        by_source = {name[2]: name for name in reversed(events[0]) if all(name in event for event in events)}
        names = list(by_source.values())
        self.assertGreater(len(names), 500)
        frames = []
        for source, name in enumerate(names):
            frames += self.packets(77, block(77, [(name[0], event[name]) for event in events]), source)
        keys = f"source_ids = {[source for _, _, source in names]}\nversions = {[version for _, version, _ in names]}\nfragments_max = 16\n"
        result = self.run_of(frames, keys, sources=len(names))
        found, _ = self.mdf(result)
        self.assertEqual([banks for _, banks in found], [[(*name, event[name]) for name in names] for event in events])


if __name__ == "__main__":
    main()
