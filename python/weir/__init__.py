"""Reads the runs that weir writes, in pure Python with numpy.

    import weir
    run = weir.open("run7")
    for event in run:
        print(event.epoch, event.id, event.complete, event.bytes)
    image = run[7].array("<u2", (512, 1024))      # (sources, 512, 1024), masked where bytes are missing

docs/READING.md has more. Errors are weir.RunError; run[...] raises KeyError where there is no such event.
"""
import hashlib
import json
import pathlib
import re

import numpy as np

from ._crc32c import crc32c
from ._scan import CAUSES, INDEX, STATES, RunError, Scan, Source

__all__ = ["open", "Run", "Event", "Source", "RunError", "CAUSES", "STATES", "crc32c"]

_ENTRY = np.dtype([("event", "<u8"), ("epoch", "<u4"), ("segment", "<u4"), ("offset", "<u8"), ("bytes", "<u8")])
_NO_RUN = 0xFFFFFFFF
_END = re.compile(rb',\n "manifest_crc32c": "([0-9a-f]{8})"\n}\n\Z')


def open(path):
    """The run in this directory, finished or not."""
    return Run(path)


class Event:
    """One event. Its payload is read when it is asked for.

    epoch, id             which it is
    complete, cause       whether everything came; if not, why it was closed: one of CAUSES
    first_ns, last_ns     arrival of its first and its last packet, in nanoseconds since 1970
    packets, bytes        that came
    sources               a Source each
    """

    def __init__(self, run, fields):
        self._run = run
        for name in ("epoch", "id", "complete", "cause", "first_ns", "last_ns", "packets", "bytes", "sources"):
            setattr(self, name, fields[name])
        self._at = (fields["segment"], fields["offset"], fields["stored_bytes"])

    def __repr__(self):
        return f"<event {self.epoch}:{self.id}: {'complete' if self.complete else self.cause}, {self.bytes} bytes>"

    def payload(self, source=None):
        """The bytes that came, of all sources or of the one with this id, without the missing ones. Checked."""
        pieces = []
        self._run._read(self._at, (self.epoch, self.id), deep=True, sink=pieces.append)
        data = b"".join(pieces)
        if source is None:
            return data
        at = 0
        for one in self.sources:
            if one.id == source:
                return data[at:at + one.received]
            at += one.received
        raise RunError(f"event {self.epoch}:{self.id} has no source {source}")

    def sha256(self):
        """The digest of payload(), as `weir inspect --json --digest sha256` gives it."""
        return hashlib.sha256(self.payload()).hexdigest()

    def array(self, dtype="u1", shape=None, source=None, fill=None):
        """The messages as an array, each byte in its place.

        shape     of one message. Without it they are flat, behind each other.
        source    only the one with this id; else there is a first axis for the sources if a shape is given
        fill      the value that stands where bytes are missing. Without it the array is masked there.
        """
        chosen = [one for one in self.sources if source in (None, one.id)]
        if not chosen:
            raise RunError(f"event {self.epoch}:{self.id} has no source {source}")
        sizes = [self._size(one) for one in chosen]
        dtype = np.dtype(dtype)
        data = np.zeros(sum(sizes), np.uint8)
        missing = np.zeros(sum(sizes), bool)
        payload = self.payload(source)
        start = taken = 0
        for one, size in zip(chosen, sizes):
            lost = one.missing if one.state != "absent, size unknown" else [(0, size)]
            for offset, length in lost:
                missing[start + offset:start + offset + length] = True
            there = ~missing[start:start + size]
            data[start:start + size][there] = np.frombuffer(payload, np.uint8, one.received, taken)
            start += size
            taken += one.received
        try:
            values = data.view(dtype)
            mask = missing.reshape(-1, dtype.itemsize).any(axis=1)
            if shape is not None:
                shape = (len(chosen), *np.atleast_1d(shape)) if source is None else tuple(np.atleast_1d(shape))
                values, mask = values.reshape(shape), mask.reshape(shape)
        except ValueError as error:
            raise RunError(f"event {self.epoch}:{self.id} has {len(data)} bytes: {error}") from None
        if fill is None:
            return np.ma.MaskedArray(values, mask)
        values[mask] = fill
        return values

    def _size(self, source):
        if source.size is not None:
            return source.size
        known = {one.size for one in self.sources if one.size is not None}
        if source.state == "size unknown" or len(known) != 1:
            raise RunError(f"event {self.epoch}:{self.id}: the size of source {source.id} was never learnt; payload() has what came")
        return known.pop()


def _in_order(index):
    """Entries by epoch and number: in the file they are in the order in which workers finished them."""
    return index[np.lexsort((index["event"], index["epoch"]))]


class Run:
    """A run. len(run), `for event in run` (by epoch and number), run[id] and run[epoch, id] find events by its index.

    closed          it was finished: it has a good manifest
    name, number    as configured; number is None if runs are not numbered
    created_ns      when it was begun
    config, ledger  the configuration, and the account of packets and events (empty if the run was not closed)
    manifest        all of the manifest
    index           where the events lie, by epoch and number, as a numpy array with the fields event, epoch, segment, offset, bytes
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        if not self.path.is_dir():
            raise RunError(f"{path} is not a run: a run is a directory")
        names = [p.name for p in self.path.iterdir() if p.name.startswith("events-") and p.name.endswith(".weir")]
        self._segments = sorted(names, key=lambda name: (len(name), name))
        self._strangers, self._manifest_problem, self.manifest, self._tag = [], None, {}, None
        self.closed = self._read_manifest()
        if not self._segments:
            raise RunError(f"{path} is not a run: it has no segment events-000000.weir")
        self.number, self.created_ns, start = None, 0, {}
        try:
            scan = Scan(self._tag, deep=False)
            head = next(scan.read_blocks(self.path / self._segments[0]), (0, None, b""))
            if head[1] is not None and head[1].type == 1 and len(head[2]) >= 64:
                self._tag = scan.tag
                scan._segment(self.path, 0, 0, head[2])
                number, self.created_ns, text = scan.head
                self.number = None if number == _NO_RUN else number
                start = _parse_json(text)
        except OSError:
            pass  # verify() says what is wrong with the file
        self.name = _at(start, "name")
        config = self.manifest.get("config")
        self.config = config if isinstance(config, dict) else _at(_at(start, "start"), "config") or {}
        ledger = self.manifest.get("ledger")
        self.ledger = ledger if isinstance(ledger, dict) else {}
        self._index = None

    def _read_manifest(self):
        path = self.path / "manifest.json"
        if not path.is_symlink() and not path.exists():
            self._manifest_problem = "the run was not closed: it has no manifest; it is still going on, or it was ended by force"
            return False
        try:
            text = path.read_bytes()
        except OSError as error:
            self._manifest_problem = str(error)
            return False
        end = _END.search(text)
        manifest = _parse_json(text)
        if not end or int(end.group(1), 16) != crc32c(text[:end.start()]):
            self._manifest_problem = "the manifest does not match its checksum"
        elif not isinstance(manifest, dict) or manifest.get("version") != 1:
            self._manifest_problem = "the manifest is not one of version 1"
        if self._manifest_problem:
            return False
        self.manifest = manifest
        tag = manifest.get("tag")
        if isinstance(tag, str) and re.fullmatch("[0-9a-fA-F]{1,16}", tag):
            self._tag = int(tag, 16)
        # The manifest says which segments there are; what else lies here is not part of the run.
        listed = manifest.get("segments")
        names = [f"events-{i:06}.weir" for i in range(len(listed))] if isinstance(listed, list) else []
        self._strangers = [name for name in self._segments if name not in names]
        self._segments = names
        return True

    def _entries(self, scan):
        """Yields the entries of the index file, block by block; RunError if it is not good."""
        expected = 0
        for _, header, body in scan.read_blocks(self.path / "index.weir"):
            if header is None:
                raise RunError(f"index.weir: {body}")
            if (header.type != INDEX or header.sequence != expected or not body or len(body) % _ENTRY.itemsize or header.flags
                    or header.raw != header.stored):
                raise RunError("index.weir: its blocks contradict each other")
            expected += 1
            yield np.frombuffer(body, _ENTRY)

    @property
    def index(self):
        if self._index is None and self.closed and self._tag is not None:
            try:
                blocks = list(self._entries(Scan(self._tag)))
                index = np.concatenate(blocks) if blocks else np.zeros(0, _ENTRY)
                if len(index) == self.manifest.get("events"):
                    self._index = _in_order(index)
            except (OSError, RunError):
                pass  # the events can be found without it
        if self._index is None:
            scan = Scan(self._tag, deep=False)
            self._index = _in_order(np.array([(e["id"], e["epoch"], e["segment"], e["offset"], e["stored_bytes"]) for e in self._scan(scan)], _ENTRY))
        return self._index

    def _scan(self, scan, after=lambda number, path: None):
        """The whole events of all segments. `after` is called at the end of each."""
        for number, name in enumerate(self._segments):
            path = self.path / name
            if name != f"events-{number:06}.weir":
                scan.problems.append(f"events-{number:06}.weir should be here, not {name}")
            try:
                yield from scan.events(path, number)
                after(number, path)
            except OSError as error:
                scan.problems.append(str(error))

    def _read(self, at, name, deep=False, sink=None):
        segment, offset, length = (int(number) for number in at)
        if segment >= len(self._segments) or offset % 64:
            raise RunError("the index points to a place that does not exist")
        scan = Scan(self._tag, deep, sink)
        try:
            fields = next(scan.events(self.path / self._segments[segment], segment, offset, offset + length), None)
        except OSError as error:
            raise RunError(str(error)) from None
        if fields is None:
            raise RunError(scan.problems[0] if scan.problems else f"{self._segments[segment]} at byte {offset}: no whole event is here")
        if (fields["epoch"], fields["id"]) != name or fields["stored_bytes"] != length:
            raise RunError("the index points to another event")
        return fields

    def _event(self, entry):
        at = (entry["segment"], entry["offset"], entry["bytes"])
        return Event(self, self._read(at, (int(entry["epoch"]), int(entry["event"]))))

    def __len__(self):
        return len(self.index)

    def __iter__(self):
        """By epoch and number. Raises RunError at one whose description is damaged."""
        for entry in self.index:
            yield self._event(entry)

    def __contains__(self, key):
        return len(self._find(key)) > 0

    def _find(self, key):
        epoch, number = key if isinstance(key, tuple) else (None, key)
        index = self.index
        if not 0 <= number < 1 << 64:
            return index[:0]
        found = index["event"] == np.uint64(number)
        return index[found if epoch is None else found & (index["epoch"] == epoch)]

    def __getitem__(self, key):
        """run[id] or run[epoch, id]. KeyError if there is none, RunError if it is damaged or in several epochs."""
        found = self._find(key)
        if len(found) == 0:
            raise KeyError(key)
        if len(found) > 1:
            raise RunError(f"event {key} is there more than once, in epochs {', '.join(map(str, found['epoch']))}")
        return self._event(found[0])

    def event(self, number, epoch=None):
        """The same as run[number] or run[epoch, number]."""
        return self[number if epoch is None else (epoch, number)]

    def verify(self):
        """Reads everything and checks all of it. Returns what is wrong, one sentence each: empty if nothing is."""
        scan = Scan(self._tag)
        scan.sequence = 0
        if self._manifest_problem:
            scan.problems.append(self._manifest_problem)
        found, totals, counted = [], [0, 0], [0]

        def after(number, path):
            run = self.number if self.number is not None else _NO_RUN
            if scan.head is None or scan.head[0] != run:
                scan.problems.append(f"{path.name} has no first block of this run")
            events = totals[0] - counted[0]
            counted[0] = totals[0]
            if self.closed and not _describes(self.manifest["segments"][number], path, scan, events=events):
                scan.problems.append(f"{path.name} is not as the manifest describes it")

        for event in self._scan(scan, after):
            totals[0] += 1
            totals[1] += event["bytes"]
            found.append((event["id"], event["epoch"], event["segment"], event["offset"], event["stored_bytes"]))
        problems = scan.problems + [f"{name} is not part of the run" for name in self._strangers]
        if self.closed:
            problems += self._verify_index(np.array(found, _ENTRY)) + self._verify_manifest(*totals)
        return problems

    def _verify_index(self, found):
        if self._tag is None:
            return []
        scan = Scan(self._tag)
        try:
            blocks = list(self._entries(scan))
        except (OSError, RunError) as error:
            return [str(error)]
        index = np.concatenate(blocks) if blocks else np.zeros(0, _ENTRY)
        if not np.array_equal(index, found):
            return ["index.weir does not agree with the segments"]
        good = _describes(self.manifest.get("index"), self.path / "index.weir", scan)
        return [] if good else ["index.weir is not as the manifest describes it"]

    def _verify_manifest(self, events, payload_bytes):
        expected = {"events": events, "payload_bytes": payload_bytes, "run": self.number}
        problems = [f"the manifest says {key} {self.manifest.get(key)}, it is {value}"
                    for key, value in expected.items() if self.manifest.get(key) != value]
        written = _at(_at(self.ledger, "events"), "written")
        if isinstance(written, (int, float)) and written != events:
            problems.append(f"the ledger says that {written} events were written, {events} are there")
        return problems


def _describes(listed, path, scan, **more):
    """Whether the manifest's line for a file is right."""
    is_ = {"file": path.name, "bytes": path.stat().st_size, "blocks": scan.blocks, "headers_crc32c": f"{scan.headers_crc:08x}", **more}
    return isinstance(listed, dict) and all(listed.get(key) == value for key, value in is_.items())


def _at(value, key):
    return value.get(key) if isinstance(value, dict) else None


def _parse_json(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
