#!/usr/bin/env python3
"""`kill -9` at random moments, and a power cut at the same ones: what was synced is there, nothing is wrong, nothing twice.

What was synced is known from a library in front of the C library, not from weir; which events that covers from the block
headers, read here. The events' contents are held against those of a run that nobody killed. The seed is printed; to repeat
a run of the test give it as WEIR_KILL_SEED. WEIR_KILLS says how often (30 times; before a release 100). usage: kill_test.py WEIR FAULTS_LIBRARY
"""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import live
from faults_test import config
from live import whole_events, whole_events_in

FAULTS = None
KILLS = int(os.environ.get("WEIR_KILLS", 30))
EVENTS = 150


class Synced:
    """What the log says is on the device."""

    def __init__(self, log, folder=None):
        """`folder`: only files in it count."""
        self.bytes = {}
        for line in log.read_text().splitlines() if log.exists() else []:
            word, *rest = line.split(" ")
            if word == "SYNC" and folder in (None, pathlib.Path(rest[1]).parent):
                self.bytes[pathlib.Path(rest[1]).name] = int(rest[0])

    def of(self, file):
        return self.bytes.get(file.name, 0)


class KillTest(live.Case):
    def start(self, name):
        environment = {**os.environ, "LD_PRELOAD": FAULTS, "WEIR_SYNC_LOG": str(self.folder / f"{name}.log")}
        return subprocess.Popen([live.Weir.program, "run", "--config", str(self.folder / "c.toml"), "--out", str(self.folder / name),
                                 "--quiet"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def events_of(self, path, status=None):
        done = subprocess.run([live.Weir.program, "inspect", str(path), "--json", "--digest", "sha256"], capture_output=True, text=True,
                              timeout=live.PATIENCE_S)
        self.assertIn(done.returncode, (0, 1) if status is None else (status,), done.stderr)
        inspected = live.json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if inspected["verified"] else 1)
        return inspected

    def check(self, path, promised, what):
        """All that was promised is there, and whatever is there is right and there once. Returns how many there are."""
        events = self.events_of(path)["events"]
        ids = [event["id"] for event in events]
        self.assertEqual(len(ids), len(set(ids)), what)
        self.assertEqual(promised - set(ids), set(), what)
        for event in events:
            self.assertEqual(event["sha256"], self.reference[event["id"]], what)
        return len(ids)

    def cut_power(self, path, synced):
        """A copy as a disk without power could have it: of what was not synced there is a part, or zeros, or garbage."""
        copy = self.folder / "cut"
        shutil.copytree(path, copy)
        for file in copy.iterdir():
            data = bytearray(file.read_bytes())
            keep = synced.of(file)
            if keep == 0 and self.random.random() < 0.5:
                file.unlink()
                continue
            if len(data) <= keep:
                continue
            torn = self.random.randint(keep, len(data))
            ways = (b"", bytes(len(data) - torn), self.random.randbytes(len(data) - torn))
            file.write_bytes(bytes(data[:torn]) + self.random.choice(ways))
        return copy

    def test_again_and_again(self):
        self.kill_again_and_again(KILLS)

    def test_past_the_page_cache_into_two_files(self):
        # Without `preallocate` the length of a file is what was written to it, which is how this test knows what was synced.
        self.kill_again_and_again(7, sink='direct = "auto"\nfiles = 2\npreallocate = 0\n', in_order=False)

    def kill_again_and_again(self, kills, sink="", in_order=True):
        seed = int(os.environ.get("WEIR_KILL_SEED", random.SystemRandom().randrange(1 << 30)))
        print(f"seed {seed}", file=sys.stderr)
        self.random = random.Random(seed)
        (self.folder / "c.toml").write_text(config(events=EVENTS, rate=600, sink=sink))
        begun = time.monotonic()
        self.assertEqual(self.start("whole").wait(live.PATIENCE_S), 0)
        whole_s = time.monotonic() - begun
        inspected = self.events_of(self.folder / "whole", status=0)
        self.reference = {event["id"]: event["sha256"] for event in inspected["events"]}
        self.assertEqual(len(self.reference), EVENTS)

        moments = {"before": 0, "during": 0, "after": 0}
        promised_in_all = found_in_all = 0
        for number in range(kills):
            name = f"run{number}"
            what = f"seed {seed}, kill {number}"
            process = self.start(name)
            self.wait_for_a_moment(process, self.folder / f".{name}.part", whole_s)
            process.send_signal(signal.SIGKILL)
            process.wait()
            synced = Synced(self.folder / f"{name}.log")
            out, hidden = self.folder / name, self.folder / f".{name}.part"
            self.assertFalse(out.exists() and hidden.exists(), what)
            path = out if out.exists() else hidden
            moment = "after" if out.exists() else "during" if synced.bytes else "before"
            moments[moment] += 1
            segments = sorted(path.glob("events-*.weir")) if path.exists() else []
            promised = {event for file in segments for event in whole_events(file, synced.of(file))}
            if synced.bytes:
                self.assertTrue(segments, what)
            if segments and segments[0].stat().st_size > 0:
                found = self.check(path, promised, what)
                # The kernel had all of it: a kill costs no event that was written, synced or not.
                there = sum(len(whole_events(file)) for file in segments)
                if in_order:
                    self.assertEqual(found, there, what)
                else:  # a later write may have been done before an earlier one
                    self.assertGreaterEqual(found, there, what)
                promised_in_all += len(promised)
                found_in_all += found
            if promised:
                self.check(self.cut_power(path, synced), promised, what + ", power cut")
            for leftover in (out, hidden, self.folder / "cut"):
                shutil.rmtree(leftover, ignore_errors=True)
        print(f"killed {moments}, {promised_in_all} events synced, {found_in_all} found", file=sys.stderr)
        self.assertGreater(moments["during"], kills // 10)
        self.assertGreater(promised_in_all, 0)

    def wait_for_a_moment(self, process, hidden, whole_s):
        """Mostly one in which it writes, wherever that is on this machine; sometimes any, from before its start to after its end."""
        if self.random.random() < 0.25:
            time.sleep(self.random.uniform(0, 1.05 * whole_s))
            return
        events = self.random.randrange(EVENTS)
        live.wait_for(lambda: process.poll() is not None or len(events_there(hidden)) >= events, f"{events} events")
        time.sleep(self.random.uniform(0, 0.01))  # not always between two events

    def test_the_next_start_finds_what_a_killed_one_left(self):
        (self.folder / "c.toml").write_text(config(events=0))
        process = self.start("run")
        hidden = self.folder / ".run.part"
        live.wait_for(lambda: whole_events_in(hidden), "first event")
        refused = self.refusal()
        self.assertIn("another weir is writing", refused)
        process.kill()
        process.wait()
        refused = self.refusal()
        self.assertIn("ended by force", refused)
        self.assertIn(f"weir inspect {hidden}", refused)
        found = self.events_of(hidden, status=1)["events"]
        self.assertGreater(len(found), 0)
        # As it says: look at it, then move it away.
        hidden.rename(self.folder / "rescued")
        (self.folder / "c.toml").write_text(config(events=5))
        self.assertEqual(self.start("run").wait(live.PATIENCE_S), 0)
        self.assertEqual(len(self.events_of(self.folder / "rescued", status=1)["events"]), len(found))

    def start_next(self, number):
        """A run as a service has it: its path has a number, and nobody looks after what is left."""
        environment = {**os.environ, "LD_PRELOAD": FAULTS, "WEIR_SYNC_LOG": str(self.folder / f"{number}.log")}
        with open(self.folder / f"{number}.txt", "w") as said:
            return subprocess.Popen([live.Weir.program, "run", "--config", str(self.folder / "c.toml")], env=environment, cwd=self.folder,
                                    stdout=subprocess.DEVNULL, stderr=said)

    def close_again_and_again(self, kills, sink="", power=True):
        """Each start closes what the one before left, while it is itself on its way to being killed."""
        seed = int(os.environ.get("WEIR_KILL_SEED", random.SystemRandom().randrange(1 << 30)))
        print(f"seed {seed}", file=sys.stderr)
        self.random = random.Random(seed)
        path = self.folder / "runs"
        text = config(events=0, rate=600, sink=sink).replace('"unused"', f'"{path}/run-{{run:06}}"')
        (self.folder / "c.toml").write_text(text)
        promised, cuts = {}, 0
        for number in range(1, kills + 1):
            process = self.start_next(number)
            hidden = path / f".run-{number:06}.part"  # never the number of one that was killed
            live.wait_for(lambda: hidden.is_dir() or process.poll() is not None, f"run {number} that begins")
            if number == 1 or self.random.random() < 0.8:  # the others while they still start
                live.wait_for(lambda: whole_events_in(hidden), f"event of run {number}")
            time.sleep(self.random.uniform(0, 0.6))  # any moment will do
            process.send_signal(signal.SIGKILL)
            process.wait()
            # Which events of this run were on the device; the recovery syncs others' files of the same names.
            self.assertTrue(hidden.is_dir(), f"seed {seed}: run {number} has another number, or a name already")
            synced = Synced(self.folder / f"{number}.log", hidden)
            promised[number] = {event for file in sorted(hidden.glob("events-*.weir")) for event in whole_events(file, synced.of(file))}
            if power and self.random.random() < 0.5 and promised[number]:
                copy = self.cut_power(hidden, synced)
                shutil.rmtree(hidden)
                copy.rename(hidden)
                cuts += 1
        last = self.start_next(kills + 1)
        own = path / f".run-{kills + 1:06}.part"
        live.wait_for(lambda: list(path.glob(".run-*.part")) == [own], "end of the recovery")
        word = rf"run-{kills:06}(\.part)? (from|was left by) a run that was interrupted"
        live.wait_for(lambda: re.search(word, (self.folder / f"{kills + 1}.txt").read_text()), "word of it")
        last.send_signal(signal.SIGTERM)
        self.assertEqual(last.wait(live.PATIENCE_S), 0)
        self.assertEqual(list(path.glob(".*.part")), [])
        said = "".join((self.folder / f"{number}.txt").read_text() for number in range(1, kills + 2))
        found_in_all = told = 0
        for number in range(1, kills + 1):
            run = path / f"run-{number:06}"
            what = f"seed {seed}, run {number}"
            if not run.exists():
                self.assertEqual(promised[number], set(), what)
                self.assertIn("held nothing", said)
                continue
            inspected = self.events_of(run, status=0)
            ids = [event["id"] for event in inspected["events"]]
            self.assertEqual(len(ids), len(set(ids)), what)
            self.assertEqual(promised[number] - set(ids), set(), what)
            self.assertEqual(inspected["run"]["run"], number)
            self.assertIn("interrupted", inspected["run"], what)
            # Who recovered it may have been killed before there was word of it.
            for events in re.findall(rf"recovered {run} from a run that was interrupted: ([0-9]+) event", said):
                self.assertEqual(int(events), len(ids), what)
                told += 1
            for event in inspected["events"]:
                self.assertEqual(self.reference.setdefault(event["id"], event["sha256"]), event["sha256"], what)
            found_in_all += len(ids)
        print(f"{kills} runs closed by the next start, {cuts} after a power cut: {sum(map(len, promised.values()))} events synced, "
              f"{found_in_all} found", file=sys.stderr)
        self.assertGreater(found_in_all, kills)
        self.assertGreater(told, kills // 2)
        self.assertGreater(sum(map(len, promised.values())), 0)

    def test_the_next_start_closes_what_was_killed(self):
        self.reference = {}
        self.close_again_and_again(max(10, KILLS // 5))

    def test_the_next_start_closes_two_files_past_the_page_cache(self):
        self.reference = {}
        self.close_again_and_again(8, sink='direct = "auto"\nfiles = 2\npreallocate = 0\n')

    def test_the_next_start_closes_hdf5_files_and_captures(self):
        path = self.folder / "runs"
        path.mkdir()
        more = f'[[sink]]\nkind = "pcapng"\npath = "{path}/c-{{run:06}}.pcapng.zst"\npackets = "all"\n'
        text = config(events=0, rate=600, sink=more).replace('kind = "events"', 'kind = "hdf5"').replace('"unused"', f'"{path}/h-{{run:06}}"')
        (self.folder / "c.toml").write_text(re.sub("(segment|sync)_bytes.*|sync_ms.*", "", text, count=0))
        process = self.start_next(1)
        hidden = path / ".h-000001.part"
        live.wait_for(lambda: any(hidden.glob("*.h5")) and any(path.glob(".c-000001*.part")), "run that begins")

        def synced(start, kind, size=""):
            log = self.folder / f"{start}.log"
            return log.exists() and re.search(rf"(?m)^SYNC {size}.*{kind}", log.read_text())

        # A capture without packets, of which only the header was synced, would be removed.
        live.wait_for(lambda: synced(1, r"\.h5$") and synced(1, r"\.part$", r"\d{5,} "), "both synced")
        process.kill()
        process.wait()
        process = self.start_next(2)
        live.wait_for(lambda: not hidden.exists() and not any(path.glob(".c-000001*.part")), "end of the recovery")
        live.wait_for(lambda: synced(2, r"\.h5$"), "events of its own")  # without any it would end with status 1
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(live.PATIENCE_S), 0)
        said = (self.folder / "2.txt").read_text()
        self.assertIn(f"recovered {path}/h-000001 from a run that was interrupted", said)
        capture, = path.glob("c-000001*.pcapng.zst")
        packets = int(re.search(rf"recovered {capture} from a run that was interrupted: ([0-9]+) packets", said)[1])
        done = subprocess.run([live.Weir.program, "replay", str(capture), "--config", str(self.folder / "c.toml"), "--out", str(self.folder / "again"),
                               "--report", str(self.folder / "again.json"), "--quiet"], capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(live.json.loads((self.folder / "again.json").read_text())["packets"]["received"], packets)
        if shutil.which("h5dump") is None:
            self.skipTest("there is no program 'h5dump'")
        shown = subprocess.run(["h5dump", "-a", "/entry/weir_interrupted", str(path / "h-000001/master.h5")], capture_output=True, text=True)
        self.assertIn("closed by the next start", shown.stdout, shown.stderr)
        rows = subprocess.run(["h5dump", "-H", str(path / "h-000001/master.h5")], capture_output=True, text=True)
        self.assertEqual(rows.returncode, 0, rows.stderr)
        for file in (path / "h-000001").glob("*.h5"):  # it opens without being told that somebody writes
            self.assertEqual(subprocess.run(["h5dump", "-H", str(file)], capture_output=True).returncode, 0, file)

    def test_the_next_start_leaves_alone_what_it_cannot_close(self):
        path = self.folder / "runs"
        (self.folder / "c.toml").write_text(config(events=0, rate=600).replace('"unused"', f'"{path}/run-{{run:06}}"'))
        process = self.start_next(1)
        hidden = path / ".run-000001.part"
        live.wait_for(lambda: len(whole_events_in(hidden)) > 40, "events")
        process.kill()
        process.wait()
        first = hidden / "events-000000.weir"
        data = bytearray(first.read_bytes())
        data[70000] ^= 1  # in the middle of whole events: not what a crash leaves
        first.write_bytes(data)
        before = {file.name: file.read_bytes() for file in hidden.glob("events-*")}
        process = self.start_next(2)
        live.wait_for(lambda: "cannot be closed" in (self.folder / "2.txt").read_text(), "word of it")
        live.wait_for(lambda: events_there(path / ".run-000002.part"), "events")  # without any it would end with status 1
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(live.PATIENCE_S), 0)
        self.assertIn("it stays as it is", (self.folder / "2.txt").read_text())
        self.assertEqual({file.name: file.read_bytes() for file in hidden.glob("events-*")}, before)
        self.assertTrue((path / "run-000002").is_dir())

    def refusal(self):
        done = subprocess.run([live.Weir.program, "run", "--config", str(self.folder / "c.toml"), "--out", str(self.folder / "run")],
                              capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr


def events_there(path):
    """Of a run that may get its name, or lose a file, while one looks."""
    try:
        return whole_events_in(path)
    except FileNotFoundError:
        return []


if __name__ == "__main__":
    FAULTS = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
    live.main(more_arguments=1)
