#!/usr/bin/env python3
"""`weir probe`: what it proposes for a capture, unchanged, gives the complete events that a configuration written by hand gives. For
every format and transport that `weir send` makes, with losses and disorder, and for captures of detectors and RDMA adapters."""
import gzip
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import tempfile
import tomllib

from packets import ejfat, jungfrau, pcap_bytes, roce_message, stamped, udp
from support import ROOT, TIMEOUT_S, WEIR, Case, config, main, stream, weir

DATA = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared") / "data"
FAULTS = ("--drop", 0.004, "--duplicate", 0.01, "--reorder", 6)
SRS = f'include = ["{ROOT}/formats/srs.toml"]\n'
HEXITEC = f'include = ["{ROOT}/formats/hexitec.toml"]\n'
ADDRESSES = '["10.1.0.10", "10.1.0.11"]'


class ProbeCase(Case):
    def probe(self, capture, *args, status=0):
        """The configuration that is proposed, and what is said of it."""
        done = weir("probe", capture, *args, status=status, trap=False)
        return done.stdout, done.stderr

    def complete(self, result):
        """Digest and size of every complete event, by number: epochs are not told by who wrote the configuration."""
        events = {key: (e["sha256"], e["bytes"]) for key, e in result.events.items() if e["complete"]}
        self.assertTrue(events, "no event is complete: that compares nothing")
        return events

    def same_events(self, capture, by_hand, *args):
        """Replays with what was proposed and with what was written by hand."""
        proposed, said = self.probe(capture, *args)
        found = self.complete(self.replay(capture, proposed))
        self.assertEqual(found, self.complete(self.replay(capture, by_hand)), proposed + said)
        return proposed


class Sent(ProbeCase):
    """Captures of `weir send`."""
    def check(self, send, by_hand, *args, faults=FAULTS, events=12):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        capture, _ = self.send("c.pcap", "--events", events, "--seed", 5, *faults, *send)
        return self.same_events(capture, by_hand, *args)

    def test_jungfrau(self):
        two = ("--format", "jungfrau", "--sources", 2)
        self.check(two, config(stream()), faults=(), events=3)
        self.check((*two, "--rows", 128), config(stream(rows=128)))
        self.check((*two, "--rows", 64, "--interfaces", 2), config(stream(rows=64, interfaces=2)))
        self.check((*two, "--rows", 64, "--one-port"), config(stream(sources=1, rows=64, source_by='"address"', src=ADDRESSES)))

    def test_moench(self):
        two = ("--format", "moench", "--sources", 2)
        self.check((*two, "--rows", 64), config(stream(format="moench", rows=64)))
        self.check((*two, "--interfaces", 2, "--rows", 128), config(stream(format="moench", rows=128, interfaces=2)))
        self.check(two, config(stream(format="moench")), faults=(), events=4)

    def test_eiger(self):
        for bits in (4, 8, 12, 16, 32):
            with self.subTest(bits=bits):
                self.check(("--format", "eiger", "--sources", 2, "--bit-depth", bits), config(stream(format="eiger", bit_depth=bits)), events=5)
        self.check(("--format", "eiger", "--sources", 2, "--bit-depth", 4, "--tengiga", "false"),
                   config(stream(format="eiger", bit_depth=4, tengiga="false")))

    def test_ejfat(self):
        two = ("--format", "ejfat", "--sources", 2, "--bytes", 40000)
        self.check(two, config(stream(format="ejfat")), events=40)
        self.check((*two, "--lb", 2), config(stream(format="ejfat")), events=40)
        self.check((*two, "--re", 2), config(stream(format="ejfat")), events=40)
        self.check((*two, "--re", 2, "--lb", 2), config(stream(format="ejfat")), events=40)
        self.check((*two, "--one-port"), config(stream(format="ejfat", sources=1, source_by='"header"', source_ids=[0, 1])), events=40)

    def test_packets_that_are_whole_messages(self):
        for name, first in (("dune", 50001), ("ess", 9000)):
            with self.subTest(format=name):
                self.check(("--format", name, "--sources", 3), config(stream(format=name, sources=3, first=first), sources=3), events=60)

    def test_spead(self):
        two = ("--format", "spead", "--sources", 2, "--bytes", 30000)
        self.check(two, config(stream(format="spead", first=7148)), events=40)
        self.check((*two, "--one-port"), config(stream(format="spead", sources=1, first=7148, source_by='"address"', src=ADDRESSES)), events=40)

    def test_message(self):
        # Nothing says where an event ends: each datagram is one, and only a capture with one sender gives any.
        text = self.check(("--format", "message", "--sources", 1, "--bytes", 900),
                          config(stream(format="message", sources=1, event='"arrival"'), sources=1), events=60, faults=())
        self.assertIn("not understood", text)

    def test_declared_formats(self):
        # Found without being told, because weir ships it, and with the description at hand.
        hexitec = ("--format", "hexitec", "--config", ROOT / "formats" / "hexitec.toml", "--sources", 2)
        by_hand = HEXITEC + config(stream(format="hexitec"))
        text = self.check(hexitec, by_hand, events=40)
        self.assertNotIn("A GUESS", text)
        text = self.check(hexitec, by_hand, "--formats", ROOT / "formats" / "hexitec.toml", events=40)
        self.assertNotIn("A GUESS", text)
        srs = ("--format", "srs", "--config", ROOT / "formats" / "srs.toml", "--sources", 2, "--port", 6006, "--source-id", 1, "--bytes", 1200)
        by_hand = SRS + config(stream(format="srs", first=6006))
        text = self.check((*srs, "--formats", ROOT / "formats" / "srs.toml")[:-2], by_hand, "--formats", ROOT / "formats" / "srs.toml", events=60)
        self.assertIn('format = "srs"', text)

    def test_rdma_messages(self):
        for verb in ("roce-send", "roce-write"):
            for service in ("uc", "rc"):
                with self.subTest(verb=verb, service=service):
                    self.check(("--format", "message", "--transport", verb, "--service", service, "--sources", 2, "--bytes", 20000, "--mtu", 1024),
                               config(stream("roce", "message")), events=30)
        self.check(("--format", "message", "--transport", "roce-send", "--service", "ud", "--sources", 2, "--bytes", 900, "--mtu", 1024),
                   config(stream("roce", "message")), events=40)
        self.check(("--format", "message", "--transport", "roce-send", "--sources", 2, "--src-ip", "fd00::10", "--dst-ip", "fd00::2", "--bytes", 9000),
                   config(stream("roce", "message")), events=20)

    def test_rdma_messages_that_are_counted(self):
        send = ("--format", "message", "--transport", "roce-send", "--sources", 1, "--no-immediate", "--bytes", 5000, "--bytes-min", 5000)
        self.check((*send, "--service", "rc"), config(stream("roce", "message", sources=1, event='"count"'), sources=1), faults=(), events=20)
        self.check((*send, "--service", "uc"), config(stream("roce", "message", sources=1, event='"count"', message_bytes=5000), sources=1),
                   events=40)

    def test_formats_in_rdma_messages(self):
        self.check(("--format", "jungfrau", "--transport", "roce-send", "--sources", 2, "--rows", 32), config(stream("roce", rows=32)), events=8)
        self.check(("--format", "ejfat", "--transport", "roce-send", "--sources", 2, "--bytes", 30000), config(stream("roce", "ejfat")), events=30)

    def test_frames_that_writes_scatter(self):
        rows, events = 32, 6
        frame = 48 + rows * 2048
        regions = ", ".join(f'{{ qp = {0x11 + i}, va = {0x10000000 * (i + 1)}, bytes = {frame}, rkey = 0x1234, count = 4, backing = "memory" }}'
                            for i in range(2))
        send = ("--format", "jungfrau", "--transport", "roce-write", "--sources", 2, "--rows", rows, "--regions", 4)
        by_hand = config(stream("roce", rows=rows, service='"uc"', region=f"[{regions}]"))
        text = self.check(send, by_hand, faults=(), events=events)
        self.assertIn('backing = "memory"', text)

    def test_what_was_lost_is_said(self):
        capture, account = self.send("c.pcap", "--format", "dune", "--sources", 2, "--events", 200, "--drop", 0.05, "--seed", 3)
        found = json.loads(self.probe(capture, "--json")[0])
        missing = sum(source["missing_packets"] for source in found["streams"][0]["sources"])
        dropped = account["packets"]["dropped"]
        # What is lost before the first packet or after the last does not show.
        self.assertGreater(dropped, 5)
        self.assertIn(missing, range(dropped - 6, dropped + 1))
        self.assertEqual(found["streams"][0]["format"], "dune")


class Made(ProbeCase):
    """Captures that no `weir send` makes."""
    def test_vlan_and_fragments(self):
        frames = [udp(jungfrau(n, p), 50001) for n in range(3) for p in range(128)]
        tagged = [frame[:12] + b"\x81\x00\x00\x64" + frame[12:] for frame in frames]
        capture = self.path("v.pcap", pcap_bytes(stamped(tagged)))
        text = self.same_events(capture, config(stream(sources=1), sources=1))
        self.assertNotIn("interfaces", text)
        found = json.loads(self.probe(capture, "--json")[0])
        self.assertEqual(found["flows"][0]["vlan"], 100)

    def test_datagrams_that_linux_cut_into_fragments(self):
        for name in ("udp_ipv4_fragments", "udp_ipv6_fragments"):
            with self.subTest(capture=name):
                capture = ROOT / "tests" / "captures" / f"{name}.pcap"
                events = json.loads(capture.with_suffix(".json").read_text())["events"]
                found = self.complete(self.replay(capture, self.probe(capture)[0]))
                self.assertEqual({str(number): sha for (_, number), (sha, _) in found.items()}, events)

    def test_two_things_in_one_capture(self):
        # What has other event numbers is a run of its own; noise is neither.
        rng = random.Random(1)
        frames = [udp(jungfrau(n, p), 50001) for n in range(2) for p in range(128)]
        noise = [udp(rng.randbytes(60), 53, source="10.9.0.1") for _ in range(20)]
        mixed = [frame for pair in zip(frames, noise + frames[:0]) for frame in pair] + frames[20:]
        capture = self.path("m.pcap", pcap_bytes(stamped(mixed)))
        text = self.same_events(capture, config(stream(sources=1), sources=1))
        self.assertNotIn(53, tomllib.loads(text)["stream"][0]["udp_dst"])

    def test_what_is_no_event_data(self):
        rng = random.Random(2)
        few = self.path("few.pcap", pcap_bytes(stamped([udp(rng.randbytes(300), 7000) for _ in range(5)])))
        empty = self.path("empty.pcap", pcap_bytes([]))
        for capture in (few, empty):
            text, said = self.probe(capture, status=1)
            self.assertEqual(text, "")
            self.assertIn("nothing was recognised", said)
        # A conversation is no stream.
        both = [udp(rng.randbytes(200), 5000, source=a, target=b) for _ in range(40) for a, b in (("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.1"))]
        text, _ = self.probe(self.path("talk.pcap", pcap_bytes(stamped(both))), status=1)
        self.assertEqual(text, "")

    def test_captures_that_are_not_whole(self):
        data = pcap_bytes(stamped([udp(jungfrau(n, p), 50001) for n in range(2) for p in range(128)]))
        text, said = self.probe(self.path("cut.pcap", data[:-4000]))
        self.assertIn('format = "jungfrau"', text)
        self.assertIn("cut.pcap", said)
        self.assertEqual(weir("probe", self.path("nothing.pcap", b""), status=1, trap=False).stdout, "")
        self.assertEqual(weir("probe", self.path("noise.pcap", b"no capture" * 99), status=1, trap=False).stdout, "")
        self.assertEqual(weir("probe", self.folder / "absent.pcap", status=1, trap=False).stdout, "")
        packed = self.path("c.pcap.gz", gzip.compress(data))
        self.assertIn('format = "jungfrau"', self.probe(packed)[0])
        done = subprocess.run([WEIR, "probe", "-"], input=data, capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b'format = "jungfrau"', done.stdout)

    def test_options_that_make_no_sense(self):
        capture = self.path("c.pcap", pcap_bytes(stamped([udp(jungfrau(1, 0), 50001)])))
        for args in ((), (capture, "--seconds", 1), (capture, "--packet", 0), (capture, "--out", "x"), (capture, capture),
                     (capture, "--packet", 1, "--replay")):
            weir("probe", *args, status=2, trap=False)
        self.assertIn("there is no packet 2", weir("probe", capture, "--packet", 2, status=1, trap=False).stderr)


class OnePacket(ProbeCase):
    def field(self, view, name):
        return next(field for field in view["fields"] if field["name"] == name)

    def test_a_header_that_is_wrong(self):
        frames = [udp(jungfrau(n, p), 50001) for n in range(2) for p in range(128)]
        damaged = bytearray(frames[5])
        damaged[42 + 46] = 9  # the detector type
        frames[5] = bytes(damaged)
        capture = self.path("c.pcap", pcap_bytes(stamped(frames)))
        good = json.loads(self.probe(capture, "--packet", 5, "--json")[0])
        self.assertIsNone(good["counter"])
        self.assertEqual(self.field(good, "packet number")["value"], "4")
        self.assertEqual([f["name"] for f in good["fields"] if f["problem"]], [])
        wrong = json.loads(self.probe(capture, "--packet", 6, "--json")[0])
        self.assertEqual([(f["name"], f["value"], f["problem"]) for f in wrong["fields"] if f["problem"]], [("detector type", "9", "3 expected")])
        self.assertEqual(self.field(wrong, "detector type")["offset"], 42 + 46)
        self.assertEqual(wrong["counter"], "dropped.malformed.header")
        self.assertIn("WRONG: 3 expected", self.probe(capture, "--packet", 6)[0])

    def test_a_damaged_rdma_packet(self):
        capture, _ = self.send("c.pcap", "--format", "message", "--transport", "roce-write", "--sources", 1, "--events", 3, "--bytes", 5000,
                               "--bytes-min", 5000)
        good = json.loads(self.probe(capture, "--packet", 1, "--json")[0])
        self.assertEqual(self.field(good, "DMA length")["value"], "5000 (0x1388)")
        self.assertIsNone(self.field(good, "invariant CRC")["problem"])
        data = bytearray(capture.read_bytes())
        data[24 + 16 + 14 + 20 + 8 + 12 + 16 + 100] ^= 1  # payload of the first packet
        wrong = json.loads(self.probe(self.path("d.pcap", bytes(data)), "--packet", 1, "--json")[0])
        self.assertIn("expected", self.field(wrong, "invariant CRC")["problem"])
        self.assertEqual(wrong["counter"], "dropped.malformed.bad_icrc")


class Replayed(ProbeCase):
    def test_events_and_a_picture(self):
        capture, _ = self.send("c.pcap", "--format", "jungfrau", "--sources", 1, "--rows", 64, "--events", 3)
        text, said = self.probe(capture, "--replay", "--out", self.folder / "run")
        self.assertIn('rows = 64', text)
        picture = self.folder / "run.png"
        self.assertIn(str(picture), said)
        self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        listed = json.loads(weir("inspect", self.folder / "run", "--json", trap=False).stdout)
        self.assertEqual([event["complete"] for event in listed["events"]], [True] * 3)


class Tried(ProbeCase):
    """What is proposed was tried: what is said of it is what a replay gives."""
    def tried(self, name, frames, *args, step_ns=1000):
        """Probes the frames, checks what is said of the trial against a replay, and gives what was found."""
        capture = self.path(f"{name}.pcap", pcap_bytes(stamped(frames, step_ns=step_ns)))
        found = json.loads(self.probe(capture, "--json", *args)[0])
        self.assertTrue(found["trial"]["done"], found["trial"])
        result = self.replay(capture, found["configuration"])
        complete = sum(event["complete"] for event in result.events.values())
        self.assertEqual((found["trial"]["complete"], found["trial"]["events"]), (complete, len(result.events)), found["configuration"])
        self.assertEqual(self.probe(capture, *args)[0], found["configuration"])
        return found

    def whole(self, name, frames, events, *args, **how):
        found = self.tried(name, frames, *args, **how)
        self.assertEqual((found["trial"]["complete"], found["trial"]["events"], found["trial"]["lost"]), (events, events, {}), found["configuration"])
        self.assertEqual(found["streams"][0]["complete"], events)
        return found

    def boards(self, order, events=100, first=1000, packets=4, boards=4, one_port=False):
        """Header of 16 bytes: mark, event, index, board, sequence; each board is a source."""
        rng = random.Random(1)
        return [udp(struct.pack(order + "IIHHI", 0xcafebabe, first + event, index, board, event * packets + index) + rng.randbytes(256),
                    6000 if one_port else 6000 + board, source=f"10.9.0.{10 + board}")
                for event in range(events) for index in range(packets) for board in range(boards)]

    def test_headers_in_either_byte_order(self):
        for name, order in (("little", "<"), ("big", ">")):
            for case, how in (("ports", {}), ("addresses", {"one_port": True}), ("few", {"events": 20}), ("one", {"boards": 1}),
                              ("wide", {"first": 70000, "events": 300}), ("past", {"first": 65500, "events": 80})):
                with self.subTest(order=name, case=case):
                    found = self.whole(f"{name}_{case}", self.boards(order, **how), how.get("events", 100))
                    self.assertEqual('byte_order = "big"' in found["configuration"], name == "big")
                    self.assertEqual(len(found["streams"][0]["sources"]), how.get("boards", 4))
                    self.assertEqual(found["streams"][0]["numbers"]["first"], how.get("first", 1000))

    def test_a_counter_in_wide_steps_is_one(self):
        rng = random.Random(2)
        for order in "<>":
            for step in (1, 16, 100, 1000):
                with self.subTest(order=order, step=step):
                    frames = [udp(struct.pack(order + "QI", 0x55aa00000000, 5000 + step * i) + rng.randbytes(800), 4346) for i in range(600)]
                    found = self.whole("counter", frames, 600)
                    self.assertEqual(found["streams"][0]["numbers"]["stride"], step)

    def test_an_index_in_wide_steps(self):
        # As a lidar counts columns: 16 in a packet, 1024 in a frame.
        rng = random.Random(3)
        for order in "<>":
            with self.subTest(order=order):
                frames = [udp(struct.pack(order + "QHH", 10**9 + 7919 * (64 * frame + i), 16 * i, 300 + frame) + rng.randbytes(1268), 7502)
                          for frame in range(20) for i in range(64)]
                self.whole("columns", frames, 20)

    def test_a_number_that_begins_anew_every_second(self):
        # A telescope's stations: second, and block in it in steps of 16.
        rng = random.Random(8)
        frames = [udp(struct.pack("<BBHBBHII", 3, 0, 0x1234 + port, 0, 61, 16, 1_700_000_000 + (500 + i) // 2000, 16 * ((500 + i) % 2000)) +
                      rng.randbytes(300), 16011 + port) for i in range(1800) for port in range(2)]
        found = self.tried("stations", frames)
        self.assertGreater(found["trial"]["complete"], 1700)

    def test_packets_of_an_event_are_not_taken_for_copies(self):
        # An index from 1 on is none that can be declared: without it the packets of an event look alike.
        rng = random.Random(9)
        frames = [udp(struct.pack(">II", i // 8, i % 8 + 1) + rng.randbytes(512), 8000) for i in range(400)]
        text, said = self.probe(self.path("from_one.pcap", pcap_bytes(stamped(frames))), status=1)
        self.assertEqual(text, "")
        self.assertIn("350 dropped.duplicate", " ".join(said.split()))

    def test_two_headers_on_one_port(self):
        rng = random.Random(4)
        for two_targets in (False, True):
            with self.subTest(two_targets=two_targets):
                frames = []
                for i in range(200):
                    frames.append(udp(struct.pack(">II", 0x11112222, 100 + i) + rng.randbytes(200), 7001, source="10.9.0.1"))
                    frames.append(udp(struct.pack("<HHI", 7, 9, 100 + i) + rng.randbytes(100), 7001, source="10.9.0.1" if two_targets else "10.9.0.2",
                                      target="10.9.0.8" if two_targets else "10.1.0.2"))
                found = self.tried("port", frames)
                self.assertGreaterEqual(found["trial"]["complete"], 200)

    def test_what_shares_a_flow_ends_well(self):
        # Some of many headers in one flow: whatever is proposed, it runs.
        rng = random.Random(5)
        for hosts in (1, 3):
            frames = [udp(struct.pack(">IIH", 0xbfcdb4be + i % 3, i // 5, i % 7) + rng.randbytes(rng.randrange(20, 90)), 7001 - i % 2,
                          source=f"10.9.0.{i % hosts + 1}", target=f"10.9.0.{i % 2 + 11}") for i in range(300)]
            capture = self.path(f"mixed{hosts}.pcap", pcap_bytes(stamped(frames)))
            done = weir("probe", capture, "--json", status=None, trap=False)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual(done.returncode, 0 if found["configuration"] else 1)
            if found["configuration"]:
                self.assertEqual(sum(e["complete"] for e in self.replay(capture, found["configuration"]).events.values()), found["trial"]["complete"])

    def test_what_gives_nothing_is_said_to(self):
        # Every frame lacks a packet: the format is certain, and not one frame comes out whole.
        frames = [udp(jungfrau(n, p), 50001) for n in range(3) for p in range(128) if p != 5 + n]
        capture = self.path("holes.pcap", pcap_bytes(stamped(frames)))
        text, said = self.probe(capture)
        self.assertIn('format = "jungfrau"', text)
        self.assertIn("NOT ONE of 3 events is whole", text)
        self.assertIn("NOTHING COMES OUT WHOLE", " ".join(said.split()))

    def test_a_guess_without_a_whole_event_is_only_described(self):
        rng = random.Random(6)
        frames = [udp(struct.pack("<III", 0xfeed1234, n, p) + rng.randbytes(500), 7100) for n in range(40) for p in range(8) if p != n % 8]
        capture = self.path("guess.pcap", pcap_bytes(stamped(frames)))
        text, said = self.probe(capture, status=1)
        self.assertEqual(text, "")
        self.assertIn("count events", said)
        self.assertIn("no event is whole with it", " ".join(said.split()))

    def test_large_datagrams_have_a_larger_mtu(self):
        rng = random.Random(7)
        frames = [udp(struct.pack("<II", 0xabcd0123, i) + rng.randbytes(9400), 7200) for i in range(40)]
        found = self.whole("large", frames, 40)
        self.assertIn(f"mtu = {20 + 8 + 8 + 9400}", found["configuration"])

    def test_cut_frames_are_read_as_far_as_they_go(self):
        frames = [udp(jungfrau(n, p), 50001) for n in range(20) for p in range(56, 72)]
        cut = [(time, frame[:96], len(frame)) for time, frame in stamped(frames)]
        capture = self.path("cut.pcap", pcap_bytes(cut))
        found = json.loads(self.probe(capture, "--json")[0])
        best = found["streams"][0]
        self.assertEqual((best["format"], best["complete"], best["events"], best["message_packets"]), ("jungfrau", 20, 20, 16))
        self.assertEqual((found["trial"]["complete"], found["trial"]["cut_packets"]), (20, 320))
        whole = json.loads(self.probe(self.path("whole.pcap", pcap_bytes(stamped(frames))), "--json")[0])
        self.assertEqual(best["sources"], whole["streams"][0]["sources"])
        self.assertIn("320 packets were cut", " ".join(self.probe(capture)[1].split()))
        # The same through a VLAN, from a queue pair, and of a format that is not known.
        tagged = [(time, (frame[:12] + b"\x81\x00\x00\x64" + frame[12:])[:100], len(frame) + 4) for time, frame in stamped(frames)]
        found = json.loads(self.probe(self.path("tagged.pcap", pcap_bytes(tagged)), "--json")[0])
        self.assertEqual((found["streams"][0]["complete"], found["flows"][0]["vlan"]), (20, 100))
        guessed = [(time, frame[:96], len(frame)) for time, frame in stamped(self.boards("<"))]
        found = json.loads(self.probe(self.path("guessed.pcap", pcap_bytes(guessed)), "--json")[0])
        self.assertEqual(found["streams"][0]["complete"], 100)
        messages = [frame for n in range(20) for frame in roce_message(bytes(5000), 5 * n, immediate=n)]
        rdma = [(time, frame[:96], len(frame)) for time, frame in stamped(messages)]
        found = json.loads(self.probe(self.path("rdma.pcap", pcap_bytes(rdma)), "--json")[0])
        self.assertEqual((found["streams"][0]["basis"], found["streams"][0]["complete"], found["trial"]["complete"]), ("RDMA messages", 20, 20))

    def srs(self, card, number, records=10):
        return struct.pack(">I3sBII", number, b"VM3", card << 4, 7 * number, 0) + bytes(6 * records)

    def test_two_cards_on_one_port_are_two_sources(self):
        # Some numbers are in both: one source would take them for duplicates.
        for cards, second in (((1, 2), 1000), ((1, 1), 1000), ((1, 2), 990_000)):
            with self.subTest(cards=cards, second=second):
                frames = [udp(self.srs(card, first + i), 6006, source=host) for i in range(60)
                          for card, first, host in ((cards[0], 1000, "10.0.0.2"), (cards[1], second, "10.0.0.3"))]
                found = self.tried("cards", frames)
                self.assertEqual(found["streams"][0]["format"], "srs")
                self.assertIn("source_by", found["configuration"])
                self.assertEqual(len(found["streams"][0]["sources"]), 2)
                self.assertEqual(found["trial"]["lost"], {})
                self.assertEqual(found["trial"]["complete"], 60 if second == 1000 else 120)

    def test_formats_that_are_shipped_need_no_name(self):
        for name, options in (("srs", ("--port", 6006, "--source-id", 1, "--bytes", 1200)), ("hexitec", ())):
            with self.subTest(format=name):
                capture, _ = self.send(f"{name}.pcap", "--format", name, "--config", ROOT / "formats" / f"{name}.toml", "--events", 40, "--sources", 1,
                                       *options)
                found = json.loads(self.probe(capture, "--json")[0])
                self.assertEqual((found["streams"][0]["format"], found["trial"]["complete"]), (name, 40))
                self.assertNotIn("A GUESS", found["configuration"])
                self.complete(self.replay(capture, found["configuration"]))

    def test_a_larger_head_of_a_shipped_format(self):
        # 2 x 6 heads: the same header, 20 packets of a frame.
        frames = [udp(struct.pack("<QII", n, p, (p == 0) << 31 | (p == 19) << 30) + bytes(48) + bytes([n, p]) * 3840, 61649)
                  for n in range(10) for p in range(20)]
        found = self.whole("heads", frames, 10)
        self.assertEqual(found["streams"][0]["format"], "hexitec-2x6")

    def test_no_confidence_in_what_is_refused(self):
        one = bytearray(ejfat(1, bytes(100), total=50))
        capture = self.path("one.pcap", pcap_bytes(stamped([udp(bytes(one), 19522)])))
        done = weir("probe", capture, "--json", status=None, trap=False)
        for found in json.loads(done.stdout)["streams"]:
            self.assertTrue(found["rejected"] < found["packets"] or found["confidence"] == 0, found)


class Real(ProbeCase):
    """Captures that are not part of the project, as in real_data_test.py."""
    def data(self, name):
        path = DATA / name
        if not path.exists():
            self.skipTest(f"there is no {path}")
        return path

    def test_detectors(self):
        one, two = config(stream(sources=1), sources=1), config(stream())
        for name, by_hand in (("jungfrau/jungfrau_3realframes", one), ("sls/jf_1if_short", one), ("sls/jf_2modules_short", two),
                              ("sls/jf_2if_short", config(stream(interfaces=2))), ("sls/jf_1if_ipfrag_mtu1500", one),
                              ("sls/jf_1if_rows256", config(stream(sources=1, rows=256), sources=1)),
                              ("sls/moench_1if", config(stream(format="moench", sources=1), sources=1)),
                              ("sls/eiger_12bit_10g", config(stream(format="eiger", bit_depth=12))),
                              ("sls/eiger_16bit_10g", config(stream(format="eiger", bit_depth=16)))):
            with self.subTest(capture=name):
                self.same_events(self.data(f"{name}.pcap"), by_hand)

    def test_readouts_of_a_neutron_detector(self):
        capture = self.data("ess/example_LET.pcapng")
        senders = sorted({flow["src"] for flow in json.loads(self.probe(capture, "--json")[0])["flows"]})
        by_hand = config(stream(format="ess", sources=1, first=9000, source_by='"address"', src=json.dumps(senders)), sources=len(senders))
        self.same_events(capture, by_hand)

    def test_vmm_hits(self):
        capture = self.data("srs/run_example.pcapng")
        text, _ = self.probe(capture, "--formats", ROOT / "formats" / "srs.toml")
        self.assertIn('format = "srs"', text)
        self.complete(self.replay(capture, text))

    def test_rdma(self):
        captures = sorted(self.data("rxe/README.txt").parent.glob("[ru]*.pcap"))
        self.assertGreater(len(captures), 10)
        readme = self.data("rxe/README.txt").read_text()
        for capture in captures:
            with self.subTest(capture=capture.stem):
                text = readme.split(f"\n{capture.stem}.pcap ")[1].split("\n\n")[0]
                qp = re.search("server qpn (0x[0-9a-f]+)", text)
                if qp is None:
                    continue
                dst = '"fd00:77::2"' if "v6" in capture.stem else '"192.168.100.2"' if "vlan" in capture.stem else '"192.168.77.2"'
                event = "immediate" if "_imm_" in capture.stem else "count"
                self.same_events(capture, config(stream("roce", "message", sources=1, first=int(qp[1], 16), dst=dst, event=f'"{event}"'), sources=1))

    def test_rdma_of_other_programs(self):
        for name in ("rxe/pt_write_RC", "rxe/pt_send_UD", "rxe/pp_rc"):
            with self.subTest(capture=name):
                capture = self.data(f"{name}.pcap")
                text, _ = self.probe(capture)
                self.assertIn('event = "count"', text)
                self.complete(self.replay(capture, text))

    def test_what_nobody_reads(self):
        text, said = self.probe(self.data("ipfrag/dns_fragmented.pcap"), status=1)
        self.assertEqual(text, "")
        self.assertIn("nothing was recognised", said)


if __name__ == "__main__":
    main()
