"""A run: where its events are, what it says of itself, and whether all of it is as it should be."""
import collections
import json
import pathlib
import re
import time

import numpy as np

from . import _codecs, _files, _payload
from ._crc32c import crc32c
from ._event import Event
from ._scan import INDEX, RunError, Scan

# What array() gives without being told: `sources` images of rows x columns elements of `dtype`.
Image = collections.namedtuple("Image", "dtype sources rows columns")
_PIXEL_TYPES = {"f32": "<f4", "f16": "<f2", "i16": "<i2", "u16": "<u2"}
_RECEIVED_TYPES = {"u8": "u1", "u16": "<u2", "u32": "<u4"}
MAX_EVENT = 2 << 30

_ENTRY = np.dtype([("event", "<u8"), ("epoch", "<u4"), ("segment", "<u4"), ("offset", "<u8"), ("bytes", "<u8")])
_NO_RUN = 0xFFFFFFFF
_END = re.compile(rb',\n "manifest_crc32c": "([0-9a-f]{8})"\n}\n\Z')


def _in_order(index):
    """Entries by epoch and number: in the file they are in the order in which workers finished them."""
    return index[np.lexsort((index["event"], index["epoch"]))]


class Run:
    """A run. len(run), `for event in run` (by epoch and number), run[id] and run[epoch, id] find events by its index. A slice and a
    negative index count places, as in a list: run[:10] are the first ten events, run[-1] is the last.

    closed          it was finished: it has a good manifest
    being_written   a program of this machine is writing it; follow() and refresh() see what comes
    name, number    as configured; number is None if runs are not numbered
    created_ns      when it was begun
    version         of the format: 1 or 2
    payload         what the payload is, if it is not what was received: {"content": "pixels", "type": "f32", "unit": …}; else empty
    config, ledger  the configuration, and the account of packets and events (empty if the run was not closed)
    lossless        "yes", "no" or "unknown": whether something was lost; evidence says how that is known, one sentence each
    manifest        all of the manifest
    image           what array() gives without being told, an Image; None if the run does not say
    max_event       bytes of an event, its missing ones included, above which it is refused
    index           where the events lie, by epoch and number, as a numpy array with the fields event, epoch, segment, offset, bytes
    """

    def __init__(self, path, max_event=MAX_EVENT):
        self.max_event, self._files = max_event, _files.Files()
        self.path = self._find(pathlib.Path(path))
        self._load()

    @staticmethod
    def _find(path):
        """A run that is being written has a hidden name, and gets its own at the end."""
        hidden = path.parent / f".{path.name}.part"
        if path.is_dir() or not path.name:
            return path
        if not path.exists() and hidden.is_dir():
            return hidden
        raise RunError(f"{path} is not a run: {'a run is a directory' if path.exists() else 'it does not exist'}")

    def _list(self):
        try:
            names = [p.name for p in self.path.iterdir() if p.name.startswith("events-") and p.name.endswith(".weir")]
        except OSError as error:
            raise RunError(str(error)) from None
        return sorted(names, key=lambda name: (len(name), name))

    def _load(self):
        self._segments = self._list()
        self._unlisted, self._manifest_problem, self.manifest, self._tag = [], None, {}, None
        self._index, self._found, self._scanned = None, {}, {}
        self.version = None
        self.closed = self._read_manifest()
        if not self._segments:
            raise RunError(f"{self.path} is not a run: it has no segment events-000000.weir")
        self.number, self.created_ns, start = None, 0, {}
        try:
            scan = self._scanner()
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
        image = self.manifest.get("image", _at(_at(start, "start"), "image"))
        self._received = image if isinstance(image, dict) else {}
        self.image = self._image()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes its files. They are opened again if they are needed."""
        self._files.close()

    def __repr__(self):
        state = "finished" if self.closed else "being written" if self.being_written else "not closed"
        events = f"{self.manifest.get('events')} events" if self.closed else f"{len(self._index)} events found" if self._index is not None else "not read yet"
        name = f" ({self.name}{'' if self.number is None else f', number {self.number}'})" if self.name else ""
        content = self.payload.get("content", "received")
        image = "" if self.image is None else " of {} x {} x {} {}".format(*self.image[1:], np.dtype(self.image.dtype).name)
        return f"<run {self.path}{name}: {state}, {events}{image}, payload {content}, lossless: {self.lossless}>"

    @property
    def being_written(self):
        return not self.closed and _files.is_locked(self.path / "index.weir")

    @property
    def lossless(self):
        said = self.ledger.get("lossless")
        return said if said in ("yes", "no", "unknown") else "unknown"

    @property
    def evidence(self):
        """How that is known, or why it is not: a list of sentences."""
        if not self.closed:
            return [f"{self._manifest_problem}; without a ledger nobody can say what was lost"]
        if "interrupted" in self.manifest:
            return ["the run was interrupted, and closed by the next start; without a ledger nobody can say what was lost"]
        if self.ledger.get("lossless") not in ("yes", "no", "unknown"):
            return ["the run's ledger does not say: it was written by an older weir; look at its counters (run.ledger)"]
        said = self.ledger.get("evidence")
        return [str(one) for one in said] if isinstance(said, list) else []

    def _image(self):
        """From the description of reduced payload, else from that of what was received."""
        labels = self.config.get("sources")
        sources = len(labels) if isinstance(labels, list) else None
        kind, rows, columns = self.payload.get("type"), self.payload.get("rows"), self.payload.get("columns")
        if self.payload.get("content") == "pixels" and kind in _PIXEL_TYPES and _counts(rows, columns):
            return Image(_PIXEL_TYPES[kind], sources, rows, columns)
        kind, rows, columns = (self._received.get(key) for key in ("type", "rows", "columns"))
        if self.payload.get("content", "received") != "received" or kind not in _RECEIVED_TYPES or not _counts(rows, columns):
            return None
        return Image(_RECEIVED_TYPES[kind], sources, rows, columns)

    @property
    def _pixel_bits(self):
        """Of a pixel in the messages of images, of which several may share a byte."""
        return self._received.get("bits")

    def refresh(self):
        """Looks for what was written since. True if there are more events than before, or the run was finished."""
        self._follow_rename()
        if self.closed:
            return False
        before = len(self._found)
        found, scanned = self._found, self._scanned
        self._load()
        if self.closed:
            return True
        self._found, self._scanned = found, scanned
        self._scan_on()
        return len(found) > before

    @property
    def _hidden(self):
        return self.path.name.startswith(".") and self.path.name.endswith(".part")

    def _follow_rename(self):
        """A run gets its final name last, after its manifest."""
        if self._hidden and not self.path.is_dir():
            self.close()
            self.path = self.path.parent / self.path.name[1:-5]

    def follow(self, poll_s=0.2, timeout_s=None):
        """Every event once, as it is written, until the run is finished, its program has ended, or nothing has come for `timeout_s`
        seconds. `closed` says which. Where a file system has no locks, only a finished run and `timeout_s` end it."""
        given, quiet_since = set(), time.monotonic()
        while True:
            ended = self.closed or not self.being_written  # asked before looking: nothing comes between the two
            self.refresh()
            # A finished run in the order of its file, a growing one in the order in which events were found.
            rows = [tuple(entry) for entry in np.sort(self.index, order=("segment", "offset"))] if self.closed else list(self._found.values())
            for row in rows:
                if row[2:4] not in given:
                    given.add(row[2:4])
                    yield self._event(np.array(row, _ENTRY))
                    quiet_since = time.monotonic()
            if self.closed and self._hidden:
                ended = not self.path.is_dir() or not _files.is_locked(self.path / "index.weir")
                self._follow_rename()
            if ended or (timeout_s is not None and time.monotonic() - quiet_since > timeout_s):
                return
            time.sleep(poll_s)

    def _scanner(self, deep=False, sink=None, window_bytes=1 << 16):
        return Scan(self._files, self._tag, deep, sink, self.version, window_bytes)

    def _scan_on(self):
        """Finds the events behind those that are known. What lies behind damage, or behind an event that is not whole yet, is looked at
        again the next time."""
        for number, name in enumerate(self._segments):
            scan = self._scanner()
            try:
                for event in scan.events(self.path / name, number, self._scanned.get(number, 0)):
                    self._found[number, event["offset"]] = (event["id"], event["epoch"], number, event["offset"], event["stored_bytes"])
                    if not scan.problems:
                        self._scanned[number] = event["offset"] + event["stored_bytes"]
            except OSError:
                pass  # verify() says what is wrong with the file
        self._index = _in_order(np.array(list(self._found.values()), _ENTRY))

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
        self._unlisted = [name for name in self._segments if name not in names]
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
                blocks = list(self._entries(self._scanner(deep=True)))
                index = np.concatenate(blocks) if blocks else np.zeros(0, _ENTRY)
                if len(index) == self.manifest.get("events"):
                    self._index = _in_order(index)
            except (OSError, RunError):
                pass  # the events can be found without it
        if self._index is None:
            self._scan_on()
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
        scan = self._scanner(deep, sink, window_bytes=4096)
        try:
            fields = next(scan.events(self.path / self._segments[segment], segment, offset, offset + length), None)
        except OSError as error:
            raise RunError(str(error)) from None
        if fields is None:
            raise RunError(scan.problems[0] if scan.problems else f"{self._segments[segment]} at byte {offset}: no whole event is here")
        if (fields["epoch"], fields["id"]) != name or fields["stored_bytes"] != length:
            raise RunError("the index points to another event")
        return fields

    def _payload(self, event, size):
        """Of all its sources, as an array of bytes."""
        segment, offset, length = event._at
        try:
            with self._files.descriptor(self.path / self._segments[segment]) as descriptor:
                payload = _payload.read(descriptor, event._blocks, size)
        except (OSError, _codecs.Missing) as error:
            raise RunError(str(error)) from None
        if payload is None:  # then this says what is wrong with it
            pieces = []
            self._read(event._at, (event.epoch, event.id), deep=True, sink=lambda raw, _: pieces.append(raw))
            payload = np.frombuffer(bytearray().join(pieces), np.uint8)
        return payload

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
        return len(self._named(key)) > 0

    def _named(self, key):
        epoch, number = key if isinstance(key, tuple) else (None, key)
        index = self.index
        if not 0 <= number < 1 << 64:
            return index[:0]
        found = index["event"] == np.uint64(number)
        return index[found if epoch is None else found & (index["epoch"] == epoch)]

    def __getitem__(self, key):
        """run[id] or run[epoch, id]; run[-1] is the last, run[a:b] are those at places a to b. KeyError (for a negative index IndexError)
        if there is none, RunError if it is damaged or in several epochs."""
        if isinstance(key, slice):
            return Events(self, self.index[key])
        if not isinstance(key, tuple) and key < 0:
            return self._event(self.index[key])
        found = self._named(key)
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
        scan = self._scanner(deep=True)
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
        problems = scan.problems + [f"{name} is not part of the run" for name in self._unlisted]
        if self.closed:
            problems += self._verify_index(np.array(found, _ENTRY)) + self._verify_manifest(*totals)
        return problems

    def _verify_index(self, found):
        if self._tag is None:
            return []
        scan = self._scanner(deep=True)
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


class Events:
    """Some events of a run, in its order. They are read when they are asked for; events[i] counts places."""

    def __init__(self, run, entries):
        self._run, self._entries = run, entries

    def __len__(self):
        return len(self._entries)

    def __iter__(self):
        for entry in self._entries:
            yield self._run._event(entry)

    def __getitem__(self, place):
        return Events(self._run, self._entries[place]) if isinstance(place, slice) else self._run._event(self._entries[place])

    def __repr__(self):
        names = [f"{entry['epoch']}:{entry['event']}" for entry in self._entries[[0, -1] if len(self) > 1 else slice(None)]]
        return f"<{len(self)} events of {self._run.path}{': ' if names else ''}{' to '.join(names)}>"


def _counts(*values):
    return all(isinstance(value, int) and value > 0 for value in values)


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
