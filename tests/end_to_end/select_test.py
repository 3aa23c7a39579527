#!/usr/bin/env python3
"""JUNGFRAU events through `veto` and `sparse`: which events are kept is known before, what is kept of their pixels is worked out
in numpy. Frames are made here; the whole chain also takes real ones."""
import hashlib
import json
import os
import pathlib
import sys

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips
import numpy as np

from packets import JUNGFRAU_PORT, jungfrau, pcap_bytes, stamped, udp
from support import FUSED, ROOT, ZSTD, Case, config, main, stream, weir

sys.path.insert(0, str(ROOT / "python"))
import weir as reader  # noqa: E402

DATA = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared") / "data/jungfrau"
TYPES = {"f32": np.float32, "f16": np.float16, "i16": np.int16, "u16": np.uint16}
BAD = {"f32": np.nan, "f16": np.nan, "i16": -32768, "u16": 65535}
SATURATED = {"f32": np.inf, "f16": np.inf, "i16": 32767, "u16": 65534}
SPREAD = '[lcores]\nrx = [0]\nbuild = [1]\nwork = [2, 3]\nidle = "sleep"\n'
ROWS, FIRST_ROW, FIRST_PACKET = 64, 224, 56  # a partial readout is around the middle
PEDESTAL, PHOTON_ADU = 2500, 41 * 12.4


def written_as(energy, kind):
    if kind in ("f32", "f16"):
        return energy.astype(TYPES[kind])
    low, high = (-32767, 32766) if kind == "i16" else (0, 65533)
    out = np.clip(np.rint(np.nan_to_num(energy, nan=0, posinf=0)), low, high).astype(TYPES[kind])
    out[np.isnan(energy)] = BAD[kind]
    out[np.isposinf(energy)] = SATURATED[kind]
    return out


def reducer(kind, **keys):
    return f'[[reduce]]\nkind = "{kind}"\n' + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


class Select(Case):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(7)
        self.bad = np.zeros((2, ROWS, 1024), bool)
        self.bad[0, 5, 100:103] = self.bad[1, 63, 1023] = True
        names = []
        for gain, value in enumerate((PEDESTAL, 13500, 14000)):
            plane = np.full((2, 512, 1024), value, np.float32)
            if gain == 0:
                plane[:, FIRST_ROW:FIRST_ROW + ROWS][self.bad] = 16383
            names.append(str(self.path(f"pedestal{gain}.f32", plane.tobytes())))
        self.calibrated = dict(pedestal=names, gain=[41.0, -1.439, -0.1145], photon_kev=12.4, unit="photon")

    def frames(self):
        """Two modules of noise."""
        return self.random.integers(PEDESTAL - 20, PEDESTAL + 21, (2, ROWS, 1024), dtype=np.uint16)

    def energies(self, raw):
        out = (raw.astype(np.float32) - np.float32(PEDESTAL)) * np.float32(1 / PHOTON_ADU)
        out[raw == 0xc000] = np.inf
        out[raw == 0xffff] = np.nan
        out[self.bad] = np.nan
        return out

    def capture(self, events, lost=()):
        packets = []
        for number, modules in events.items():
            for m, raw in enumerate(modules):
                for k in range(ROWS // 4):
                    if (number, m, k) not in lost:
                        packets.append(udp(jungfrau(number, FIRST_PACKET + k, raw[4 * k:4 * k + 4].tobytes()), JUNGFRAU_PORT + m))
        return self.path(f"capture{self.runs}.pcap", pcap_bytes(stamped(packets)))

    def select(self, capture, *reducers, output="f32", lcores=FUSED, **more):
        chain = reducer("jungfrau", output=output, **self.calibrated) + "".join(reducers)
        return self.replay(capture, config(stream(rows=ROWS), more=chain + lcores, **more))

    def check_pixels(self, result, number, expected, note=None):
        """By their digest, which is over the expanded pixels."""
        self.assertEqual(result.events[0, number]["sha256"], hashlib.sha256(expected.tobytes()).hexdigest(), note)

    def check_said(self, event, **expected):
        """What `weir inspect` says of the verdict."""
        self.assertEqual({key: event[key] for key, value in expected.items()}, expected)

    def counted(self, result, kind):
        return next(r for r in result.report["reduce"] if r["kind"] == kind)

    def test_exactly_the_events_that_do_not_have_what_was_asked_for_are_vetoed(self):
        events, above = {}, {}
        for number in range(1, 31):
            frames = self.frames()
            above[number] = number * 5 % 9
            places = self.random.choice(2 * ROWS * 1024, above[number] + 1, replace=False)
            for place in places[1:]:
                if self.bad.flat[place]:
                    above[number] -= 1
                frames.flat[place] = PEDESTAL + PHOTON_ADU * 2
            frames[0, 5, 100] = PEDESTAL + 3000  # a hot pixel that is masked
            events[number] = frames
        few = {n for n in events if above[n] < 3}
        many = {n for n in events if above[n] > 6}
        control = {n for n in few | many if n % 4 == 0}
        kept = set(events) - few - many | control
        self.assertTrue(few and many and control)
        veto = reducer("veto", threshold=0.5, min_pixels=3, max_pixels=6, keep_every=4)
        capture = self.capture(events)
        digests = []
        for lcores in (FUSED, SPREAD):
            result = self.select(capture, veto, lcores=lcores)
            self.assertEqual({number for _, number in result.events}, kept)
            self.assertEqual(result.report["events"]["vetoed"], len(events) - len(kept))
            self.assertEqual(result.packets, {"placed": len(events) * 2 * ROWS // 4})
            for (_, number), event in result.events.items():
                self.check_said(event, pixels_above=above[number], veto="control" if number in control else "passed")
            counts = self.counted(result, "veto")
            expected = {"events": 30, "not_asked": 0, "passed": len(kept - control), "few_pixels": len(few), "many_pixels": len(many),
                        "few_peaks": 0, "many_peaks": 0, "control": len(control), "pixels_above": sum(above.values())}
            self.assertEqual({key: counts[key] for key in expected}, expected)
            digests.append(result.digests)
        self.assertEqual(digests[0], digests[1])
        for number in sorted(kept)[:3]:
            self.check_pixels(result, number, self.energies(events[number]))

    def test_events_are_kept_for_their_peaks(self):
        events, spots = {}, {}
        for number in range(1, 13):
            frames = self.frames()
            spots[number] = number % 5
            for k in range(spots[number]):
                m, row, column = k % 2, 10 + 12 * k, 200 * k + int(self.random.integers(20, 180))
                frames[m, row - 1:row + 2, column - 1:column + 2] += np.uint16(PHOTON_ADU * 3)
                frames[m, row, column] += np.uint16(PHOTON_ADU * 5)
            frames[1, 40, 40 + number] += np.uint16(PHOTON_ADU * 9)  # one pixel alone is no peak
            events[number] = frames
        veto = reducer("veto", threshold=0.5, min_peaks=2, max_peaks=3)
        for lcores in (FUSED, SPREAD):
            result = self.select(self.capture(events), veto, lcores=lcores)
            self.assertEqual({number for _, number in result.events}, {number for number, count in spots.items() if 2 <= count <= 3})
            for (_, number), event in result.events.items():
                self.check_said(event, peaks=spots[number])
            counts = self.counted(result, "veto")
            self.assertEqual((counts["few_peaks"], counts["many_peaks"]), (sum(c < 2 for c in spots.values()), sum(c > 3 for c in spots.values())))

    def test_frames_with_more_maxima_than_are_looked_at_are_counted(self):
        events = {n: self.frames() for n in (1, 2, 3)}
        for number in (2, 3):
            events[number][:, ::2, ::2] += np.uint16(PHOTON_ADU * 3)  # 32768 in each, of which 16384 are looked at
        capture = self.capture(events)
        for bound, kept in (("max_peaks", {1}), ("min_peaks", set())):
            result = self.select(capture, reducer("veto", threshold=0.5, separation=1, **{bound: 10}))
            counts = self.counted(result, "veto")
            self.assertEqual((counts["crowded"], counts["many_peaks"]), (2, 2 if bound == "max_peaks" else 0))
            self.assertEqual({number for _, number in result.events}, kept)
        explained = weir("explain", "reduce.veto.crowded", trap=False).stdout
        self.assertIn("16384", explained)

    def test_incomplete_events_are_kept_unasked_or_judged(self):
        events = {1: self.frames(), 2: self.frames(), 3: self.frames()}
        events[3][0, 20, 20:30] += np.uint16(1000)
        lost = {(1, 0, 3), (3, 1, 0)}
        veto = dict(threshold=0.5, min_pixels=5)
        keep = self.select(self.capture(events, lost), reducer("veto", **veto))
        self.assertEqual({number for _, number in keep.events}, {1, 3})
        for event in keep.events.values():
            self.check_said(event, veto="none")
        self.assertEqual(self.counted(keep, "veto")["not_asked"], 2)
        judge = self.select(self.capture(events, lost), reducer("veto", incomplete="judge", **veto))
        self.assertEqual({number for _, number in judge.events}, {3})
        self.check_said(judge.events[0, 3], veto="passed", pixels_above=10)
        self.assertEqual(judge.report["events"]["vetoed"], 2)
        incomplete = judge.report["events"]["incomplete"]
        self.assertEqual((incomplete["timeout"], incomplete["end_of_run"]), (1, 1))

    def test_what_sparse_keeps_comes_back_and_the_rest_is_nothing_or_unknown(self):
        events = {n: self.frames() for n in (1, 2)}
        for frames in events.values():
            kind = self.random.random(frames.shape)
            frames[kind < 0.02] = PEDESTAL + self.random.integers(0, 5000, (kind < 0.02).sum(), dtype=np.uint16)
            frames[kind < 0.001] = 0xc000
            frames[kind < 0.0005] = 0xffff
        events[2][1] = PEDESTAL + 2000  # everything is above: dense pieces
        lost = {(1, 0, 3)}
        for kind in TYPES:
            for codec in ("", ZSTD) if kind in ("f32", "u16") else ("",):
                result = self.select(self.capture(events, lost), reducer("sparse", threshold=1.5), codec, output=kind)
                for number, raw in events.items():
                    energy = self.energies(raw)
                    if number == 1:
                        energy[0, 12:16] = np.nan
                    expected = np.where(energy <= np.float32(1.5), np.zeros((), TYPES[kind]), written_as(energy, kind))
                    self.check_pixels(result, number, expected, (kind, codec))
                counts = self.counted(result, "sparse")
                self.assertEqual(counts["kept_dense"], 1)
                self.assertEqual(counts["pixels"], 4 * ROWS * 1024)
                self.assertLess(counts["bytes_out"], 0.4 * counts["bytes_in"])

    def test_without_a_veto_an_event_says_what_sparse_kept(self):
        # Dense pieces, of which an output buffer of pixels has room for four: events begin anywhere in one.
        events = {n: self.frames() + np.uint16(n % 2 * 1000) for n in range(1, 8)}
        capture = self.capture(events, lost={(3, 1, 2)})
        kept = {}
        for number, frames in events.items():
            energy = self.energies(frames)
            if number == 3:
                energy[1, 8:12] = np.nan
            kept[number] = int((energy > 1.5).sum())
        self.assertGreater(max(kept.values()), 100_000)
        self.assertEqual(min(kept.values()), 0)
        for lcores in (FUSED, SPREAD):
            result = self.select(capture, reducer("sparse", threshold=1.5), lcores=lcores)
            self.assertEqual({n: e["pixels_above"] for (_, n), e in result.events.items()}, kept)
            self.assertEqual({e.id: e.pixels_above for e in reader.open(result.run)}, kept)
            self.assertEqual({e["veto"] for e in result.events.values()}, {"none"})
        both = self.select(capture, reducer("veto", threshold=-1e6, min_pixels=1), reducer("sparse", threshold=1.5))
        everything = {n: int((~np.isnan(self.energies(f))).sum()) for n, f in events.items()}
        everything[3] -= 4096
        self.assertEqual({n: e["pixels_above"] for (_, n), e in both.events.items()}, everything)

    def test_noise_is_told_by_pixel(self):
        frames = self.frames()
        rms = self.random.uniform(5, 30, (2, 512, 1024)).astype(np.float32)
        rms[0, FIRST_ROW, :50] = np.nan  # not known: kept above 0
        file = str(self.path("rms.f32", rms.tobytes()))
        result = self.select(self.capture({1: frames}), reducer("sparse", sigma=1, rms=file))
        energy = self.energies(frames)
        limit = np.float32(1) * rms[:, FIRST_ROW:FIRST_ROW + ROWS] * np.float32(1 / PHOTON_ADU)
        expected = np.where(energy <= np.nan_to_num(limit), np.float32(0), energy)
        self.check_pixels(result, 1, expected)
        settings = self.path("bad.toml", config(stream(rows=ROWS), more=reducer("jungfrau", **self.calibrated) +
                                                reducer("sparse", sigma=1, rms=str(self.path("short", bytes(8))))))
        done = weir("replay", self.capture({1: frames}), "--config", settings, "--out", self.path("none"), status=2)
        self.assertIn("found 8 bytes", done.stderr)
        self.assertIn(f"{settings}:", done.stderr)

    def test_nothing_is_written_but_events_are_judged(self):
        events = {1: self.frames(), 2: self.frames()}
        events[2][0, 20, 20:30] += np.uint16(1000)
        result = self.select(self.capture(events), reducer("veto", threshold=0.5, min_pixels=5), sink='kind = "null"')
        self.assertEqual((result.report["events"]["vetoed"], result.report["events"]["written"]), (1, 1))

    def test_the_example_of_a_whole_chain(self):
        text = (ROOT / "examples" / "jungfrau-reduced.toml").read_text()
        if not DATA.exists():
            self.skipTest(f"there is no {DATA}")
        folder = self.path("calibration")
        folder.mkdir()
        for gain in range(3):
            os.symlink(DATA / f"mod5_pedeG{gain}.bin", folder / f"pedestalG{gain}.f32")
        os.symlink(DATA / "mod5_pedeG0_RMS.bin", folder / "rmsG0.f32")
        result = self.replay(DATA / "jungfrau_3realframes.pcap", text, "--require-lossless")
        kinds = [r["kind"] for r in result.report["reduce"]]
        self.assertEqual(kinds, ["jungfrau", "veto", "sparse", "pack"])
        self.assertEqual(result.report["events"]["written"], 3)
        counts = {kind: self.counted(result, kind) for kind in kinds}
        self.assertEqual(counts["veto"]["passed"], 3)
        self.assertEqual(counts["sparse"]["bytes_out"], counts["pack"]["bytes_in"])
        self.assertLess(counts["pack"]["bytes_out"], counts["sparse"]["bytes_in"] // 4)
        for n in range(3):
            raw = np.fromfile(DATA / f"mod5_raw{n}.bin", np.uint16)
            file = self.path(f"event{n}.bin")
            weir("inspect", result.run, "--export", str(n + 1), file, trap=False)
            found = np.fromfile(file, np.uint16)
            self.assertEqual(found.size, raw.size)
            kept = (found > 0) & (found < 65534)
            expected = np.fromfile(DATA / f"mod5_conv{n}.bin", np.float32)
            first = kept & (raw >> 14 == 0)
            self.assertGreater(first.sum(), 10_000)
            # The gains of this module are known to a few percent only: the example has typical ones.
            self.assertLess(np.median(np.abs(found[first] - expected[first])), 1)


if __name__ == "__main__":
    main()
