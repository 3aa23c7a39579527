"""Multi-fragment packets as front ends send them and multi-event packets as `mfp` makes them, by the tables of docs/reference/reduce/mfp.md alone;
and MDF files."""
import struct

MISSING = 92


def padded(data, align):
    return data + bytes(-len(data) % align)


def block(first_event, fragments):
    """A packet in the layout lhcb-2019; `fragments` are (type, bytes)."""
    data = b"".join(data for _, data in fragments)
    head = struct.pack("<QHHI", first_event, len(fragments), 0, len(data))
    types = bytes(kind for kind, _ in fragments)
    sizes = struct.pack(f"<{len(fragments)}H", *(len(data) for _, data in fragments))
    return head + padded(types, 4) + padded(sizes, 4) + data


def read_block(data, at):
    first, count, _, size = struct.unpack_from("<QHHI", data, at)
    at += 16
    types = data[at:at + count]
    at += len(padded(types, 4))
    sizes = struct.unpack_from(f"<{count}H", data, at)
    at += (2 * count + 3) // 4 * 4
    assert sum(sizes) == size
    fragments = []
    for kind, length in zip(types, sizes):
        fragments.append((kind, data[at:at + length]))
        at += length
    return first, fragments, at


def read_mep(data):
    """(source ids, versions, first event, fragments by source)"""
    count, packing, _, size = struct.unpack_from("<HHIQ", data)
    at = 16
    ids = struct.unpack_from(f"<{count}H", data, at)
    at += (2 * count + 3) // 4 * 4
    versions = struct.unpack_from(f"<{count}H", data, at)
    at += (2 * count + 3) // 4 * 4
    offsets = struct.unpack_from(f"<{count}I", data, at)
    at += 4 * count
    assert len(data) == at + size
    sources, numbers, end = [], set(), at
    for offset in offsets:
        assert at + offset == end
        first, fragments, end = read_block(data, end)
        assert len(fragments) == packing
        numbers.add(first)
        sources.append(fragments)
    assert end == len(data) and len(numbers) == 1
    return ids, versions, numbers.pop(), sources


def read_events(data):
    magic, version, count, events, _, first, size = struct.unpack_from("<4sHHIIQQ", data)
    assert magic == b"WEVT" and version == 1
    at = 32
    ids = struct.unpack_from(f"<{count}H", data, at)
    at += (2 * count + 7) // 8 * 8
    versions = struct.unpack_from(f"<{count}H", data, at)
    at += (2 * count + 7) // 8 * 8
    offsets = struct.unpack_from(f"<{events}Q", data, at)
    at += 8 * events
    types = data[at:at + count * events]
    at += (count * events + 7) // 8 * 8
    sizes = struct.unpack_from(f"<{count * events}H", data, at)
    at += (2 * count * events + 7) // 8 * 8
    assert len(data) == at + size
    sources = [[] for _ in range(count)]
    place = at
    for i, length in enumerate(sizes):
        if i % count == 0:
            assert place == at + offsets[i // count]
        sources[i % count].append((types[i], data[place:place + length]))
        place += length
    assert place == len(data)
    return ids, versions, first, sources


def mdf_checksum(data):
    """Bob Jenkins' one-at-a-time hash, of bytes with a sign."""
    value = 0
    for byte in data:
        value = value + (byte - 256 if byte > 127 else byte) & 0xffffffff
        value = value + (value << 10) & 0xffffffff
        value ^= value >> 6
    value = value + (value << 3) & 0xffffffff
    value ^= value >> 11
    return value + (value << 15) & 0xffffffff


def read_mdf(data):
    """[(run, [(type, version, source id, body)])]; fails unless every size and checksum is right and what fills up is 0."""
    events, at = [], 0
    while at < len(data):
        size, again, third, checksum, compression, layout, content, _, *mask, run, orbit, bunch = struct.unpack_from("<4I4B4I3I", data, at)
        assert size == again == third and at + size <= len(data)
        assert (compression, layout, content, mask, orbit, bunch) == (0, 0x37, 1, [0xffffffff] * 4, 0, 0)
        assert checksum == mdf_checksum(data[at + 16:at + size])
        end, banks, at = at + size, [], at + 48
        while at < end:
            magic, length, kind, version, source = struct.unpack_from("<HHBBH", data, at)
            assert magic == 0xcbcb and length >= 8
            banks.append((kind, version, source, data[at + 8:at + length]))
            filled = -(-length // 4) * 4
            assert not any(data[at + length:at + filled])
            at += filled
        assert at == end
        events.append((run, banks))
    return events
