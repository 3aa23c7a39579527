#!/usr/bin/env python3
"""Reduced runs of every type and encoding, made here from the documentation: `weir inspect`, `weir export` and the Python reader all
give exactly what was put in, say what it is, and notice damage."""
import hashlib
import json
import random
import shutil
import struct
import sys

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips
import numpy

from support import ROOT, Case, main, weir as command

sys.path.insert(0, str(ROOT / "python"))
import weir  # noqa: E402
import made_up_run as made  # noqa: E402

ROWS, COLUMNS, MODULES = 12, 32, 2


def images(r, name):
    """Few photons on nothing, some pixels without a value, one saturated."""
    random_state = numpy.random.default_rng(r.randrange(1 << 32))
    counts = random_state.poisson(0.15, (MODULES, ROWS, COLUMNS))
    out = (counts * (1.25 if name.startswith("f") else 1)).astype(made.TYPES[name])
    flat = out.reshape(-1)
    flat[random_state.integers(0, flat.size, 20)] = made.BAD[name]
    flat[40:70] = made.BAD[name]
    flat[random_state.integers(0, flat.size, 2)] = made.SATURATED[name]
    return out


def dense_of(event):
    """What readers are to give: as it is, or where it is sparse with 0 where a pixel was not kept."""
    if event.kept is None:
        return event.images
    bad = numpy.isnan(event.images) | (event.images == -32768) | (event.images == 65535)
    return numpy.where(event.kept | bad, event.images, 0).astype(event.images.dtype)


class Reduced(Case):
    def setUp(self):
        super().setUp()
        self.seed = random.SystemRandom().randrange(1 << 30)
        print(f"# seed {self.seed}")

    def make(self, name, padded=True):
        """A run with an event for each codec, dense and sparse; returns its path and the events."""
        r = random.Random(self.seed)
        run = made.Run(self.path(f"run-{name}"), name, COLUMNS)
        codecs = [c for c in range(6) if c != made.BITS or not name.startswith("f")]
        events = []
        for sparse in (False, True):
            for codec in codecs:
                pixels = images(r, name)
                kept = pixels > 1 if sparse else None
                events.append(made.Event(len(events) + 1, pixels, codec, kept, veto=len(events) % 3, above=r.randrange(99), peaks=r.randrange(9),
                                         missing=((0, 64), (100, 6)) if codec == made.ZSTD else ()))
        for i, event in enumerate(events):
            if i == 4:
                run.pad()
                run.end_segment()
                run.begin()
            if padded:
                run.pad()
            run.put(event, pad=512 if padded else 0)
        run.close()
        return run.folder, events

    def inspect(self, path, *args, status=0):
        return json.loads(command("inspect", path, "--json", *args, trap=False, status=status).stdout)

    def test_every_type_and_encoding_is_given_back(self):
        for name in made.TYPES:
            with self.subTest(name):
                path, events = self.make(name)
                said = self.inspect(path, "--digest", "sha256")
                self.assertEqual((said["verified"], said["errors"]), (True, []))
                run = weir.open(path)
                self.assertEqual(run.verify(), [])
                self.assertEqual((run.version, run.payload["type"]), (2, name))
                for event, listed, read in zip(events, said["events"], run):
                    dense = dense_of(event)
                    self.assertEqual(listed["sha256"], hashlib.sha256(dense.tobytes()).hexdigest(), made.CODECS[event.codec])
                    self.assertEqual(read.sha256(), listed["sha256"])
                    keys = {key: listed[key] for key in ("content", "veto", "pixels_above", "peaks", "reduced_bytes")}
                    self.assertEqual(keys, {"content": "pixels", "veto": weir.VETOES[event.veto], "pixels_above": event.above,
                                            "peaks": event.peaks, "reduced_bytes": dense.nbytes})
                    self.assertEqual({key: getattr(read, key) for key in keys}, keys)
                    self.assertEqual(listed["bytes"], MODULES * ROWS * COLUMNS * 2 - sum(n for _, n in event.missing))
                    self.check_array(read, dense, name)
                self.check_savings(said["run"], events)
                quick = self.inspect(path, "--quick")
                self.assertEqual((quick["verified"], quick["errors"]), (None, []))

    def check_array(self, read, dense, name):
        bad = numpy.isnan(dense) if name.startswith("f") else dense == made.BAD[name]
        array = read.array()
        self.assertEqual((array.dtype, array.shape), (dense.dtype, dense.shape))
        self.assertTrue((array.mask == bad).all())
        self.assertTrue((array.data == dense)[~bad].all())
        self.assertTrue((read.array(source=1, fill=0) == numpy.where(bad, 0, dense)[1]).all())
        with self.assertRaises(weir.RunError):
            read.array("<u8")
        with self.assertRaises(weir.RunError):
            read.array(shape=(7, 7))
        for module, matrix in read.csr().items():
            again = numpy.zeros(matrix.shape, dense.dtype)
            rows = numpy.repeat(numpy.arange(ROWS), numpy.diff(matrix.indptr))
            again[rows, matrix.indices] = matrix.values
            again.reshape(-1)[matrix.bad] = made.BAD[name]
            self.assertEqual(again.tobytes(), dense[module].tobytes())

    def check_savings(self, said, events):
        encodings = said["encodings"]
        self.assertEqual(sum(e["decoded_bytes"] for e in encodings.values()), sum(e.images.nbytes for e in events))
        self.assertEqual(said["decoded_bytes"], sum(e.images.nbytes for e in events))
        self.assertLess(encodings["sparse"]["stored_bytes"], encodings["sparse"]["decoded_bytes"])
        self.assertEqual(encodings["sparse"]["stored_bytes"], encodings["sparse"]["sparse_bytes"])
        self.assertIn("sparse + zstd", encodings)

    def test_the_table_says_what_was_found_and_what_each_step_saved(self):
        path, events = self.make("u16")
        text = command("inspect", path, "--all", trap=False).stdout
        for word in ("reduced", "above", "peaks", "veto", "control", "pixels, u16 photon", "sparse", "bitshuffle-zstd", "verified"):
            self.assertIn(word, text)

    def test_exports_have_the_type_and_the_shape_of_the_pixels(self):
        for name in made.TYPES:
            with self.subTest(name):
                path, events = self.make(name)
                dense = numpy.stack([dense_of(event) for event in events])
                one = self.path(f"{name}.bin")
                done = command("inspect", path, "--export", 9, one, trap=False)
                self.assertEqual(one.read_bytes(), dense[8].tobytes())
                self.assertIn("pixels", done.stderr)
                module = self.path(f"{name}-1.bin")
                command("inspect", path, "--export", 9, module, "--source", 1, trap=False)
                self.assertEqual(module.read_bytes(), dense[8, 1].tobytes())
                out = self.path(f"{name}.npy")
                command("export", path, "--to", "npy", "--out", out, trap=False)
                stack = numpy.load(out)
                self.assertEqual((stack.dtype, stack.shape), (dense.dtype, dense.shape))
                self.assertEqual(stack.tobytes(), dense.tobytes())
                about = json.loads(self.path(f"{name}.npy.json").read_text())
                self.assertEqual((about["fill"], about["content"]), ({"i16": "-32768", "u16": "65535"}.get(name, "nan"), "pixels"))
                filled = self.path(f"{name}-0.npy")
                command("export", path, "--to", "npy", "--fill", "0", "--out", filled, "--source", 0, trap=False)
                expected = numpy.where(numpy.isnan(dense) | (dense == made.BAD[name]), 0, dense)[:, 0]
                self.assertTrue((numpy.load(filled) == expected).all())
                folder = self.path(f"{name}-raw")
                command("export", path, "--to", "raw", "--out", folder, "--event", 9, trap=False)
                self.assertEqual((folder / "event-0-9.bin").read_bytes(), dense[8].tobytes())
        refused = command("export", path, "--to", "pcap", "--out", self.path("x.pcap"), status=1, trap=False)
        self.assertIn("not what was received", refused.stderr)
        refused = command("export", path, "--to", "npy", "--dtype", "f8", "--out", self.path("x.npy"), status=2, trap=False)
        self.assertIn("accepted: u2", refused.stderr)
        self.assertEqual(list(self.folder.glob("*x.*")), [])

    def test_a_picture_shows_values_in_gray_and_pixels_without_one_in_red(self):
        for name in made.TYPES:
            path, events = self.make(name)
            png = self.path(f"{name}.png")
            done = command("inspect", path, "--png", 1, png, trap=False)
            self.assertIn("photon", done.stderr)
            width, height, depth, colour = struct.unpack_from(">IIBB", png.read_bytes(), 16)
            self.assertEqual((width, height, depth, colour), (COLUMNS, MODULES * ROWS, 16, 2))

    def test_damage_is_noticed_and_both_readers_agree_on_what_is_left(self):
        r = random.Random(self.seed)
        path, events = self.make("u16", padded=False)
        segment = path / "events-000000.weir"
        good = segment.read_bytes()
        blocks, at = [], 0
        while at < len(good):
            kind, stored = struct.unpack_from("<HII", good, at + 6)[::2]
            blocks.append((at, kind, stored))
            at += 64 + (stored + 63) // 64 * 64
        payloads = [b for b in blocks if b[1] == 4 and b[2] > 0]
        for _ in range(40):
            at, _, stored = r.choice(payloads)
            bad = bytearray(good)
            # A flipped byte with checksums that are right: only what it says can be wrong.
            place = at + 64 + r.randrange(stored)
            bad[place] ^= 1 << r.randrange(8)
            end = at + 64 + (stored + 63) // 64 * 64
            struct.pack_into("<I", bad, at + 24, weir.crc32c(bytes(bad[at + 64:end])))
            struct.pack_into("<I", bad, at + 60, weir.crc32c(bytes(bad[at:at + 60])))
            segment.write_bytes(bad)
            said = self.inspect(path, "--digest", "sha256", status=1)
            run = weir.open(path)
            self.assertFalse(said["verified"])
            self.assertNotEqual(run.verify(), [])
            ours = {}
            for entry in run.index:
                try:
                    event = run[int(entry["event"])]
                    ours[event.id] = event.sha256()
                except weir.RunError:
                    pass
            self.assertEqual(ours, {e["id"]: e["sha256"] for e in said["events"]})
        segment.write_bytes(good)
        self.assertTrue(self.inspect(path)["verified"])

    def test_a_run_that_was_ended_by_force_is_read_up_to_its_last_whole_event(self):
        path, events = self.make("f32")
        (path / "manifest.json").unlink()
        (path / "index.weir").unlink()
        last = path / "events-000001.weir"
        last.write_bytes(last.read_bytes()[:-300])
        said = self.inspect(path, "--digest", "sha256", status=1)
        self.assertEqual([e["id"] for e in said["events"]], [e.number for e in events[:-1]])
        run = weir.open(path)
        self.assertEqual([(e.id, e.sha256()) for e in run], [(e["id"], e["sha256"]) for e in said["events"]])
        self.assertEqual(run[1].array().dtype, numpy.dtype("<f4"))

    def test_entries_of_the_index_may_be_in_any_order(self):
        r = random.Random(self.seed)
        run = made.Run(self.path("shuffled"), "i16", COLUMNS)
        for number in range(1, 9):
            run.put(made.Event(number, images(r, "i16"), made.ZSTD))
            if number % 3 == 0:
                run.end_segment()
                run.begin()
        r.shuffle(run.entries)
        run.close()
        self.assertTrue(self.inspect(run.folder)["verified"])
        self.assertEqual(self.inspect(run.folder, "--quick")["errors"], [])
        opened = weir.open(run.folder)
        self.assertEqual(opened.verify(), [])
        self.assertEqual([event.id for event in opened], list(range(1, 9)))
        shutil.rmtree(run.folder)


if __name__ == "__main__":
    main()
