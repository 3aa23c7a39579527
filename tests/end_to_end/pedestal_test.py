#!/usr/bin/env python3
"""Live pedestals through whole runs, against the same written in numpy: which dark frames are in which generation, which events
are converted with it, whatever lcores there are; snapshots, and what goes on from them."""
import json

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips
import numpy as np

from packets import JUNGFRAU_PORT, jungfrau, pcap_bytes, stamped, udp
from support import FUSED, Case, config, main, stream, weir

ROWS = 8  # of 512, around the middle: two packets
FIRST = (512 - ROWS) // 2
SHAPE = (ROWS, 1024)
GAINS = (41.0, -1.439, -0.1145)
SPREAD = '[lcores]\nrx = [0]\nbuild = [1]\nwork = [2, 3, 4]\nidle = "sleep"\n'
SHARDS = '[lcores]\nrx = [0]\nbuild = [1, 2]\nwork = [3, 4]\nidle = "sleep"\n'
EVERY, INTERVAL, WINDOW, AFTER, OUTLIER = 5, 20, 10, 6, 5
MOVED = 300  # ADU, which is more than the threshold below
THRESHOLD = 6  # keV


class Model:
    """docs/reference/reduce/pedestal.md, in numpy: doubles, but for what it says is a float."""
    def __init__(self, start):
        self.mean = start.astype(np.float64)
        self.variance = np.zeros(SHAPE, np.float32)
        self.weight = np.zeros(SHAPE, np.float32)
        self.published = [(None, start.astype(np.float32), np.full(SHAPE, np.nan, np.float32))]

    def of(self, number):
        """The generation of an event."""
        known = [g for g in self.published if g[0] is None or g[0] <= number // INTERVAL - 2]
        return known[-1]

    def fold(self, interval, frames):
        _, mean, rms = self.of(interval * INTERVAL)
        with np.errstate(invalid="ignore"):
            taken = [(raw >> 14 == 0) & ~(np.abs(raw.astype(np.float32) - mean) > rms * np.float32(OUTLIER)) for raw in frames]
        n = sum((t.astype(np.float64) for t in taken), np.zeros(SHAPE))
        total = sum((np.where(t, raw, 0).astype(np.int64) for t, raw in zip(taken, frames)), np.zeros(SHAPE, np.int64))
        squares = sum((np.where(t, raw, 0).astype(np.int64) ** 2 for t, raw in zip(taken, frames)), np.zeros(SHAPE, np.int64))
        with np.errstate(invalid="ignore", divide="ignore"):
            new = total / n
            spread = (n.astype(np.int64) * squares - total ** 2).astype(np.float64) / (n * n)
            old = np.clip(self.weight.astype(np.float64), 0, np.maximum(WINDOW - n, 0))
            both = old + n
            step = new - self.mean
            variance = (old * self.variance.astype(np.float64) + n * spread) / both + step * step * (old / both) * (n / both)
            mean = np.where(old > 0, self.mean + step * (n / both), new)
            variance = np.where(old > 0, variance, spread).astype(np.float32)
        some = n > 0
        self.mean = np.where(some, mean, self.mean)
        self.variance = np.where(some, variance, self.variance)
        self.weight = np.where(some, np.minimum(both, WINDOW), self.weight).astype(np.float32)
        believed = self.weight >= AFTER
        before = self.of(10 ** 9)[1]
        with np.errstate(invalid="ignore", divide="ignore"):
            rms = np.sqrt(self.variance * (self.weight / (self.weight - np.float32(1))))
        self.published.append((interval, np.where(believed, self.mean.astype(np.float32), before),
                               np.where(believed, rms, np.float32(np.nan)).astype(np.float32)))


def energies(raw, pedestal):
    """In keV, of pixels in G0 and in G1, whose pedestal stays."""
    first = raw >> 14 == 0
    return ((raw & 0x3fff).astype(np.float32) - np.where(first, pedestal, np.float32(13700))) * np.where(
        first, np.float32(1 / GAINS[0]), np.float32(1 / GAINS[1]))


def dark(frames, interval):
    return [frames[n] for n in range(interval * INTERVAL, (interval + 1) * INTERVAL, EVERY)]


class Pedestal(Case):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(7)
        self.start = np.full(SHAPE, 2700, np.float32)
        whole = np.full((512, 1024), 2700, np.float32)
        self.names = [str(self.path(f"g{gain}.f32", (whole + 11000 * (gain > 0)).tobytes())) for gain in range(3)]

    def frame(self, number, photons=True):
        """Noise around a pedestal that drifts; light in what is not dark, and a little of it in what is."""
        raw = np.rint(self.random.normal(2700 + 0.1 * number, 5, SHAPE)).astype(np.uint16)
        if photons:
            raw[self.random.random(SHAPE) < (0.01 if number % EVERY == 0 else 0.2)] += 508
        raw[self.random.random(SHAPE) < 0.01] = 0x4000 | 13000
        return raw

    def capture(self, frames, flag=0, cell=lambda number: 0):
        packets = []
        for number, raw in frames.items():
            for k in range(ROWS // 4):
                data = bytearray(jungfrau(number, 64 - ROWS // 8 + k, raw[4 * k:4 * k + 4].tobytes()))
                data[40:44] = (0x80000000 * bool(flag and number % flag == 0) | cell(number) << 8).to_bytes(4, "little")
                packets.append(udp(bytes(data), JUNGFRAU_PORT))
        self.captures = getattr(self, "captures", 0) + 1
        return self.path(f"capture{self.captures}.pcap", pcap_bytes(stamped(packets)))

    def reducers(self, dark=f"every = {EVERY}", convert=True, cells=1, **keys):
        keys = {"interval": INTERVAL, "frames": WINDOW, "outlier_after": AFTER, "outlier": OUTLIER, **keys}
        text = f'[[reduce]]\nkind = "pedestal"\n{dark}\n' + "".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items())
        if convert:
            text += f'[[reduce]]\nkind = "jungfrau"\npedestal = {json.dumps(self.names)}\ngain = {list(GAINS)}\n'
            text += f"storage_cells = {cells}\n" if cells > 1 else ""
        return text

    def settings(self, more):
        return config(stream(sources=1, rows=ROWS), sources=1, more=more)

    def exported(self, result, number):
        file = self.path(f"event{result.run.name}-{number}.bin")
        weir("inspect", result.run, "--export", str(number), file, trap=False)
        return np.fromfile(file, np.float32).reshape(SHAPE)

    def counted(self, result):
        self.assertEqual(result.report["reduce"][0]["kind"], "pedestal")
        return result.report["reduce"][0]

    def test_each_event_is_converted_with_the_generation_that_its_number_says(self):
        frames = {n: self.frame(n) for n in range(200)}
        model = Model(self.start)
        for interval in range(200 // INTERVAL):
            model.fold(interval, dark(frames, interval))
        capture = self.capture(frames)
        digests = []
        for lcores, threads in ((FUSED, 1), (SPREAD, 1), (SPREAD, 3), (FUSED, 2)):
            result = self.replay(capture, self.settings(self.reducers(threads=threads) + lcores), "--require-lossless")
            digests.append([e["sha256"] for _, e in sorted(result.events.items())])
            counted = self.counted(result)
            self.assertEqual({k: counted[k] for k in ("events", "dark_frames", "dark_taken", "dark_late", "dark_skipped", "late_events", "disordered")},
                             {"events": 200, "dark_frames": 40, "dark_taken": 40, "dark_late": 0, "dark_skipped": 0, "late_events": 0, "disordered": 0})
            self.assertEqual(sum(counted[f"pixels_{k}"] for k in ("taken", "outlier", "other_gain", "missing")), 40 * ROWS * 1024)
            self.assertGreater(counted["pixels_outlier"], 1000)
            generations = result.report["pedestal"]["generations"]
            self.assertEqual([(g["generation"], g.get("first_event")) for g in generations],
                             [(0, None)] + [(k + 1, (k + 2) * INTERVAL) for k in range(10)])
        self.assertEqual(digests, 4 * digests[:1])
        for number in (0, 39, 40, 79, 80, 123, 199):
            expected = energies(frames[number], model.of(number)[1])
            self.assertTrue(np.array_equal(self.exported(result, number), expected), number)
        # Interval 7 is at 14.75 ADU of drift on average; four new frames in a window of ten lag 2 ADU * 0.6 / 0.4 behind.
        self.assertAlmostEqual(float(np.median(model.of(199)[1])), 2700 + 14.75 - 3, delta=0.5)

    def test_each_storage_cell_has_pedestals_of_its_own(self):
        cells, count, unknown = 3, 160, 35
        cell = lambda n: 9 if n == unknown else n % cells  # noqa: E731  there is no cell 9
        starts = [np.full(SHAPE, 2700 + 40 * c, np.float32) for c in range(cells)]
        for gain in range(3):
            planes = [np.full((512, 1024), 2700 + (11000 if gain else 40 * c), np.float32) for c in range(cells)]
            self.names[gain] = str(self.path(f"cells{gain}.f32", np.stack(planes).tobytes()))
        frames = {n: self.frame(n) for n in range(count)}
        for n, raw in frames.items():
            raw[raw >> 14 == 0] += np.uint16(40 * (n % cells))
        models = [Model(start) for start in starts]
        for interval in range(count // INTERVAL):
            for c, model in enumerate(models):
                model.fold(interval, [frames[n] for n in range(interval * INTERVAL, (interval + 1) * INTERVAL, EVERY) if cell(n) == c])
        capture = self.capture(frames, cell=cell)
        digests = []
        for lcores in (FUSED, SPREAD):
            result = self.replay(capture, self.settings(self.reducers(cells=cells) + lcores), "--require-lossless")
            digests.append([e["sha256"] for _, e in sorted(result.events.items())])
            counted = self.counted(result)
            self.assertEqual(counted["dark_taken"], count // EVERY)
            self.assertEqual(sum(counted[f"pixels_{k}"] for k in ("taken", "outlier", "other_gain", "missing")), (count // EVERY - 1) * ROWS * 1024)
        self.assertEqual(digests[1], digests[0])
        self.assertEqual(result.report["plan"]["reduce_memory_bytes"],
                         cells * 512 * 1024 * 68 + (cells + 1) * 512 * 1024 * 12 + 3 * 2 * ROWS * 1024 * 2)
        for number in (0, 39, 40, 120, 121, 122, 159):
            expected = energies(frames[number], models[cell(number)].of(number)[1])
            self.assertTrue(np.array_equal(self.exported(result, number), expected), number)
        self.assertTrue(np.isnan(self.exported(result, unknown)).all())
        moved = [float(np.median(model.of(count)[1] - start)) for model, start in zip(models, starts)]
        self.assertTrue(all(0 < m < 12 for m in moved), moved)

    def moved(self, count, spread):
        """Frames of pixels whose pedestals are not those of the files any more, and what is then known of these."""
        frames = {}
        for n in range(count):
            raw = np.rint(self.random.normal(2700 + MOVED, 1, SHAPE) + self.random.normal(0, 1, SHAPE) * spread).astype(np.uint16)
            raw[self.random.random(SHAPE) < (0.01 if n % EVERY == 0 else 0.002 * (n % 7))] += 508
            raw[self.random.random(SHAPE) < 0.01] = 0x4000 | 13000
            frames[n] = raw
        model = Model(self.start)
        for interval in range(count // INTERVAL):
            model.fold(interval, dark(frames, interval))
        return frames, model

    def test_a_veto_judges_by_the_pedestals_as_they_are(self):
        count, least, most = 120, 120, 4000
        frames, model = self.moved(count, 5)
        above = {n: int((energies(raw, model.of(n)[1]) > THRESHOLD).sum()) for n, raw in frames.items()}
        many = {n for n in frames if above[n] > most}
        few = {n for n in frames if above[n] < least}
        self.assertEqual(many, set(range(3 * INTERVAL)))  # not enough dark frames before: all of them seem to be lit
        self.assertGreater(len(few), 10)
        kept = set(frames) - many - few
        veto = f'[[reduce]]\nkind = "veto"\nthreshold = {THRESHOLD}\nmin_pixels = {least}\nmax_pixels = {most}\n'
        capture = self.capture(frames)
        for keep, lcores in ((True, FUSED), (True, SPREAD), (False, SPREAD)):
            result = self.replay(capture, self.settings(self.reducers(keep=keep) + veto + lcores), "--require-lossless")
            asked = {n for n in frames if keep or n % EVERY}
            self.assertEqual({n: e["pixels_above"] for (_, n), e in result.events.items()}, {n: above[n] for n in kept & asked})
            self.assertEqual(result.report["events"]["vetoed"], count - len(kept & asked))
            counted = {r["kind"]: r for r in result.report["reduce"]}
            self.assertEqual((counted["pedestal"]["events"], counted["pedestal"]["dark_taken"]), (count, count // EVERY))
            self.assertEqual({key: counted["veto"][key] for key in ("events", "many_pixels", "few_pixels")},
                             {"events": len(asked), "many_pixels": len(many & asked), "few_pixels": len(few & asked)})
        number = max(kept & asked)
        self.assertTrue(np.array_equal(self.exported(result, number), energies(frames[number], model.of(number)[1])))

    def test_sparse_keeps_what_is_above_the_noise_that_pixels_have_now(self):
        count, sigma = 120, 4.0
        frames, model = self.moved(count, self.random.uniform(2, 12, SHAPE))
        sparse = f'[[reduce]]\nkind = "sparse"\nsigma = {sigma}\n'
        kept, expected = {}, {}
        for n, raw in frames.items():
            _, pedestal, rms = model.of(n)
            limit = np.float32(sigma) * rms * np.float32(1 / GAINS[0])  # NaN: not known, all above 0 is kept
            energy = energies(raw, pedestal)
            keep = energy > np.where(np.isnan(limit), np.float32(0), limit)
            kept[n], expected[n] = int(keep.sum()), np.where(keep, energy, np.float32(0))
        capture = self.capture(frames)
        for lcores in (FUSED, SPREAD):
            result = self.replay(capture, self.settings(self.reducers() + sparse + lcores), "--require-lossless")
            self.assertEqual({n: e["pixels_above"] for (_, n), e in result.events.items()}, kept)
        for number in (0, 3 * INTERVAL - 1, 3 * INTERVAL, 4 * INTERVAL, count - 1):
            self.assertTrue(np.array_equal(self.exported(result, number), expected[number]), number)
        self.assertGreater(min(kept[n] for n in range(3 * INTERVAL)), 0.9 * ROWS * 1024)
        self.assertLess(max(kept[n] for n in range(3 * INTERVAL, count)), 0.1 * ROWS * 1024)

    def test_what_goes_on_from_a_snapshot_is_as_if_it_had_never_stopped(self):
        frames = {n: self.frame(n, photons=False) for n in range(160)}
        keys = {"outlier": 0.0}
        whole = self.replay(self.capture(frames), self.settings(self.reducers(**keys) + FUSED))
        first = self.replay(self.capture({n: frames[n] for n in range(80)}), self.settings(self.reducers(**keys) + FUSED))
        self.assertEqual(first.report["pedestal"]["snapshots"], ["pedestal-0001.json"])
        start = str(first.run / "pedestal-0001.json")
        second = self.replay(self.capture({n: frames[n] for n in range(80, 160)}), self.settings(self.reducers(start=start, **keys) + FUSED))
        for suffix in ("state", "f32", "rms.f32"):
            self.assertEqual((second.run / f"pedestal-0001.{suffix}").read_bytes(), (whole.run / f"pedestal-0001.{suffix}").read_bytes(), suffix)
        about = json.loads((second.run / "pedestal-0001.json").read_text())
        self.assertEqual((about["gain"], about["dark_frames"], about["first_event"], about["last_event"]), (0, 16, [0, 80], [0, 155]))
        self.assertIn("pedestal-0001.json", second.report["pedestal"]["generations"][0]["from"])

    def test_the_last_snapshot_of_a_folder_is_the_start_of_the_next_run(self):
        folder = self.path("pedestals")
        frames = {n: self.frame(n) for n in range(40)}
        more = self.reducers(start="last", snapshots=str(folder)) + FUSED
        first = self.replay(self.capture(frames), self.settings(more))
        self.assertIn("no snapshot", first.report["pedestal"]["generations"][0]["from"])
        (folder / "pedestal-0007.f32").write_bytes(b"cut off")  # a crash before its JSON file was written
        (folder / ".pedestal-0008.f32.part").write_bytes(b"cut off")
        second = self.replay(self.capture(frames), self.settings(more))
        self.assertIn("pedestal-0001.json", second.report["pedestal"]["generations"][0]["from"])
        self.assertEqual(second.report["pedestal"]["snapshots"], ["pedestal-0008.json"])
        # A damaged one is refused before the run begins.
        state = folder / "pedestal-0008.state"
        state.write_bytes(state.read_bytes()[:-1] + b"\x99")
        done = weir("replay", self.capture(frames), "--config", self.path("run2.toml"), "--out", self.path("none"), status=2)
        self.assertIn("damaged", done.stderr)
        self.assertFalse(self.path("none").exists())

    def test_a_run_of_dark_frames_gives_pedestals_for_the_next_and_no_events(self):
        frames = {n: self.frame(n, photons=False) & 0x3fff for n in range(30)}
        folder = self.path("dark")
        more = self.reducers("all = true", convert=False, keep=False, snapshots=str(folder), frames=1000) + SPREAD
        result = self.replay(self.capture(frames), self.settings(more), "--require-lossless")
        self.assertEqual((result.report["events"]["vetoed"], result.report["events"]["written"]), (30, 0))
        values = np.stack(list(frames.values())).astype(np.float64)
        found = np.fromfile(folder / "pedestal-0001.f32", np.float32).reshape(512, 1024)
        self.assertTrue(np.array_equal(found[FIRST:FIRST + ROWS], values.mean(0).astype(np.float32)))
        self.assertTrue((found[:FIRST] == 0).all())
        rms = np.fromfile(folder / "pedestal-0001.rms.f32", np.float32).reshape(512, 1024)[FIRST:FIRST + ROWS]
        self.assertTrue(np.allclose(rms, values.std(0, ddof=1), rtol=1e-5))
        # As `jungfrau` takes them.
        self.names[0] = str(folder / "pedestal-0001.f32")
        more = self.reducers(convert=True).split("[[reduce]]\n")[-1]
        converted = self.replay(self.capture(frames), self.settings("[[reduce]]\n" + more + FUSED))
        self.assertTrue(np.array_equal(self.exported(converted, 3), (frames[3].astype(np.float32) - found[FIRST:FIRST + ROWS]) * np.float32(1 / 41)))

    def test_dark_frames_are_told_by_a_flag_and_may_be_of_a_forced_gain(self):
        frames = {n: np.where(self.random.random(SHAPE) < 0.5, 0x4000, 0).astype(np.uint16) | self.frame(n, False) & 0x3fff for n in range(64)}
        flag = "flag = { offset = 40, bytes = 4, mask = 0x80000000 }"
        result = self.replay(self.capture(frames, flag=4), self.settings(self.reducers(flag, gain=1, outlier=0.0) + FUSED))
        counted = self.counted(result)
        self.assertEqual(counted["dark_taken"], 16)
        self.assertEqual(counted["pixels_taken"], sum(int((frames[n] >> 14 == 1).sum()) for n in range(0, 64, 4)))
        self.assertEqual(counted["pixels_other_gain"], sum(int((frames[n] >> 14 == 0).sum()) for n in range(0, 64, 4)))

    def test_events_out_of_order_and_several_builders_hold_nothing_up(self):
        numbers = sorted(range(240), key=lambda n: n + 8 * self.random.random())
        capture = self.capture({n: self.frame(n) for n in numbers})
        digests = []
        for lcores in (FUSED, SPREAD, SHARDS):
            result = self.replay(capture, self.settings(self.reducers() + lcores), "--require-lossless")
            counted = self.counted(result)
            self.assertEqual(counted["dark_taken"] + counted["dark_late"], 48)
            if lcores is not SHARDS:  # whose events have no order among each other
                self.assertEqual([counted[k] for k in ("dark_late", "late_events", "disordered")], [0, 0, 0])
                digests.append([e["sha256"] for _, e in sorted(result.events.items())])
        self.assertEqual(digests[1], digests[0])

    def test_without_waiting_everything_is_accounted_for(self):
        frames = {n: self.frame(n) for n in range(150)}
        frames[1 << 40] = self.frame(0)  # one wild number
        frames.update({n: self.frame(n) for n in range(150, 300)})
        more = self.reducers(queue=1) + SPREAD
        result = self.replay(self.capture(frames), self.settings(more), "--drop")
        counted = self.counted(result)
        self.assertEqual(counted["dark_frames"], counted["dark_taken"] + counted["dark_skipped"] + counted["dark_late"])
        self.assertGreater(counted["generations"], 0)


if __name__ == "__main__":
    main()
