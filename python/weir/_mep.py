"""Multi-event packets: docs/reference/reduce/mfp.md has their bytes."""
import struct

import numpy as np

from ._scan import RunError

MISSING_TYPE = 92


def _padded(count, align):
    return -(-count // align) * align


class _Bytes:
    """Takes numbers and tables off the front of bytes."""

    def __init__(self, data, align):
        self.data, self.align, self.at = memoryview(data), align, 0

    def take(self, layout):
        values = struct.unpack(layout, self._next(struct.calcsize(layout)))
        return values[0] if len(values) == 1 else values

    def table(self, count, dtype):
        size = count * np.dtype(dtype).itemsize
        return np.frombuffer(self._next(_padded(size, self.align))[:size], dtype)

    def _next(self, size):
        if size > len(self.data) - self.at:
            raise RunError("a multi-event packet ends before its tables do")
        self.at += size
        return self.data[self.at - size:self.at]


class MultiEvent:
    """The fragments of a block of events.

    first_event    number of the first one; the others follow
    source_ids, versions
    types          [source, event]; MISSING_TYPE where bytes did not arrive
    sizes          [source, event]

    len() is the number of events; m[i] is a list of bytes, one for each source, and so are the elements when iterated.
    """

    def __init__(self, data):
        self._data = memoryview(data)
        if bytes(self._data[:4]) == b"WEVT":
            self._by_event()
        else:
            self._by_source()

    def _by_source(self):
        head = _Bytes(self._data, 4)
        count, events, _, size = head.take("<HHIQ")
        self.source_ids, self.versions = head.table(count, "<u2"), head.table(count, "<u2")
        offsets = head.table(count, "<u4").astype(np.int64)
        start, end = head.at, 0
        if len(self._data) != start + size:
            raise RunError("a multi-event packet's length is not what its header says")
        self.first_event, types, sizes, places = None, [], [], []
        for offset in offsets:
            if not end <= offset <= size:
                raise RunError("a block of a multi-event packet lies in another, or after the end")
            block = _Bytes(self._data[start + offset:], 4)
            first, fragments, _, length = block.take("<QHHI")
            if fragments != events or self.first_event not in (None, first):
                raise RunError("the blocks of a multi-event packet are not of the same events")
            self.first_event = first
            types.append(block.table(events, "u1"))
            sizes.append(block.table(events, "<u2").astype(np.int64))
            if sizes[-1].sum() != length or length > len(block.data) - block.at:
                raise RunError("the sizes in a block of a multi-event packet do not add up")
            places.append(start + offset + block.at + np.concatenate(([0], sizes[-1].cumsum()))[:-1])
            end = offset + block.at + length
        shape = (count, events)
        self.types = np.array(types, np.uint8).reshape(shape)
        self.sizes = np.array(sizes, np.int64).reshape(shape)
        self._places = np.array(places, np.int64).reshape(shape)

    def _by_event(self):
        head = _Bytes(self._data, 8)
        _, version, count, events, _, self.first_event, size = head.take("<4sHHIIQQ")
        if version != 1:
            raise RunError(f"a multi-event packet of version {version}")
        self.source_ids, self.versions = head.table(count, "<u2"), head.table(count, "<u2")
        offsets = head.table(events, "<u8").astype(np.int64)
        types, sizes = head.table(count * events, "u1"), head.table(count * events, "<u2").astype(np.int64)
        places = np.concatenate(([0], sizes.cumsum()))
        if places[-1] != size or len(self._data) != head.at + size or not np.array_equal(places[:-1:count] if count else offsets, offsets):
            raise RunError("the sizes in a multi-event packet do not add up")
        self.types = types.reshape(events, count).T
        self.sizes = sizes.reshape(events, count).T
        self._places = (head.at + places[:-1]).reshape(events, count).T

    def __len__(self):
        return self.types.shape[1]

    def __getitem__(self, event):
        if not -len(self) <= event < len(self):
            raise IndexError(event)
        return [bytes(self._data[at:at + size]) for at, size in zip(self._places[:, event].tolist(), self.sizes[:, event].tolist())]
