"""Reads the runs that weir writes, in pure Python with numpy.

    import weir
    run = weir.open("run7")
    for event in run:
        print(event.epoch, event.id, event.complete, event.bytes)
    image = run[7].array("<u2", (512, 1024))      # (sources, 512, 1024), masked where bytes are missing
    image = run[7].array()                        # a run of calibrated pixels: the same, in their own type

docs/READING.md has more. Errors are weir.RunError; run[...] raises KeyError where there is no such event.
"""
import collections
import hashlib
import json
import pathlib
import re

import numpy as np

from ._crc32c import crc32c
from ._mep import MISSING_TYPE, MultiEvent
from ._scan import CAUSES, CONTENTS, INDEX, STATES, VETOES, RunError, Scan, Source

__all__ = ["open", "Run", "Event", "Source", "Csr", "MultiEvent", "RunError", "MISSING_TYPE", "CAUSES", "CONTENTS", "STATES", "VETOES", "crc32c"]

# Types of pixels, and what stands for one without a value.
_PIXELS = {"f32": ("<f4", None), "f16": ("<f2", None), "i16": ("<i2", -32768), "u16": ("<u2", 65535)}
# scipy.sparse.csr_array((values, indices, indptr), shape); `bad` are the places (row * columns + column) without a value.
Csr = collections.namedtuple("Csr", "indptr indices values shape bad")

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
    content               what the payload is, one of CONTENTS: "received", or what reducers made of it
    reduced_bytes         of the payload, if it is not what was received; else 0
    veto                  one of VETOES: "none" was asked, "passed", or kept as a "control" all the same
    pixels_above, peaks   that reducers counted
    sources               a Source each
    """

    def __init__(self, run, fields):
        self._run = run
        for name in ("epoch", "id", "complete", "cause", "first_ns", "last_ns", "packets", "bytes", "content", "reduced_bytes", "veto",
                     "pixels_above", "peaks", "sources"):
            setattr(self, name, fields[name])
        self._at = (fields["segment"], fields["offset"], fields["stored_bytes"])

    def __repr__(self):
        return f"<event {self.epoch}:{self.id}: {'complete' if self.complete else self.cause}, {self.bytes} bytes>"

    def payload(self, source=None):
        """The payload, of all sources or of the one with this id: the bytes that came, without the missing ones, or what
        reducers made of them. Checked."""
        pieces = []
        self._run._read(self._at, (self.epoch, self.id), deep=True, sink=lambda raw, _: pieces.append(raw))
        data = b"".join(pieces)
        if source is None:
            return data
        at = 0
        for one in self.sources:
            length = one.received if self.content == "received" else one.reduced
            if one.id == source:
                return data[at:at + length]
            at += length
        raise RunError(f"event {self.epoch}:{self.id} has no source {source}")

    def multi_event(self):
        """The fragments in it, a MultiEvent, if its content is "mep": what the reducer `mfp` makes of a block of events."""
        if self.content != "mep":
            raise RunError(f"event {self.epoch}:{self.id} is no multi-event packet: its content is {self.content}")
        return MultiEvent(self.payload())

    def sha256(self):
        """The digest of payload(), as `weir inspect --json --digest sha256` gives it."""
        return hashlib.sha256(self.payload()).hexdigest()

    def array(self, dtype=None, shape=None, source=None, fill=None):
        """The messages as an array, each byte in its place. In a run of calibrated pixels: those, as (sources, rows, columns),
        masked where a pixel has no value; dtype and shape are the run's then.

        dtype     of the elements of a message; bytes if it is not given
        shape     of one message. Without it they are flat, behind each other.
        source    only the one with this id; else there is a first axis for the sources if a shape is given
        fill      the value that stands where bytes are missing. Without it the array is masked there.
        """
        chosen = [one for one in self.sources if source in (None, one.id)]
        if not chosen:
            raise RunError(f"event {self.epoch}:{self.id} has no source {source}")
        if self.content != "received":
            return self._reduced_array(dtype, shape, source, fill)
        dtype = "u1" if dtype is None else dtype
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

    def _pixels(self):
        """What the run says of its pixels: dtype, marker, columns."""
        about = self._run.payload
        columns = about.get("columns")
        if self.content != "pixels" or about.get("type") not in _PIXELS or not isinstance(columns, int) or columns < 1:
            raise RunError(f"event {self.epoch}:{self.id}: the run does not say what its pixels are; payload() has the bytes")
        dtype, marker = _PIXELS[about["type"]]
        return np.dtype(dtype), marker, columns

    def _reduced_array(self, dtype, shape, source, fill):
        if self.content != "pixels":
            values = np.frombuffer(self.payload(source), np.dtype("u1" if dtype is None else dtype)).copy()
            return values if shape is None else values.reshape(shape)
        own, marker, columns = self._pixels()
        if dtype is not None and np.dtype(dtype) != own:
            raise RunError(f"event {self.epoch}:{self.id}: its pixels are {own}, not {np.dtype(dtype)}; leave the type out, or use astype()")
        sizes = {one.reduced for one in self.sources if source in (None, one.id)}
        one = (-1, columns) if shape is None else tuple(np.atleast_1d(shape))
        try:
            values = np.frombuffer(self.payload(source), own).copy()
            if len(sizes) > 1:
                raise ValueError("sources of different sizes")
            modules = len(self.sources)
            if shape is None:
                one = (sizes.pop() // own.itemsize // columns, columns)
            values = values.reshape((modules, *one) if source is None else one)
        except ValueError as error:
            raise RunError(f"event {self.epoch}:{self.id} has {self.reduced_bytes} bytes of pixels: {error}") from None
        mask = np.isnan(values) if marker is None else values == marker
        if fill is None:
            return np.ma.MaskedArray(values, mask)
        values[mask] = fill
        return values

    def csr(self):
        """The pixels that were kept, by source id: Csr(indptr, indices, values, shape, bad), as scipy.sparse.csr_array takes
        them. Where a piece is not stored sparse, those that are neither 0 nor without a value."""
        dtype, marker, columns = self._pixels()
        pieces = []
        self._run._read(self._at, (self.epoch, self.id), deep=True, sink=lambda raw, piece: pieces.append((raw, piece)))
        found, at = {}, 0
        for one in self.sources:
            left, parts = one.reduced, []
            while left > 0:
                raw, piece = pieces[at]
                if len(raw) > left or len(raw) % (columns * dtype.itemsize):
                    return self._dense_csr(dtype, marker, columns)  # pieces that are no whole rows of one source
                if piece is None:
                    parts.append(_csr_of(np.frombuffer(raw, dtype).reshape(-1, columns), marker))
                elif (piece.columns, piece.dtype) != (columns, dtype):
                    raise RunError(f"event {self.epoch}:{self.id}: a sparse piece has other pixels than the run says")
                else:
                    parts.append(Csr(piece.indptr, piece.indices, piece.values, (piece.rows, columns), piece.bad()))
                left -= len(raw)
                at += 1
            found[one.id] = _joined(parts, dtype, columns)
        return found

    def _dense_csr(self, dtype, marker, columns):
        found = {}
        for one in self.sources:
            found[one.id] = _joined([_csr_of(np.frombuffer(self.payload(one.id), dtype).reshape(-1, columns), marker)], dtype, columns)
        return found

    def _size(self, source):
        if source.size is not None:
            return source.size
        known = {one.size for one in self.sources if one.size is not None}
        if source.state == "size unknown" or len(known) != 1:
            raise RunError(f"event {self.epoch}:{self.id}: the size of source {source.id} was never learnt; payload() has what came")
        return known.pop()


def _csr_of(image, marker):
    bad = np.isnan(image) if marker is None else image == marker
    kept = (image != 0) & ~bad
    indptr = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
    return Csr(indptr, np.nonzero(kept)[1].astype(np.int32), image[kept], image.shape, np.flatnonzero(bad))


def _joined(parts, dtype, columns):
    """Rows below each other."""
    indptr, indices, values, bad = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, dtype)], [np.zeros(0, np.int64)]
    rows = 0
    for part in parts:
        indptr.append(part.indptr[1:] + indptr[-1][-1])
        indices.append(part.indices)
        values.append(part.values)
        bad.append(part.bad + rows * columns)
        rows += part.shape[0]
    return Csr(np.concatenate(indptr), np.concatenate(indices), np.concatenate(values), (rows, columns), np.concatenate(bad))


def _in_order(index):
    """Entries by epoch and number: in the file they are in the order in which workers finished them."""
    return index[np.lexsort((index["event"], index["epoch"]))]


class Run:
    """A run. len(run), `for event in run` (by epoch and number), run[id] and run[epoch, id] find events by its index.

    closed          it was finished: it has a good manifest
    name, number    as configured; number is None if runs are not numbered
    created_ns      when it was begun
    version         of the format: 1 or 2
    payload         what the payload is, if it is not what was received: {"content": "pixels", "type": "f32", "unit": …}; else empty
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
        self.version = None
        self.closed = self._read_manifest()
        if not self._segments:
            raise RunError(f"{path} is not a run: it has no segment events-000000.weir")
        self.number, self.created_ns, start = None, 0, {}
        try:
            scan = Scan(self._tag, deep=False, version=self.version)
            head = next(scan.read_blocks(self.path / self._segments[0]), (0, None, b""))
            if head[1] is not None and head[1].type == 1 and len(head[2]) >= 64:
                self._tag, self.version = scan.tag, scan.version
                scan._segment(self.path, 0, 0, head[2])
                number, self.created_ns, text = scan.head
                self.number = None if number == _NO_RUN else number
                start = _parse_json(text)
        except OSError:
            pass  # verify() says what is wrong with the file
        self.name = _at(start, "name")
        config = self.manifest.get("config")
        self.config = config if isinstance(config, dict) else _at(_at(start, "start"), "config") or {}
        payload = self.manifest.get("payload", _at(_at(start, "start"), "payload"))
        self.payload = payload if isinstance(payload, dict) else {}
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
        elif not isinstance(manifest, dict) or manifest.get("version") not in (1, 2):
            self._manifest_problem = "the manifest is not one of version 1 or 2"
        if self._manifest_problem:
            return False
        self.manifest, self.version = manifest, manifest["version"]
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
                    or header.element_bytes or header.raw != header.stored):
                raise RunError("index.weir: its blocks contradict each other")
            expected += 1
            yield np.frombuffer(body, _ENTRY)

    @property
    def index(self):
        if self._index is None and self.closed and self._tag is not None:
            try:
                blocks = list(self._entries(Scan(self._tag, version=self.version)))
                index = np.concatenate(blocks) if blocks else np.zeros(0, _ENTRY)
                if len(index) == self.manifest.get("events"):
                    self._index = _in_order(index)
            except (OSError, RunError):
                pass  # the events can be found without it
        if self._index is None:
            scan = Scan(self._tag, deep=False, version=self.version)
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
        scan = Scan(self._tag, deep, sink, self.version)
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
        scan = Scan(self._tag, version=self.version)
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
        scan = Scan(self._tag, version=self.version)
        try:
            blocks = list(self._entries(scan))
        except (OSError, RunError) as error:
            return [str(error)]
        index = np.concatenate(blocks) if blocks else np.zeros(0, _ENTRY)
        if self.version == 2:  # of segments that were written side by side, in whatever order that gave
            index = index[np.lexsort((index["offset"], index["segment"]))]
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
