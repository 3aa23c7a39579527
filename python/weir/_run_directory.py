"""A run in one directory: where its events are, what it says of itself, and whether all of it is as it should be."""
import json
import pathlib
import re

import numpy as np

from . import _codecs, _files, _payload
from ._crc32c import crc32c
from ._event import Event
from ._run import ENTRY, Image, Run, in_order
from ._scan import INDEX, RunError, Scan

_PIXEL_TYPES = {"f32": "<f4", "f16": "<f2", "i16": "<i2", "u16": "<u2"}
_RECEIVED_TYPES = {"u8": "u1", "u16": "<u2", "u32": "<u4"}
MAX_EVENT = 2 << 30

_NO_RUN = 0xFFFFFFFF
_END = re.compile(rb',\n "manifest_crc32c": "([0-9a-f]{8})"\n}\n\Z')


class RunDirectory(Run):
    """A run in one directory. `files` has open files of others, too, if it is given."""

    def __init__(self, path, max_event=MAX_EVENT, files=None):
        self.max_event, self._files = max_event, files or _files.Files()
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
        configs = (self.manifest.get("config"), _at(_at(start, "start"), "config"))
        self.config = next((config for config in configs if isinstance(config, dict)), {})
        payload = self.manifest.get("payload", _at(_at(start, "start"), "payload"))
        self.payload = payload if isinstance(payload, dict) else {}
        ledger = self.manifest.get("ledger")
        self.ledger = ledger if isinstance(ledger, dict) else {}
        image = self.manifest.get("image", _at(_at(start, "start"), "image"))
        self._received = image if isinstance(image, dict) else {}
        self.image = self._image()

    def close(self):
        """Closes its files. They are opened again if they are needed."""
        self._files.close(self.path)

    def _known_events(self):
        """As far as that is known without reading the index."""
        return self.manifest.get("events") if self.closed else None if self._index is None else len(self._index)

    @property
    def being_written(self):
        return not self.closed and _files.is_locked(self.path / "index.weir")

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
        try:
            self._load()
        except RunError:
            if not self._follow_rename():
                raise
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
        """A run gets its final name last, after its manifest. True if it has got it since."""
        if not self._hidden or self.path.is_dir():
            return False
        self.close()
        self.path = self.path.parent / self.path.name[1:-5]
        return True

    def _has_ended(self):
        """Nothing more comes: neither events nor its final name."""
        return (self.closed and not self._hidden) or not _files.is_locked(self.path / "index.weir")

    def _as_written(self):
        """The entries of a finished run in the order of its file, of a growing one in the order in which events were found."""
        return [tuple(entry) for entry in np.sort(self.index, order=("segment", "offset"))] if self.closed else list(self._found.values())

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
        self._index = in_order(np.array(list(self._found.values()), ENTRY))

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
            if (header.type != INDEX or header.sequence != expected or not body or len(body) % ENTRY.itemsize or header.flags
                    or header.element_bytes or header.raw != header.stored):
                raise RunError("index.weir: its blocks contradict each other")
            expected += 1
            yield np.frombuffer(body, ENTRY)

    @property
    def index(self):
        if self._index is None and self.closed and self._tag is not None:
            try:
                blocks = list(self._entries(self._scanner(deep=True)))
                index = np.concatenate(blocks) if blocks else np.zeros(0, ENTRY)
                if len(index) == self.manifest.get("events"):
                    self._index = in_order(index)
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

    def _segment_path(self, segment):
        self._follow_rename()
        return self.path / self._segments[segment]

    def _read(self, at, name, deep=False, sink=None):
        segment, offset, length = (int(number) for number in at)
        if segment >= len(self._segments) or offset % 64:
            raise RunError("the index points to a place that does not exist")
        scan = self._scanner(deep, sink, window_bytes=4096)
        try:
            fields = next(scan.events(self._segment_path(segment), segment, offset, offset + length), None)
        except OSError as error:
            raise RunError(str(error)) from None
        if fields is None:
            raise RunError(scan.problems[0] if scan.problems else f"{self._segments[segment]} at byte {offset}: no whole event is here")
        if (fields["epoch"], fields["id"]) != name or fields["stored_bytes"] != length:
            raise RunError("the index points to another event")
        return fields

    def _payload(self, event, size):
        """Of all its sources, as an array of bytes."""
        try:
            with self._files.descriptor(self._segment_path(event._at[0])) as descriptor:
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
            problems += self._verify_index(np.array(found, ENTRY)) + self._verify_manifest(*totals)
        return problems

    def _verify_index(self, found):
        if self._tag is None:
            return []
        scan = self._scanner(deep=True)
        try:
            blocks = list(self._entries(scan))
        except (OSError, RunError) as error:
            return [str(error)]
        index = np.concatenate(blocks) if blocks else np.zeros(0, ENTRY)
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
