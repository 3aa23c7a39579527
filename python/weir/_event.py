"""One event of a run, and arrays of it."""
import collections
import hashlib

import numpy as np

from ._mep import MultiEvent
from ._scan import RunError

# Types of pixels, and what stands for one without a value.
_PIXELS = {"f32": ("<f4", None), "f16": ("<f2", None), "i16": ("<i2", -32768), "u16": ("<u2", 65535)}
# scipy.sparse.csr_array((values, indices, indptr), shape); `bad` are the places (row * columns + column) without a value.
Csr = collections.namedtuple("Csr", "indptr indices values shape bad")


def _spread(came, size, lost):
    """The bytes that came, and zeros between them where some are missing."""
    data = np.empty(size, np.uint8)
    at = taken = 0
    for begin, end in [*lost, (size, size)]:
        data[at:begin] = came[taken:taken + begin - at]
        taken += begin - at
        data[begin:end] = 0
        at = end
    return data


def _unpacked(data, bits):
    """Pixels of which several share a byte, the lowest bits first."""
    if bits == 4:
        return np.stack((data & 15, data >> 4), axis=1).reshape(-1)
    first, second, third = data.reshape(-1, 3).T.astype("<u2")
    return np.stack((first | (second & 15) << 8, second >> 4 | third << 4), axis=1).reshape(-1)


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
        self._blocks = fields["payload_blocks"]

    def __repr__(self):
        state = "complete" if self.complete else f"incomplete ({self.cause})"
        reduced = "" if self.content == "received" else f", {self.reduced_bytes} of {self.content}"
        return f"<event {self.epoch}:{self.id}: {state}, {len(self.sources)} sources, {self.bytes} bytes{reduced}>"

    def _name(self):
        return f"event {self.epoch}:{self.id}"

    def _check_size(self, size, what):
        most = self._run.max_event
        if size > most:
            raise RunError(f"{self._name()} has {size} bytes{what}, at most {most} are taken; weir.open(..., max_event=...) raises that")

    def _read(self):
        """The payload of all sources, checked."""
        size = self.bytes if self.content == "received" else self.reduced_bytes
        self._check_size(size, "")
        return self._run._payload(self, size)

    def _part(self, data, source):
        """Of the payload, what is this source's."""
        if source is None:
            return data
        at = 0
        for one in self.sources:
            length = one.received if self.content == "received" else one.reduced
            if one.id == source:
                return data[at:at + length]
            at += length
        raise RunError(f"{self._name()} has no source {source}")

    def payload(self, source=None):
        """The payload, of all sources or of the one with this id: the bytes that came, without the missing ones, or what
        reducers made of them. Checked."""
        return self._part(self._read(), source).tobytes()

    def multi_event(self):
        """The fragments in it, a MultiEvent, if its content is "mep": what the reducer `mfp` makes of a block of events."""
        if self.content != "mep":
            raise RunError(f"{self._name()} is no multi-event packet: its content is {self.content}")
        return MultiEvent(self.payload())

    def sha256(self):
        """The digest of payload(), as `weir inspect --json --digest sha256` gives it."""
        return hashlib.sha256(self._read()).hexdigest()

    def array(self, dtype=None, shape=None, source=None, fill=None):
        """The messages as an array, each byte in its place. Without dtype and shape: where the run knows what its images are
        (run.image), those, as (sources, rows, columns); else bytes. In a run of calibrated pixels dtype and shape are the run's.

        dtype     of the elements of a message
        shape     of one message. Without it they are flat, one after the other.
        source    only the one with this id; else there is a first axis for the sources if a shape is given
        fill      the value that stands where bytes are missing. Without it the array is masked there; where nothing is
                  missing its mask is numpy.ma.nomask.
        """
        chosen = [one for one in self.sources if source in (None, one.id)]
        if not chosen:
            raise RunError(f"{self._name()} has no source {source}")
        if self.content != "received":
            return self._reduced_array(dtype, shape, source, fill)
        bits = None
        if dtype is None and shape is None and self._run.image is not None:
            dtype, shape, bits = self._run.image.dtype, (self._run.image.rows, self._run.image.columns), self._run._pixel_bits
        try:
            dtype = np.dtype("u1" if dtype is None else dtype)
        except TypeError as error:
            raise RunError(f"{self._name()}: {error}") from None
        sizes = [self._size(one) for one in chosen]
        self._check_size(sum(sizes), " with those that are missing")
        came = self._part(self._read(), source)
        lost = self._lost(chosen, sizes)
        data = _spread(came, sum(sizes), lost) if lost else came
        mask = np.ma.nomask
        try:
            values = _unpacked(data, bits) if bits in (4, 12) else data.view(dtype)
            if lost:
                mask = np.zeros(len(values), bool)
                bits = bits or 8 * dtype.itemsize
                for start, end in lost:
                    mask[8 * start // bits:-(-8 * end // bits)] = True
            if shape is not None:
                shape = (len(chosen), *np.atleast_1d(shape)) if source is None else tuple(np.atleast_1d(shape))
                values = values.reshape(shape)
                mask = mask.reshape(shape) if lost else mask
        except (ValueError, TypeError) as error:
            raise RunError(f"{self._name()} has {len(data)} bytes: {error}") from None
        if fill is None:
            return np.ma.MaskedArray(values, mask)
        if lost:
            values[mask] = fill
        return values

    @staticmethod
    def _lost(chosen, sizes):
        """Where bytes are missing in the messages one after the other: (begin, end)."""
        lost, start = [], 0
        for one, size in zip(chosen, sizes):
            ranges = one.missing if one.state != "absent, size unknown" else [(0, size)] if size else []
            lost += [(start + offset, start + offset + length) for offset, length in ranges]
            start += size
        return lost

    def _pixels(self):
        """What the run says of its pixels: dtype, marker, columns."""
        about = self._run.payload
        columns = about.get("columns")
        if self.content != "pixels" or about.get("type") not in _PIXELS or not isinstance(columns, int) or columns < 1:
            raise RunError(f"{self._name()}: the run does not say what its pixels are; payload() has the bytes")
        dtype, marker = _PIXELS[about["type"]]
        return np.dtype(dtype), marker, columns

    def _reduced_array(self, dtype, shape, source, fill):
        if self.content != "pixels":
            return self._packet_array(dtype, shape, source)
        own, marker, columns = self._pixels()
        if dtype is not None and np.dtype(dtype) != own:
            raise RunError(f"{self._name()}: its pixels are {own}, not {np.dtype(dtype)}; leave the type out, or use astype()")
        sizes = {one.reduced for one in self.sources if source in (None, one.id)}
        one = (-1, columns) if shape is None else tuple(np.atleast_1d(shape))
        try:
            values = self._part(self._read(), source).view(own)
            if len(sizes) > 1:
                raise ValueError("sources of different sizes")
            modules = len(self.sources)
            if shape is None:
                one = (sizes.pop() // own.itemsize // columns, columns)
            values = values.reshape((modules, *one) if source is None else one)
        except ValueError as error:
            raise RunError(f"{self._name()} has {self.reduced_bytes} bytes of pixels: {error}") from None
        mask = np.isnan(values) if marker is None else values == marker
        if fill is None:
            return np.ma.MaskedArray(values, mask)
        values[mask] = fill
        return values

    def _packet_array(self, dtype, shape, source):
        """Bytes that are neither messages nor pixels: a multi-event packet."""
        try:
            values = self._part(self._read(), source).view(np.dtype("u1" if dtype is None else dtype))
            return values if shape is None else values.reshape(shape)
        except (ValueError, TypeError) as error:
            raise RunError(f"{self._name()} has {self.reduced_bytes} bytes of {self.content}, which multi_event() takes apart: {error}") from None

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
                    raise RunError(f"{self._name()}: a sparse piece has other pixels than the run says")
                else:
                    parts.append(Csr(piece.indptr, piece.indices, piece.values, (piece.rows, columns), piece.bad()))
                left -= len(raw)
                at += 1
            found[one.id] = _joined(parts, dtype, columns)
        return found

    def _dense_csr(self, dtype, marker, columns):
        found = {}
        for one in self.sources:
            found[one.id] = _joined([_csr_of(self._part(self._read(), one.id).view(dtype).reshape(-1, columns), marker)], dtype, columns)
        return found

    def _size(self, source):
        if source.size is not None:
            return source.size
        known = {one.size for one in self.sources if one.size is not None}
        if source.state == "size unknown" or len(known) != 1:
            raise RunError(f"{self._name()}: the size of source {source.id} was never learnt; payload() has what came")
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
