#!/usr/bin/env python3
"""JUNGFRAU frames through `[[reduce]] kind = "jungfrau"`: real frames against the results of another program, and frames made
here against the formula in numpy. What is read is what `weir inspect --export` gives."""
import json
import os
import pathlib
import struct

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips
import numpy as np

from packets import JUNGFRAU_PORT, jungfrau, pcap_bytes, stamped, udp
from support import FUSED, ROOT, ZSTD, Case, config, main, stream, weir

DATA = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared") / "data/jungfrau"
TYPES = {"f32": np.float32, "f16": np.float16, "i16": np.int16, "u16": np.uint16}
BAD = {"f32": np.nan, "f16": np.nan, "i16": -32768, "u16": 65535}
SATURATED = {"f32": np.inf, "f16": np.inf, "i16": 32767, "u16": 65534}
GAINS = (41.0, -1.439, -0.1145)
SPREAD = '[lcores]\nrx = [0]\nbuild = [1]\nwork = [2, 3]\nidle = "sleep"\n'


def energies(raw, pedestal, factor):
    """float32 as in docs/reference/reduce/jungfrau.md; `pedestal` and `factor` by gain."""
    gain, adc = raw >> 14, (raw & 0x3fff).astype(np.float32)
    out = np.full(raw.shape, np.nan, np.float32)
    for word, index in ((0, 0), (1, 1), (3, 2)):
        here = gain == word
        p = pedestal[index][here].astype(np.float32)
        value = (adc[here] - p) * np.float32(factor[index])
        value[(p == 0) | (p == 16383)] = np.nan
        out[here] = value
    out[raw == 0xffff] = np.nan
    out[raw == 0x4000] = np.nan
    out[raw == 0xc000] = np.inf
    return out


def written_as(energy, kind):
    if kind == "f32":
        return energy
    if kind == "f16":
        with np.errstate(over="ignore"):
            return energy.astype(np.float16)
    low, high = (-32767, 32766) if kind == "i16" else (0, 65533)
    out = np.clip(np.rint(np.nan_to_num(energy, nan=0, posinf=0)), low, high).astype(TYPES[kind])
    out[np.isnan(energy)] = BAD[kind]
    out[np.isposinf(energy)] = SATURATED[kind]
    return out


def ip_pieces(frame, number, room=3000):
    """The frames of one datagram in IP fragments."""
    payload = frame[34:]
    for at in range(0, len(payload), room):
        piece = payload[at:at + room]
        flags = at // 8 | (0x2000 if at + room < len(payload) else 0)
        header = bytearray(frame[14:34])
        struct.pack_into("!HHH", header, 2, 20 + len(piece), number, flags)
        header[10:12] = bytes(2)
        total = sum(struct.unpack("!10H", header))
        total = (total & 0xffff) + (total >> 16)
        struct.pack_into("!H", header, 10, 0xffff & ~(total + (total >> 16)))
        yield frame[:14] + bytes(header) + piece


class Jungfrau(Case):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(1)

    def reducer(self, **keys):
        text = '[[reduce]]\nkind = "jungfrau"\n'
        return text + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())

    def pedestals(self, modules=1, cells=1):
        """Files, and the values by gain as [module, cell, row, column]."""
        names, values = [], []
        for gain in range(3):
            value = self.random.uniform(2500, 3000, (modules, cells, 512, 1024)) + 11000 * (gain > 0)
            value[self.random.random(value.shape) < 1e-3] = 0 if gain == 1 else 16383
            values.append(value.astype(np.float32))
            names.append(str(self.path(f"pedestal{gain}.f32", values[-1].tobytes())))
        return names, values

    def frame(self, rows=512):
        raw = self.random.integers(2500, 8000, (rows, 1024), dtype=np.uint16)
        kind = self.random.random(raw.shape)
        raw[kind < 0.02] = 0x4000 | self.random.integers(0, 16384, (kind < 0.02).sum(), dtype=np.uint16)
        raw[kind < 0.01] = 0xc000 | self.random.integers(0, 16384, (kind < 0.01).sum(), dtype=np.uint16)
        for word, below in ((0xffff, 0.004), (0x4000, 0.003), (0xc000, 0.002), (0x8123, 0.001)):
            raw[kind < below] = word
        return raw

    def packets(self, number, raw, port=JUNGFRAU_PORT, first=0, lost=(), cell=0, row=0):
        for k in range(raw.shape[0] // 4):
            if k in lost:
                continue
            data = bytearray(jungfrau(number, first + k, raw[4 * k:4 * k + 4].tobytes()))
            struct.pack_into("<H", data, 34, row)
            struct.pack_into("<I", data, 40, 0xfffff0ff | cell << 8)
            yield udp(bytes(data), port)

    def capture(self, frames, odd=False):
        """With `odd`, packets lie at odd places of the file."""
        stray = [udp(bytes(3), 9)] if odd else []
        return self.path(f"capture{self.runs}.pcap", pcap_bytes(stamped(stray + list(frames))))

    def exported(self, result, number, kind="f32", rows=512):
        file = self.path(f"{result.run.name}-{number}.bin")
        weir("inspect", result.run, "--export", str(number), file, trap=False)
        return np.fromfile(file, TYPES[kind]).reshape(-1, rows, 1024)

    def check(self, found, expected, kind="f32"):
        self.assertEqual(found.shape, expected.shape)
        self.assertTrue(np.array_equal(found, written_as(expected, kind), equal_nan=kind[0] == "f"))

    def test_real_frames_give_the_results_of_another_program(self):
        if not DATA.exists():
            self.skipTest(f"there is no {DATA}")
        more = self.reducer(pedestal=[str(DATA / f"mod5_pedeG{g}.bin") for g in range(3)], unit="photon", photon_kev=12.4,
                            gain=[str(DATA / "derived_gainG0_ADU_per_photon.f32"), -1.439 * 12.4, -0.1145 * 12.4], gain_unit="adu_per_photon")
        settings = config(stream(sources=1), sources=1, more=more)
        result = self.replay(DATA / "jungfrau_3realframes.pcap", settings, "--require-lossless")
        in_other_gains = {1: [], 3: []}
        for n in range(3):
            raw = np.fromfile(DATA / f"mod5_raw{n}.bin", np.uint16)
            expected = np.fromfile(DATA / f"mod5_conv{n}.bin", np.float32)
            found = self.exported(result, n + 1).ravel()
            first = (raw >> 14 == 0) & np.isfinite(found)
            self.assertGreater(first.sum(), 523_000)
            self.assertLess(np.abs(found - expected)[first].max(), 1e-5)
            for gain, ratios in in_other_gains.items():
                here = (raw >> 14 == gain) & np.isfinite(found) & np.isfinite(expected) & (np.abs(expected) > 1)
                ratios.append(found[here] / expected[here])
        for gain, ratios in in_other_gains.items():  # of these only typical gains are known
            self.assertAlmostEqual(float(np.median(np.concatenate(ratios))), 1, delta=0.02, msg=f"gain bits {gain}")
        counted = result.report["reduce"][0]
        self.assertEqual((counted["kind"], counted["events"], counted["pixels"], counted["missing_pixels"]), ("jungfrau", 3, 3 * 512 * 1024, 0))
        self.assertGreater(counted["ns_per_event"], 0)

    def test_every_output_with_every_kind_of_pixel_and_missing_packets(self):
        names, pedestal = self.pedestals(modules=2)
        frames = {n: [self.frame(), self.frame()] for n in (1, 2)}
        lost = {(1, 1): {0, 7, 8, 127}}
        packets = []
        for n, modules in frames.items():
            for m, raw in enumerate(modules):
                if (n, m) != (2, 1):  # of which nothing comes
                    packets += self.packets(n, raw, JUNGFRAU_PORT + m, lost=lost.get((n, m), ()))
        expected = {}
        for n, modules in frames.items():
            both = []
            for m, raw in enumerate(modules):
                raw = raw.copy()
                for k in lost.get((n, m), ()):
                    raw[4 * k:4 * k + 4] = 0xffff
                if (n, m) == (2, 1):
                    raw[:] = 0xffff
                both.append(energies(raw, [p[m, 0] for p in pedestal], [np.float32(1 / (g * 12.4)) for g in GAINS]))
            expected[n] = np.array(both)
        capture = self.capture(packets)
        for kind in TYPES:
            for lcores in (FUSED, SPREAD) if kind in ("f32", "u16") else (FUSED,):
                more = self.reducer(pedestal=names, gain=GAINS, unit="photon", photon_kev=12.4, output=kind) + lcores
                result = self.replay(capture, config(stream(sources=2), more=more))
                for n in frames:
                    self.check(self.exported(result, n, kind), expected[n], kind)
                counted = result.report["reduce"][0]
                received = np.concatenate([expected[1].ravel(), expected[2].ravel()])
                missing = 4 * 4096 + 512 * 1024
                self.assertEqual(counted["missing_pixels"], missing)
                self.assertEqual(counted["bad_pixels"], int(np.isnan(received).sum()) - missing)
                self.assertEqual(counted["saturated_pixels"], int(np.isposinf(received).sum()))
                self.assertEqual(counted["bytes_out"], 4 * 512 * 1024 * np.dtype(TYPES[kind]).itemsize)
                event = result.events[0, 1]
                self.assertEqual(event["sources"][1]["missing"], [[0, 8192], [7 * 8192, 2 * 8192], [127 * 8192, 8192]])

    def test_compressed_behind_it_and_at_odd_addresses_it_is_the_same(self):
        names, _ = self.pedestals()
        frames = [self.frame() for _ in range(3)]
        packets = [p for n, raw in enumerate(frames) for p in self.packets(n + 1, raw)]
        more = self.reducer(pedestal=names, gain=GAINS)
        plain = self.replay(self.capture(packets), config(stream(sources=1), sources=1, more=more))
        packed = self.replay(self.capture(packets, odd=True), config(stream(sources=1), sources=1, more=more + ZSTD))
        self.assertEqual([e["sha256"] for e in packed.inspect["events"]], [e["sha256"] for e in plain.inspect["events"]])
        self.assertEqual([r["kind"] for r in packed.report["reduce"]], ["jungfrau", "zstd"])
        self.assertLess(packed.report["reduce"][1]["bytes_out"], packed.report["reduce"][1]["bytes_in"])
        self.assertEqual(packed.report["reduce"][1]["bytes_in"], packed.report["reduce"][0]["bytes_out"])

    def test_converted_on_arrival_it_is_the_same_bit_by_bit(self):
        names, _ = self.pedestals(modules=2, cells=2)
        packets = []
        for n in range(1, 5):
            for module in range(2):
                if (n, module) != (3, 1):  # of which nothing comes
                    cell = 7 if (n, module) == (4, 0) else n % 2  # there is no cell 7
                    packets += self.packets(n, self.frame(), JUNGFRAU_PORT + module, lost={n, 40 + n} if module else (), cell=cell)
        packets += packets[100:140]  # twice: they have been converted, too, and must not be counted
        order = self.random.permutation(len(packets))
        capture = self.capture([packets[i] for i in order], odd=True)
        pieces = self.path("pieces.pcap", pcap_bytes(stamped([f for i in order for f in ip_pieces(packets[i], int(i))])))
        for kind in ("u16", "i16", "f16"):
            results = {}
            for at, topology, source, more in (("event", FUSED, capture, ()), ("fragment", FUSED, capture, ()), ("fragment", SPREAD, capture, ()),
                                               ("fragment", FUSED, pieces, ()), ("event", FUSED, capture, ("--loop", "2")),
                                               ("fragment", FUSED, capture, ("--loop", "2"))):
                if more and kind != "u16":
                    continue
                reducers = self.reducer(pedestal=names, gain=GAINS, unit="photon", photon_kev=1.3, output=kind, storage_cells=2, at=at)
                result = self.replay(source, config(stream(sources=2), events="timeout_ms = 50\nhorizon = 4096\n", more=reducers + topology), *more)
                found = [event["sha256"] for event in result.inspect["events"]]
                counted = {key: value for key, value in result.report["reduce"][0].items() if key.endswith("_pixels") or key in ("events", "bytes_in", "unknown_cell")}
                if kind == "f16":  # what is too large for it cannot be told from what was saturated
                    del counted["saturated_pixels"]
                self.assertEqual(results.setdefault(more, (found, counted)), (found, counted), (kind, at, topology, source.name))
                self.assertGreater(result.report["packets"]["dropped"]["duplicate"], 0)

    def test_each_storage_cell_has_its_own_pedestal(self):
        names, pedestal = self.pedestals(cells=3)
        frames = [self.frame() for _ in range(4)]
        packets = [p for n, raw in enumerate(frames) for p in self.packets(n + 1, raw, cell=n)]
        more = self.reducer(pedestal=names, gain=GAINS, storage_cells=3)
        result = self.replay(self.capture(packets), config(stream(sources=1), sources=1, more=more))
        for cell, raw in enumerate(frames):
            found = self.exported(result, cell + 1)[0]
            if cell == 3:  # there is no such cell
                self.assertTrue(np.isnan(found).all())
            else:
                self.check(found, energies(raw, [p[0, cell] for p in pedestal], [np.float32(1 / g) for g in GAINS]))
        self.assertEqual(result.report["reduce"][0]["unknown_cell"], 1)

    def test_partial_readout_over_two_interfaces(self):
        names, pedestal = self.pedestals()
        raw = self.frame(64)
        halves = [raw[:32], raw[32:]]
        packets = list(self.packets(1, halves[0], first=56)) + list(self.packets(1, halves[1], JUNGFRAU_PORT + 1, row=1))
        more = self.reducer(pedestal=names, gain=GAINS)
        settings = config(stream(sources=2, interfaces=2, rows=64), more=more)
        result = self.replay(self.capture(packets), settings, "--require-lossless")
        found = self.exported(result, 1, rows=32)
        self.check(found.reshape(64, 1024), energies(raw, [p[0, 0, 224:288] for p in pedestal], [np.float32(1 / g) for g in GAINS]))
        self.assertEqual(result.report["payload"]["rows"], 32)
        self.assertEqual(result.report["payload"]["sources_per_module"], 2)

    def test_the_example_runs_with_gain_maps_of_each_module(self):
        names, pedestal = self.pedestals(modules=2)
        folder = self.path("calibration")
        folder.mkdir()
        for gain, name in enumerate(names):
            os.rename(name, folder / f"pedestalG{gain}.f32")
        gains = [self.random.uniform(0.9, 1.1, (3, 512, 1024)) * np.reshape(GAINS, (3, 1, 1)) for _ in range(2)]
        for gain, module in zip(gains, ("M049", "M232")):
            (folder / f"gainMaps_{module}.bin").write_bytes(gain.tobytes())
        frames = [self.frame(), self.frame()]
        packets = [p for m, raw in enumerate(frames) for p in self.packets(1, raw, JUNGFRAU_PORT + m)]
        result = self.replay(self.capture(packets), (ROOT / "examples" / "jungfrau-calibrated.toml").read_text(), "--require-lossless")
        expected = []
        for m, raw in enumerate(frames):
            factor = (1 / (gains[m] * 12.4)).astype(np.float32)
            by_gain = [energies(raw, [p[m, 0] for p in pedestal], [1, 1, 1])]  # the difference; the factor is per pixel
            index = np.choose(raw >> 14, [0, 1, 0, 2])
            with np.errstate(invalid="ignore"):
                expected.append(by_gain[0] * np.take_along_axis(factor, index[None], 0)[0])
            expected[-1][raw == 0xc000] = np.inf
        self.check(self.exported(result, 1), np.array(expected))
        self.assertEqual(result.report["payload"]["modules"], 2)

    def test_a_file_of_the_wrong_size_is_named_before_anything_starts(self):
        names, _ = self.pedestals()
        capture = self.capture(self.packets(1, self.frame()))
        for keys, words in (({"pedestal": [names[0], "nosuch", names[2]], "gain": GAINS}, "pedestal[1]: "),
                            ({"pedestal": names, "gain": [str(self.path("short", bytes(100))), -1.4, -0.1]}, "found 100 bytes")):
            settings = self.path("bad.toml", config(stream(sources=1), sources=1, more=self.reducer(**keys)))
            done = weir("replay", capture, "--config", settings, "--out", self.path("none"), status=2)
            self.assertIn(words, done.stderr)
            self.assertIn(f"{settings}:", done.stderr)
            self.assertFalse(self.path("none").exists())


if __name__ == "__main__":
    main()
