#!/usr/bin/env python3
"""`weir export`: a run as packets gives the same events again, as arrays and bytes what the reader and `weir inspect` give."""
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips
import numpy

from formats_test import INDEXED, PLACED, WHOLE
from pcapng_file import Pcapng
from packets import EJFAT_PORT, RC, UC, datagram, ejfat, ethernet, pcap_bytes, roce_message, stamped, udp
from support import ROOT, TRAP, WEIR, ZSTD, Case, config, main, stream, weir as command

sys.path.insert(0, str(ROOT / "python"))
import weir  # noqa: E402
from made_up_run import write_received  # noqa: E402


def ipv6(payload, source):
    """From fd00::SOURCE; UDP, whose checksum nobody looks at here."""
    return struct.pack("!IHBB", 6 << 28, len(payload), 17, 64) + bytes([0xfd, *bytes(14), source]) + bytes([0xfd, *bytes(14), 9]) + payload


def some(r, frames, loss=0.06):
    return [frame for frame in frames if r.random() > loss]


class Packets(Case):
    def again(self, frames, settings, status=0, events=None):
        """Replays, exports, replays what was exported; returns both runs."""
        capture = frames if not isinstance(frames, list) else self.path(f"{self.runs}.pcap", pcap_bytes(stamped(frames)))
        first = self.replay(capture, settings)
        exported = self.path(f"again{self.runs}.pcap")
        done = command("export", first.run, "--to", "pcap", "--out", exported, *(events or []), status=status, trap=False)
        second = self.replay(exported, settings)
        return first, second, done

    def check(self, frames, settings):
        first, second, _ = self.again(frames, settings)
        self.assertGreater(len(first.events), 3)

        def told(result):
            return {key: (e["complete"], e["sha256"], e["sources"]) for key, e in result.events.items()}
        self.assertEqual(told(second), told(first))
        self.assertEqual(second.packets, {"placed": second.report["packets"]["received"]})
        return first

    def test_datagrams_of_every_format(self):
        seed = random.SystemRandom().randrange(1 << 30)
        print(f"# seed {seed}")
        r = random.Random(seed)
        sizes = {n: r.randrange(1, 30000) for n in range(1, 20)}
        segments = [udp(ejfat(n, r.randbytes(min(1000, size - at)), at, size, source=900 + n % 2, balancer=2), EJFAT_PORT + n % 3)
                    for n, size in sizes.items() for at in range(0, size, 1000)]
        indexed = [udp(struct.pack("!IHHB3x", n & 0xfffff | 0xa00000, i << 4 | 0x5005, 0xbeef, s) + r.randbytes(500), 50001)
                   for n in range((1 << 20) - 5, (1 << 20) + 5) for s in (3, 7) for i in range(9)]
        placed = [udp(struct.pack("<QII", n, at, 2000) + r.randbytes(400), 50001, source=f"10.1.0.{20 + s}")
                  for n in range(9) for s in (0, 1) for at in range(0, 2000, 400)]
        whole = [udp(struct.pack("<I", n) + r.randbytes(n * 11), 50001) for n in range(1, 9)]
        over_ipv6 = [ethernet(ipv6(datagram(ejfat(n, r.randbytes(300), at, 900), EJFAT_PORT), source), 0x86dd)
                     for n in range(1, 9) for source in (1, 2) for at in (0, 300, 600)]
        unframed = [udp(r.randbytes(n * 70), 50001) for n in range(9)]
        cases = {
            "ejfat by header": (some(r, segments), config(stream(format="ejfat", sources=3, source_by='"header"', source_ids=[900, 901]), more=ZSTD)),
            "declared by index": (some(r, indexed), config(stream(format="indexed", sources=1, source_by='"header"', source_ids=[7, 3]), more=INDEXED)),
            "declared by offset": (some(r, placed), config(stream(format="placed", sources=1, source_by='"address"',
                                                                  src='["10.1.0.20", "10.1.0.21"]'), more=PLACED)),
            "IPv6": (some(r, over_ipv6), config(stream(format="ejfat", sources=1, source_by='"address"', src='["fd00::1", "fd00::2"]'))),
            "declared, whole": (whole, config(stream(format="whole", sources=1), sources=1, more=WHOLE)),
            "message": (unframed, config(stream(format="message", sources=1, event='"arrival"'), sources=1)),
        }
        for name, (frames, settings) in cases.items():
            with self.subTest(name):
                self.check(frames, settings)

    def test_pcapng_says_what_became_of_each_event(self):
        frames = [udp(ejfat(n, bytes(1000), at, 3000), EJFAT_PORT + s) for n in range(1, 5) for s in range(2) for at in (0, 1000, 2000)
                  if (n, s, at) != (2, 1, 1000) and (n, s) != (3, 0)]
        first = self.replay(self.path("in.pcap", pcap_bytes(stamped(frames))), config(stream(format="ejfat")))
        exported = self.path("again.pcapng")
        command("export", first.run, "--to", "pcapng", "--packet-bytes", "1000", "--out", exported, trap=False)
        file = Pcapng(exported)
        self.assertEqual(file.names, ["det0"])
        self.assertEqual(len(file.packets), len(frames))
        self.assertEqual([text for packet in file.packets for text in packet[3]],
                         ["event 1 complete", "event 2 incomplete: timeout, source 1 misses 1000 bytes",
                          "event 3 incomplete: timeout, source 0 misses everything", "event 4 complete"])
        self.assertEqual(file.statistics, [{4: len(frames), 8: len(frames)}])
        second = self.replay(exported, config(stream(format="ejfat")))
        self.assertEqual({key: (e["complete"], e["sha256"]) for key, e in second.events.items()},
                         {key: (e["complete"], e["sha256"]) for key, e in first.events.items()})
        refused = command("export", first.run, "--to", "pcapng", "--source", "1", status=2, trap=False)
        self.assertIn("--source", refused.stderr)

    def test_pixels_of_two_modules(self):
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", "2", "--events", "4", "--drop", "0.01", "--reorder", "3", "--seed", "7")
        first = self.check(capture, config(stream()))
        self.assertTrue(any(not e["complete"] for e in first.events.values()))

    def test_rdma_messages(self):
        r = random.Random(5)
        for name, kind in (("RC", RC), ("UC", UC)):
            with self.subTest(name):
                frames, psn = [], 1000
                for number in range(50, 60):
                    message = roce_message(r.randbytes(r.randrange(1500, 6000)), psn, number, kind=kind, verb="write", mtu=512)
                    psn += len(message)
                    frames += message[:1] + message[2:] if kind is UC and number % 4 == 0 else message
                first = self.check(frames, config(stream("roce", "message", sources=1), sources=1))
                self.assertEqual(any(not e["complete"] for e in first.events.values()), kind is UC)
        with self.subTest("a format inside"):
            frames, psn = [], 9
            for number in range(500, 510):
                message = roce_message(ejfat(number, r.randbytes(number * 5)), psn, kind=RC, verb="write", mtu=1024)
                psn += len(message)
                frames += message
            self.check(frames, config(stream("roce", "ejfat", sources=1), sources=1))

    def test_what_cannot_be_made_again_is_said(self):
        # Numbers that packets do not carry start again at 0.
        frames = [udp(bytes([n]) * 30, 50001) for n in range(6)]
        settings = config(stream(format="message", sources=1, event='"arrival"'), sources=1)
        _, second, done = self.again(frames, settings, status=1, events=["--events", "3-4"])
        self.assertIn("2 message(s) will have other event numbers", done.stderr)
        self.assertEqual(sorted(number for _, number in second.events), [0, 1])
        # A header that was not kept as a whole.
        long = '[[format]]\nname = "long"\nheader_bytes = 80\nevent = { offset = 0, bytes = 4 }\n'
        frames = [udp(struct.pack("<I", n) + bytes(90), 50001) for n in range(3)]
        run = self.replay(self.path("long.pcap", pcap_bytes(stamped(frames))), config(stream(format="long", sources=1), sources=1, more=long)).run
        done = command("export", run, "--to", "pcap", "--out", self.path("never.pcap"), status=1, trap=False)
        self.assertIn("80 bytes, of which 64 are kept", done.stderr)
        self.assertFalse(list(self.folder.glob("*never*")))


class Bytes(Case):
    def setUp(self):
        super().setUp()
        r = random.Random(3)
        frames = [udp(ejfat(n, r.randbytes(400), at, 1200), EJFAT_PORT + s) for n in range(1, 9) for s in (0, 1) for at in (0, 400, 800)
                  if (n, s, at) not in ((2, 0, 400), (3, 1, 800)) and (n, s) != (5, 1)]
        self.run_path = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), config(stream(format="ejfat"), more=ZSTD)).run

    def export(self, *args, status=0):
        return command("export", self.run_path, *args, status=status, trap=False)

    def inspected(self, number):
        out = self.path(f"inspected{number}")
        if not out.exists():
            command("inspect", self.run_path, "--export", number, out, trap=False)
        return out.read_bytes()

    def test_arrays_are_what_the_reader_gives(self):
        out = self.path("a.npy")
        self.export("--to", "npy", "--out", out, "--dtype", "i2", "--shape", "30x20", "--fill", "-7")
        array, about = numpy.load(out), json.loads(self.path("a.npy.json").read_text())
        self.assertEqual((array.shape, array.dtype), ((8, 2, 30, 20), numpy.dtype("<i2")))
        self.assertEqual(out.stat().st_size % 64, (8 * 2 * 1200) % 64)
        run = weir.open(self.run_path)
        for place, line in enumerate(about["events"]):
            event = run[line["epoch"], line["id"]]
            if event.id != 5:  # of which a size is not known
                numpy.testing.assert_array_equal(array[place], event.array("<i2", (30, 20), fill=-7))
            self.assertEqual(line["complete"], event.complete)
        missing = {line["id"]: line["missing"] for line in about["events"] if line["missing"]}
        self.assertEqual(missing, {2: {"0": [[400, 400]]}, 3: {"1": [[800, 400]]}, 5: {"1": "all"}})
        self.assertTrue((array[[line["id"] for line in about["events"]].index(5), 1] == -7).all())

        self.export("--to", "npy", "--out", self.path("split"), "--split-sources", "--complete", "--dtype", "f4", "--fill", "nan", "--quiet")
        self.assertEqual(sorted(p.name for p in self.path("split").iterdir()), ["index.json", "source-0.npy", "source-1.npy"])
        one = numpy.load(self.path("split") / "source-1.npy")
        self.assertEqual(one.shape, (5, 300))
        self.assertEqual(one[0].tobytes(), run[1].payload(source=1))
        self.export("--to", "npy", "--out", self.path("b.npy"), "--source", "1", "--events", "2-3")
        self.assertEqual(numpy.load(self.path("b.npy")).shape, (2, 1200))

    def test_bytes_are_what_inspect_gives(self):
        self.export("--to", "raw", "--out", self.path("folder"), "--events", "1-3", "--event", "0:5")
        index = json.loads((self.path("folder") / "index.json").read_text())
        self.assertEqual(sorted(e["id"] for e in index["events"]), [1, 2, 3, 5])
        for entry in index["events"]:
            self.assertEqual((self.path("folder") / entry["file"]).read_bytes(), self.inspected(entry["id"]))
            self.assertEqual(entry["gaps_filled"], entry["id"] != 5)
        self.export("--to", "raw", "--out", self.path("all.bin"), "--concatenate")
        data = self.path("all.bin").read_bytes()
        for entry in json.loads(self.path("all.bin.json").read_text())["events"]:
            self.assertEqual(data[entry["offset"]:entry["offset"] + entry["exported_bytes"]], self.inspected(entry["id"]))

    def test_a_damaged_event_is_left_out_and_said(self):
        event = weir.open(self.run_path)[4]
        file = self.run_path / "events-000000.weir"
        data = bytearray(file.read_bytes())
        data[event._at[1] + event._at[2] - 70] ^= 1
        file.write_bytes(data)
        done = self.export("--to", "npy", "--out", self.path("a.npy"), status=1)
        self.assertIn("event 0:4 is left out", done.stderr)
        self.assertEqual(numpy.load(self.path("a.npy")).shape, (7, 2, 1200))
        done = self.export("--to", "raw", "--out", self.path("d"), "--event", "4", status=1)
        self.assertIn("no event could be exported", done.stderr)
        # Without index and manifest, too.
        hidden = self.path(".killed.part")
        shutil.copytree(self.run_path, hidden)
        (hidden / "manifest.json").unlink()
        command("export", hidden, "--to", "npy", "--out", self.path("k.npy"), trap=False)
        self.assertEqual(numpy.load(self.path("k.npy")).shape, (7, 2, 1200))

    def test_refusals(self):
        taken = self.path("taken", "mine")
        out = self.path("out")
        for status, args in {
                1: [("--to", "npy", "--out", taken), ("--to", "raw", "--out", taken), ("--to", "pcap", "--out", taken),
                    ("--to", "raw", "--event", "99", "--out", out), ("--to", "raw", "--events", "90-99", "--out", out),
                    ("--to", "npy", "--shape", "7x7", "--out", out), ("--to", "npy", "--source", "9", "--out", out),
                    ("--to", "raw", "--out", out / "deep" / "er")],
                2: [(), ("--to", "hdf"), ("--to", "npy", "--dtype", "c8"), ("--to", "npy", "--fill", "300"), ("--to", "npy", "--fill", "x"),
                    ("--to", "npy", "--shape", "7y7"), ("--to", "raw", "--dtype", "u2"), ("--to", "npy", "--concatenate"),
                    ("--to", "raw", "--events", "5"), ("--to", "raw", "--events", "5-3"), ("--to", "raw", "--event", "x"),
                    ("--to", "pcap", "--source", "0"), ("--to", "pcap", "--packet-bytes", "0"), ("--nonsense",)]}.items():
            for arguments in args:
                with self.subTest(arguments):
                    done = self.export(*arguments, status=status)
                    self.assertTrue(done.stderr.startswith("weir: "), done.stderr)
                    self.assertEqual(taken.read_text(), "mine")
                    self.assertFalse(list(self.folder.glob("*out*")))


class Large(Case):
    """Records that speak of gigabytes which never came."""
    MOST = (1 << 32) - 1

    def setUp(self):
        super().setUp()

        def event(number, absent, size=100):
            return number, [(0, 100, bytes([number]) * 100, []), *((i + 1, size, b"", [(0, size)]) for i in range(absent))]
        self.one = write_received(self.path("one"), [event(1, 1, self.MOST), event(2, 1), event(3, 1)], [19522, 19523])
        self.many = write_received(self.path("many"), [event(1, 2000), event(2, 2000, self.MOST), event(3, 2000)], [19522, 19523])
        for run in (self.one, self.many):
            self.assertTrue(json.loads(command("inspect", run, "--json", trap=False).stdout)["verified"])

    def export(self, run, *args):
        """Exit status, what was said, and the most memory that it had."""
        with open(self.path("said"), "w+") as said:
            # A machine must not suffer for a program that forgets the limit; a sanitizer wants more address space.
            limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))) if TRAP else None
            process = subprocess.Popen([WEIR, "export", run, *args], stderr=said, stdout=said, preexec_fn=limit)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            return process.returncode, said.read(), used.ru_maxrss * 1024

    def test_memory_is_taken_by_what_came(self):
        for run, large in ((self.one, 1), (self.many, 2)):
            for to in ("npy", "raw"):
                with self.subTest(run=run.name, to=to):
                    out = self.path(f"{run.name}-{to}")
                    status, said, memory = self.export(run, "--to", to, "--out", out)
                    self.assertEqual(status, 1, said)
                    self.assertRegex(said, rf"event 0:{large} is left out: .* at most 2.0 GiB .*--max-event")
                    self.assertIn("2 events: ", said)
                    self.assertLess(memory, 1 << 30)
            # Nothing is filled in there, so nothing is too large.
            for to in ("pcap", "hdf5"):
                with self.subTest(run=run.name, to=to):
                    status, said, memory = self.export(run, "--to", to, "--out", self.path(f"{run.name}-{to}"))
                    self.assertEqual(status, 0, said)
                    self.assertIn("3 events: ", said)
                    self.assertLess(memory, 1 << 30)
        self.assertEqual(numpy.load(self.path("many-npy")).shape, (2, 2001, 100))
        self.assertEqual(sorted(p.name for p in self.path("one-raw").iterdir()), ["event-0-2.bin", "event-0-3.bin", "index.json"])

    def test_the_limit_can_be_set(self):
        status, said, _ = self.export(self.one, "--to", "raw", "--out", self.path("small"), "--max-event", "150B")
        self.assertEqual(status, 1)
        self.assertIn("no event could be exported", said)
        status, said, _ = self.export(self.one, "--to", "raw", "--out", self.path("set"), "--max-event", "200B", "--events", "2-3")
        self.assertEqual(status, 0, said)
        for wrong in ("0", "much", "-1"):
            self.assertEqual(self.export(self.one, "--to", "raw", "--max-event", wrong, "--out", self.path("w"))[0], 2)

    def test_inspect_exports_no_terabytes(self):
        done = command("inspect", self.many, "--export", "2", self.path("big.bin"), status=1, trap=False)
        self.assertRegex(done.stderr, "event 0:2 .* at most 2.0 GiB")
        self.assertFalse(self.path("big.bin").exists())
        command("inspect", self.many, "--export", "3", self.path("small.bin"), trap=False)
        self.assertEqual(self.path("small.bin").stat().st_size, 2001 * 100)

    def test_the_reader_names_the_event(self):
        for path, large in ((self.one, 1), (self.many, 2)):
            run = weir.open(path)
            with self.assertRaisesRegex(weir.RunError, f"event 0:{large} .* at most"):
                run[large].array()
            self.assertEqual(run[large].payload(), bytes([large]) * 100)
            self.assertEqual(run[3].array().count(), 100)
            with self.assertRaisesRegex(weir.RunError, "event 0:3 .* at most"):
                weir.open(path, max_event=150)[3].array()


if __name__ == "__main__":
    main()
