#!/usr/bin/env python3
"""The HDF5 files of a run, opened by others: h5py, h5dump. What has to be in them follows from what hdf5_feed was told."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
import numpy_python  # noqa: E402

numpy_python.under_python_with("h5py", "hdf5plugin", packages="python3-h5py, python3-hdf5plugin, hdf5-filter-plugin, bitshuffle")
import h5py  # noqa: E402
import hdf5plugin  # noqa: E402,F401  its filters, where they are not the system's
import numpy  # noqa: E402
import zstandard  # noqa: E402
from support import Case, main  # noqa: E402

FEED = os.environ["WEIR_HDF5_FEED"]
FILTERS = {"zstd": 32015, "lz4": 32004, "bitshuffle-lz4": 32008, "bitshuffle-zstd": 32008}
DTYPES = {"received": "u2", "f32": "f4", "i16": "i2", "u16": "u2"}
FIRST_NS = 1_700_000_000_000_000_000


def text(value):
    value = value[()] if isinstance(value, h5py.Dataset) else value
    return value.decode() if isinstance(value, bytes) else value


def values(event, begin, count):
    index = numpy.arange(begin, begin + count, dtype="u8")
    return (index * 7 + event * 13 + index // 1024) % 1000


def image(task, event):
    """What event `event` of `task` has to be."""
    rows, sources = task.get("rows", 256), task.get("sources", 2)
    out = values(event, 0, rows * sources * 1024)
    if task["content"] == "i16":
        out = out.astype("i8")
        out = numpy.where(out - 500 < 0, out - 500, out)
    out = out.astype(DTYPES[task["content"]]).reshape(sources * rows, 1024)
    if task["content"] == "received":
        flat = out.reshape(sources, -1)
        for source, ranges in enumerate(missing(task, event)):
            for offset, count in ranges:
                flat[source, offset // 2:(offset + count + 1) // 2] = 0xffff
    return out


def missing(task, event):
    every, size = task.get("missing_every", 0), task.get("rows", 256) * 2048
    if not every or event % every != every - 1:
        return [[] for _ in range(task.get("sources", 2))]
    whole = event % (2 * every) == every - 1
    return [[(8192, 16384), (size - 4001, 3001)]] + [[(0, size)] if whole else [(1, 2), (100001, 1)]] * (task.get("sources", 2) - 1)


class Hdf5Case(Case):
    def feed(self, name="run", status=0, **task):
        """Writes a run; returns its folder and what was said of it."""
        task.setdefault("content", "received")
        arguments = [f"{key}={value}" for key, value in task.items()]
        done = subprocess.run([FEED, f"path={self.path(name)}", *arguments], capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "", "the library's own words")
        return self.path(name), done.stdout.splitlines()

    def start(self, name="run", **task):
        task.setdefault("content", "received")
        process = subprocess.Popen([FEED, f"path={self.path(name)}", *(f"{key}={value}" for key, value in task.items())],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(), process.stdout.close()))
        return process, self.path(f".{name}.part")

    def check_images(self, file, task, events):
        data = file["/entry/data/data"]
        rows, sources = task.get("rows", 256), task.get("sources", 2)
        self.assertEqual(data.shape, (len(events), rows * sources, 1024))
        self.assertEqual(data.dtype, numpy.dtype(DTYPES[task["content"]]))
        for place, event in enumerate(events):
            numpy.testing.assert_array_equal(data[place], image(task, event), f"event {event}")

    def check_tables(self, file, task, events):
        entry = file["entry"]
        sources = task.get("sources", 2)
        numbers = numpy.array(events, dtype="i8")
        table = entry["events"]
        self.assertEqual(list(table["number"][:]), [1000 + n for n in events])
        self.assertEqual(list(table["epoch"][:]), [n // 1000 for n in events])
        numpy.testing.assert_array_equal(table["first_ns"][:], FIRST_NS + numbers * 1000)
        numpy.testing.assert_array_equal(table["last_ns"][:], FIRST_NS + numbers * 1000 + 999)
        gaps = [missing(task, n) for n in events]
        complete = [not any(gap) for gap in gaps]
        self.assertEqual(list(table["complete"][:]), complete)
        self.assertEqual(list(table["cause"][:]), [0 if c else 1 for c in complete])
        self.assertEqual(list(table["packets"][:]), [n + 1 for n in events])
        of = entry["sources"]
        self.assertEqual(list(of["id"][:]), list(range(sources)))
        size = task.get("rows", 256) * 2048
        for place, event in enumerate(events):
            self.assertEqual(of["header"][place].shape, (sources, 64))
            self.assertEqual(of["header"][place, 0, :8].tobytes(), event.to_bytes(8, "little"))
            for source in range(sources):
                first, count = of["missing_first"][place, source], of["missing_count"][place, source]
                found = list(zip(entry["missing/offset"][first:first + count], entry["missing/bytes"][first:first + count]))
                self.assertEqual(found, gaps[place][source])
                lost = sum(n for _, n in gaps[place][source])
                self.assertEqual(of["state"][place, source], 0 if not lost else 3 if lost == size else 1)
                if task["content"] == "received":
                    self.assertEqual(of["received_bytes"][place, source], size - lost)


class Layout(Hdf5Case):
    def test_an_image_stack_with_everything_beside_it(self):
        task = {"content": "received", "events": 7, "missing_every": 3, "events_per_file": 3}
        run, said = self.feed(**task)
        self.assertIn("events 7 synced 7", said[0])
        self.assertEqual(sorted(p.name for p in run.iterdir()), ["data-000000.h5", "data-000001.h5", "data-000002.h5", "master.h5"])
        with h5py.File(run / "master.h5") as file:
            self.check_images(file, task, range(7))
            self.check_tables(file, task, range(7))
            data = file["/entry/data"]
            self.assertEqual([data[f"data_{i:06}"].shape[0] for i in range(3)], [3, 3, 1])
            numpy.testing.assert_array_equal(data["data_000001"][2], image(task, 5))
            self.assertEqual(text(data.attrs["signal"]), "data")
            self.assertIn('"written": 7', text(file["/entry/weir/ledger"]))
        # A data file is whole without the master.
        with h5py.File(run / "data-000001.h5") as file:
            self.check_images(file, task, range(3, 6))
            first = file["entry"].attrs["weir_first_missing"]
            self.assertEqual(first, 3)
            self.assertEqual(list(file["/entry/sources/missing_first"][2]), [3, 5])
            self.assertEqual(file["entry"].attrs["weir_first_event"], 3)

    def test_energies_of_every_type(self):
        for content, fill in {"f32": None, "i16": -32768, "u16": 65535}.items():
            with self.subTest(content):
                task = {"content": content, "events": 3, "sources": 3, "rows": 128}
                run, _ = self.feed(content, **task)
                with h5py.File(run / "master.h5") as file:
                    self.check_images(file, task, range(3))
                    data = file["/entry/data/data"]
                    self.assertEqual(text(data.attrs["units"]), "photon")
                    if fill is not None:
                        self.assertEqual(data.fillvalue, fill)
                    else:
                        self.assertTrue(numpy.isnan(data.fillvalue))
                with h5py.File(run / "data-000000.h5") as file:
                    self.assertEqual(file["/entry/data/data"].chunks, (1, 64 if content == "f32" else 128, 1024))

    def test_rows_that_make_no_whole_chunks(self):
        for rows in (8, 200, 344):
            with self.subTest(rows):
                task = {"content": "received", "events": 3, "rows": rows, "missing_every": 2, "pieces": "zstd"}
                task["missing_every"] = 2 if rows > 64 else 0
                run, _ = self.feed(f"rows{rows}", **task)
                with h5py.File(run / "master.h5") as file:
                    self.check_images(file, task, range(3))

    def test_bytes_that_are_no_image(self):
        for codec in ("raw", "bitshuffle-lz4"):
            with self.subTest(codec):
                run, _ = self.feed(codec, content="bytes", events=40, events_per_file=16, codec=codec, pieces="zstd")
                with h5py.File(run / "master.h5") as file:
                    self.assertEqual(text(file["/entry/data"].attrs["signal"]), "payload")
                    payload = file["/entry/data/payload"][:]
                    offsets, sizes = file["/entry/sources/payload_offset"][:], file["/entry/sources/payload_bytes"][:]
                    self.assertEqual(sizes.shape, (40, 2))
                    for event in range(40):
                        for source in range(2):
                            count = (event * 7919 + source * 104729) % 100000
                            self.assertEqual(sizes[event, source], count)
                            expected = values(event + source, 0, count) % 256
                            at = int(offsets[event, source])
                            numpy.testing.assert_array_equal(payload[at:at + count], expected)
                    self.assertEqual(len(payload), sizes.sum())


def direct(path, name):
    """Chunks as they are stored, decoded by a reader of a few lines: what no plug-in is needed for."""
    with h5py.File(path) as file:
        data = file[name]
        out = numpy.empty(data.shape, data.dtype)
        number, _, parameters, _ = data.id.get_create_plist().get_filter(0)
        skipped = set()
        for place in range(data.id.get_num_chunks()):
            info = data.id.get_chunk_info(place)
            mask, stored = data.id.read_direct_chunk(info.chunk_offset)
            skipped.add(mask)
            if mask == 0 and number == 32015:
                stored = zstandard.ZstdDecompressor().decompress(stored, max_output_size=1 << 20)
            elif mask == 0:
                stored = unshuffled(stored, data.dtype.itemsize, parameters)
            event, row, _ = info.chunk_offset
            block = numpy.frombuffer(stored, data.dtype).reshape(-1, data.shape[2])
            out[event, row:row + len(block)] = block[:data.shape[1] - row]
        return out, number, parameters, skipped


def unshuffled(stored, size, parameters):
    """Filter 32008 with zstd."""
    assert parameters[4] == 3 and parameters[2] == size, parameters
    total, block = int.from_bytes(stored[:8], "big"), int.from_bytes(stored[8:12], "big")
    at, out = 12, []
    while sum(map(len, out)) + size * 8 <= total:
        count = min(block, (total - sum(map(len, out))) // (8 * size) * 8 * size)
        length = int.from_bytes(stored[at:at + 4], "big")
        rows = zstandard.ZstdDecompressor().decompress(stored[at + 4:at + 4 + length], max_output_size=1 << 20)
        bits = numpy.unpackbits(numpy.frombuffer(rows, "u1"), bitorder="little").reshape(8 * size, -1)
        out.append(numpy.packbits(bits.T.reshape(-1), bitorder="little").tobytes())
        at += 4 + length
    return b"".join(out) + stored[at:]


class Codecs(Hdf5Case):
    def test_pieces_go_in_as_chunks_under_the_registered_numbers(self):
        for codec, number in FILTERS.items():
            for content in ("received", "f32"):
                with self.subTest(codec=codec, content=content):
                    task = {"content": content, "events": 3, "pieces": codec, "codec": codec, "missing_every": 2}
                    run, _ = self.feed(codec + content, **task)
                    found, used, parameters, skipped = (None, None, None, None)
                    with h5py.File(run / "master.h5") as file:
                        if h5py.h5z.filter_avail(number) and codec in ("lz4", "bitshuffle-lz4"):
                            self.check_images(file, task, range(3))
                        self.check_tables(file, task, range(3))
                    if codec in ("zstd", "bitshuffle-zstd"):
                        found, used, parameters, skipped = direct(run / "data-000000.h5", "/entry/data/data")
                        self.assertEqual((used, skipped), (number, {0}))
                        for event in range(3):
                            if content == "f32" or not any(missing(task, event)):
                                numpy.testing.assert_array_equal(found[event], image(task, event))
                    raw = 3 * 2 * 256 * 1024 * (4 if content == "f32" else 2)
                    self.assertLess((run / "data-000000.h5").stat().st_size, raw * 0.8)

    def test_another_codec_than_the_pieces(self):
        for pieces, codec in (("zstd", "lz4"), ("bitshuffle-lz4", "raw"), ("raw", "bitshuffle-lz4"), ("bitshuffle-zstd", "lz4"), ("lz4", "bitshuffle-lz4")):
            with self.subTest(pieces=pieces, codec=codec):
                task = {"content": "received", "events": 3, "pieces": pieces, "codec": codec, "missing_every": 2}
                run, _ = self.feed(pieces + codec, **task)
                with h5py.File(run / "master.h5") as file:
                    self.check_images(file, task, range(3))

    def test_sparse_pieces_are_expanded(self):
        for pieces in ("raw", "lz4"):
            with self.subTest(pieces):
                run, said = self.feed(pieces, content="f32", events=2, sparse="yes", pieces=pieces)
                self.assertIn("events 2", said[0])
                with h5py.File(run / "master.h5") as file:
                    for event in range(2):
                        dense = image({"content": "f32"}, event)
                        numpy.testing.assert_array_equal(file["/entry/data/data"][event], numpy.where(dense > 899.5, dense, 0))
                with h5py.File(run / "data-000000.h5") as file:
                    self.assertEqual(file["/entry/data/data"].id.get_create_plist().get_filter(0)[0], 32008)

    def test_h5dump_reads_it(self):
        run, _ = self.feed(content="received", events=2, rows=8, codec="lz4")
        done = subprocess.run(["h5dump", "-d", "/entry/data/data", "-s", "1,0,0", "-c", "1,1,8", str(run / "master.h5")],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = ", ".join(str(v) for v in values(1, 0, 8))
        self.assertIn(f"(1,0,0): {expected}", done.stdout)


# NeXus definitions, applications/NXmx.nxdl.xml (github.com/nexusformat/definitions): the fields without minOccurs="0",
# optional="true" or recommended="true", and required attributes.
NXMX_FIELDS = ["start_time", "end_time_estimated", "definition", "sample/name", "sample/depends_on", "instrument/name",
               "instrument/detector/module_{}/data_origin", "instrument/detector/module_{}/data_size",
               "instrument/detector/module_{}/fast_pixel_direction", "instrument/detector/module_{}/slow_pixel_direction",
               "instrument/detector/module_{}/module_offset", "instrument/detector/distance", "instrument/detector/beam_center_x",
               "instrument/detector/beam_center_y", "sample/beam/incident_wavelength", "instrument/detector/sensor_material", "instrument/detector/sensor_thickness", "instrument/beam/incident_wavelength",
               "instrument/beam/total_flux", "source/name"]
NXMX_CLASSES = {"/": "NXroot", "/entry": "NXentry", "/entry/data": "NXdata", "/entry/sample": "NXsample", "/entry/instrument": "NXinstrument",
                "/entry/instrument/detector": "NXdetector", "/entry/instrument/detector/module_1": "NXdetector_module",
                "/entry/instrument/beam": "NXbeam", "/entry/source": "NXsource",
                "/entry/instrument/detector/transformations": "NXtransformations"}
UNITS = {"instrument/detector/sensor_thickness": "m", "instrument/detector/distance": "m", "instrument/beam/incident_wavelength": "angstrom",
         "instrument/beam/total_flux": "Hz", "instrument/detector/module_0/fast_pixel_direction": "m"}


class Nxmx(Hdf5Case):
    def test_all_that_nxmx_requires_is_there_if_the_operator_gave_it(self):
        run, _ = self.feed(content="f32", events=2, nexus="yes")
        with h5py.File(run / "master.h5") as file:
            for path, kind in NXMX_CLASSES.items():
                self.assertEqual(text(file[path].attrs["NX_class"]), kind, path)
            entry = file["entry"]
            for field in NXMX_FIELDS:
                for module in (0, 1):
                    self.assertIn(field.format(module), entry)
            for field, units in UNITS.items():
                self.assertEqual(text(entry[field].attrs["units"]), units, field)
            self.assertEqual(text(entry["definition"]), "NXmx")
            self.assertEqual(text(entry["start_time"]), "2023-11-14T22:13:20.000000Z", "nothing ends before it starts")
            self.assertEqual(text(entry["end_time"]), "2023-11-14T22:13:20.000001Z")
            self.assertIn("short_name", entry["instrument/name"].attrs)
            fast = entry["instrument/detector/module_1/fast_pixel_direction"]
            self.assertEqual(list(fast.attrs["vector"]), [-1, 0, 0])
            self.assertEqual(list(fast.attrs["offset"]), [0, 0, 0])
            self.assertEqual(text(fast.attrs["transformation_type"]), "translation")
            self.assertIn(text(fast.attrs["depends_on"]), file)
            self.assertAlmostEqual(fast[()], 75e-6)
            # The place of a module's first pixel, as DIALS reads it: along all that its pixels depend on.
            for module, rows in ((0, 0), (1, 256 + 36)):
                fast = entry[f"instrument/detector/module_{module}/fast_pixel_direction"]
                self.assertEqual(text(fast.attrs["depends_on"]), text(entry[f"instrument/detector/module_{module}/slow_pixel_direction"].attrs["depends_on"]))
                place, at = numpy.zeros(3), text(fast.attrs["depends_on"])
                while at != ".":
                    place += file[at][()] * file[at].attrs["vector"] + file[at].attrs["offset"]
                    at = text(file[at].attrs["depends_on"])
                numpy.testing.assert_allclose(place, [512 * 75e-6, (256 - rows) * 75e-6, 0.15], atol=1e-9)
            self.assertEqual(list(entry["instrument/detector/module_1/data_origin"]), [256, 0])
            self.assertEqual(list(entry["instrument/detector/module_1/data_size"]), [256, 1024])
            self.assertAlmostEqual(entry["instrument/beam/incident_wavelength"][()], 12.398419843 / 12.4, 8)
            self.assertEqual(entry["instrument/detector/data"].shape, entry["data/data"].shape)

    def test_where_modules_lie_is_known_or_it_is_no_nxmx(self):
        run, _ = self.feed(content="f32", events=2, nexus="yes", nexus_gapless="yes")
        with h5py.File(run / "master.h5") as file:
            self.assertNotIn("definition", file["entry"])
            self.assertNotIn("module_offset", file["entry/instrument/detector/module_1"])

    def test_missing_pixels_as_received_are_beyond_what_is_valid(self):
        run, _ = self.feed(content="received", events=4, missing_every=2, nexus="yes")
        with h5py.File(run / "master.h5") as file:
            data, detector = file["entry/data/data"][:], file["entry/instrument/detector"]
            self.assertTrue((data == 65535).any())
            self.assertEqual((detector["underload_value"][()], detector["saturation_value"][()]), (0, 65534))

    def test_nothing_is_invented(self):
        run, _ = self.feed(content="f32", events=1)
        with h5py.File(run / "master.h5") as file:
            entry = file["entry"]
            for field in ("definition", "sample", "source", "instrument/name", "instrument/beam/total_flux", "instrument/detector/distance",
                          "instrument/detector/sensor_material", "instrument/detector/module_0/fast_pixel_direction"):
                self.assertNotIn(field, entry)


class Joined(Hdf5Case):
    """The runs of a cluster's builders as one file."""

    def builders(self, builders=3, status=0, **task):
        """The file, of the runs of so many builders, which share the events of `task`."""
        self.path("all").mkdir(exist_ok=True)
        for builder in range(builders):
            self.feed(f"all/bu{builder}", builders=builders, builder=builder, **task)
        return self.join(status)

    def join(self, status=0):
        done = subprocess.run([FEED, f"path={self.path('all/cluster.h5')}", f"join={self.path('all')}"], capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        self.said = done.stdout
        return self.path("all/cluster.h5")

    def test_images_in_the_order_of_their_numbers(self):
        task = {"content": "received", "events": 60, "rows": 64, "block": 4, "missing_every": 7, "events_per_file": 9, "pieces": "bitshuffle-lz4", "workers": 3}
        with h5py.File(self.builders(**task)) as file:
            self.check_images(file, task, range(60))
            self.check_tables(file, task, range(60))
            self.assertTrue(file["/entry/data/data"].is_virtual)
            self.assertTrue(file["/entry/sources/header"].is_virtual)
            self.assertFalse(file["/entry/events/complete"].is_virtual)  # mapping it would take more room than the values
            self.assertEqual(file["/entry/data/data"].fillvalue, 65535)
            numpy.testing.assert_array_equal(file["/entry/data/data"][17:43:5, 3:120, 1000], [image(task, n)[3:120, 1000] for n in range(17, 43, 5)])
        self.assertIn("joined 60 copies 0", self.said)

    def test_energies_of_every_type_with_all_that_nxmx_has(self):
        for content in ("f32", "i16", "u16"):
            with self.subTest(content):
                task = {"content": content, "events": 20, "rows": 64, "block": 3, "nexus": "yes"}
                shutil.rmtree(self.path("all"), ignore_errors=True)
                master = self.builders(**task)
                with h5py.File(master) as file, h5py.File(self.path("all/bu0/master.h5")) as one:
                    self.check_images(file, task, range(20))
                    self.assertTrue(file["/entry/events/first_ns"].is_virtual)
                    self.assertEqual(text(file["/entry/definition"]), "NXmx")
                    self.assertEqual(text(file["/entry/data/data"].attrs["units"]), "photon")
                    self.check_nothing_is_left_out(file, one)

    def check_nothing_is_left_out(self, file, one):
        """Of the master of one run; what each run says of itself is in a group of its own."""
        names, attributes = [], {}
        one.visititems(lambda name, thing: (names.append(name), attributes.update({name: set(thing.attrs)})) and None)
        own = {name for name in names if name.startswith("entry/weir/") and name != "entry/weir/start"}
        self.assertEqual([name for name in names if name not in file and name not in own], [])
        for name in own:
            self.assertIn(name.replace("entry/weir", "entry/weir/runs/000000"), file)
        for name in set(names) - own:
            self.assertLessEqual(attributes[name], set(file[name].attrs), name)
            if isinstance(one[name], h5py.Dataset):
                self.assertEqual((one[name].dtype, one[name].shape[1:]), (file[name].dtype, file[name].shape[1:]), name)

    def test_bytes_that_are_no_image(self):
        task = {"content": "bytes", "events": 30, "block": 4, "workers": 2}
        with h5py.File(self.builders(**task)) as file:
            entry = file["entry"]
            payload, of = entry["data/payload"], entry["sources"]
            self.assertEqual(list(entry["events/number"][:]), [1000 + n for n in range(30)])
            for event in range(30):
                for source in range(2):
                    size = (event * 7919 + source * 104729) % 100000
                    first, count = of["payload_offset"][event, source], of["payload_bytes"][event, source]
                    self.assertEqual(count, size)
                    numpy.testing.assert_array_equal(payload[first:first + count], values(event + source, 0, size).astype("u1"))

    def test_a_run_that_was_interrupted_gives_what_was_flushed(self):
        task = {"content": "received", "events": 30, "rows": 64, "block": 4, "builders": 2}
        self.path("all").mkdir()
        self.feed("all/bu0", builder=0, **task)
        process, _ = self.start("all/bu1", builder=1, hang="yes", pause_ms=20, **task)
        for line in process.stdout:
            if line.startswith("written 5 "):
                break
        self.join(status=1)
        self.assertIn("/.bu1.part is not finished: it is being written", self.said)
        process.kill()
        process.wait()
        self.join(status=1)
        self.assertIn("/.bu1.part is not finished: its builder was ended by force", self.said)
        self.feed("all/bu1", recover="yes")
        with h5py.File(self.join()) as file:
            numbers = [int(number) - 1000 for number in file["/entry/events/number"]]
            self.assertEqual(numbers, sorted(numbers))
            self.assertGreater(len(numbers), 15)
            self.check_images(file, task, numbers)
        self.assertIn("bu1 was interrupted", self.said)

    def test_a_file_that_is_gone_later_reads_as_missing(self):
        task = {"content": "received", "events": 16, "rows": 64, "block": 4}
        master = self.builders(builders=2, **task)
        shutil.rmtree(self.path("all/bu1"))
        with h5py.File(master) as file:
            numpy.testing.assert_array_equal(file["/entry/data/data"][0], image(task, 0))
            self.assertTrue((file["/entry/data/data"][4] == 65535).all())


class Running(Hdf5Case):
    def lines_until(self, process, wanted):
        for line in process.stdout:
            if wanted(line):
                return line
        self.fail("it ended before")

    def test_a_reader_follows_the_data_file_and_the_master(self):
        task = {"content": "received", "events": 60, "rows": 64, "missing_every": 4, "pause_ms": 15, "events_per_file": 25, "codec": "lz4",
                "pieces": "raw", "in_step": "yes"}
        process, part = self.start(**task)
        on = lambda: print(end=".", file=process.stdin, flush=True)  # it is not written faster than it is looked at
        self.lines_until(process, lambda line: "synced 0" not in line or on())
        seen = []
        with h5py.File(part / "data-000000.h5", "r", swmr=True) as file:
            number, data = file["/entry/events/number"], file["/entry/data/data"]
            end = time.monotonic() + 60
            while not seen or seen[-1] < 25:
                self.assertLess(time.monotonic(), end, "nothing more came")
                number.refresh()
                data.refresh()
                if not seen or number.shape[0] > seen[-1]:
                    seen.append(number.shape[0])
                    self.assertGreaterEqual(data.shape[0], number.shape[0])
                    last = number.shape[0] - 1
                    self.assertEqual(number[last], 1000 + last)
                    numpy.testing.assert_array_equal(data[last], image(task, last))
                on()
                self.lines_until(process, lambda line: True)
        self.assertGreater(len(seen), 2)
        on()
        self.lines_until(process, lambda line: int(line.split()[3]) >= 27 or on())
        with h5py.File(part / "master.h5", "r", swmr=True) as file:
            count = file["/entry/events/number"].shape[0]
            self.assertGreaterEqual(count, 27)
            for event in (0, 24, 25, count - 1):
                numpy.testing.assert_array_equal(file["/entry/data/data"][event], image(task, event))
        process.stdin.close()
        process.wait(timeout=60)
        with h5py.File(self.path("run", None) / "master.h5") as file:
            self.check_images(file, task, range(60))

    def test_what_was_synced_is_there_after_a_kill(self):
        task = {"content": "received", "events": 11, "rows": 64, "missing_every": 4, "events_per_file": 4, "hang": "yes"}
        process, part = self.start(**task)
        line = self.lines_until(process, lambda line: "synced" in line)
        self.assertEqual(line.split(), ["written", "11", "synced", "11"])
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertFalse(self.path("run").exists())
        with h5py.File(part / "data-000002.h5", "r", swmr=True) as file:
            self.check_images(file, task, range(8, 11))
        with h5py.File(part / "master.h5", "r", swmr=True) as file:
            self.check_images(file, task, range(11))
            self.check_tables(file, task, range(11))
        # A run in the same place is refused, with words about this one.
        _, said = self.feed(status=1, events=1)
        self.assertRegex(said[0], "ended by force; its master.h5 shows")

    def test_two_writers_do_not_meet(self):
        process, _ = self.start(events=1, rows=8, hang="yes")
        self.lines_until(process, lambda line: "synced" in line)
        _, said = self.feed(status=1, events=1, rows=8)
        self.assertRegex(said[0], "another weir is writing")


class Trouble(Hdf5Case):
    def test_an_event_without_its_end_is_not_there(self):
        run, said = self.feed(events=4, cut_event=3, missing_every=2)
        self.assertIn("events 3 synced 3", said[0])
        with h5py.File(run / "master.h5") as file:
            self.check_images(file, {"content": "received", "missing_every": 2}, range(3))
        with h5py.File(run / "data-000000.h5") as file:
            self.assertEqual(file["/entry/data/data"].shape[0], 3)

    def test_a_full_disk_keeps_what_is_whole(self):
        mount = self.path("hdf5-small")
        mount.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=9m", "weir-hdf5", mount], capture_output=True).returncode != 0:
            self.skipTest("cannot mount a small file system here")
        self.addCleanup(subprocess.run, ["umount", "-l", str(mount)])
        run, said = self.feed("hdf5-small/run", events=20)
        self.assertRegex(said[0], r"error: cannot write .*data-000000.h5: No space left on device; the disk is full")
        events = int(said[1].split()[1])
        self.assertGreaterEqual(events, 3)
        self.assertEqual(said[2], f"closed {run}")
        with h5py.File(run / "master.h5") as file:
            self.check_images(file, {"content": "received"}, range(events))
            self.assertIn(f'"written": {events}', text(file["/entry/weir/ledger"]))

    def test_a_limit_of_file_size_is_said_and_costs_no_more_than_what_was_not_synced(self):
        _, said = self.feed(events=20, file_limit=6 << 20, pause_ms=30)
        self.assertTrue(any(line.startswith("error: cannot write") and "ulimit" in line for line in said), said)
        events = int(next(line for line in said if line.startswith("events")).split()[1])
        self.assertGreaterEqual(events, 2)
        closed = said[-1].startswith("closed")
        where = self.path("run") if closed else self.path(".run.part")
        with h5py.File(where / "master.h5", "r", swmr=True) as file:
            self.assertGreaterEqual(file["/entry/events/number"].shape[0], events)
            for event in range(events):
                numpy.testing.assert_array_equal(file["/entry/data/data"][event], image({"content": "received"}, event))

    def test_refuses_to_replace(self):
        self.path("run").mkdir()
        _, said = self.feed(status=1)
        self.assertIn("exists already", said[0])


if __name__ == "__main__":
    main()
