#!/usr/bin/env python3
"""`weir run` when the sink misbehaves: a disk that stops answering for five seconds, a disk that is full.

usage: sink_test.py WEIR FROZEN_DISK_LIBRARY
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import live
from stop_test import config

FROZEN_DISK = None


def progress(run):
    """[(seconds, packets per second), ...] from the lines that the run prints."""
    lines = [line.split() for line in run.lines if " packets/s" in line]
    return [(float(words[0]), float(words[2])) for words in lines]


class FrozenTest(live.Case):
    def setUp(self):
        super().setUp()
        self.frozen = self.folder / "frozen"
        self.addCleanup(self.frozen.unlink, missing_ok=True)
        self.environment = {**os.environ, "LD_PRELOAD": FROZEN_DISK, "WEIR_FROZEN": str(self.frozen)}

    def test_five_seconds_cost_whole_events_and_nothing_else(self):
        live.repeated(self.freeze_for_five_seconds)

    def freeze_for_five_seconds(self, attempt):
        rate = 20  # more than memory holds in five seconds, and less than any disk takes afterwards
        run = self.weir(config(f"sim,format=jungfrau,rate={rate},seed=3"), "--progress", "line", environment=self.environment, name=f"run{attempt}")
        run.wait_running()
        run.wait_events(rate)
        self.frozen.touch()
        frozen = time.monotonic()
        lines = len(progress(run))
        run.wait_for(lambda: len(progress(run)) >= lines + 6, "five seconds of the run")  # the first line began before
        self.frozen.unlink()
        held = 2 * 64 // 4  # events in memory, and as much again
        run.wait_events(len(run.events_so_far()) + held + 2 * rate)
        cost_s = time.monotonic() - frozen
        run.stop()
        report = run.end()
        if report["device_missed"] > 0:
            raise live.Disturbed("the detector found no room in its queue")
        self.assert_account(run)
        self.assert_no_leftovers(run)

        # rx went on polling at the detector's rate while nothing could be written, and nothing was lost in front of weir.
        packets, events = report["packets"], report["events"]
        during = [per_second for _, per_second in progress(run)[lines + 1:lines + 6]]
        self.assertEqual(len(during), 5, run.errors)
        self.assertGreater(sum(during) / len(during), 0.85 * rate * 256, run.errors)

        # Every loss is a whole event, for want of the sink: of each event all packets are there, or none.
        lost = packets["dropped"]["queue_full"]
        self.assertEqual({name: n for name, n in packets["dropped"].items() if n > 0}, {"queue_full": lost})
        self.assertEqual(events["refused"]["queue_full"], -(-lost // 256))
        self.assertEqual(sum(events["incomplete"].values()), events["incomplete"]["end_of_run"])
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        cut = [event for event in inspected["events"] if not event["complete"]]
        self.assertLessEqual(len(cut), 1)
        self.assertTrue(all(event["id"] == max(e["id"] for e in inspected["events"]) for event in cut))
        cut_packets = packets["placed"] - 256 * events["complete"]
        self.assertEqual(cut_packets, sum(event["bytes"] for event in cut) // 8192)
        sent_events, in_the_last = divmod(packets["received"], 256)
        self.assertEqual(lost % 256, 0 if cut or in_the_last == 0 else in_the_last)
        self.assertEqual(events["complete"] + lost // 256, sent_events)
        self.assertGreater(lost // 256, rate)
        self.assertLess(lost // 256, (cost_s + 2) * rate)

        # Before and after it every event is complete.
        numbers = [event["id"] for event in inspected["events"]]
        missing = sorted(set(range(1, max(numbers) + 1)) - set(numbers))
        if missing != list(range(missing[0], missing[-1] + 1)):
            raise live.Disturbed("the writer was held up once more after the disk was back")
        self.assertGreater(max(numbers) - missing[-1], rate)

    def test_sizes_that_are_not_known_beforehand(self):
        live.repeated(self.freeze_where_sizes_are_not_known)

    def freeze_where_sizes_are_not_known(self, attempt):
        run = self.weir(config("sim,format=ejfat,rate=200,bytes=200000,seed=3", detector="ejfat", memory="16MiB"),
                        environment=self.environment, name=f"run{attempt}")
        run.wait_running()
        run.wait_events(20)
        self.frozen.touch()
        run.wait_progress(lambda one: one["packets"]["dropped"]["no_room"] > 1000, "packets that find no room")
        self.frozen.unlink()
        run.wait_events(len(run.events_so_far()) + 150)
        run.stop()
        report = run.end()
        if report["device_missed"] > 0:
            raise live.Disturbed("the detector found no room in its queue")
        self.assert_account(run)
        self.assertGreater(report["packets"]["dropped"]["no_room"], 0)
        self.assertEqual({name for name, n in report["packets"]["dropped"].items() if n > 0}, {"no_room"})
        # Events that had begun and found no room leave as a whole: they are not written, and they say why.
        self.assertEqual(report["events"]["incomplete"]["no_room"], report["events"]["dropped"]["no_room"])
        self.assertEqual({name for name, n in report["events"]["incomplete"].items() if n > 0} - {"no_room", "end_of_run"}, set())
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        self.assertLessEqual(sum(not event["complete"] for event in inspected["events"]), 2)

    def test_a_second_signal_is_the_way_out(self):
        run = self.weir(config("sim,format=jungfrau,rate=40,seed=3"), environment=self.environment)
        run.wait_running()
        run.wait_events(21)
        self.frozen.touch()
        run.stop()
        run.wait_for(lambda: any(line.startswith("SIGINT") for line in run.lines), "word of the signal")
        time.sleep(1.5)  # a second signal within a second is the first one; and nothing may happen, however long one waits
        self.assertIsNone(run.process.poll(), "it waits for the disk")
        run.stop()
        self.assertEqual(run.process.wait(live.PATIENCE_S), -signal.SIGINT)
        hidden = run.out.with_name(f".{run.out.name}.part")
        self.assertGreater(len(run.inspect(hidden, status=1)["events"]), 20)


class FullTest(live.Case):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(self.disk)], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount a small file system: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.disk)])

    def test_a_full_disk_ends_the_run_with_an_account(self):
        run = self.weir(config("sim,format=jungfrau,rate=40,seed=3"), name="disk/run")
        report = run.end(status=1)
        self.assertIn("No space left on device", run.errors)
        self.assertIn("No space left on device", report["error"])
        self.assertEqual(report["stopped_by"], "the sink failed")
        self.assert_account(run)
        events = report["events"]
        self.assertGreater(events["dropped"]["write_error"], 0)
        self.assertGreater(events["written"], 5)
        # What was written is whole, wherever it is.
        inspected = run.inspect(report["path"], status=0 if pathlib.Path(report["path"]) == run.out else 1)
        self.assertEqual(len(inspected["events"]), events["written"])
        self.assertTrue(all(event["complete"] for event in inspected["events"]))

    def test_a_full_disk_ends_what_receives_a_stream_with_an_account(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        stream = f'\n[[sink]]\nkind = "stream"\nlisten = "tcp://127.0.0.1:{port}"\nstart_timeout_ms = 20000\n'
        report_file = self.folder / "received.json"
        receive = subprocess.Popen([live.Weir.program, "receive", f"tcp://127.0.0.1:{port}", "--out", str(self.disk / "received"), "--series", "1",
                                    "--report", str(report_file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(receive.kill)
        run = self.weir(config("sim,format=jungfrau,rate=40,seed=3") + stream)
        output, errors = receive.communicate(timeout=live.PATIENCE_S)
        run.stop()
        run.end()
        self.assertEqual(receive.returncode, 1, errors)
        self.assertIn("No space left on device", errors)
        report = json.loads(report_file.read_text())
        self.assertIn("No space left on device", report["error"])
        self.assertEqual(report["lossless"], "no")
        [series] = report["series"]
        self.assertGreater(series["received"], 5)
        self.assertGreater(series["unwritten"], 0)
        self.assertEqual(series["refused"] + series["conflicts"] + series["missing"], 0)
        self.assertEqual(report["messages"], 1 + series["received"] + series["unwritten"])
        self.assertIn(f"{series['unwritten']} events of series {series['series_id']} came and could not be written: ", " ".join(report["evidence"]))
        self.assertIn(f"{series['unwritten']} not written", output)
        # What was written is whole, wherever it is.
        path = pathlib.Path(series["path"])
        inspected = run.inspect(path, status=1 if path.name.startswith(".") else 0)
        self.assertEqual(len(inspected["events"]), series["received"])
        self.assertTrue(all(event["complete"] for event in inspected["events"]))

    def test_a_report_that_cannot_be_written_is_found_before_the_run(self):
        file = self.folder / "c.toml"
        file.write_text(config("sim,format=jungfrau,events=5"))
        done = subprocess.run([live.Weir.program, "run", "--config", str(file), "--out", str(self.folder / "run"), "--report",
                               str(self.folder / "no" / "r.json")], capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--report", done.stderr)
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    FROZEN_DISK = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
    live.main(more_arguments=1)
