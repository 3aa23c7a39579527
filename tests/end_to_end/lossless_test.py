#!/usr/bin/env python3
"""Nothing is called lossless that is not known to be: whole events that never came, sparse numbers, empty runs, the sender's count."""
import json
import random
import struct
import subprocess

from packets import EJFAT_PORT, dune, ejfat, jungfrau, pcap_bytes, roce_message, stamped, udp
from support import WEIR, Case, config, main, stream, weir

EJFAT = config(stream(format="ejfat"))
ONE = config(stream(format="ejfat", sources=1), sources=1)


def frames(numbers, sources=2):
    return [udp(ejfat(n, bytes([n & 0xff, s]) * 50, total=100), EJFAT_PORT + s) for n in numbers for s in range(sources)]


class Lossless(Case):
    def capture(self, frames, name="c.pcap"):
        return self.path(name, pcap_bytes(stamped(frames)))

    def judged(self, frames, text=EJFAT, *args, status=0):
        self.runs += 1
        return self.replay(self.capture(frames, f"c{self.runs}.pcap"), text, *args, status=status)

    def says(self, result, lossless, *words):
        """The same in the report, in the summary, in the manifest and in inspect."""
        evidence = result.report["evidence"]
        self.assertEqual((result.report["lossless"], True), (lossless, len(evidence) > 0), evidence)
        for word in words:
            self.assertIn(word, " ".join(evidence))
        if "--quiet" not in result.output:
            self.assertIn(f"lossless  {lossless}: {evidence[0]}", result.output)
        self.assertNotIn("lost      nothing", result.output)
        self.assertEqual(result.inspect["ledger"]["lossless"], lossless)
        self.assertEqual(result.inspect["run"]["lossless"], lossless)
        self.assertEqual(result.inspect["run"]["evidence"], evidence)
        # In lines that fit a terminal.
        self.assertIn(f"lossless: {lossless} {evidence[0]}", " ".join(weir("inspect", result.run, trap=False).stdout.split()))

    def test_complete_and_counted(self):
        result = self.judged(frames(range(1, 11)), EJFAT, "--require-lossless")
        self.says(result, "yes", "all 10 events from number 1 to 10 came", "what came before the first and after the last is not known")
        self.assertEqual(result.report["numbers_missing"]["total"], 0)

    def test_two_captures_with_events_missing_between(self):
        for status, require in ((3, "--require-lossless"), (3, "--require-lossless=known"), (0, "--quiet")):
            with self.subTest(require):
                self.runs += 1
                files = [self.capture(frames(range(1, 6)), f"a{self.runs}.pcap"), self.capture(frames(range(100, 105)), f"b{self.runs}.pcap")]
                result = self.replay(files, EJFAT, require, status=status)
                self.assertEqual(result.report["lossless"], "no")
                missing = result.report["numbers_missing"]
                self.assertEqual((missing["total"], missing["ranges"], missing["stride"], missing["ranges_left_out"]), (94, [[6, 99]], 1, 0))
                self.assertEqual([s["numbers_missing"] for s in result.report["sources"]], 2 * [{"total": 94, "ranges": [[6, 99]], "numbers_left_out": 0}])
                if require != "--quiet":
                    self.says(result, "no", "94 events never came at all: 6-99")
                    self.assertIn("nothing came of 94 events, numbers 6-99", result.output)

    def test_a_source_that_skips(self):
        skipped = [f for n in range(1, 41) for s in range(2) if not (s == 1 and n % 5 == 0) and n not in (7, 8, 22)
                   for f in [udp(ejfat(n, bytes(100), total=100), EJFAT_PORT + s)]]
        result = self.judged(skipped, EJFAT, "--require-lossless", status=3)
        # The recording may have ended before what event 40 lacks.
        self.says(result, "no", "7 events are incomplete", "3 events never came at all: 7-8, 22")
        first, second = (s["numbers_missing"] for s in result.report["sources"])
        self.assertEqual(first, {"total": 3, "ranges": [[7, 8], [22, 22]], "numbers_left_out": 0})
        self.assertEqual(second["total"], 11)
        self.assertEqual(second["ranges"], [[5, 5], [7, 8], [10, 10], [15, 15], [20, 20], [22, 22], [25, 25], [30, 30], [35, 35], [40, 40]])

    def test_a_source_that_is_away_for_long(self):
        # However many build lcores share the events.
        missing = (300, 301, 350)
        away = [f for n in range(1, 501) for s in range(2) if not (s == 1 and 200 <= n <= 400) and n not in missing
                for f in [udp(ejfat(n, bytes(100), total=100), EJFAT_PORT + s)]]
        often = [f for n in range(1, 501) for s in range(2) if not (s == 1 and n % 5 == 0)
                 for f in [udp(ejfat(n, bytes(100), total=100), EJFAT_PORT + s)]]
        for lcores in ("", '[lcores]\nrx = [0]\nbuild = [0, 1]\nwork = [0]\nidle = "sleep"\n'):
            with self.subTest(lcores=lcores):
                result = self.judged(away, EJFAT + lcores, "--require-lossless", status=3)
                self.assertEqual([s["numbers_missing"] for s in result.report["sources"]], [
                    {"total": 3, "ranges": [[300, 301], [350, 350]], "numbers_left_out": 0}, {"total": 201, "ranges": [[200, 400]], "numbers_left_out": 0}])
                result = self.judged(often, EJFAT + lcores, "--require-lossless", status=3)
                self.assertEqual(result.report["sources"][1]["numbers_missing"], {
                    "total": 100, "ranges": [[n, n] for n in range(5, 85, 5)], "numbers_left_out": 84})

    def test_a_stride_is_learnt_or_said(self):
        numbers = [1000 + 10 * n for n in range(30)]
        self.says(self.judged(frames(numbers), EJFAT, "--require-lossless"), "yes", "by 10")
        result = self.judged(frames(numbers[:10] + numbers[12:]), EJFAT, "--require-lossless", status=3)
        self.assertEqual(result.report["numbers_missing"]["ranges"], [[1100, 1110]])
        said = config(stream(format="ejfat"), events="timeout_ms = 2000\nstride = 5\n")
        self.assertEqual(self.judged(frames(numbers), said).report["numbers_missing"]["total"], 29)

    def test_sparse_numbers_tell_nothing(self):
        chance = random.Random(3)
        prescaled = [n for n in range(1, 3000) if chance.random() < 0.3]
        wild = [chance.getrandbits(64) for _ in range(200)]
        for numbers in (prescaled, wild, [7, 1234]):
            result = self.judged(frames(numbers), EJFAT, "--require-lossless", status=3)
            self.says(result, "unknown", "do not rise by a fixed stride")
            self.assertEqual(result.report["numbers_missing"]["total"], "unknown")
            self.assertEqual(result.report["events"]["complete"], len(numbers))
        known = self.judged(frames(prescaled), EJFAT, "--require-lossless=known")
        self.assertIn("warning: --require-lossless: whether the run was lossless is not known", known.output)
        declared = config(stream(format="ejfat"), events='timeout_ms = 2000\nstride = "sparse"\n')
        self.says(self.judged(frames(range(1, 9)), declared), "unknown", "sparse")
        # With the sender's count the numbers need not tell.
        self.says(self.judged(frames(prescaled), EJFAT, "--expect-events", len(prescaled), "--require-lossless"), "yes", "as many events came as were sent")

    def test_frames_of_a_detector_that_counts_by_one(self):
        text = config(stream(sources=1), sources=1)
        every = [udp(jungfrau(n, p), 50001) for n in range(2, 12, 2) for p in range(128)]
        self.says(self.judged(every, text, "--require-lossless", status=3), "unknown", "frame numbers rise by 2", "events.stride = 2")
        said = config(stream(sources=1), sources=1, events="timeout_ms = 2000\nstride = 2\n")
        self.says(self.judged(every, said, "--require-lossless"), "yes", "by 2")

    def test_datagrams_without_a_number(self):
        text = config(stream(format="message", sources=1, first=40000, event='"arrival"'), sources=1)
        self.says(self.judged([udp(bytes([n] * 20), 40000) for n in range(9)], text, "--require-lossless", status=3), "unknown", "numbered as they come")

    def test_the_count_of_the_sender(self):
        capture, sent = self.send("s.pcap", "--format", "ejfat", "--sources", 2, "--events", 20)
        report = self.folder / "s.pcap.json"
        self.says(self.replay(capture, EJFAT, "--sent", report, "--require-lossless"), "yes", "as many events came as were sent (20,")
        # The end of the run is gone: nothing in the data shows it.
        records = capture.read_bytes()
        short, _ = self.send("short.pcap", "--format", "ejfat", "--sources", 2, "--events", 15)
        self.says(self.replay(short, EJFAT, "--require-lossless"), "yes", "after the last is not known")
        self.says(self.replay(short, EJFAT, "--sent", report, "--require-lossless", status=3), "no", "5 of the 20 events that were sent never came")
        self.says(self.replay(short, EJFAT, "--expect-events", 15, "--require-lossless"), "yes")
        self.says(self.replay(short, EJFAT, "--expect-events", 14, "--require-lossless", status=3), "unknown", "more than the 14")
        # Two senders of the same events count once.
        self.says(self.replay(capture, EJFAT, "--sent", report, "--sent", report, "--require-lossless"), "yes")
        self.assertGreater(len(records), 0)

    def test_wrong_options(self):
        settings = self.path("ok.toml", EJFAT)
        capture = self.capture(frames([1]))
        for args, words in ((["--require-lossless=maybe"], "accepted: --require-lossless"), (["--sent", "/nowhere.json"], "--sent /nowhere.json: cannot be read"),
                            (["--sent", settings], "accepted: a report of weir send"), (["--expect-events", "5", "--sent", settings], "give one of them")):
            done = weir("replay", capture, "--config", settings, *args, status=2, trap=False)
            self.assertIn(words, done.stderr)
        # The value goes after "=" only, so a capture may follow.
        self.replay(self.capture(frames([1, 2]), "next.pcap"), EJFAT)
        weir("replay", "--require-lossless", self.folder / "next.pcap", "--config", settings, "--out", self.folder / "after", trap=False)

    def test_nothing_came(self):
        for name, made in (("empty", []), ("foreign", [udp(b"x" * 100, 9)] * 5)):
            with self.subTest(name):
                result = self.judged(made, EJFAT, status=1)
                self.says(result, "unknown", "no packet came" if not made else "5 packets came, none of them for a configured stream")
                self.assertIn("weir: nothing came for any stream", result.output)
                result = self.judged(made, EJFAT, "--allow-empty")
                self.says(result, "unknown")
                self.judged(made, EJFAT, "--allow-empty", "--require-lossless", status=3)

    def test_dune_has_sequence_numbers(self):
        made = [udp(dune(2048 * n, bytes(64), sequence=n), 40000) for n in range(1, 20) if n != 7]
        text = config(stream(format="dune", sources=1, first=40000), sources=1)
        self.says(self.judged(made, text, "--require-lossless", status=3), "no", "1 packet never came")

    def test_numbers_in_several_epochs(self):
        made = frames(range(1, 11), 1) + frames(range(1, 11), 1)
        result = self.judged(made, ONE)
        self.assertEqual(result.report["events"]["complete"], 20)
        self.says(result, "yes", "in each of 2 epochs")

    def test_a_run_that_was_not_closed(self):
        result = self.judged(frames(range(1, 5)))
        hidden = result.run.parent / ".run.part"
        (result.run / "manifest.json").unlink()
        result.run.rename(hidden)
        found = json.loads(subprocess.run([WEIR, "inspect", hidden, "--json"], capture_output=True, text=True).stdout)
        self.assertEqual(found["run"]["lossless"], "unknown")
        self.assertIn("not closed", found["run"]["evidence"][0])


if __name__ == "__main__":
    main()
