#!/usr/bin/env python3
"""`weir run` on a disk whose calls fail: exit status, what is said, the account, and what is on disk, which must agree.

usage: faults_test.py WEIR FAULTS_LIBRARY
"""

import errno
import os
import pathlib
import shutil
import subprocess
import sys

import live

FAULTS = None
EVENTS = 60


def config(events=EVENTS, rate=400, sink=""):
    limit = f",events={events}" if events else ""
    return f"""[[port]]
name = "det0"
rx_descriptors = 4096
device = "sim,format=ejfat,rate={rate},bytes=60000,seed=3{limit}"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = 19522
format = "ejfat"
[events]
sources = 1
memory = "4MiB"
timeout_ms = 20000
[[sink]]
kind = "events"
path = "unused"
segment_bytes = "1MiB"
sync_bytes = "64KiB"
sync_ms = 20
{sink}
[lcores]
idle = "sleep"
"""


class FaultTest(live.Case):
    def faulty(self, faults, text=None, name="run", more=()):
        environment = {**os.environ, "LD_PRELOAD": FAULTS, "WEIR_FAULTS": faults, "WEIR_SYNC_LOG": str(self.folder / "synced")}
        return self.weir(text or config(), *more, name=name, environment=environment)

    def fails(self, faults, *words, named, text=None, verified=None):
        """The run fails with these words; what it calls written is there, and under its name if `named`."""
        run = self.faulty(faults, text)
        report = run.end(status=1)
        self.assert_account(run)
        message = [line for line in run.lines if line.startswith("weir: ")]
        self.assertEqual(len(message), 1, run.errors)
        for word in words:
            self.assertIn(word, message[0])
        self.assertEqual(run.out.exists(), named, message)
        path = pathlib.Path(report["path"])
        self.assertEqual(path, run.out if named else run.out.with_name(".run.part"))
        if not named:
            self.assertIn(f"weir inspect {path}", message[0])
        verified = named if verified is None else verified
        inspected = run.inspect(path, status=0 if verified else 1)
        self.assertEqual(inspected["verified"], verified)
        self.assertEqual(len(inspected["events"]), report["events"]["written"])
        self.assertEqual([event["id"] for event in inspected["events"]], sorted({event["id"] for event in inspected["events"]}))
        self.assertTrue(all(event["complete"] for event in inspected["events"]))
        return report

    def works(self, faults, text=None):
        run = self.faulty(faults, text)
        report = run.end()
        self.assert_account(run)
        self.assert_no_leftovers(run)
        self.assertEqual(report["events"]["written"], EVENTS)
        self.assertEqual(len(run.inspect()["events"]), EVENTS)

    def test_no_space_in_the_middle_of_a_block(self):
        report = self.fails(f"write/events-:3-3:short;write/events-:4-0:{errno.ENOSPC}", "No space left", "make room", named=True)
        self.assertGreater(report["events"]["dropped"]["write_error"], 0)

    def test_a_disk_that_is_full_and_has_room_again(self):
        report = self.fails(f"write:5-5:{errno.ENOSPC}", "No space left", "make room", named=True)
        self.assertGreater(report["events"]["written"], 0)

    def test_a_disk_that_stays_full(self):
        self.fails(f"write:5-0:{errno.ENOSPC}", "No space left", named=False)

    def test_a_quota_that_shows_when_syncing(self):
        self.fails(f"sync:3-3:{errno.EDQUOT}", "quota", "have it raised", named=False)

    def test_a_device_that_fails_once(self):
        self.fails(f"write/events-:4-4:{errno.EIO}", "Input/output error", "dmesg", named=True)

    def test_a_sync_that_failed_is_not_tried_again(self):
        report = self.fails(f"sync/events-:4-4:{errno.EIO}", "cannot sync", "Input/output error", named=False)
        self.assertGreater(report["events"]["dropped"]["write_error"], 0)

    def test_a_full_file_that_cannot_be_synced_at_the_end_is_set_aside(self):
        report = self.fails(f"sync/events-000000:1-1:{errno.EIO}", "cannot sync", "Input/output error", "events-000000.weir (",
                            named=False, text=config(sink='sync = "end"'))
        aside = self.folder / ".run.part" / "events-000000.weir.unsynced"
        self.assertGreater(aside.stat().st_size, 1 << 19)
        lost = report["events"]["dropped"]["write_error"]
        self.assertEqual(report["events"]["written"] + lost, EVENTS)
        self.assertTrue(10 < lost < 50, lost)

    def test_a_file_system_that_becomes_read_only(self):
        error = errno.EROFS
        self.fails(f"write:6-0:{error};open:5-0:{error};rename:1-0:{error}", "Read-only file system", "dmesg", named=False)

    def test_closing_and_naming(self):
        report = self.fails(f"rename:2-2:{errno.EIO}", "cannot rename", named=False, verified=True)
        self.assertEqual(report["events"]["written"], EVENTS)
        shutil.rmtree(self.folder / ".run.part")
        report = self.fails(f"close/events-:1-1:{errno.EDQUOT}", "cannot close", "quota", named=True)
        self.assertGreater(report["events"]["written"], 0)

    def test_a_manifest_that_cannot_be_written(self):
        report = self.fails(f"open/manifest:1-0:{errno.EACCES}", "manifest", "Permission denied", "permission", named=False)
        self.assertEqual(report["events"]["written"], EVENTS)

    def test_short_writes_interruptions_and_a_slow_device_are_nothing(self):
        everywhere = ";".join(f"{call}:2-4:{errno.EINTR}" for call in ("write", "sync", "fsync", "open"))
        self.works(f"write:1-0:short;write:1-0:delay=5;sync:1-0:delay=5;{everywhere}")

    def test_removed_while_it_runs(self):
        run = self.faulty("", config(events=0))
        run.wait_running()
        run.wait_events(10)
        shutil.rmtree(self.folder / ".run.part")
        report = run.end(status=1)
        self.assert_account(run)
        self.assertIn("removed", run.errors)
        self.assertEqual(report["events"]["written"], 0)
        self.assertGreater(report["events"]["dropped"]["write_error"], 0)
        self.assertEqual(list(self.folder.glob(".*")), [])

    def refused(self, out, *words, text=None, user=None):
        file = self.folder / "refused.toml"
        file.write_text(text or config())
        done = subprocess.run([live.Weir.program, "run", "--config", str(file), "--out", str(out)], capture_output=True, text=True,
                              timeout=live.PATIENCE_S, user=user)
        self.assertEqual(done.returncode, 1, done.stderr)
        message = [line for line in done.stderr.splitlines() if line.startswith("weir: ")]
        self.assertEqual(len(message), 1, done.stderr)
        for word in words:
            self.assertIn(word, message[0])

    def test_places_that_cannot_be_written_are_refused_at_the_start(self):
        self.refused(self.folder / "no" / "run", str(self.folder / "no"), "is its file system mounted?")
        self.refused(self.folder / "run", str(self.folder), "no file system is mounted",
                     text=config(sink=f'require_mount = "{self.folder}"'))
        if os.geteuid() == 0 and live.is_real_root():
            self.refused(self.folder / "run", "Permission denied", "permission", user=65534)
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "none", str(disk)], capture_output=True)
        if mounted.returncode == 0:
            self.addCleanup(subprocess.run, ["umount", "-l", str(disk)])
            self.refused(disk / "run", "Read-only file system", "only be read")
            subprocess.run(["mount", "-o", "remount,rw,size=64k", str(disk)], check=True)
            self.refused(disk / "run", "No space left", "make room")
            self.assertEqual(list(disk.iterdir()), [])
        self.assertEqual([path.name for path in self.folder.glob(".*")], [])

    def test_two_runs_to_one_path(self):
        for attempt in range(3):
            runs = [self.faulty("", config(events=5), name=name) for name in (f"twice{attempt}",) * 2]
            statuses = sorted(run.process.wait(live.PATIENCE_S) for run in runs)
            self.assertEqual(statuses, [0, 1])
            for run in runs:
                run.reader.join(live.PATIENCE_S)
                if run.process.returncode == 1:
                    self.assertIn("exists already", run.lines[-1])
            self.assertEqual(len(runs[0].inspect()["events"]), 5)

    def test_it_warns_before_the_disk_is_full(self):
        run = self.faulty("", config(events=0, rate=100, sink="full_warning_seconds = 1073741824"))
        run.wait_for(lambda: any("warning: the disk will be full soon" in line for line in run.lines), "warning")
        run.stop()
        report = run.end()
        self.assertIn("free", report["warnings"][0])
        self.assertGreater(report["disk"]["free_bytes"], 0)

    def test_a_copy_made_while_it_runs(self):
        run = self.faulty("", config(events=0))
        run.wait_running()
        numbers = []
        for copy in ("first", "second"):
            run.wait_events(len(run.events_so_far()) + 20)
            shutil.copytree(self.folder / ".run.part", self.folder / copy)
            inspected = run.inspect(self.folder / copy, status=1)
            self.assertIn("not closed", inspected["errors"][0])
            ids = [event["id"] for event in inspected["events"]]
            self.assertEqual(ids, list(range(ids[0], ids[0] + len(ids))))
            self.assertTrue(all(event["complete"] for event in inspected["events"]))
            numbers.append(len(ids))
            self.assertGreaterEqual(len(run.inspect(self.folder / ".run.part", status=1)["events"]), numbers[-1])
        self.assertGreater(numbers[1], numbers[0])
        self.assertGreater(numbers[0], 0)
        run.stop()
        run.end()
        self.assertTrue(run.inspect()["verified"])


if __name__ == "__main__":
    FAULTS = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
    live.main(more_arguments=1)
