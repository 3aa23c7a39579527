#!/usr/bin/env python3
"""`weir diff`: runs of the same packets are the same, however they were written; and each way in which events can differ is
found and said. What differs is made on purpose, in captures and in the files of a run."""
import json
import shutil
import struct
import subprocess

from packets import EJFAT_PORT, JUNGFRAU_PORT, ejfat, jungfrau, pcap_bytes, stamped, udp
from support import FUSED, WEIR, ZSTD, Case, config, main, stream, weir

SPREAD = '[lcores]\nrx = [0]\nbuild = [0]\nwork = [0, 1]\nidle = "pause"\n'
EVENTS = config(stream(format="ejfat"), events="timeout_ms = 100\n")
PACK = '[[reduce]]\nkind = "pack"\ncodec = "lz4"\n'
ENERGIES = ('[[reduce]]\nkind = "jungfrau"\npedestal = [["{0}", "{0}"], ["{0}", "{0}"], ["{0}", "{0}"]]\ngain = [40.0, -1.4, -0.1]\noutput = "{1}"\n')


def two_sources(number, change=None):
    """Event `number` of two messages of 600 bytes in two packets each."""
    frames = []
    for source in range(2):
        data = bytearray(bytes([number & 0xff, source]) * 300)
        if change and change[0] == source:
            data[change[1]] ^= change[2]
        frames += [udp(ejfat(number, bytes(data[at:at + 300]), at, 600), EJFAT_PORT + source) for at in (0, 300)]
    return frames


class Diff(Case):
    def run_of(self, frames, text=EVENTS, name=None):
        self.runs += 1
        capture = self.path(f"c{self.runs}.pcap", pcap_bytes(stamped(frames)))
        return self.replay(capture, text).run

    def diff(self, first, second, *args, status=1):
        done = weir("diff", first, second, "--json", *args, status=status, trap=False)
        found = json.loads(done.stdout)
        self.assertEqual(found["same"], status == 0)
        totals = found["totals"]
        self.assertEqual(totals["compared"], totals["same"] + totals["differ"])
        self.assertEqual(len(found["events"]), totals["differ"] + totals["only_first"] + totals["only_second"])
        # The text says as much, by the same exit status.
        text = weir("diff", first, second, *args, status=status, trap=False).stdout
        self.assertIn(f"{totals['same']} the same, {totals['differ']} not", text)
        found["text"] = text
        return found

    def test_the_same_packets_are_the_same_events(self):
        frames = [frame for n in range(1, 31) for frame in two_sources(n)]
        plain = self.run_of(frames)
        self.assertEqual(self.diff(plain, plain, status=0)["totals"]["same"], 30)
        for more in (ZSTD, PACK, FUSED, SPREAD, ZSTD + SPREAD):
            with self.subTest(more=more):
                other = self.run_of(frames, config(stream(format="ejfat"), events="timeout_ms = 100\n", more=more))
                found = self.diff(plain, other, status=0)
                self.assertEqual(found["totals"]["same"], 30)
                kinds = [entry for entry in found["description"] if entry["key"] == "/reduce/0/kind"]
                self.assertEqual(kinds, [{"key": "/reduce/0/kind", "values": [None, "zstd" if "zstd" in more else "pack"]}] if "kind" in more else [])

    def test_other_order(self):
        blocks = [two_sources(n) for n in range(1, 21)]
        forward = self.run_of([frame for block in blocks for frame in block])
        backward = self.run_of([frame for block in reversed(blocks) for frame in block])
        self.assertEqual(self.diff(forward, backward, status=0)["totals"]["same"], 20)
        self.diff(forward, backward, "--times", status=1)

    def test_one_byte(self):
        frames = [frame for n in range(1, 6) for frame in two_sources(n)]
        changed = [frame for n in range(1, 6) for frame in two_sources(n, (1, 417, 0x20) if n == 3 else None)]
        found = self.diff(self.run_of(frames), self.run_of(changed))
        self.assertEqual(found["events"], [{"epoch": 0, "id": 3, "in": "both", "sources": [
            {"id": 1, "payload": {"compared": 600, "bytes": 1, "first_offset": 417, "first_bytes": [1, 0x21]}}]}])
        self.assertIn("1 of 600 bytes differ, the first at 417: 0x01 | 0x21", found["text"])

    def test_pixels_have_row_and_column(self):
        def frames(change):
            out = []
            for module in range(2):
                for packet in range(128):
                    pixels = bytearray(struct.pack("<H", 1000 + packet) * 4096)
                    if change and (module, packet) == (1, 5):
                        pixels[2 * (1024 * 2 + 7):2 * (1024 * 2 + 7) + 2] = struct.pack("<H", 1500)  # row 2 of packet 5's four
                        pixels[0] ^= 1
                    out.append(udp(jungfrau(9, packet, bytes(pixels)), JUNGFRAU_PORT + module))
            return out
        text = config(stream(), events="timeout_ms = 100\n")
        found = self.diff(self.run_of(frames(False), text), self.run_of(frames(True), text))
        payload = found["events"][0]["sources"][0]["payload"]
        self.assertEqual(found["events"][0]["sources"][0]["id"], 1)
        self.assertEqual((payload["compared"], payload["bytes"], payload["pixels"], payload["largest"]), (1 << 20, 3, 2, 495))
        self.assertEqual(payload["first_offset"], 5 * 8192)
        self.assertEqual(payload["listed"], [{"row": 20, "column": 0, "values": [1005, 1004]}, {"row": 22, "column": 7, "values": [1005, 1500]}])

    def test_a_lost_packet_and_an_event_of_one_run_only(self):
        frames = [frame for n in range(1, 8) for frame in two_sources(n)]
        lossy = list(frames)
        del lossy[4 * 2 + 1]  # of event 3, source 0: bytes 300 to 600
        del lossy[4 * 5 - 1:4 * 6 - 1]  # event 6
        found = self.diff(self.run_of(frames), self.run_of(lossy))
        events = {event["id"]: event for event in found["events"]}
        self.assertEqual(set(events), {3, 6})
        self.assertEqual(events[6], {"epoch": 0, "id": 6, "in": "first"})
        self.assertEqual(events[3]["changes"], {"complete": [True, False], "cause": ["none", "timeout"]})
        source = events[3]["sources"]
        self.assertEqual([(one["id"], one["changes"]) for one in source],
                         [(0, {"state": ["complete", "partial"], "received": [600, 300], "missing": [[], [[300, 300]]]})])
        self.assertNotIn("payload", source[0])
        swapped = self.diff(self.run_of(lossy), self.run_of(frames))
        self.assertEqual([event["in"] for event in swapped["events"]], ["both", "second"])

    def test_damage_is_a_difference_and_both_sides_are_named(self):
        frames = [frame for n in range(1, 6) for frame in two_sources(n)]
        good = self.run_of(frames)
        bad = self.folder / "bad"
        shutil.copytree(good, bad)
        segment = bad / "events-000000.weir"
        data = bytearray(segment.read_bytes())
        place = data.index(bytes([3, 0]) * 300)
        data[place] ^= 0xff
        segment.write_bytes(data)
        found = self.diff(good, bad)
        self.assertEqual((found["totals"]["differ"], found["totals"]["unreadable"]), (1, 1))
        first, second = found["events"][0]["changes"]["unreadable"]
        self.assertEqual(found["events"][0]["id"], 3)
        self.assertIsNone(first)
        self.assertIn("events-000000.weir at byte", second)
        self.diff(bad, bad)  # what cannot be read is not said to be the same

    def test_an_unfinished_run(self):
        good = self.run_of([frame for n in range(1, 6) for frame in two_sources(n)])
        cut = self.folder / "cut"
        shutil.copytree(good, cut)
        (cut / "manifest.json").unlink()
        done = weir("diff", good, cut, trap=False)
        self.assertIn("was not closed", done.stderr)
        self.assertIn("5 the same", done.stdout)

    def energies(self, frames, output):
        pedestal = self.path("pedestal.f32", struct.pack("<f", 100.0) * (512 * 1024))
        return self.run_of(frames, config(stream(), events="timeout_ms = 100\n", more=ENERGIES.format(pedestal, output)))

    def test_calibrated_pixels_with_a_tolerance(self):
        def frames(change):
            return [udp(jungfrau(4, packet, struct.pack("<H", 200 + packet + (change if packet == 64 else 0)) * 4096), JUNGFRAU_PORT + module)
                    for module in range(2) for packet in range(128)]
        raw = self.run_of(frames(0), config(stream(), events="timeout_ms = 100\n"))
        exact, moved = self.energies(frames(0), "f32"), self.energies(frames(1), "f32")
        found = self.diff(exact, moved)
        payload = found["events"][0]["sources"][0]["payload"]
        self.assertEqual((payload["pixels"], payload["bytes"], payload["listed"][0]["row"], payload["listed"][0]["column"]), (4096, 4 * 4096, 256, 0))
        self.assertAlmostEqual(payload["largest"], 1 / 40, 5)
        self.diff(exact, moved, "--tolerance", "0.03", status=0)
        self.diff(exact, moved, "--tolerance", "0.02")
        half = self.energies(frames(0), "f16")
        self.diff(exact, half, "--tolerance", "0.01", status=0)
        # Energies and what was received are not the same thing.
        found = self.diff(raw, exact)
        self.assertEqual(found["events"][0]["changes"]["content"], ["received", "pixels"])
        self.assertIn("calibrated pixels", weir("diff", raw, exact, "--tolerance", "1", status=2, trap=False).stderr)

    def test_limits_and_words(self):
        frames = [frame for n in range(1, 31) for frame in two_sources(n)]
        other = [frame for n in range(1, 31) for frame in two_sources(n, (0, n, 1))]
        first, second = self.run_of(frames), self.run_of(other)
        text = weir("diff", first, second, status=1, trap=False).stdout
        self.assertIn("... and 10 more (--limit)", text)
        self.assertEqual(text.count("\nevent 0:"), 20)
        limited = json.loads(weir("diff", first, second, "--json", "--limit", "3", status=1, trap=False).stdout)
        self.assertEqual([event["id"] for event in limited["events"]], [1, 2, 3])
        self.assertEqual(limited["totals"]["differ"], 30)
        done = weir("diff", first, second, "--quiet", status=1, trap=False)
        self.assertEqual(done.stdout + done.stderr, "")
        found = json.loads(weir("diff", first, second, "--json", "--max-event", "1000", status=1, trap=False).stdout)
        self.assertEqual(found["totals"]["unreadable"], 30)

    def test_wrong_usage(self):
        run = self.run_of(two_sources(1))
        for args, text in (((run,), "two runs are compared"), ((run, run, run), "found 3 runs"), ((run, self.folder / "none"), "does not exist"),
                           ((self.folder, run), "is not a run"), ((run, run, "--tolerance", "x"), "--tolerance"), ((run, run, "--tolerance", "-1"), "from 0 on"),
                           ((run, run, "--max-event", "0"), "--max-event"), ((run, run, "--nosuch"), "nosuch")):
            with self.subTest(args=args):
                self.assertIn(text, weir("diff", *args, status=2, trap=False).stderr)
        self.assertIn("exit status", subprocess.run([WEIR, "diff", "--help"], capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
