#!/usr/bin/env python3
"""The hdf5 sink beside the event file in one run, and `weir export --to hdf5` of that: the same events in all three."""
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy_python

numpy_python.under_python_with("h5py", "hdf5plugin", packages="python3-h5py, python3-hdf5plugin, hdf5-filter-plugin, bitshuffle")
import h5py  # noqa: E402
import numpy  # noqa: E402

from packets import EJFAT_PORT, ejfat, pcap_bytes, stamped, udp  # noqa: E402
from support import ROOT, ZSTD, WEIR, Case, config, main, stream, weir  # noqa: E402

NEXUS = ('nexus = { instrument = "beamline", source = "ring", sample = "none", sensor_material = "Si", sensor_thickness_um = 320, '
         "wavelength_angstrom = 1.0, total_flux = 1e12, distance_mm = 150, beam_center = [512, 530], module_gap = 36, "
         "fast_direction = [-1, 0, 0], slow_direction = [0, -1, 0] }\n")


def text(value):
    value = value[()] if isinstance(value, h5py.Dataset) else value
    return value.decode() if isinstance(value, bytes) else value


class Sink(Case):
    def hdf5_sink(self, name, keys=""):
        return f'[[sink]]\nkind = "hdf5"\npath = "{self.path(name)}"\n{keys}'

    def order(self, file):
        """Where each event of a file is, by epoch and number."""
        events = file["/entry/events"]
        return {key: place for place, key in enumerate(zip(events["epoch"][:].tolist(), events["number"][:].tolist()))}

    def payload(self, run, event):
        out = self.path("payload")
        weir("inspect", run, "--export", event, out, trap=False)
        found = numpy.frombuffer(out.read_bytes(), "u1").copy()
        out.unlink()
        return found

    def check_image(self, file, result):
        places = self.order(file)
        self.assertEqual(set(places), set(result.events))
        for (epoch, number), event in result.events.items():
            expected = self.payload(result.run, f"{epoch}:{number}")
            size = expected.size // len(event["sources"])
            for source in event["sources"]:
                missing = [[0, size]] if source["missing"] == "all" else source["missing"]
                for offset, count in missing:
                    begin = source["id"] * size + offset
                    expected[begin:begin + count] = 0xff
            found = file["/entry/data/data"][places[epoch, number]]
            numpy.testing.assert_array_equal(found.reshape(-1), expected.view("u2"))
            self.assertEqual(file["/entry/events/complete"][places[epoch, number]], event["complete"])

    def check_same(self, one, other):
        """All tables and data of two sets of files, whatever the order of their events."""
        here, there = self.order(one), self.order(other)
        self.assertEqual(set(here), set(there))
        keys = list(here)
        mine, theirs = [here[key] for key in keys], [there[key] for key in keys]
        for group in ("events", "sources"):
            for name, column in one[f"/entry/{group}"].items():
                if name in ("missing_first", "payload_offset", "id"):
                    continue
                numpy.testing.assert_array_equal(column[:][mine], other[f"/entry/{group}/{name}"][:][theirs], name)
        if "data" in one["/entry/data"]:
            numpy.testing.assert_array_equal(one["/entry/data/data"][:][mine], other["/entry/data/data"][:][theirs])

    def test_images_beside_the_event_file(self):
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", 2, "--events", 5, "--seed", 3, "--drop", 0.01)
        settings = config(stream(sources=2), more=self.hdf5_sink("h5", "codec = \"bitshuffle-lz4\"\nevents_per_file = 2\n" + NEXUS))
        result = self.replay(capture, settings)
        self.assertFalse(all(event["complete"] for event in result.events.values()), "nothing was dropped")
        with h5py.File(self.path("h5") / "master.h5") as file:
            self.check_image(file, result)
            self.assertEqual(text(file["/entry/definition"]), "NXmx")
            ledger = json.loads(text(file["/entry/weir/ledger"]))
            self.assertEqual(ledger["events"]["written"], len(result.events))
            self.assertEqual(len([p for p in self.path("h5").iterdir() if p.name.startswith("data-")]), (len(result.events) + 1) // 2)
            for codec in ("raw", "lz4"):
                exported = self.path(f"exported-{codec}")
                weir("export", result.run, "--to", "hdf5", "--out", exported, "--codec", codec, trap=False)
                with h5py.File(exported / "master.h5") as again:
                    self.check_same(again, file)
        # One module of the two.
        weir("export", result.run, "--to", "hdf5", "--out", self.path("one"), "--source", 1, trap=False)
        with h5py.File(self.path("one") / "master.h5") as file:
            self.assertEqual(file["/entry/data/data"].shape, (len(result.events), 512, 1024))
            self.assertEqual(list(file["/entry/sources/id"]), [1])

    def test_frames_by_rdma_are_the_images_of_udp(self):
        udp_capture, _ = self.send("jf_udp.pcap", "--sources", 1, "--events", 4, "--seed", 3)
        capture, _ = self.send("jf_rdma.pcap", "--sources", 1, "--events", 4, "--seed", 3, "--transport", "roce-write", "--regions", 4)
        region = '{ va = 0x10000000, bytes = 1048624, rkey = 0x1234, count = 4, backing = "memory" }'
        expected = self.replay(udp_capture, config(stream(sources=1), sources=1, more=self.hdf5_sink("h5_udp")))
        found = self.replay(capture, config(stream("roce", sources=1, service='"uc"', region=region), sources=1, more=self.hdf5_sink("h5_rdma")))
        sys.path.insert(0, str(ROOT / "python"))
        reader = importlib.import_module("weir")
        numpy.testing.assert_array_equal(reader.open(found.run)[2].array(), reader.open(expected.run)[2].array())
        self.assertEqual(reader.open(found.run)[2].array().shape[-2:], (512, 1024))
        with h5py.File(self.path("h5_rdma") / "master.h5") as file, h5py.File(self.path("h5_udp") / "master.h5") as other:
            self.check_image(file, expected)
            here, there = self.order(file), self.order(other)
            for key in expected.events:
                numpy.testing.assert_array_equal(file["/entry/data/data"][here[key]], other["/entry/data/data"][there[key]])

    def test_an_exported_run_is_an_nxmx_if_what_is_missing_is_said(self):
        capture, _ = self.send("c.pcap", "--format", "jungfrau", "--sources", "1", "--events", "3")
        plain = self.replay(capture, config(stream(sources=1), sources=1))

        def export(name, *more, run=plain.run, status=0):
            return weir("export", run, "--to", "hdf5", "--out", self.path(name), *more, status=status, trap=False)

        known = {"instrument": "beam line, 2", "source": "ring", "sample": '7 "x"', "sensor_material": "Si", "sensor_thickness_um": "320",
                 "wavelength_angstrom": "1", "total_flux": "1e12", "distance_mm": "150.5", "beam_center": "[512.5, 256]",
                 "fast_direction": "[-1, 0, 0]", "slow_direction": "[0, -1, 0]"}
        said = [word for key, value in known.items() for word in ("--nexus", f"{key}={value}")]
        export("whole", "--definition", "NXmx", *said)
        with h5py.File(self.path("whole") / "master.h5") as file:
            self.assertEqual(text(file["/entry/definition"]), "NXmx")
            self.assertEqual(text(file["/entry/sample/name"]), '7 "x"')
            self.assertEqual(text(file["/entry/instrument/name"]), "beam line, 2")
            self.assertAlmostEqual(file["/entry/instrument/detector/distance"][()].item(), 0.1505)
            self.assertEqual(file["/entry/instrument/detector/beam_center_x"][()].item(), 512.5)
            self.assertEqual(file["/entry/data/data"].shape[0], 3)
        done = export("never", "--definition", "NXmx", *said[2:-2], status=2)
        self.assertIn("no NXmx without instrument, slow_direction", done.stderr)
        self.assertIn("no NXmx without instrument", export("half", *said[2:]).stderr)
        with h5py.File(self.path("half") / "master.h5") as file:
            self.assertNotIn("definition", file["/entry"])
        for wrong, words in (("samples=x", "sample"), ("sample", "KEY=VALUE"), ("distance_mm=far", "KEY=VALUE"), ("distance_mm=-1", "distance_mm"),
                             ("fast_direction=[1, 1, 0]", "length"), ("a.b=1", "KEY=VALUE")):
            with self.subTest(wrong=wrong):
                self.assertIn(words, export("never", "--nexus", wrong, status=2).stderr)
        self.assertIn("NXmx", export("never", "--definition", "NXsas", status=2).stderr)
        self.assertIn("given twice", export("never", "--nexus", "sample=a", "--nexus", "sample=b", status=2).stderr)
        weir("export", plain.run, "--to", "npy", "--nexus", "sample=a", "--out", self.path("never"), status=2, trap=False)

        # A run that had an hdf5 sink knows it all; --nexus comes before that.
        both = self.replay(capture, config(stream(sources=1), sources=1, more=self.hdf5_sink("h5", NEXUS)))
        export("again", "--definition", "NXmx", "--nexus", "sample=other", run=both.run)
        with h5py.File(self.path("again") / "master.h5") as file:
            self.assertEqual((text(file["/entry/sample/name"]), text(file["/entry/instrument/name"])), ("other", "beamline"))

        capture, _ = self.send("bytes.pcap", "--format", "ejfat", "--sources", "1", "--bytes", "5000", "--events", "2")
        flat = self.replay(capture, config(stream(format="ejfat", sources=1), sources=1))
        self.assertIn("this run's payload is none", export("never", "--definition", "NXmx", run=flat.run, status=2).stderr)
        self.assertEqual([path.name for path in self.folder.glob("*never*")] + [path.name for path in self.folder.glob(".never*")], [])

    def test_complete_means_what_it_means_in_the_event_file(self):
        # One source of two makes an event; the other one sent half of its message.
        def of(source, pieces):
            return [udp(ejfat(1, bytes(1000), offset=1000 * p, total=2000), EJFAT_PORT + source) for p in range(pieces)]

        capture = self.path("c.pcap", pcap_bytes(stamped([*of(0, 1), *of(1, 2)])))
        self.replay(capture, config(stream(format="ejfat"), sources=1, more=self.hdf5_sink("h5", "")))
        with h5py.File(self.path("h5") / "master.h5") as file:
            self.assertEqual(list(file["/entry/events/complete"]), [0])
            self.assertEqual([list(row) for row in file["/entry/sources/state"]], [[1, 0]])

    def test_pieces_that_the_chain_compresses(self):
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", 1, "--events", 3, "--seed", 4)
        result = self.replay(capture, config(stream(sources=1), sources=1, more=self.hdf5_sink("h5") + ZSTD))
        with h5py.File(self.path("h5") / "data-000000.h5") as file:
            data = file["/entry/data/data"]
            # zstd is what the chain said; Debian's plug-ins read bitshuffle with LZ4.
            self.assertEqual(data.id.get_create_plist().get_filter(0)[0], 32008)
            self.assertEqual(data.shape, (3, 512, 1024))
        self.assertEqual(len(result.events), 3)

    def test_energies_of_the_jungfrau_reducer(self):
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", 2, "--events", 2, "--seed", 6, "--drop", 0.01)
        pedestals = [str(self.path(f"g{gain}.f32", numpy.full((2, 512, 1024), value, "f4").tobytes()))
                     for gain, value in enumerate((2700, 13600, 14100))]
        raw = self.replay(capture, config(stream(sources=2)))
        for output, codec in (("f32", "bitshuffle-lz4"), ("i16", "lz4")):
            chain = (f'[[reduce]]\nkind = "jungfrau"\npedestal = {json.dumps(pedestals)}\ngain = [41.0, -1.439, -0.1145]\n'
                     f'gain_unit = "adu_per_kev"\nphoton_kev = 12.4\nunit = "photon"\noutput = "{output}"\n[[reduce]]\nkind = "pack"\ncodec = "{codec}"\n')
            self.replay(capture, config(stream(sources=2), more=self.hdf5_sink(output) + chain))
            with h5py.File(self.path(output) / "master.h5") as file:
                data = file["/entry/data/data"]
                self.assertEqual(text(data.attrs["units"]), "photon")
                self.assertEqual(data.shape, (2, 1024, 1024))
                for (epoch, number), place in self.order(file).items():
                    expected = self.photons(raw, epoch, number)
                    found = data[place].reshape(-1).astype("f8")
                    gone = numpy.isnan(expected)
                    self.assertGreater(gone.sum(), 0)
                    numpy.testing.assert_array_equal(numpy.isnan(found) if output == "f32" else found == -32768, gone)
                    numpy.testing.assert_allclose(found[~gone], expected[~gone], rtol=1e-5, atol=1e-3 if output == "f32" else 0.51)
                self.assertAlmostEqual(file["/entry/instrument/beam/incident_wavelength"][()], 12.398419843 / 12.4, 8)

    def test_an_event_has_the_pixels_that_sparse_kept(self):
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", 1, "--events", 3, "--seed", 6)
        pedestals = [str(self.path(f"g{gain}.f32", numpy.full((512, 1024), value, "f4").tobytes())) for gain, value in enumerate((2700, 13600, 14100))]
        chain = (f'[[reduce]]\nkind = "jungfrau"\npedestal = {json.dumps(pedestals)}\ngain = [41.0, -1.439, -0.1145]\n'
                 '[[reduce]]\nkind = "sparse"\nthreshold = 2.0\n')
        result = self.replay(capture, config(stream(sources=1), sources=1, more=self.hdf5_sink("h5") + chain))
        weir("export", result.run, "--to", "hdf5", "--out", self.path("exported"), trap=False)
        for folder in ("h5", "exported"):
            with h5py.File(self.path(folder) / "master.h5") as file:
                above = file["/entry/events/pixels_above"][:]
                data = file["/entry/data/data"][:]
                for place in self.order(file).values():
                    # What is kept is above 2 keV; bad pixels, of which there are none here, would be NaN.
                    self.assertEqual(above[place], (data[place] > 0).sum())
                    self.assertGreater(above[place], 0)

    def test_the_example_of_the_readme(self):
        # Its text, with files that exist here; opened with what Debian has, and read as its page on HDF5 says.
        chain = re.search(r'```toml\n(\[\[reduce\]\]\nkind = "jungfrau".*?)```', (ROOT / "README.md").read_text(), re.DOTALL).group(1)
        for gain, value in enumerate((2700, 13600, 14100)):
            self.path(f"g{gain}.f32", numpy.full((512, 1024), value, "f4").tobytes())
        self.path("gainMaps.bin", b"".join(numpy.full((512, 1024), value, "f8").tobytes() for value in (41.0, -1.439, -0.1145)))
        for name in ("g0.f32", "g1.f32", "g2.f32", "gainMaps.bin"):
            self.assertIn(f'"{name}"', chain)
            chain = chain.replace(f'"{name}"', f'"{self.path(name)}"')
        chain, sinks = chain.split("[[sink]]", 1)
        self.assertEqual(sinks.count('"/data/'), 2)
        text = config(stream(sources=1), sources=1, sink="", more=chain).replace("[[sink]]\n", "", 1) + "[[sink]]" + sinks.replace('"/data/', f'"{self.folder}/')
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", 1, "--events", 3, "--seed", 6)
        weir("replay", capture, "--config", self.path("readme.toml", text), "--quiet")
        found = sorted(path for path in self.folder.iterdir() if path.is_dir())
        self.assertEqual(len(found), 2, found)
        run, h5 = found if "hdf5" in found[1].name else found[::-1]
        self.assertIn("verified", weir("inspect", run, trap=False).stdout)
        weir("export", run, "--to", "hdf5", "--out", self.path("run1-hdf5"), trap=False)
        raw = self.replay(capture, config(stream(sources=1), sources=1))
        for folder in (h5, self.path("run1-hdf5")):
            with h5py.File(folder / "master.h5") as file:
                data = file["/entry/data/data"]
                self.assertEqual(data.dtype, numpy.uint16)
                with h5py.File(folder / "data-000000.h5") as part:
                    self.assertIn("32008", part["/entry/data/data"]._filters)  # bitshuffle
                places = self.order(file)
                self.assertEqual(len(places), 3)
                for (epoch, number), place in places.items():
                    photons = self.photons(raw, epoch, number)
                    clear = numpy.abs(photons - numpy.floor(photons) - 0.5) > 0.01  # not on the edge between two numbers
                    expected = numpy.where(photons > 0.5, numpy.rint(photons), 0)
                    numpy.testing.assert_array_equal(data[place].reshape(-1)[clear], expected[clear])
                    self.assertGreater((expected > 0).sum(), 100)

    def photons(self, run, epoch, number):
        """Of a run as received; NaN where nothing came."""
        pixels = self.payload(run.run, f"{epoch}:{number}").view("u2")
        gain = pixels >> 14
        self.assertFalse((gain == 2).any() or numpy.isin(pixels, (0x4000, 0xc000, 0xffff)).any(), "a frame with markers")
        pedestal, factor = numpy.array([2700, 13600, 0, 14100]), numpy.array([41.0, -1.439, 1, -0.1145])
        out = ((pixels & 0x3fff).astype("f8") - pedestal[gain]) / (factor[gain] * 12.4)
        for source in run.events[epoch, number]["sources"]:
            for offset, count in [[0, 1 << 20]] if source["missing"] == "all" else source["missing"]:
                begin = (source["id"] << 19) + offset // 2
                out[begin:begin + count // 2] = numpy.nan
        return out

    def test_messages_that_are_no_image(self):
        capture, _ = self.send("lb.pcap", "--format", "ejfat", "--sources", 3, "--events", 30, "--bytes", 20000, "--seed", 5, "--drop", 0.02)
        result = self.replay(capture, config(stream(format="ejfat", sources=3), sources=3, more=self.hdf5_sink("h5", 'codec = "lz4"\n')))
        weir("export", result.run, "--to", "hdf5", "--out", self.path("exported"), trap=False)
        for folder in ("h5", "exported"):
            with h5py.File(self.path(folder) / "master.h5") as file:
                self.assertNotIn("definition", file["entry"])
                places = self.order(file)
                payload = file["/entry/data/payload"][:]
                for (epoch, number), event in result.events.items():
                    place = places[epoch, number]
                    offsets, sizes = file["/entry/sources/payload_offset"][place], file["/entry/sources/payload_bytes"][place]
                    self.assertEqual(sizes.tolist(), [source["bytes"] for source in event["sources"]])
                    if event["complete"]:
                        found = b"".join(payload[o:o + n].tobytes() for o, n in zip(offsets.tolist(), sizes.tolist()))
                        self.assertEqual(found, self.payload(result.run, f"{epoch}:{number}").tobytes())

    def test_refusals(self):
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", 1, "--events", 1)
        settings = self.path("c.toml", config(stream(sources=1), sources=1))
        weir("replay", capture, "--config", settings, "--out", self.path("run"), "--quiet")
        done = weir("export", self.path("run"), "--to", "hdf5", "--codec", "bits", "--out", self.path("out"), status=2, trap=False)
        self.assertIn("bitshuffle-zstd", done.stderr)
        weir("export", self.path("run"), "--to", "npy", "--codec", "lz4", "--out", self.path("out"), status=2, trap=False)
        self.assertFalse(self.path("out").exists())
        self.assertFalse(self.path(".out.part").exists())
        self.path("taken").mkdir()
        weir("export", self.path("run"), "--to", "hdf5", "--out", self.path("taken"), status=1, trap=False)

    def test_an_empty_run_has_a_master(self):
        capture = self.path("empty.pcap", bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
        settings = self.path("c.toml", config(stream(sources=1), sources=1, sink=f'kind = "hdf5"\npath = "{self.path("x")}"'))
        weir("replay", capture, "--config", settings, "--out", self.path("h5"), "--quiet", "--allow-empty")
        with h5py.File(self.path("h5") / "master.h5") as file:
            self.assertIn("ledger", file["/entry/weir"])
        done = weir("inspect", self.path("h5"), status=1, trap=False)
        self.assertIn("open " + str(self.path("h5") / "master.h5"), done.stderr)

    def test_a_run_that_is_killed_shows_what_was_synced(self):
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", 1, "--events", 3)
        settings = self.path("c.toml", config(stream(sources=1), sources=1, sink=f'kind = "hdf5"\npath = "{self.path("x")}"\nsync_ms = 20'))
        # A pipe that stays open: the run waits for more.
        read, write = os.pipe()
        process = subprocess.Popen([WEIR, "replay", "-", "--config", settings, "--out", self.path("h5"), "--quiet"], stdin=read)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        os.close(read)
        part = self.path(".h5.part")
        with os.fdopen(write, "wb") as pipe:
            pipe.write(capture.read_bytes())
            pipe.flush()
            self.wait_for(lambda: self.count(part) >= 2)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assertGreaterEqual(self.count(part), 2)

    def count(self, part):
        try:
            with h5py.File(part / "master.h5", "r", swmr=True) as file:
                return file["/entry/events/number"].shape[0]
        except (OSError, KeyError):
            return 0

    def wait_for(self, condition):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)


if __name__ == "__main__":
    main()
