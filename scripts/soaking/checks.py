"""What must hold of every run once it is closed: its account, what arrived, what is on disk, what is in the events."""

import glob
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

KEPT_BYTES = 256 << 20
CLOSED_WITHIN_S = 30  # what a crash left, from the next time that weir takes data
BOUNDARY_S = 0.25  # between what weir does and when the soak looks at the interface's counters, on a busy machine


def sums(report):
    """Both sides of the account, added up here once more. What does not agree."""
    packets, events, messages = report["packets"], report["events"], report["messages"]
    dropped, elsewhere = sum(packets["dropped"].values()), sum(packets["not_for_us"].values())
    closed = events["complete"] + sum(events["incomplete"].values())
    pairs = {
        "packets received": (packets["received"], packets["placed"] + packets["control"] + packets["unsteered"] + dropped + elsewhere),
        "packets in flight at the end": (packets["in_flight"], 0),
        "messages opened": (messages["opened"], messages["delivered"] + sum(messages["refused"].values())),
        "events opened": (events["opened"], closed),
        "events closed": (closed, events["written"] + events["vetoed"] + sum(events["dropped"].values())),
    }
    wrong = [f"{what}: {left}, but {right} are accounted for" for what, (left, right) in pairs.items() if left != right]
    return wrong if report["balanced"] or wrong else ["balanced is false"]


def refused(report):
    """Frames that weir's interface refused while it went down or up. The kernel does not count them among those that came, nor
    among those that the sender's interface sent."""
    return sum(device.get("missed_by_interface", 0) for device in report["devices"])


def taken(report):
    """Of the frames that came, those that weir received or the device lost."""
    return report["packets"]["received"] + report["device_missed"] - refused(report)


def arrivals(run, report):
    """What the kernel says came to the interface while weir took data, beside what weir says of it."""
    found = taken(report)
    before = sum(port.get("before_start", 0) for port in report.get("ports", []))
    least = run.arrived_when_ending - run.arrived_when_running
    most = run.arrived_at_end - run.arrived_at_start - before
    slack = 0 if run.quiet_start and run.quiet_end else int(BOUNDARY_S * run.packets_per_s) + run.detector.packets
    if least - slack <= found <= most:
        return []
    return [f"{least} to {most} frames came to the interface while it ran, and it accounts for {found}"]


def whole_events(run, report):
    """Events of which every packet left the sender are complete, but for those that were refused, lost a frame on the way, or whose sender
    stood still for longer than weir waits: their last packets came late."""
    if not (run.quiet_start and run.quiet_end):
        return []
    whole = sum(session.report["events"]["whole"] for session in run.sessions if session.report)
    unknown = sum(int((session.ended_at - session.begun_at) * run.rate * 1.1) + 10 for session in run.sessions if not session.report)
    on_the_way = (run.frames_left_at_end - run.frames_left_at_start) - (run.arrived_at_end - run.arrived_at_start)
    events = report["events"]
    late = min(events["incomplete"].get("timeout", 0), report["packets"]["dropped"].get("late", 0))
    excused = sum(events["refused"].values()) + sum(events["dropped"].values()) + late + max(on_the_way, 0) + report["device_missed"]
    if any(session.may_fail for session in run.sessions):  # what a socket took for a cable that is out has not even left
        unknown += whole
        excused += whole
    if whole - excused <= events["complete"] <= whole + unknown:
        return []
    incomplete = ", ".join(f"{count} {cause}" for cause, count in events["incomplete"].items() if count) or "none"
    return [f"{whole} events left the sender whole, {events['complete']} are complete; {excused} were refused, late or lost on the way; "
            f"incomplete: {incomplete}"]


class Contents:
    """The contents of events depend on kind and number only; so every event that comes again, or is known beforehand, must be the same."""

    def __init__(self):
        self.known = {}

    def wrong(self, detector, event):
        if not event["complete"]:
            return False
        known = self.known.setdefault((detector.name, event["id"]), event["sha256"][:16])
        return known != event["sha256"][:16]

    def learn(self, weir, detector, seed, folder, config):
        """From a capture without faults."""
        options = [option for option in detector.options]
        capture = folder / "reference.pcap"
        quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for name in ("--truncate", "--corrupt"):
            if name in options:
                del options[options.index(name):options.index(name) + 2]
        subprocess.run([weir, "send", "--quiet", "--to", capture, "--sources", "2", "--events", "40", "--seed", str(seed), *options], **quiet)
        subprocess.run([weir, "replay", capture, "--config", config, "--quiet", "--out", folder / "reference"], **quiet)
        done = subprocess.run([weir, "inspect", folder / "reference", "--json", "--digest", "sha256"], check=True, capture_output=True)
        for event in json.loads(done.stdout)["events"]:
            self.known[detector.name, event["id"]] = event["sha256"][:16]
        capture.unlink()
        shutil.rmtree(folder / "reference")
        for file in glob.glob(f"{folder}/reference*.pcapng"):
            os.unlink(file)


def hidden(path):
    """Where a run is as long as it is written."""
    path = pathlib.Path(path)
    return path.with_name(f".{path.name}.part")


class Verifier:
    """Has `weir inspect` read each run that is closed, one at a time and with low priority; then the run is deleted, or kept."""

    def __init__(self, box, contents):
        self.box, self.contents = box, contents
        self.waiting, self.now = [], None
        self.verified_events = 0
        self.queued = set()

    def tick(self):
        for run in self.box.runs:
            if run.ended_at and run not in self.queued and self.is_closed(run):
                self.queued.add(run)
                self.waiting.append(run)
        if self.now is None and self.waiting:
            self.begin(self.waiting.pop(0))
        if self.now is not None and self.process.poll() is not None:
            run, self.now = self.now, None
            self.output.seek(0)
            self.done(run, self.process.returncode, self.output.read())
            self.output.close()

    def is_closed(self, run):
        """Whether nobody works on it any more. What a crash left is closed by a later start, while that takes data already."""
        if run.report() is not None or not run.path:
            return True
        if pathlib.Path(run.path).exists() or not hidden(run.path).exists():
            return True
        now = self.box.run
        run.left_hidden = now is not run and now.taking_data and time.monotonic() > now.running_at + CLOSED_WITHIN_S
        return run.left_hidden or self.box.service.state in ("stopped", "failed")

    @property
    def idle(self):
        return self.now is None and not self.waiting and all(run in self.queued for run in self.box.runs)

    def begin(self, run):
        report = run.report()
        places = (pathlib.Path(run.path), hidden(run.path)) if run.path else ()
        run.directory = next((path for path in places if path.exists()), None)
        run.verdict = {}
        if report is not None:
            for what in sums(report) + arrivals(run, report) + whole_events(run, report):
                self.box.problem(f"run {run.number}: {what}", run.folder)
        elif run.process.returncode >= 0 and "disk full" not in run.faults:
            self.box.problem(f"run {run.number} left no report", run.folder)
        if run.directory is None:
            if run.running_at and "disk full" not in run.faults:
                self.box.problem(f"run {run.number}: it has left nothing at {run.path}", run.folder)
            return self.delete(run, keep=False)
        self.output = open(run.folder / "inspect.json", "w+")
        self.errors = open(run.folder / "inspect.txt", "w")
        self.process = subprocess.Popen(["nice", "-n", "19", str(self.box.weir), "inspect", str(run.directory), "--json", "--digest", "sha256"],
                                        stdout=self.output, stderr=self.errors, start_new_session=True)
        self.now = run

    def done(self, run, status, text):
        self.errors.close()
        problems = []
        try:
            inspected = json.loads(text)
        except ValueError:
            inspected = None
            problems.append(f"weir inspect says nothing of it (exit status {status}): {(run.folder / 'inspect.txt').read_text()[-300:]}")
        if inspected:
            problems += self.of_directory(run, inspected)
        for what in problems:
            self.box.problem(f"run {run.number}: {what}", f"{run.folder}, {self.box.out / 'kept' / run.directory.name}")
        self.delete(run, keep=bool(problems))
        if not problems:
            (run.folder / "inspect.json").unlink()
            run.progress_file.unlink(missing_ok=True)

    def of_directory(self, run, inspected):
        report, events, is_hidden = run.report(), inspected["events"], run.directory.name.startswith(".")
        problems = []
        run.events = len(events)
        self.verified_events += run.events
        numbers = [(event.get("epoch", 0), event["id"]) for event in events]
        if len(set(numbers)) != len(numbers):
            problems.append("an event is there twice")
        wrong = [event["id"] for event in events if self.contents.wrong(run.detector, event)]
        if wrong:
            problems.append(f"the contents of {len(wrong)} complete events are not what was sent, the first is {wrong[0]}")
        if report is None:
            synced = run.progress().get("sinks", [{}])[0].get("synced", 0)
            if run.events < synced:
                problems.append(f"{synced} events were synced before it was killed, {run.events} are there")
        elif run.events != report["events"]["written"]:
            problems.append(f"{report['events']['written']} events are reported as written, {run.events} are there")
        if not is_hidden and not inspected["verified"]:
            problems.append(f"it does not verify: {inspected['errors'][:3]}")
        if is_hidden and (report or getattr(run, "left_hidden", False)) and "disk full" not in run.faults:
            problems.append("it has not got its name, " + ("although it ended in order" if report else "and no later start closed it"))
        run.verdict = {"directory": run.directory.name, "verified": inspected["verified"], "events": run.events}
        return problems

    def delete(self, run, keep):
        """Frees the disk. What is to be looked at goes where the soak's other files are, as far as there is room."""
        found = [path for path in self.box.disk.path.iterdir() if run.path and pathlib.Path(run.path).name in path.name]
        for path in found:
            size = sum(file.stat().st_size for file in path.rglob("*")) if path.is_dir() else path.stat().st_size
            if keep and size + getattr(self, "kept_bytes", 0) <= KEPT_BYTES:
                (self.box.out / "kept").mkdir(exist_ok=True)
                (shutil.copytree if path.is_dir() else shutil.copy)(path, self.box.out / "kept" / path.name)
                self.kept_bytes = getattr(self, "kept_bytes", 0) + size
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        run.verified_at = time.monotonic()


def memory(run, leave_out_s, bound_kib):
    """Of one run: what it grew by from the first third to the last, after the first seconds; threads and files too. By medians, because
    the flight recorder takes a buffer while it writes. (facts, what does not hold)"""
    points = [sample for sample in run.memory if sample[0] >= leave_out_s]
    if len(points) < 6:
        return {"run": run.number, "samples": len(points)}, [f"run {run.number} was too short to say anything of its memory"]
    span = points[-1][0] - points[0][0]
    third = len(points) // 3
    grown = statistics.median(p[1] for p in points[-third:]) - statistics.median(p[1] for p in points[:third])
    facts = {"run": run.number, "samples": len(points), "watched_s": round(span, 1), "left_out_s": leave_out_s, "rss_kib": points[-1][1],
             "grown_kib": round(grown, 1), "bound_kib": bound_kib, "per_hour_kib": round(grown * 3600 / (span * 2 / 3), 1),
             "threads": [min(p[2] for p in points), max(p[2] for p in points)], "files": [min(p[3] for p in points), max(p[3] for p in points)]}
    wrong = []
    if grown > bound_kib:
        wrong.append(f"the memory of run {run.number} grew by {grown:.0f} KiB in {span:.0f} s; {bound_kib} are allowed")
    for at, what in ((2, "threads"), (3, "open files")):
        first, last = (statistics.median(p[at] for p in part) for part in (points[:third], points[-third:]))
        if last > first:
            wrong.append(f"run {run.number} has {last:g} {what}, and had {first:g}")
    return facts, wrong
