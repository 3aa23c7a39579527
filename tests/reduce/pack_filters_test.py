#!/usr/bin/env python3
"""Packed pieces as chunks of HDF5 files: h5py with the filters of hdf5plugin decodes them, and weir decodes chunks that those
filters have made. Neither program has anything of the other. Debian's filters know no zstd; with the hdf5plugin of PyPI these
are tested, too, and without it zstd's are read by a reader of a few lines."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
import numpy_python  # noqa: E402

numpy_python.under_python_with("h5py", "hdf5plugin", packages="python3-h5py, python3-hdf5plugin, hdf5-filter-plugin")
import h5py  # noqa: E402
import hdf5plugin  # noqa: E402
import numpy  # noqa: E402
import zstandard  # noqa: E402
from support import Case, main  # noqa: E402

PROGRAM = os.environ["WEIR_PACK_PIECES"]
FILTERS = {"bitshuffle-lz4": hdf5plugin.Bitshuffle(nelems=0, cname="lz4"), "bitshuffle-zstd": hdf5plugin.Bitshuffle(nelems=0, cname="zstd"),
           "lz4": hdf5plugin.LZ4(nbytes=0), "zstd": hdf5plugin.Zstd()}


def works(codec):
    """Does this machine's HDF5 have the filter, with this compressor?"""
    try:
        with h5py.File("probe", "w", driver="core", backing_store=False) as file:
            file.create_dataset("probe", data=numpy.zeros(64, "u2"), chunks=(64,), **FILTERS[codec])
            # A filter that does not know the compressor leaves it out, without a word.
            return file["probe"].id.read_direct_chunk((0,))[1][:8] == (128).to_bytes(8, "big") or codec == "zstd"
    except (ValueError, OSError):
        return False


WORKING = [codec for codec in FILTERS if works(codec)]


def pack(*words, data):
    return subprocess.run([PROGRAM, *map(str, words)], input=data, stdout=subprocess.PIPE, check=True, timeout=60).stdout


def images(rows=128):
    """(what, image): types and lengths of all kinds, the last with fewer than eight elements over."""
    random = numpy.random.default_rng(1)
    for kind in ("u1", "u2", "i2", "f2", "u4", "f4", "u8", "f8"):
        image = random.poisson(0.3, (rows, 1024)).astype(kind)
        image[5:9, ::7] = 100
        yield kind, image
    image = (2700 + random.normal(0, 6, (rows, 1024))).astype("u2")
    yield "raw", image
    yield "odd", image[:3, :341].copy()


class Filters(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "chunks.h5"

    def test_what_weir_packs_hdf5_reads(self):
        read = 0
        with h5py.File(self.path, "w") as file:
            for codec, options in ((codec, FILTERS[codec]) for codec in WORKING):
                for level in (1, -5, 9):
                    for what, image in images():
                        data = file.create_dataset(f"{codec}/{level}/{what}", image.shape, image.dtype, chunks=image.shape, **options)
                        chunk = pack(codec, image.dtype.itemsize, level, data=image.tobytes())
                        if chunk:
                            data.id.write_direct_chunk((0, 0), chunk)
                        else:  # not shorter: as it is, which a chunk can say, too
                            self.assertEqual((codec, what in ("raw", "odd")), ("lz4", True))
                            data.id.write_direct_chunk((0, 0), image.tobytes(), 1)
        with h5py.File(self.path) as file:
            for codec in WORKING:
                for level in (1, -5, 9):
                    for what, image in images():
                        numpy.testing.assert_array_equal(file[f"{codec}/{level}/{what}"][:], image, err_msg=f"{codec} {level} {what}")
                        read += 1
        self.assertEqual(read, len(WORKING) * 3 * 10)
        self.assertLessEqual({"bitshuffle-lz4", "lz4"}, set(WORKING), "hdf5-filter-plugin is not installed")

    def test_what_hdf5_packs_weir_reads(self):
        with h5py.File(self.path, "w") as file:
            for codec, options in ((codec, FILTERS[codec]) for codec in WORKING):
                for what, image in images():
                    file.create_dataset(f"{codec}/{what}", data=image, chunks=image.shape, **options)
        with h5py.File(self.path) as file:
            for codec in WORKING:
                for what, image in images():
                    mask, chunk = file[f"{codec}/{what}"].id.read_direct_chunk((0, 0))
                    self.assertEqual(mask, 0)
                    got = pack(codec, image.dtype.itemsize, "unpack", image.nbytes, data=chunk)
                    self.assertEqual(got, image.tobytes(), f"{codec} {what}")

    def test_zstd_as_published(self):
        for what, image in images():
            frame = pack("zstd", 1, 3, data=image.tobytes())
            self.assertEqual(zstandard.decompress(frame) if frame else image.tobytes(), image.tobytes())
            size = image.dtype.itemsize
            chunk = pack("bitshuffle-zstd", size, -5, data=image.tobytes())
            total, block = int.from_bytes(chunk[:8], "big"), int.from_bytes(chunk[8:12], "big")
            self.assertEqual((total, block), (image.nbytes, 8192))
            at, out = 12, b""
            while len(out) + 8 * size <= total:
                length = int.from_bytes(chunk[at:at + 4], "big")
                rows = zstandard.decompress(chunk[at + 4:at + 4 + length])
                bits = numpy.unpackbits(numpy.frombuffer(rows, "u1").reshape(8 * size, -1), axis=1, bitorder="little")
                out += numpy.packbits(bits.T, axis=1, bitorder="little").tobytes()
                at += 4 + length
            self.assertEqual(out + chunk[at:], image.tobytes(), what)

    def test_bits_as_documented(self):
        """Another reader, made from the description in lib/data/reduce/pack/bits.hpp alone."""
        for what, image in images():
            if image.dtype.kind == "f":
                continue
            size = image.dtype.itemsize
            kind = numpy.dtype(f"<u{size}")
            packed = pack("bits", size, 0, data=image.tobytes())
            self.assertEqual(packed[:4], bytes([size, 0, 0, 0]))
            per_block = int.from_bytes(packed[4:8], "little")
            self.assertEqual(int.from_bytes(packed[8:16], "little"), image.nbytes)
            at, left, values = 16, image.size, []
            while left:
                count = min(left, per_block)
                width, exceptions = packed[at], int.from_bytes(packed[at + 2:at + 4], "little")
                reference = numpy.frombuffer(packed, kind, 1, at + 4)
                at += 4 + size
                row = (count + 7) // 8
                bits = numpy.unpackbits(numpy.frombuffer(packed, "u1", width * row, at).reshape(width, row), axis=1, bitorder="little")
                at += width * row
                block = numpy.zeros(count, kind)
                for k in range(width):
                    block |= bits[k, :count].astype(kind) << kind.type(k)
                block += reference
                places = numpy.frombuffer(packed, "<u2", exceptions, at)
                at += 2 * exceptions
                block[places] = numpy.frombuffer(packed, kind, exceptions, at)
                at += size * exceptions
                values.append(block)
                left -= count
            self.assertEqual((at, numpy.concatenate(values).tobytes()), (len(packed), image.tobytes()), what)


if __name__ == "__main__":
    main()
