"""Reads the blocks of a segment and makes events of them again, checking every rule of docs/reference/EVENT_FILE.md."""
import collections
import os
import struct

from . import _codecs, _files
from ._crc32c import crc32c

CAUSES = ("none", "timeout", "evicted", "end_of_run", "no_room", "ended", "node_down")
STATES = ("complete", "partial", "size unknown", "absent", "absent, size unknown")
CONTENTS = ("received", "pixels", "mep")
VETOES = ("none", "passed", "control")
SEGMENT, EVENT, SOURCE, PAYLOAD, INDEX, PADDING = 1, 2, 3, 4, 5, 6
BODY_MAX = 64 << 20

_HEADER = struct.Struct("<4sHHIIQIIBBBBIQQII")
_SEGMENT = struct.Struct("<IIqI44s")
_EVENT = struct.Struct("<qqQQIBBBBIIQQ")
_SOURCE = struct.Struct("<IBBHQQIIqqQQ64s")
_RANGE = struct.Struct("<II")
Header = collections.namedtuple("Header", "magic version type header_bytes stored sequence body_crc raw encoding flags element_bytes reserved "
                                          "epoch event tag reserved_too crc")


class RunError(Exception):
    """There is no run, or what was asked for is damaged."""


class _Lost(Exception):
    """The event that is being read cannot be whole any more."""


class Source:
    """What came from one source for one event.

    id         its number in the run
    state      one of STATES
    size       bytes of its whole message, or None where that was never learnt
    received   bytes that came
    reduced    bytes of its part of the event's payload, if that is not what was received; else 0
    missing    [(offset, bytes), ...] of what did not, as far as known
    packets, first_ns, last_ns    arrival, in nanoseconds since 1970
    header     the detector's header of the packet that came first, as bytes
    """
    __slots__ = ("id", "state", "size", "received", "missing", "packets", "first_ns", "last_ns", "header", "reduced")

    def __repr__(self):
        return f"<source {self.id}: {self.state}, {self.received} bytes>"


def _parse_source(body, at):
    if len(body) - at < _SOURCE.size:
        raise _Lost("a source record is cut off")
    source = Source()
    (source.id, state, meta_bytes, reserved, declared, source.received, source.packets, count, source.first_ns, source.last_ns,
     source.reduced, reserved_too, meta) = _SOURCE.unpack_from(body, at)
    used = at + _SOURCE.size + count * _RANGE.size
    end = at + (_SOURCE.size + count * _RANGE.size + 63) // 64 * 64
    if end > len(body):
        raise _Lost("a source record is cut off")
    if meta_bytes > 64 or any(meta[meta_bytes:]) or reserved or reserved_too or any(body[used:end]):
        raise _Lost("reserved bytes of a source record are not zero")
    source.header = meta[:meta_bytes]
    source.missing = list(_RANGE.iter_unpack(body[at + _SOURCE.size:used]))
    last, missing, good = 0, 0, True
    for offset, length in source.missing:
        good = good and length > 0 and not (last > 0 and offset <= last)
        last = offset + length
        missing += length
    nothing = source.received == 0 and source.packets == 0
    sums_up = source.received + missing == declared and last <= declared
    good = good and declared < 1 << 32 and source.received < 1 << 32 and state < 5 and (
        not source.missing and sums_up, bool(source.missing) and sums_up, declared == 0, nothing and sums_up and len(source.missing) <= 1,
        nothing and declared == 0 and not source.missing)[state]
    if not good:
        raise _Lost(f"the record of source {source.id} contradicts itself")
    source.state = STATES[state]
    source.size = None if state in (2, 4) else declared
    return source, end


class Scan:
    """Reads files of a run one after the other. `tag` and `version` are the run's, None if not known yet; the problems it
    meets are collected. deep=False leaves the payload out: not read, not checked. `sink` is given the payload, decoded, and
    the sparse piece of each part of it, or None. `files` has the open files."""

    def __init__(self, files, tag, deep=True, sink=None, version=None, window_bytes=1 << 16):
        self.files, self.window_bytes = files, window_bytes
        self.tag, self.deep, self.sink, self.version = tag, deep, sink, version
        self.sequence = None
        self.problems = []
        self.blocks = self.headers_crc = 0
        self.head = None

    def _check_header(self, raw):
        header = Header._make(_HEADER.unpack(raw))
        if header.magic != b"WEIR":
            return header, "no block starts here"
        if crc32c(raw[:60]) != header.crc:
            return header, "the block header does not match its checksum"
        if header.version not in (1, 2) or header.header_bytes != 64:
            return header, f"the block has version {header.version}; this program reads versions 1 and 2"
        if header.reserved or header.reserved_too or (header.version == 1 and header.element_bytes):
            return header, "reserved bytes of the block header are not zero"
        if header.stored > BODY_MAX or header.raw > BODY_MAX:
            return header, "the block is too large"
        if self.tag is not None and header.tag != self.tag:
            return header, "the block belongs to another run"
        if self.version is not None and header.version != self.version:
            return header, f"the block has version {header.version} in a run of version {self.version}"
        return header, None

    def _next_header(self, file, at, end):
        """Blocks start at multiples of 64: the next one whose header verifies, or the end."""
        while at < end:
            data = file.read_at(at, min(1 << 20, end - at))
            found = data.find(b"WEIR")
            while found >= 0:
                if found % 64 == 0 and len(data) - found >= 64 and self._check_header(data[found:found + 64])[1] is None:
                    return at + found
                found = data.find(b"WEIR", found + 1)
            if len(data) < 1 << 20:
                break
            at += len(data)
        return end

    def read_blocks(self, path, at=0, end=None):
        """Good blocks as (offset, header, body), damage as (offset, None, what)."""
        self.blocks = self.headers_crc = 0
        with self.files.descriptor(path) as descriptor:
            file = _files.Window(descriptor, self.window_bytes)
            size = os.fstat(descriptor).st_size
            end = size if end is None else min(end, size)
            pending = bytearray()
            while at < end:
                raw = file.read_at(at, min(64, end - at))
                if len(raw) < 64:
                    yield at, None, f"torn tail: {end - at} bytes, less than a block header"
                    break
                header, problem = self._check_header(raw)
                length = (header.stored + 63) // 64 * 64
                after = at + 64
                body = b""
                if problem is None and after + length > end:
                    problem, after = "torn tail: the file ends before the end of this block", end
                elif problem is None:
                    after += length
                    if self.deep or header.type != PAYLOAD:
                        body = file.read_at(at + 64, length)
                        if len(body) < length:
                            problem, after = "the file became shorter while it was read", end
                        elif crc32c(body) != header.body_crc:
                            problem = "the block's body does not match its checksum"
                        elif any(body[header.stored:]):
                            problem = "the block's padding is not zero"
                if problem is not None:
                    yield at, None, problem
                    at = self._next_header(file, after, end)
                    continue
                self.tag, self.version = header.tag, header.version
                self.blocks += 1
                pending += raw if header.version == 1 else raw[:60]
                if len(pending) >= 1 << 16:
                    self.headers_crc, pending = crc32c(pending, self.headers_crc), bytearray()
                yield at, header, body[:header.stored]
                at = after
            self.headers_crc = crc32c(pending, self.headers_crc)

    def events(self, path, number, at=0, end=None):
        """The whole events of a segment, as dictionaries of what docs/reference/EVENT_FILE.md lists."""
        self.head = None
        event, skipping = None, False
        for offset, header, body in self.read_blocks(path, at, end):
            try:
                if header is None:
                    self.problems.append(f"{path.name} at byte {offset}: {body}")
                    self.sequence, skipping = None, True
                    if event is not None:
                        raise _Lost("the damage is inside it")
                    continue
                if offset == 0 and header.version == 2:
                    self.sequence = 0  # segments may be written side by side, so each counts its own blocks
                expected, self.sequence = self.sequence, header.sequence + 1
                if expected not in (None, header.sequence):
                    self.problems.append(f"{path.name} at byte {offset}: block {expected} should be here")
                    if event is not None:
                        raise _Lost("blocks of it are missing")
                if header.type != PAYLOAD and (header.raw != header.stored or header.encoding or header.flags or header.element_bytes):
                    self.problems.append(f"{path.name} at byte {offset}: only payload blocks may be encoded or end an event")
                if header.type == SEGMENT:
                    self._segment(path, number, offset, body)
                elif header.type == EVENT:
                    if event is not None:
                        self.problems.append(f"{path.name}: event {event['epoch']}:{event['id']} has no last block")
                    if offset == 0:
                        self.problems.append(f"{path.name} does not begin with its first block")
                    event = {"epoch": header.epoch, "id": header.event, "segment": number, "offset": offset, "sources": [],
                             "payload_blocks": []}
                    self._begin(event, header.version, body)
                    skipping = False
                elif header.type == PADDING and header.version == 2:
                    if offset == 0 or header.event or header.epoch or any(body):
                        self.problems.append(f"{path.name} at byte {offset}: a padding block is not empty")
                elif header.type not in (SOURCE, PAYLOAD):
                    self.problems.append(f"{path.name} at byte {offset}: a block of type {header.type} has no place here")
                elif skipping:
                    continue
                elif event is None:
                    self.problems.append(f"{path.name} at byte {offset}: this block belongs to no event")
                    skipping = True
                elif (header.epoch, header.event) != (event["epoch"], event["id"]):
                    raise _Lost("blocks of another event are inside it")
                elif header.type == SOURCE:
                    self._sources(event, body)
                elif self._payload(event, offset, header, body):
                    event["stored_bytes"] = offset + 64 + (header.stored + 63) // 64 * 64 - event["offset"]
                    whole, event = event, None
                    yield whole
            except _Lost as lost:
                self.problems.append(f"{path.name}: event {event['epoch']}:{event['id']} is lost: {lost}")
                event, skipping = None, True
        if event is not None:
            self.problems.append(f"{path.name}: event {event['epoch']}:{event['id']} is lost: the segment ends before its last block")

    def _segment(self, path, number, offset, body):
        if offset != 0 or len(body) < _SEGMENT.size:
            self.problems.append(f"{path.name} at byte {offset}: a segment's first block has no place here")
            return
        segment, run, created_ns, length, reserved = _SEGMENT.unpack_from(body)
        if any(reserved) or length != len(body) - _SEGMENT.size:
            self.problems.append(f"{path.name}: its first block contradicts itself")
        if segment != number:
            self.problems.append(f"{path.name}: this is segment {segment}, segment {number} should be here")
        self.head = (run, created_ns, body[_SEGMENT.size:])

    @staticmethod
    def _begin(event, version, body):
        if len(body) != _EVENT.size:
            raise _Lost("its first block has the wrong size")
        (event["first_ns"], event["last_ns"], event["bytes"], event["packets"], event["sources_left"], complete, cause, content,
         veto, event["pixels_above"], event["peaks"], event["reduced_bytes"], reserved) = _EVENT.unpack(body)
        new = content or veto or event["pixels_above"] or event["peaks"] or event["reduced_bytes"]
        if (complete > 1 or cause >= len(CAUSES) or (complete == 1) != (cause == 0) or reserved or content >= len(CONTENTS)
                or veto >= len(VETOES) or (not content and event["reduced_bytes"]) or (version == 1 and new)):
            raise _Lost("its first block contradicts itself")
        event["complete"], event["cause"], event["content"], event["veto"] = complete == 1, CAUSES[cause], CONTENTS[content], VETOES[veto]
        event["payload_left"] = event["reduced_bytes"] if content else event["bytes"]
        Scan._check_sum(event)

    @staticmethod
    def _check_sum(event):
        if event["sources_left"] == 0 and sum(source.received for source in event["sources"]) != event["bytes"]:
            raise _Lost("its sources have another number of bytes than it says")
        if event["sources_left"] == 0 and sum(source.reduced for source in event["sources"]) != event["reduced_bytes"]:
            raise _Lost("its sources have another number of reduced bytes than it says")

    @staticmethod
    def _sources(event, body):
        if event["sources_left"] == 0 or not body:
            raise _Lost("it has more source records than it says")
        at = 0
        while at < len(body):
            source, at = _parse_source(body, at)
            if event["sources_left"] == 0:
                raise _Lost("it has more source records than it says")
            if event["sources"] and source.id <= event["sources"][-1].id:
                raise _Lost("its sources are not in ascending order")
            if event["complete"] and source.state != "complete":
                raise _Lost("it says that it is complete, but a source is not")
            event["sources_left"] -= 1
            event["sources"].append(source)
        Scan._check_sum(event)

    def _payload(self, event, offset, header, body):
        """True if this was the event's last block."""
        if event["sources_left"] > 0:
            raise _Lost("its payload begins before its last source record")
        sparse = header.encoding & _codecs.SPARSE
        if (header.flags & ~1 or (not self.deep and header.encoding == 0 and header.raw != header.stored) or not _codecs.is_known(header)
                or (sparse and event["content"] != "pixels")):
            raise _Lost("its payload cannot be decoded")
        try:
            raw, piece = _codecs.decode(header, body) if self.deep else (b"", None)
        except _codecs.Damaged as what:
            raise _Lost(f"its payload cannot be decoded: {what}") from None
        except _codecs.Missing as what:
            raise RunError(str(what)) from None
        event["payload_left"] -= header.raw
        if event["payload_left"] < 0 or (header.flags & 1 and event["payload_left"] > 0):
            raise _Lost("its payload does not have the bytes that it says")
        event["payload_blocks"].append((offset, header))
        if self.sink is not None:
            self.sink(raw, piece)
        return header.flags & 1
