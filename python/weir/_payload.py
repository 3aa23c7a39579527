"""Reads the payload of one event whose blocks are known, into one array: what is stored as it is goes there in one system call, without a
copy in between. Whatever is not as it should be is left to the scanner, which says what."""
import numpy as np

from . import _codecs, _files
from ._crc32c import crc32c

_HEAD = 64
_TURN = 256 << 10  # bytes that are read, then checked


def _padded(count):
    return (count + 63) // 64 * 64


def read(descriptor, blocks, size):
    """`blocks` are (offset, header) of the event's payload blocks. None if anything is wrong."""
    out = np.empty(size, np.uint8)
    at = first = 0
    for last in range(1, len(blocks) + 1):
        if last < len(blocks) and _follows(blocks[last - 1], blocks[last]):
            continue
        stretch = blocks[first:last]
        bytes_ = sum(header.raw for _, header in stretch)
        plain = stretch[0][1].encoding == _codecs.RAW
        good = _plain(descriptor, stretch, out[at:at + bytes_]) if plain else _encoded(descriptor, stretch, out[at:at + bytes_])
        if not good:
            return None
        at += bytes_
        first = last
    return out if at == size else None


def _follows(one, other):
    """Whether both are stored as they are and lie side by side; else each is read by itself."""
    plain = one[1].encoding == other[1].encoding == _codecs.RAW
    return plain and one[0] + _HEAD + _padded(one[1].stored) == other[0]


def _plain(descriptor, blocks, out):
    """In turns of reading and checking, so that what is checked is still in the cache."""
    check, waiting, place, bytes_, at = _Check(), [], blocks[0][0], 0, 0
    edges = memoryview(bytearray(2 * _HEAD * len(blocks)))
    for i, (_, header) in enumerate(blocks):
        head, body = edges[2 * _HEAD * i:2 * _HEAD * i + _HEAD], memoryview(out[at:at + header.stored])
        padding = edges[2 * _HEAD * i + _HEAD:][:_padded(header.stored) - header.stored]
        at += header.stored
        parts = [body[j:j + _TURN] for j in range(0, len(body), _TURN)]
        for take, buffer in [(check.head, head), *((check.body, part) for part in parts), (check.end, padding)]:
            waiting.append((take, header, buffer))
            bytes_ += len(buffer)
            if bytes_ < _TURN and len(waiting) < _files.BATCH and not (i + 1 == len(blocks) and take == check.end):
                continue
            if not _files.read_into(descriptor, place, [buffer for _, _, buffer in waiting if len(buffer)]):
                return False
            if not all(take(header, buffer) for take, header, buffer in waiting):
                return False
            place, waiting, bytes_ = place + bytes_, [], 0
    return True


class _Check:
    """Given the parts of blocks one after the other: whether they are what their headers say."""

    def head(self, header, data):
        self._crc = 0
        return _is_same(header, data)

    def body(self, _, data):
        self._crc = crc32c(data, self._crc)
        return True

    def end(self, header, padding):
        return crc32c(padding, self._crc) == header.body_crc and not any(padding)


def _is_same(header, head):
    """The head was checked when the event was found: its bytes are those that made it."""
    return int.from_bytes(head[60:], "little") == header.crc and crc32c(head[:60]) == header.crc


def _encoded(descriptor, blocks, out):
    at = 0
    for offset, header in blocks:
        data = _files.read_at(descriptor, offset, _HEAD + _padded(header.stored))
        body = data[_HEAD:]
        if len(body) < _padded(header.stored) or not _is_same(header, data[:_HEAD]) or crc32c(body) != header.body_crc or any(body[header.stored:]):
            return False
        try:
            raw, _ = _codecs.decode(header, body[:header.stored])
        except _codecs.Damaged:
            return False
        out[at:at + header.raw] = np.frombuffer(raw, np.uint8)
        at += header.raw
    return True
