#!/usr/bin/env python3
"""PSI's detectors in every read-out, and declared formats, as `weir send` makes them with losses, repetitions and disorder:
every event, digest, gap and count against a plain reading of the capture that knows the packets' layout by itself."""
import hashlib
import os
import pathlib
import random
import re
import struct
import tempfile

from packets import pcap_bytes, stamped, udp
from sent_test import Piece, SentCase
from support import ROOT, Case, Replay, config, main, stream, weir

FAULTS = ("--drop", "0.004", "--duplicate", "0.02", "--truncate", "0.003", "--reorder", "60")
SRS = f'include = ["{ROOT}/formats/srs.toml"]\n'
HEXITEC = f'include = ["{ROOT}/formats/hexitec.toml"]\n'
DATA = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared") / "data"


def tile(payload_bytes, count, first=(0, 0), kind=3):
    """Reads a packet of a detector whose ports send `count` packets per frame, from number first[0] on, on odd ports first[1]."""
    def piece(port, payload):
        number, _, packet = struct.unpack_from("<QII", payload)
        assert payload[46] == kind and payload[47] == 2 and len(payload) == 48 + payload_bytes
        source = port - 50001
        place = packet - first[source % 2]
        assert 0 <= place < count
        return Piece(source, number, place * payload_bytes, payload[48:], count * payload_bytes)
    return piece


class Detectors(SentCase):
    def check_detector(self, name, size, piece, send=(), sources=2, events=12, **keys):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        command = ("--format", name, "--sources", sources, "--events", events, "--seed", 3, *send)
        return self.check_udp(command, config(stream(format=name, sources=sources, **keys), sources=sources), piece, [[0, size]], FAULTS)

    def test_jungfrau_partial_readout(self):
        self.check_detector("jungfrau", 128 * 2048, tile(8192, 32, (48, 48)), ("--rows", 128), rows=128)
        # On two interfaces the middle of the image is the end of the one and the beginning of the other.
        self.check_detector("jungfrau", 128 * 2048, tile(8192, 32, (32, 0)), ("--rows", 256, "--interfaces", 2), rows=256, interfaces=2)

    def test_moench(self):
        self.check_detector("moench", 320000, tile(6400, 50, kind=5))
        self.check_detector("moench", 160000, tile(6400, 25, kind=5), ("--interfaces", 2), interfaces=2)
        self.check_detector("moench", 128 * 800, tile(6400, 16, (17, 17), kind=5), ("--rows", 128), rows=128)
        self.check_detector("moench", 64 * 800, tile(6400, 8, (17, 0), kind=5), ("--rows", 128, "--interfaces", 2), events=60, rows=128, interfaces=2)

    def test_eiger(self):
        self.check_detector("eiger", 196608, tile(4096, 48, kind=1), ("--bit-depth", 12), bit_depth=12)
        self.check_detector("eiger", 65536, tile(1024, 64, kind=1), ("--bit-depth", 4, "--tengiga", "false"), bit_depth=4, tengiga="false")
        self.check_detector("eiger", 131072, tile(4096, 32, kind=1), ("--bit-depth", 32, "--rows", 64), bit_depth=32, rows=64)

    def test_numbers_outside_the_readout(self):
        capture, account = self.send("c.pcap", "--sources", 1, "--events", 2)
        result = self.replay(capture, config(stream(sources=1, rows=256), sources=1))
        self.assertEqual(result.packets, {"placed": 128, "dropped.malformed.packet_number": 128})
        self.assertEqual(result.report["events"]["complete"], account["events"]["whole"])
        # With two interfaces the numbers that are wrong on one are right on the other.
        capture, _ = self.send("d.pcap", "--sources", 2, "--interfaces", 2, "--rows", 256, "--events", 1)
        swapped = self.replay(capture, config(stream(interfaces=2, rows=256).replace("[50001, 50002]", "[50002, 50001]")))
        self.assertEqual(swapped.packets, {"dropped.malformed.packet_number": 64})

    def test_two_interfaces_told_apart_by_the_row(self):
        capture, _ = self.send("c.pcap", "--sources", 4, "--interfaces", 2, "--rows", 64, "--events", 3, "--one-port", "--reorder", 20)
        by_port, _ = self.send("d.pcap", "--sources", 4, "--interfaces", 2, "--rows", 64, "--events", 3)
        apart = self.replay(by_port, config(stream(sources=4, interfaces=2, rows=64), sources=4), "--require-lossless")
        by_address = self.replay(capture, config(stream(sources=1, interfaces=2, rows=64, source_by='"address"',
                                                        src=[f"10.1.0.{10 + i}" for i in range(4)]), sources=4), "--require-lossless")
        # A module's id is the same on both of its interfaces, so there it is one source.
        by_module = self.replay(capture, config(stream(sources=1, interfaces=2, rows=64, source_by='"header"', source_ids=[0, 1])),
                                "--require-lossless")
        digests = [[(e["id"], e["bytes"], e["sha256"]) for e in r.inspect["events"]] for r in (apart, by_address, by_module)]
        self.assertEqual(digests[0], digests[1])
        self.assertEqual(digests[0], digests[2])
        self.assertEqual(len(by_module.inspect["events"][0]["sources"]), 2)

    def test_frame_zero_of_eiger(self):
        def packet(frame, number):
            return udp(struct.pack("<QIIQQHHHHIHBB", frame, 0, number, 0, 0, 31, 0, 0, 0, 0, 0, 1, 2) + bytes(4096), 50001)
        frames = [packet(n, p) for n in (0, 1) for p in range(16)]
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), config(stream(format="eiger", sources=1, bit_depth=4), sources=1))
        self.assertEqual(result.packets, {"placed": 16, "dropped.malformed.header": 16})
        done = weir("send", "--to", self.path("d.pcap"), "--format", "eiger", "--events", 1, "--first-event", 0, status=2)
        self.assertIn("EIGER counts its frames from 1", done.stderr)


class Documented(Case):
    def test_stream_sections_of_the_documentation(self):
        # format -> what `weir send` has to be told beside the name, to send what the section on its page receives.
        (self.folder / "formats").symlink_to(ROOT / "formats")
        pages = {"jungfrau": ("--sources", 2, "--interfaces", 2, "--rows", 256), "moench": ("--sources", 2, "--interfaces", 2),
                 "eiger": ("--sources", 2, "--bit-depth", 12),
                 "srs": ("--sources", 2, "--port", 6006, "--one-port", "--source-id", 1), "hexitec": ("--port", 61649,)}
        for name, command in pages.items():
            with self.subTest(page=name):
                page = (ROOT / "docs" / "reference" / "formats" / f"{name}.md").read_text()
                section = re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1]
                formats = ROOT / "formats" / f"{name}.toml"
                if formats.exists():
                    command += ("--config", formats)
                capture, account = self.send(f"{name}.pcap", "--format", name, "--events", 3, "--reorder", 9, *command)
                include, section = re.fullmatch(r"((?:include.*\n\n)?)(.*)", section, re.DOTALL).groups()
                result = self.replay(capture, include + config(section, sources=len(account["sources"])), "--require-lossless")
                self.assertEqual(result.packets, {"placed": account["packets"]["sent"]})
                self.assertEqual(result.report["events"]["complete"], 3)


class SimulatedDevice(Case):
    def run_device(self, device, *streams, sources=2, more=""):
        self.runs += 1
        name = f"live{self.runs}"
        settings = self.path(f"{name}.toml", more + config(*streams, sources=sources).replace('"net_null0"', f'"{device}"'))
        done = weir("run", "--config", settings, "--report", self.path(f"{name}.json"), "--out", self.folder / name,
                    status=None)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = Replay(self.folder, name)
        self.balanced(result)
        return result

    def test_detectors_and_declared_formats(self):
        for device, stream_text, more in (
                ("format=moench,interfaces=2,rows=64", stream(format="moench", interfaces=2, rows=64), ""),
                ("format=eiger,bit_depth=8,tengiga=false", stream(format="eiger", bit_depth=8, tengiga="false"), ""),
                ("format=srs,one_port=1,source_id=7,port=50001",
                 stream(format="srs", sources=1, source_by='"header"', source_ids=[7, 8]), SRS)):
            with self.subTest(device=device):
                result = self.run_device(f"sim,{device},events=20", stream_text, more=more)
                self.assertEqual(result.report["events"]["complete"], 20)
                self.assertEqual(list(result.packets), ["placed"])

    def test_errors_name_what_is_accepted(self):
        for device, part in (("format=mythen", "jungfrau, moench, eiger, ejfat, dune, ess, spead, srs"), ("format=eiger,tengiga=2", "true, false"),
                             ("format=moench,rows=100", "steps of 16"), ("colour=1", "bit_depth")):
            settings = self.path("c.toml", SRS + config(stream()).replace('"net_null0"', f'"sim,{device}"'))
            done = weir("run", "--config", settings, "--out", self.folder / "none", status=2)
            self.assertIn(part, done.stderr)


class Declared(Case):
    def send_declared(self, name, formats, *args):
        return self.send(name, "--config", formats, *args)

    def test_sent_and_received(self):
        for name, extra in (("hexitec", ()), ("placed", ("--bytes", 30000)), ("whole", ()), ("sized", ("--bytes", 9000))):
            with self.subTest(format=name):
                self.check_sent(name, extra)

    def check_sent(self, name, extra):
        text = self.path("formats.toml", FORMATS)
        faults = ("--drop", "0.01", "--duplicate", "0.05", "--reorder", 10)
        command = ("--format", name, "--sources", 2, "--one-port", "--events", 60, "--mtu", 9000, "--source-id", 4, *extra)
        clean, _ = self.send_declared(f"{name}.pcap", text, *command)
        faulty, account = self.send_declared(f"{name}-faults.pcap", text, *command, *faults)
        keys = {"source_by": '"header"', "source_ids": [4, 5]} if name != "hexitec" else {"source_by": '"address"', "src": '["10.1.0.10", "10.1.0.11"]'}
        settings = FORMATS + config(stream(format=name, sources=1, **keys))
        whole = self.replay(clean, settings, "--require-lossless")
        result = self.replay(faulty, settings)
        self.assertEqual(result.report["events"]["complete"], account["events"]["whole"])
        self.assertGreater(account["events"]["damaged"], 0)
        self.assertGreater(account["events"]["whole"], 0)
        self.assertEqual(result.report["packets"]["dropped"]["duplicate"], account["packets"]["duplicated"])
        expected = {n: e["sha256"] for (_, n), e in whole.events.items()}
        self.assertEqual(len(expected), 60)
        self.assertEqual({n: e["sha256"] for (_, n), e in result.events.items() if e["complete"]},
                         {n: expected[n] for (_, n), e in result.events.items() if e["complete"]})

    def test_a_sequence_number_makes_the_account_exact(self):
        r = random.Random(11)
        text = ('[[format]]\nname = "counted"\nheader_bytes = 16\nevent = { offset = 0, bytes = 4 }\noffset = { offset = 4, bytes = 4 }\n'
                'total = { offset = 8, bytes = 4 }\nsequence = { offset = 12, bytes = 1 }\n')
        packets = []
        for n in range(1, 201):
            sizes = [r.randrange(1, 900) for _ in range(r.randrange(1, 5))]
            for p, size in enumerate(sizes):
                packets.append((n, udp(struct.pack("<IIIBxxx", n, sum(sizes[:p]), sum(sizes), len(packets) & 0xff) + bytes(size), 50001)))
        lost = {i for i, (n, _) in enumerate(packets) if n in (40, 41) or n == 90 and packets[i - 1][0] != 90}
        frames = [frame for i, (_, frame) in enumerate(packets) if i not in lost]
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), text + config(stream(format="counted", sources=1, first=50001), sources=1))
        (source,) = result.report["sources"]
        self.assertEqual(source["missing_packets"], len(lost))
        self.assertNotIn("missing_guessed", source)
        self.assertIn(f"{len(lost)} packets never came", " ".join(result.report["evidence"]))
        self.assertEqual(result.report["lossless"], "no")
        # Without it nobody can say how many packets there were of a message of which none came.
        plain = self.replay(self.path("d.pcap", pcap_bytes(stamped(frames))),
                            text.replace("sequence", "source") + config(stream(format="counted", sources=1, first=50001), sources=1))
        self.assertGreater(plain.report["sources"][0]["missing_guessed"], 0)

    def test_hexitec(self):
        # As the capture of a real detector that the facts come from: 80 x 80 pixels, 7680 + 5120 bytes, from frame 0.
        r = random.Random(5)
        images = [r.randbytes(12800) for _ in range(20)]
        packets = []
        for n, image in enumerate(images):
            for p, part in enumerate((image[:7680], image[7680:])):
                flags = (1 << 31 if p == 0 else 1 << 30) | 0x1234  # low bits are not zero there either
                packets.append((n, p, udp(struct.pack("<QII", n, p, flags) + bytes(48) + part, 61649)))
        lost = {(7, 0), (12, 1)}
        frames = [f for n, p, f in packets if (n, p) not in lost]
        frames.insert(5, frames[4])
        r.shuffle(frames[8:30])
        settings = HEXITEC + config(stream(format="hexitec", sources=1, first=61649), sources=1)
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), settings)
        self.assertEqual(result.packets, {"placed": 38, "dropped.duplicate": 1})
        for (_, n), event in result.events.items():
            missing = {7: [[0, 7680]], 12: [[7680, 5120]]}.get(n, [])
            self.assertEqual(event["sources"][0]["missing"], missing)
            kept = images[n][7680:] if n == 7 else images[n][:7680] if n == 12 else images[n]
            self.assertEqual(event["sha256"], hashlib.sha256(kept).hexdigest())
        # A short packet in the middle, a long one at the end, a third packet: none of them is believed.
        bad = [udp(struct.pack("<QII", 1, p, 0) + bytes(48) + bytes(size), 61649) for p, size in ((0, 5120), (1, 7680), (2, 5120))]
        result = self.replay(self.path("d.pcap", pcap_bytes(stamped(bad))), settings)
        self.assertEqual(result.packets, {"dropped.malformed.payload_length": 2, "dropped.malformed.packet_number": 1})

    def test_hexitec_other_heads(self):
        # The variants that are only comments are right as soon as the comment signs go.
        text = (ROOT / "formats" / "hexitec.toml").read_text()
        variants = re.sub(r"(?m)^# (?=\[\[format]]|\w+ = )", "", text)
        formats = self.path("all.toml", variants)
        for name, size, packets in (("hexitec-2x2", 51200, 7), ("hexitec-2x6", 153600, 20), ("hexitec-8-byte-header", 12800, 2)):
            capture, account = self.send(f"{name}.pcap", "--config", formats, "--format", name, "--events", 3)
            self.assertEqual(account["packets"]["generated"], 3 * packets)
            result = self.replay(capture, 'include = ["all.toml"]\n' + config(stream(format=name, sources=1), sources=1), "--require-lossless")
            self.assertEqual({e["bytes"] for e in result.inspect["events"]}, {size})

    def srs(self, counter, card, data, **more):
        return udp(struct.pack("!I3sBII", counter, b"VM3", card << 4, 0, 0) + data, 6006, source=f"10.0.0.{card}", **more)

    def test_srs(self):
        r = random.Random(1)
        frames, expected = [], {}
        for counter in range(2**32 - 20, 2**32 + 20):
            for card in (1, 2):
                if (counter, card) == (2**32 + 3, 2):
                    continue
                data = r.randbytes(6 * r.randrange(0, 1492))
                expected[counter, card] = data
                frames.append(self.srs(counter % 2**32, card, data))
        strange = [udp(b"\0\0\0\1VM4\x10" + bytes(14), 6006), self.srs(5, 3, b"third card"), udp(b"\0\0\0\1VM3\x10short", 6006)]
        settings = SRS + config(stream(format="srs", sources=1, first=6006, source_by='"header"', source_ids=[1, 2]))
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames + strange))), settings)
        self.assertEqual(result.packets, {"placed": 79, "dropped.malformed.header": 2, "dropped.malformed.source": 1})
        events = result.inspect["events"]
        self.assertEqual([e["id"] for e in events if not e["complete"]], [2**32 + 3])
        self.assertEqual([(s["id"], s["missing"]) for e in events for s in e["sources"] if s["missing"]], [(1, "all")])
        self.assertEqual(sum(e["bytes"] for e in events), sum(len(d) for d in expected.values()))

    def test_real_srs_capture(self):
        capture = DATA / "srs" / "run_example.pcapng"
        if not capture.exists():
            self.skipTest(f"there is no {capture}")
        # Each card counts for itself, from where it was switched on, so their datagrams are events of their own.
        for keys in ({"source_by": '"header"', "source_ids": [1, 2]}, {"source_by": '"address"', "src": '["10.0.0.1", "10.0.0.2"]'}):
            with self.subTest(**keys):
                settings = SRS + config(stream(format="srs", sources=1, first=6006, **keys), sources=1)
                result = self.replay(capture, settings)
                self.assertEqual(result.packets, {"placed": 100})
                numbers = sorted(number for _, number in result.events)
                self.assertEqual(numbers, [*range(11867938, 11867958), *range(11867959, 11867989),
                                           *range(11888171, 11888191), *range(11888192, 11888222)])
                self.assertEqual({e["bytes"] for e in result.inspect["events"]}, {8952})
                self.assertEqual([s["packets"] for s in result.report["sources"]], [50, 50])
                # Who waits for both cards under one number gets none of them whole.
                both = self.replay(capture, settings.replace("[events]\nsources = 1", "[events]\nsources = 2"))
                self.assertEqual(both.report["events"]["complete"], 0)
                self.assertEqual(len(both.events), 100)


class Include(Case):
    def refused(self, text, *parts):
        settings = self.path("c.toml", text)
        done = weir("replay", "none.pcap", "--config", settings, status=2)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_cat_means_the_same(self):
        settings = config(stream(format="srs", sources=1, first=6006), sources=1)
        printed = []
        for text in (SRS + settings, settings + (ROOT / "formats" / "srs.toml").read_text()):
            done = weir("replay", "none.pcap", "--config", self.path("c.toml", text), "--print-config")
            printed.append(done.stdout)
        self.assertEqual(printed[0], printed[1])
        # What is printed needs no other file.
        self.assertNotIn("include", printed[0])
        again = weir("replay", "none.pcap", "--config", self.path("d.toml", printed[0]), "--print-config")
        self.assertEqual(again.stdout, printed[0])

    def test_errors_name_the_included_file(self):
        rest = config(stream(format="mine", sources=1), sources=1)
        (self.folder / "sub").mkdir()
        include = 'include = ["sub/mine.toml"]\n'
        self.refused(include + rest, 'c.toml:1: include: found "sub/mine.toml"', "is not a file")
        mine = self.folder / "sub" / "mine.toml"
        for text, parts in (
                ('[[format]]\nname = "mine"\nheader_bytes = 0\n', ("mine.toml:3: format.header_bytes",)),
                ('[[format]]\nname = "mine"\nheader_byte = 8\n', ("mine.toml:", "header_bytes")),
                ('# only formats\n[events]\nsources = 1\n', ("mine.toml:2:", "unknown key", "accepted: format")),
                ('include = ["other.toml"]\n', ("mine.toml:1:", "unknown key")),
                ('[[format\n', ("mine.toml:1: not valid TOML",)),
                ('[[format]]\nname = "mine"\nheader_bytes = 8\nevent = { offset = 0, bytes = 4 }\ntotal = true\n',
                 ("mine.toml:5: format.total", "a number of bytes"))):
            mine.write_text(text)
            self.refused(include + rest, str(self.folder / "sub"), *parts)
        good = '[[format]]\nname = "mine"\nheader_bytes = 8\nevent = { offset = 0, bytes = 4 }\n'
        mine.write_text(good)
        self.refused(include + rest + good, "c.toml:", '"mine" twice')
        self.refused('include = ["sub/mine.toml", "sub/mine.toml"]\n' + rest, "mine.toml:2", '"mine" twice')
        self.refused("include = 5\n" + rest, "c.toml:1: include", "a string")


FORMATS = (ROOT / "formats" / "hexitec.toml").read_text() + '''
[[format]]
name = "placed"
byte_order = "big"
header_bytes = 24
event = { offset = 0, bytes = 4, wrap_bits = 20 }
offset = { offset = 4, bytes = 4 }
total = { offset = 8, bytes = 4 }
source = { offset = 12, bytes = 2 }
magic = { offset = 14, bytes = 2, value = 0xBEEF }

[[format]]
name = "whole"
header_bytes = 8
event = { offset = 0, bytes = 6 }
source = { offset = 6, bytes = 1 }

[[format]]
name = "sized"
header_bytes = 16
event = { offset = 0, bytes = 8 }
index = { offset = 8, bytes = 2 }
total = { offset = 10, bytes = 4 }
source = { offset = 14, bytes = 2, mask = 0x0FF0, shift = 4 }
payload_bytes = 1000
'''

if __name__ == "__main__":
    main()
