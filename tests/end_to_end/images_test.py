#!/usr/bin/env python3
"""Images of PSI's detectors, each pixel as it was sent: in HDF5 files, pictures, arrays and to readers, with what did not come told from
what is dark. What was sent is read from the capture, by code that knows the packets by itself."""
import importlib
import json
import re
import struct
import sys
import zlib

import numpy_python

numpy_python.under_python_with("h5py", "hdf5plugin", packages="python3-h5py, python3-hdf5plugin, hdf5-filter-plugin, bitshuffle")
import h5py  # noqa: E402
import numpy  # noqa: E402

from packets import EJFAT_PORT, ejfat, pcap_bytes, stamped, udp  # noqa: E402
from sent_images import Sent  # noqa: E402
from support import ROOT, Case, config, main, stream, weir  # noqa: E402

RED = (0xa000, 0x1000, 0x2000)


def png_samples(path):
    """Height x width x samples of a PNG of 16 bits, gray or in colour."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack_from("!I4s", data, at)
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from("!IIBB", body)
            assert depth == 16
        if kind == b"IDAT":
            packed += body
        at += 12 + length
    size = {0: 2, 2: 6}[colour]
    lines, out, above = zlib.decompress(packed), bytearray(), bytes(size + size * width)
    for y in range(height):
        kind, line = lines[y * (1 + size * width)], bytearray(size) + lines[y * (1 + size * width) + 1:(y + 1) * (1 + size * width)]
        for at in range(size, len(line)):
            left, up, corner = line[at - size], above[at], above[at - size]
            if kind == 4:
                guess = left + up - corner
                add = min((left, up, corner), key=lambda one: abs(guess - one))
            else:
                add = (0, left, up, (left + up) // 2)[kind]
            line[at] = (line[at] + add) & 255
        out += line[size:]
        above = line
    return numpy.frombuffer(out, ">u2").reshape(height, width, size // 2)


class Images(Case):
    def record(self, name, send, more="", sources=2, **keys):
        capture, _ = self.send(f"{name}.pcap", "--format", send[0], "--sources", sources, "--events", 4, "--seed", 3, *send[1:])
        sink = f'[[sink]]\nkind = "hdf5"\npath = "{self.path(name + "-h5")}"\n'
        result = self.replay(capture, config(stream(format=send[0], sources=sources, **keys), sources=sources, more=more + sink))
        return capture, result

    def check_hdf5(self, folder, sent, dtype, rows, columns, sources=2):
        with h5py.File(folder / "master.h5") as file:
            data, fill = file["/entry/data/data"], numpy.iinfo(dtype).max
            self.assertEqual((data.shape[1:], data.dtype), ((sources * rows, columns), numpy.dtype(dtype)))
            numbers = list(file["/entry/events/number"])
            self.assertEqual(sorted(numbers), sorted(sent.frames))
            for place, number in enumerate(numbers):
                pixels, came = sent.frames[number]
                expected = numpy.where(came, pixels, fill).reshape(-1, columns)
                numpy.testing.assert_array_equal(data[place], expected, f"frame {number}")
            detector = file["/entry/instrument/detector"]
            for source in range(sources):
                module = detector[f"module_{source}"]
                self.assertEqual((list(module["data_origin"]), list(module["data_size"])), ([source * rows, 0], [rows, columns]))
            return {name: detector[name][()] for name in ("saturation_value", "underload_value", "bit_depth_readout", "description")}

    def check_reader(self, run, sent, dtype):
        sys.path.insert(0, str(ROOT / "python"))
        with importlib.import_module("weir").open(run) as reader:
            for number, (pixels, came) in sent.frames.items():
                found = reader[number].array()
                self.assertEqual(found.dtype, numpy.dtype(dtype))
                numpy.testing.assert_array_equal(numpy.ma.getmaskarray(found), ~came)
                numpy.testing.assert_array_equal(found.filled(0), numpy.where(came, pixels, 0))

    def check_npy(self, run, sent, dtype):
        out = self.path("array.npy")
        weir("export", run, "--to", "npy", "--out", out, "--fill", "9", trap=False)
        array, about = numpy.load(out), json.loads(self.path("array.npy.json").read_text())
        self.assertEqual(array.dtype, numpy.dtype(dtype))
        for place, event in enumerate(about["events"]):
            pixels, came = sent.frames[event["id"]]
            numpy.testing.assert_array_equal(array[place], numpy.where(came, pixels, 9))
        out.unlink(), self.path("array.npy.json").unlink()

    def check_png(self, run, number, expected, came, *more):
        """`expected`: the whole picture, row by row."""
        out = self.path("picture.png")
        done = weir("inspect", run, "--png", number, out, *more, trap=False)
        low, high = (float(word) for word in re.search(r"values (\S+) to (\S+) from black", done.stderr).groups())
        samples = png_samples(out)
        out.unlink()
        self.assertEqual(samples.shape, (*expected.shape, 1 if came.all() else 3))
        gray = numpy.clip((expected.astype("f8") - low) / max(high - low, 1), 0, 1) * 65535
        for sample in range(samples.shape[2]):
            wanted = numpy.where(came, gray, RED[sample])
            # The levels are printed with six digits.
            numpy.testing.assert_allclose(samples[:, :, sample], wanted, rtol=0, atol=3)
        return done.stderr

    def test_eiger_at_every_bit_depth(self):
        for bits, dtype in ((4, "u1"), (8, "u1"), (12, "<u2"), (16, "<u2"), (32, "<u4")):
            with self.subTest(bits=bits):
                name, rows = f"eiger{bits}", 64
                send = ("eiger", "--bit-depth", bits, "--rows", rows, "--drop", 0.1)
                capture, result = self.record(name, send, bit_depth=bits, rows=rows)
                sent = Sent(capture, bits, rows, 512)
                self.assertFalse(all(came.all() for _, came in sent.frames.values()), "nothing was dropped")
                said = self.check_hdf5(self.path(name + "-h5"), sent, dtype, rows, 512)
                largest = (1 << bits) - 1
                self.assertEqual((int(said["saturation_value"]), int(said["underload_value"]), int(said["bit_depth_readout"])),
                                 (largest if bits in (4, 12) else largest - 1, 0, bits))
                self.assertEqual(said["description"], b"EIGER")
                weir("export", result.run, "--to", "hdf5", "--out", self.path(name + "-again"), trap=False)
                self.check_hdf5(self.path(name + "-again"), sent, dtype, rows, 512)
                self.check_reader(result.run, sent, dtype)
                self.check_npy(result.run, sent, dtype)
                # Left and right stand side by side.
                number = next(number for number, (_, came) in sent.frames.items() if not came.all())
                pixels, came = sent.frames[number]
                said = self.check_png(result.run, number, numpy.hstack(pixels), numpy.hstack(came))
                self.assertIn(f"1024 x {rows} pixels of {bits} bits", said)
                self.assertIn("did not come", said)
                self.check_png(result.run, number, pixels[1], came[1], "--source", 1)

    def test_packed_pieces_of_eiger(self):
        pack = '[[reduce]]\nkind = "pack"\ncodec = "bitshuffle-lz4"\n'
        for bits, dtype in ((4, "u1"), (12, "<u2"), (32, "<u4")):
            with self.subTest(bits=bits):
                name = f"packed{bits}"
                capture, result = self.record(name, ("eiger", "--bit-depth", bits), pack, bit_depth=bits)
                sent = Sent(capture, bits, 256, 512)
                self.check_hdf5(self.path(name + "-h5"), sent, dtype, 256, 512)
                self.check_reader(result.run, sent, dtype)

    def test_moench(self):
        for interfaces in (1, 2):
            rows = 400 // interfaces
            name = f"moench{interfaces}"
            capture, result = self.record(name, ("moench", "--interfaces", interfaces, "--drop", 0.05), interfaces=interfaces)
            sent = Sent(capture, 16, rows, 400)
            self.assertEqual(self.check_hdf5(self.path(name + "-h5"), sent, "<u2", rows, 400)["description"], b"MOENCH")
            self.check_reader(result.run, sent, "<u2")
            number = next(number for number, (_, came) in sent.frames.items() if not came.all())
            pixels, came = sent.frames[number]
            said = self.check_png(result.run, number, numpy.vstack(pixels), numpy.vstack(came))
            self.assertIn("in the order in which the module sends them", said)

    def test_a_bottom_half_module_of_eiger_is_turned(self):
        """Its first port has the odd column, and the last row comes first."""
        r, tiles, frames = numpy.random.default_rng(5), {}, []
        for port, (row, column) in enumerate(((0, 0), (0, 1), (1, 1), (1, 0))):
            tiles[row, column] = r.integers(0, 256, (8, 512), dtype="u1")
            header = struct.pack("<QIIQQHHHHIHBB", 5, 0, 0, 0, 0, port, row, column, 0, 0, 0, 1, 2)
            frames.append(udp(header + tiles[row, column].tobytes(), 50001 + port))
        capture = self.path("half.pcap", pcap_bytes(stamped(frames)))
        sink = f'[[sink]]\nkind = "hdf5"\npath = "{self.path("h5")}"\n'
        result = self.replay(capture, config(stream(format="eiger", sources=4, bit_depth=8, rows=8), sources=4, more=sink))
        whole = numpy.vstack([numpy.hstack([tiles[0, 0], tiles[0, 1]]), numpy.hstack([tiles[1, 0][::-1], tiles[1, 1][::-1]])])
        self.assertIn("where their headers say", self.check_png(result.run, 5, whole, numpy.ones_like(whole, bool)))
        with h5py.File(self.path("h5") / "master.h5") as file:
            # As docs/reference/HDF5.md has it.
            image, placed = file["/entry/data/data"][0], numpy.zeros((16, 1024), "u1")
            for name, module in file["/entry/instrument/detector"].items():
                if not name.startswith("module_"):
                    continue
                (top, left), (rows, columns), (row, column) = (module[key][()].astype(int) for key in ("data_origin", "data_size", "place"))
                tile = image[top:top + rows, left:left + columns]
                if module["place"].attrs["upside_down"]:
                    tile = tile[::-1]
                placed[row * rows:(row + 1) * rows, column * columns:(column + 1) * columns] = tile
            numpy.testing.assert_array_equal(placed, whole)

    def test_a_difference_has_row_and_column_also_where_pixels_share_bytes(self):
        def run(name, change):
            message = bytearray(16 * 512 * 12 // 8)
            if change:  # of pixels 5 and 6 of row 3 the upper and the lower half
                message[3 * 768 + 8] = 0x21
                message[3 * 768 + 9] = 0x43
            frames = [udp(struct.pack("<QIIQQHHHHIHBB", 5, 0, packet, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2) + message[4096 * packet:][:4096], 50001)
                      for packet in range(3)]
            capture = self.path(name, pcap_bytes(stamped(frames)))
            return self.replay(capture, config(stream(format="eiger", sources=1, bit_depth=12, rows=16), sources=1)).run
        first, second = run("first.pcap", False), run("second.pcap", True)
        found = json.loads(weir("diff", first, second, "--json", status=1, trap=False).stdout)
        payload = found["events"][0]["sources"][0]["payload"]
        self.assertEqual((payload["bytes"], payload["pixels"], payload["largest"]), (2, 2, 0x210))
        self.assertEqual(payload["listed"], [{"row": 3, "column": 5, "values": [0, 0x210]}, {"row": 3, "column": 6, "values": [0, 0x43]}])

    def test_two_pixels_are_never_taken_for_one(self):
        """Of a format whose pixels nobody knows, they are named or not drawn."""
        capture = self.path("ejfat.pcap", pcap_bytes(stamped([udp(ejfat(1, bytes(range(256)) * 16), EJFAT_PORT)])))
        run = self.replay(capture, config(stream(format="ejfat", sources=1), sources=1)).run
        out = self.path("never.png")
        for more, wanted in (((), "--width --pixel-bits"), (("--width", 64), "--pixel-bits"), (("--pixel-bits", 8), "--width")):
            done = weir("inspect", run, "--png", 1, out, *more, status=1, trap=False)
            self.assertIn(f"say {wanted}", done.stderr.replace("\n", " "))
            self.assertFalse(out.exists())
        weir("inspect", run, "--png", 1, out, "--width", 64, "--pixel-bits", 8, trap=False)
        self.assertEqual(png_samples(out).shape, (64, 64, 1))
        weir("inspect", run, "--png", 1, self.path("b.png"), "--width", 64, "--pixel-bits", 10, status=2, trap=False)


if __name__ == "__main__":
    main()
