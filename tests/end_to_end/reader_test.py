#!/usr/bin/env python3
"""The Python reader (python/weir) beside the C++ one, on runs of every kind and on damaged ones; and the examples of
docs/guides/READING.md and EXPORT.md as they stand there."""
import contextlib
import io
import json
import random
import re
import shutil
import struct
import sys

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips

from formats_test import INDEXED, PLACED
from packets import EJFAT_PORT, UC, ejfat, pcap_bytes, roce_message, stamped, udp
from support import ROOT, ZSTD, Case, config, main, stream, weir as command

sys.path.insert(0, str(ROOT / "python"))
import weir  # noqa: E402


def random_ejfat(r, events=14, sources=2, largest=9000):
    """Frames of buffers in pieces, some lost, some twice, out of order."""
    frames = []
    for number in range(1, events + 1):
        for source in range(sources):
            data = r.randbytes(r.randrange(largest))
            pieces = [(at, data[at:at + 900]) for at in range(0, len(data), 900)] or [(0, b"")]
            if number % 5 == 0 and source == 1:
                continue
            frames += [udp(ejfat(number, piece, at, len(data)), EJFAT_PORT + source) for at, piece in pieces if r.random() > 0.08]
    return frames


class Comparing(Case):
    def listed(self, path):
        done = command("inspect", path, "--json", "--digest", "sha256", status=None, trap=False)
        return json.loads(done.stdout)

    def check_same(self, path):
        """Everything that `weir inspect` says is what the Python reader says."""
        said = self.listed(path)
        run = weir.open(path)
        self.assertEqual(run.verify() == [], said["verified"])
        self.assertEqual((run.closed, run.name, run.number, run.created_ns, run.ledger, run.config),
                         (said["run"]["closed"], said["run"]["name"], said["run"]["run"], said["run"]["created_ns"], said["ledger"],
                          said["run"]["config"]))
        self.assertEqual(len(run), len(said["events"]))
        for event, theirs in zip(run, said["events"]):
            ours = {"epoch": event.epoch, "id": event.id, "complete": event.complete, "bytes": event.bytes, "sha256": event.sha256(),
                    "first_ns": event.first_ns, "last_ns": event.last_ns, "sources": []}
            if not event.complete:
                ours["cause"] = event.cause
            for source in event.sources:
                unknown = {"absent, size unknown": "all", "size unknown": "unknown"}
                missing = unknown.get(source.state, [list(pair) for pair in source.missing])
                ours["sources"].append({"id": source.id, "bytes": source.received, "missing": missing})
            self.assertEqual(ours, theirs)
        return run, said


class Same(Comparing):
    def test_runs_of_every_kind_are_read_as_the_program_reads_them(self):
        seed = random.SystemRandom().randrange(1 << 30)
        print(f"# seed {seed}")
        r = random.Random(seed)
        segments = 'kind = "events"\npath = "unused"\nsegment_bytes = "1MiB"'
        indexed = [udp(struct.pack("!IHHB3x", n, i << 4, 0xbeef, s) + r.randbytes(500), 50001) for n in range(4) for s in (3, 7)
                   for i in range(9) if r.random() > 0.1]
        placed = [udp(struct.pack("<QII", n, at, 2000) + r.randbytes(400), 50001) for n in range(9) for at in range(0, 2000, 400)
                  if r.random() > 0.1]
        messages = [f for n in range(9) for f in roce_message(r.randbytes(r.randrange(1, 4000)), 20 * n, n, kind=UC, verb="write", mtu=512)]
        cases = {
            "compressed, several segments": (random_ejfat(r, 40, largest=60000), config(stream(format="ejfat"), sink=segments, more=ZSTD)),
            "plain": (random_ejfat(r), config(stream(format="ejfat"))),
            "one source unknown": (random_ejfat(r, sources=1), config(stream(format="ejfat", sources=2))),
            "declared by index": (indexed, config(stream(format="indexed", sources=1, source_by='"header"', source_ids=[7, 3]), more=INDEXED)),
            "declared by offset": (placed, config(stream(format="placed", sources=1), sources=1, more=PLACED)),
            "RoCE, losses": ([f for f in messages if r.random() > 0.1], config(stream("roce", "message", sources=1), sources=1)),
        }
        for name, (frames, settings) in cases.items():
            with self.subTest(name):
                result = self.replay(self.path(f"{len(frames)}.pcap", pcap_bytes(stamped(frames))), settings)
                run, said = self.check_same(result.run)
                self.assertTrue(said["verified"])
                if "segments" in name:
                    self.assertGreater(len(list(result.run.glob("events-*"))), 1)
                # Without its manifest it is like one that was ended by force; torn, it ends with the last whole event.
                (result.run / "manifest.json").unlink()
                self.check_same(result.run)
                last = sorted(result.run.glob("events-*"))[-1]
                last.write_bytes(last.read_bytes()[:-200])
                self.check_same(result.run)

    def test_arrays_have_bytes_in_their_places(self):
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", "2", "--events", "2", "--drop", "0.02", "--seed", "4")
        run = weir.open(self.replay(capture, config(stream())).run)
        event = next(iter(run))
        exported = self.path("e.bin")
        command("inspect", run.path, "--export", f"{event.epoch}:{event.id}", exported, trap=False)
        image = event.array("<u2", (512, 1024))
        self.assertEqual(image.shape, (2, 512, 1024))
        self.assertEqual(image.filled(0).tobytes(), exported.read_bytes())
        lost = sum(length for source in event.sources for _, length in source.missing)
        self.assertGreater(lost, 0)
        self.assertEqual(int(image.mask.sum()) * 2, lost)
        filled = event.array("<u2", (512, 1024), source=1, fill=7)
        self.assertTrue((filled[image.mask[1]] == 7).all())
        self.assertEqual(event.array("u1").shape, (2 << 20,))
        self.assertEqual(struct.unpack_from("<Q", event.sources[0].header)[0], event.id)
        self.assertIs(run.event(event.id).complete, event.complete)
        self.assertIn(event.id, run)
        for wrong in (99, (5, event.id)):
            self.assertNotIn(wrong, run)
            with self.assertRaises(KeyError):
                run[wrong]
        for wrong in ({"shape": (3, 3)}, {"source": 9}):
            with self.assertRaises(weir.RunError):
                event.array("<u2", **wrong)


class Damage(Case):
    def setUp(self):
        super().setUp()
        self.seed = random.SystemRandom().randrange(1 << 30)
        print(f"# seed {self.seed}")
        self.r = random.Random(self.seed)
        frames = random_ejfat(self.r, 8, largest=2000)
        self.whole = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), config(stream(format="ejfat"), more=ZSTD)).run

    def readable(self, run):
        """(epoch, id) and digest of all events that can be read; any error but the documented one fails the test."""
        found = {}
        for entry in run.index:
            with contextlib.suppress(weir.RunError):
                event = run[int(entry["epoch"]), int(entry["event"])]
                found[event.epoch, event.id] = event.sha256()
        return found

    def compare(self, path, what):
        done = command("inspect", path, "--json", "--digest", "sha256", status=None, trap=False)
        if not done.stdout:  # not a run at all any more
            with self.assertRaises(weir.RunError, msg=what):
                weir.open(path)
            return
        said = json.loads(done.stdout)
        run = weir.open(path)
        self.assertEqual(run.verify() == [], said["verified"], what)
        self.assertEqual(self.readable(run), {(e["epoch"], e["id"]): e["sha256"] for e in said["events"]}, what)

    def test_flipped_bytes_and_cut_files_have_the_same_verdict(self):
        for file in sorted(self.whole.iterdir()):
            data = file.read_bytes()
            size = len(data)
            for at in {0, size - 1, *(self.r.randrange(size) for _ in range(16))}:
                flipped = bytearray(data)
                flipped[at] ^= 1 << self.r.randrange(8)
                file.write_bytes(flipped)
                self.compare(self.whole, f"{file.name}, byte {at} flipped")
            for cut in {0, 63, 64, *(self.r.randrange(size) for _ in range(5))}:
                file.write_bytes(data[:cut])
                self.compare(self.whole, f"{file.name} cut to {cut}")
            file.write_bytes(data)

    def test_wrong_fields_behind_good_checksums_have_the_same_verdict(self):
        # A checksum says nothing of a mistake that was made before it was computed. No manifest: both have to scan.
        (self.whole / "manifest.json").unlink()
        file = self.whole / "events-000000.weir"
        data = file.read_bytes()
        blocks, at = {}, 0
        while at < len(data):
            stored, = struct.unpack_from("<I", data, at + 12)
            kind, = struct.unpack_from("<H", data, at + 6)
            length = (stored + 63) // 64 * 64
            blocks.setdefault(kind, []).append((at, length))
            at += 64 + length
        for kind, places in blocks.items():
            start, length = places[len(places) // 2]
            fields = [4, 6, 8, 12, 16, 28, 32, 33, 34, 36, 40, 48, 56]
            fields += [64 + at for at in (range(0, 128, 4) if kind != 4 else (0, 5, 20))] + [64 + 36, 64 + 37, 64 + 69]
            for field in fields:
                if field >= 64 + length:
                    continue
                wrong = bytearray(data)
                wrong[start + field] ^= 1 << self.r.randrange(8)
                struct.pack_into("<I", wrong, start + 24, weir.crc32c(wrong[start + 64:start + 64 + length]))
                struct.pack_into("<I", wrong, start + 60, weir.crc32c(wrong[start:start + 60]))
                file.write_bytes(wrong)
                self.compare(self.whole, f"type {kind}, byte {field} of the block")

    def test_what_is_no_run_is_refused(self):
        self.path("folder").mkdir()
        for path in (self.path("nothing"), self.path("file", "text"), self.path("folder")):
            with self.assertRaises(weir.RunError):
                weir.open(path)
        # Files that are there and cannot be read are problems, not crashes.
        file = self.whole / "events-000000.weir"
        file.unlink()
        file.mkdir()
        self.assertNotEqual(weir.open(self.whole).verify(), [])


class Pages(Case):
    def test_the_examples_of_the_pages_run(self):
        page = "".join((ROOT / "docs" / "guides" / name).read_text() for name in ("READING.md", "EXPORT.md"))
        examples = re.findall(r"```python\n(.*?)```", page, re.S)
        self.assertGreater(len(examples), 4)
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", "2", "--events", "4", "--drop", "0.005", "--seed", "1")
        run = self.replay(capture, config(stream())).run
        shutil.copytree(run, self.path("run7"))
        command("export", self.path("run7"), "--to", "npy", "--out", self.path("run7.npy"), "--quiet", trap=False)
        names = {}
        out = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out):
            for example in examples:
                exec(compile(example, "the examples", "exec"), names)
        self.assertIn("the run is whole", out.getvalue())

    def test_the_page_of_the_report_has_its_keys(self):
        page = (ROOT / "docs" / "reference" / "REPORT.md").read_text()
        listed = {key for row in re.findall(r"(?m)^\| (`.*?) \|", page) for key in re.findall(r"`(\w+)`", row)}
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", "2", "--events", "4")
        report = self.replay(capture, config(stream())).report
        self.assertGreater(len(report), 20)
        self.assertEqual(sorted(set(report) - listed), [])


if __name__ == "__main__":
    main()
