#!/usr/bin/env python3
"""The pcapng sink in a replay: what goes in comes out, the flight recorder saves exactly what is around an incomplete event, and
nothing of it changes the run. The files are read here, by the draft's rules; by capinfos too where it is installed."""
import json
import re
import shutil

from packets import EJFAT_PORT, START_NS, ejfat, ethernet, jungfrau, pcap_bytes, stamped, udp
from pcapng_file import Pcapng
from support import Case, config, main, stream, weir

MS = 10**6


def frames_of(events, step_ns=10 * MS, lost=(), packets=4):
    """EJFAT segments of two sources, an event each `step_ns`, its packets 1 us apart; `lost` are (event, source, packet)."""
    records = []
    for event in range(events):
        for source in range(2):
            for packet in range(packets):
                if (event, source, packet) in lost:
                    continue
                data = bytes([event & 0xff, source, packet, 7]) * 250
                frame = udp(ejfat(event, data, packet * 1000, packets * 1000, source), EJFAT_PORT + source)
                records.append((START_NS + event * step_ns + (source * packets + packet) * 1000, frame))
    return records


class Recorder(Case):
    def sink(self, more, name="{name}.pcapng", other=""):
        return f'{other}kind = "pcapng"\npath = "{self.folder}/{name}"\nkeep_free = "1MiB"\n{more}'

    def record(self, records, more="", name="{name}.pcapng", timeout_ms=50, other="", args=(), status=0):
        """Replays `records` into a pcapng sink; returns the report and what was said."""
        capture = self.path("in.pcap", pcap_bytes(records))
        text = config(stream(format="ejfat"), events=f"timeout_ms = {timeout_ms}\n", sink=self.sink(more, name, other))
        settings = self.path("record.toml", text)
        report = self.path("report.json")
        done = weir("replay", capture, "--config", settings, "--report", report, *args, status=status)
        result = json.loads(report.read_text())
        self.assertIs(result["balanced"], True)
        self.assertEqual(result["packets"]["received"], len(records))
        recorder = result["recorder"]
        self.assertEqual(recorder["seen"], len(records))
        self.assertEqual(list(self.folder.glob(".*.part")), [])
        self.assertEqual(recorder["files"], len(recorder["paths"]))
        return result, done.stdout + done.stderr

    def windows(self, records, *bounds):
        return [[(t, f, len(f)) for t, f in records if begin <= t <= end] for begin, end in bounds]

    def saved(self):
        return [Pcapng(path) for path in sorted(self.folder.glob("run-*.pcapng"))]

    def test_what_goes_in_comes_out(self):
        strange = [ethernet(bytes(28), 0x0806), b"\0" * 14, b"\1", udp(b"nobody", 9), udp(b"broken", EJFAT_PORT)]
        records = frames_of(30)
        records += [(records[-1][0] + i, frame) for i, frame in enumerate(strange)]
        cut = udp(ejfat(99, bytes(2000), 0, 2000), EJFAT_PORT)
        records.append((records[-1][0], cut[:60], len(cut)))
        result, said = self.record(records)
        file = Pcapng(self.folder / "run.pcapng")
        self.assertEqual(file.records, [(r[0], r[1], r[2] if len(r) > 2 else len(r[1])) for r in records])
        self.assertEqual(file.names, ["det0"])
        self.assertEqual(file.statistics, [{4: len(records), 6: len(records), 7: 0, 8: len(records)}])
        self.assertEqual(result["recorder"]["written"], len(records))
        self.assertEqual(result["recorder"]["left_out"], 0)
        self.assertEqual(result["events"]["written"], result["events"]["complete"] + result["events"]["incomplete"]["end_of_run"])
        self.assertIn(f"recorded  {len(records)} of {len(records)} packets in 1 file: {self.folder}/run.pcapng", said)
        # And what came out goes in again.
        again = self.replay(self.folder / "run.pcapng", config(stream(format="ejfat")))
        self.assertEqual(again.report["packets"], result["packets"])

    def test_beside_an_event_file(self):
        records = frames_of(20, lost=[(7, 0, 1)])
        other = f'kind = "events"\npath = "{self.folder}/{{name}}-{{run:03}}"\n[[sink]]\n'
        result, _ = self.record(records, name="{name}-{run:03}.pcapng", other=other)
        self.assertEqual(result["recorder"]["paths"], [f"{self.folder}/run-001.pcapng"])
        self.assertEqual(len(Pcapng(self.folder / "run-001.pcapng").packets), len(records))
        found = json.loads(weir("inspect", self.folder / "run-001", "--json", trap=False).stdout)
        self.assertEqual([e["id"] for e in found["events"] if not e["complete"]], [7])
        self.assertEqual(len(found["events"]), 20)

    def test_segments_compression_and_cut_packets(self):
        records = frames_of(200)
        result, _ = self.record(records, 'segment_bytes = "1MiB"\n', name="{name}.pcapng.zst")
        self.assertEqual(result["recorder"]["written"], len(records))
        paths = [self.folder / "run.pcapng.zst", self.folder / "run-0002.pcapng.zst"]
        self.assertEqual(result["recorder"]["paths"][0], str(paths[0]))
        again = self.replay(result["recorder"]["paths"], config(stream(format="ejfat")))
        self.assertEqual(again.report["events"]["complete"], 200)
        result, _ = self.record(records, "snap_bytes = 80\n", name="cut.pcapng")
        file = Pcapng(self.folder / "cut.pcapng")
        self.assertEqual(file.snap, 80)
        self.assertEqual(file.records, [(t, f[:80], len(f)) for t, f in records])

    FLIGHT = 'packets = "incomplete"\nseconds = 2\nbefore = 0.1\nafter = 0.05\n'

    def test_the_flight_recorder_saves_what_is_around_an_incomplete_event(self):
        records = frames_of(400, lost=[(150, 1, 2)])
        result, _ = self.record(records, self.FLIGHT)
        first = START_NS + 150 * 10 * MS
        file, = self.saved()
        self.assertEqual([file.records], self.windows(records, (first - 100 * MS, first + 50 * MS + 50 * MS)))
        self.assertEqual(file.comments, ["event 150 incomplete: timeout, source 1 is not whole"])
        recorder = result["recorder"]
        self.assertEqual(recorder["triggers"], {"incomplete": 1, "drops": 0, "request": 0, "unsaved": 0})
        self.assertEqual(recorder["written"], len(file.records))
        self.assertEqual(recorder["left_out"], 0)
        self.assertEqual(result["events"]["complete"], 399)

    def test_missing_packets_are_told_where_their_number_is_known(self):
        frames = [udp(jungfrau(event, packet, bytes(8192), module=module), 50001 + module)
                  for event in range(1, 5) for module in range(2) for packet in range(128)
                  if not (event == 2 and module == 1 and packet in (5, 9)) and not (event == 3 and module == 0)]
        records = stamped(frames, step_ns=100_000)
        capture = self.path("in.pcap", pcap_bytes(records))
        settings = self.path("r.toml", config(stream(), events="timeout_ms = 50\n", sink=self.sink(self.FLIGHT + 'memory = "16MiB"\n')))
        weir("replay", capture, "--config", settings, "--quiet")
        file, = self.saved()
        self.assertEqual(file.comments, ["event 2 incomplete: timeout, source 1 misses 2 packets"])
        later = [text for packet in file.packets for text in packet[3]] + file.last_words
        self.assertEqual(later, ["event 3 incomplete: timeout, source 0 misses everything"])

    def test_triggers_close_together_make_one_file_and_others_more(self):
        lost = [(100, 0, 0), (112, 1, 3), (300, 0, 1)]
        records = frames_of(600, lost=lost)
        result, said = self.record(records, self.FLIGHT)
        at = lambda event: START_NS + event * 10 * MS
        # What came first of event 100 is its second packet.
        expected = self.windows(records, (at(100) + 1000 - 100 * MS, at(112) + 100 * MS), (at(300) - 100 * MS, at(300) + 100 * MS))
        files = self.saved()
        self.assertEqual([file.records for file in files], expected)
        self.assertEqual([[c.split(":")[0] for c in file.comments] for file in files], [["event 100 incomplete"], ["event 300 incomplete"]])
        commented = [(t, text) for t, _, _, texts in files[0].packets for text in texts]
        self.assertEqual(commented, [(at(117), "event 112 incomplete: timeout, source 1 is not whole")])
        self.assertEqual(result["recorder"]["triggers"]["incomplete"], 3)
        # A limit keeps it from writing for ever, and is said.
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        result, said = self.record(records, self.FLIGHT + "files_max = 1\n")
        self.assertEqual([file.records for file in self.saved()], expected[:1])
        self.assertIn("1 files (files_max)", result["recorder"]["stopped"])
        self.assertIn("no more packets are recorded", said)

    def test_the_end_of_a_capture_is_worth_saving(self):
        records = frames_of(50, lost=[(49, 1, 3)])
        self.record(records, self.FLIGHT)
        file, = self.saved()
        self.assertEqual(file.comments, ["event 49 incomplete: end_of_run, source 1 is not whole"])
        self.assertEqual(file.records[-1][:2], records[-1])

    def test_a_burst_of_drops_is_saved(self):
        # Traffic in the middle of which packets come that are for a stream and cannot be read.
        records = frames_of(250)
        broken = [(START_NS + 700 * MS + i * 100_000, udp(b"broken", EJFAT_PORT)) for i in range(300)]
        records = sorted(records + broken)
        # Time enough on both sides of it for a machine that is held up.
        flight = self.FLIGHT.replace("before = 0.1", "before = 1")
        result, _ = self.record(records, flight + "drops = 200\n", args=("--pace", "recorded"))
        self.assertEqual(result["recorder"]["triggers"], {"incomplete": 0, "drops": 1, "request": 0, "unsaved": 0})
        self.assertEqual(sum(n for cause, n in result["packets"]["dropped"].items() if cause.startswith("malformed")), 300)
        file, = self.saved()
        comment, = file.comments
        lost = int(re.fullmatch(r"packets are being lost: (\d+) within a second", comment)[1])
        self.assertTrue(200 <= lost <= 300, comment)
        times = [record[0] for record in file.records]
        # It is seen when it is looked, every 50 ms: from 200 of the broken ones on.
        self.assertLess(times[0], START_NS + 700 * MS)
        self.assertTrue(START_NS + 720 * MS <= times[-1] <= START_NS + 2000 * MS, times[-1] - START_NS)
        self.assertEqual([record[:2] for record in file.records], [r for r in records if times[0] <= r[0] <= times[-1]])

    def test_few_drops_are_no_burst(self):
        records = frames_of(100)
        records = sorted(records + [(START_NS + 700 * MS + i * 100_000, udp(b"broken", EJFAT_PORT)) for i in range(150)])
        for drops in (200, 0):
            result, _ = self.record(records, self.FLIGHT + f"drops = {drops}\n", args=("--pace", "recorded"))
            self.assertEqual(result["recorder"]["triggers"]["drops"], 0)
            self.assertEqual(self.saved(), [])

    def test_nothing_wrong_no_file(self):
        result, _ = self.record(frames_of(100), self.FLIGHT)
        self.assertEqual(self.saved(), [])
        self.assertEqual(result["recorder"]["written"], 0)
        self.assertEqual(result["recorder"]["left_out"], 0)

    def test_little_memory_costs_the_capture_and_not_the_run(self):
        frame = udp(ejfat(1, bytes(8000), 0, 8000), EJFAT_PORT)
        records = [(START_NS + i * 100_000, udp(ejfat(i // 2, bytes(8000), 0, 8000, i % 2), EJFAT_PORT + i % 2))
                   for i in range(5000) if i != 4500]
        self.assertGreater(len(records) * len(frame), 2 * (16 << 20))
        result, _ = self.record(records, 'memory = "16MiB"\n', name="all.pcapng")
        self.assertEqual(result["recorder"]["written"], len(records))  # the replay waited
        result, _ = self.record(records, self.FLIGHT + 'memory = "16MiB"\n')
        self.assertEqual(result["events"]["complete"], 2499)
        self.assertEqual(result["recorder"]["left_out"], 0)
        self.assertLess(result["recorder"]["shortest_seconds"], 2)
        file, = self.saved()
        self.assertIn((records[4500][0], records[4500][1], len(records[4500][1])), file.records)

    def test_what_must_stay_free_stays_free(self):
        records = frames_of(50)
        result, said = self.limited(records, status=1, keep_free="15TiB")
        self.assertEqual(result["recorder"]["written"], 0)
        self.assertEqual(result["recorder"]["left_out"], result["recorder"]["seen"])
        self.assertIn("keep_free", result["recorder"]["stopped"])
        self.assertIn("keep_free", result["error"])
        self.assertIs(result["balanced"], True)
        result, said = self.limited(records, keep_free="0B", bytes_max="100kB")
        self.assertIn("no more packets are recorded: 100000 bytes (bytes_max)", said)
        self.assertEqual(result["events"]["complete"], 50)
        file = Pcapng(self.folder / "limited.pcapng")
        self.assertEqual(file.records, [(t, f, len(f)) for t, f in records[:len(file.records)]])
        self.assertGreater(len(file.records), 50)
        self.assertLess((self.folder / "limited.pcapng").stat().st_size, 101_000)
        self.assertIn("recording ended here", file.last_words[0])
        self.assertEqual(result["recorder"]["written"] + result["recorder"]["left_out"], len(records))

    def limited(self, records, status=0, **keys):
        capture = self.path("in.pcap", pcap_bytes(records))
        more = "".join(f'{key} = "{value}"\n' for key, value in keys.items())
        sink = f'kind = "pcapng"\npath = "{self.folder}/limited.pcapng"\n{more}'
        settings = self.path("limited.toml", config(stream(format="ejfat"), sink=sink))
        report = self.path("report.json")
        done = weir("replay", capture, "--config", settings, "--report", report, status=status)
        return json.loads(report.read_text()), done.stderr

    def test_a_path_that_is_taken_is_refused(self):
        self.path("run.pcapng", b"")
        capture = self.path("in.pcap", pcap_bytes(frames_of(1)))
        settings = self.path("r.toml", config(stream(format="ejfat"), sink=self.sink("")))
        done = weir("replay", capture, "--config", settings, status=1)
        self.assertIn("run.pcapng exists already", done.stderr)


if __name__ == "__main__":
    main()
