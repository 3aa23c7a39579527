"""Writes runs of version 2 of the event file from docs/reference/EVENT_FILE.md alone, with every encoding: what reducers would leave, so that
readers can be tested with exactly known contents."""
import json
import struct

import numpy
import zstandard

from weir import crc32c

TAG = 0x1122334455667788
RAW, ZSTD, LZ4, BITSHUFFLE_LZ4, BITSHUFFLE_ZSTD, BITS = range(6)
CODECS = ("raw", "zstd", "lz4", "bitshuffle-lz4", "bitshuffle-zstd", "bits")
SPARSE = 16
TYPES = {"f32": "<f4", "f16": "<f2", "i16": "<i2", "u16": "<u2"}
BAD = {"f32": numpy.nan, "f16": numpy.nan, "i16": -32768, "u16": 65535}
SATURATED = {"f32": numpy.inf, "f16": numpy.inf, "i16": 32767, "u16": 65534}


def padded(body):
    return body + bytes(-len(body) % 64)


def block(kind, sequence, body, epoch=0, event=0, raw=None, encoding=0, flags=0, element_bytes=0, version=2):
    whole = padded(body)
    head = struct.pack("<4sHHIIQIIBBBBIQQI", b"WEIR", version, kind, 64, len(body), sequence, crc32c(whole), len(body) if raw is None else raw,
                       encoding, flags, element_bytes, 0, epoch, event, TAG, 0)
    return head + struct.pack("<I", crc32c(head)) + whole


def lz4_block(data):
    """Valid, if not small: literals, and runs of one byte as copies."""
    out, at, start = bytearray(), 0, 0

    def length(value):
        return bytes([255] * ((value - 15) // 255) + [(value - 15) % 255]) if value >= 15 else b""

    while at < len(data):
        end = at + 1
        while end < len(data) - 12 and data[end] == data[at]:
            end += 1
        if end - at >= 20:
            literals, copied = at + 1 - start, end - at - 1
            out.append(min(literals, 15) << 4 | min(copied - 4, 15))
            out += length(literals) + data[start:at + 1] + b"\x01\x00" + length(copied - 4)
            start = end
        at = end
    literals = len(data) - start
    return bytes(out) + bytes([min(literals, 15) << 4]) + length(literals) + data[start:]


def transposed(data, element_bytes):
    bits = numpy.unpackbits(numpy.frombuffer(data, numpy.uint8).reshape(-1, element_bytes), axis=1, bitorder="little")
    return numpy.packbits(bits.T, axis=1, bitorder="little").tobytes()


def zstd(data):
    return zstandard.ZstdCompressor(level=1).compress(data)


def bitshuffle(data, element_bytes, compress, block_bytes=1024):
    whole = len(data) // (8 * element_bytes) * 8 * element_bytes
    out = struct.pack(">QI", len(data), block_bytes)
    for at in range(0, whole, block_bytes):
        stored = compress(transposed(data[at:min(at + block_bytes, whole)], element_bytes))
        out += struct.pack(">I", len(stored)) + stored
    return out + data[whole:]


def lz4(data, block_bytes=3000):
    out = struct.pack(">QI", len(data), block_bytes)
    for at in range(0, len(data), block_bytes):
        plain = data[at:at + block_bytes]
        stored = lz4_block(plain)
        stored = stored if len(stored) < len(plain) else plain
        out += struct.pack(">I", len(stored)) + stored
    return out


def bits(data, element_bytes, per_block=512):
    kind = numpy.dtype(f"<u{element_bytes}")
    values = numpy.frombuffer(data, kind, len(data) // element_bytes)
    out = struct.pack("<B3xIQ", element_bytes, per_block, len(data))
    for at in range(0, len(values), per_block):
        part = values[at:at + per_block]
        reference = part.min()
        left = part - reference
        # The largest few are exceptions.
        limit = numpy.sort(left)[-1 - len(left) // 50]
        places = numpy.flatnonzero(left > limit)
        width = int(limit).bit_length()
        left = numpy.where(left > limit, 0, left).astype(kind)
        planes = numpy.unpackbits(left.view(numpy.uint8).reshape(-1, element_bytes), axis=1, bitorder="little").T[:width]
        rows = numpy.packbits(planes, axis=1, bitorder="little").tobytes() if width else b""
        out += struct.pack("<BBH", width, 0, len(places)) + kind.type(reference).tobytes() + rows
        out += places.astype("<u2").tobytes() + part[places].tobytes()
    return out + data[len(values) * element_bytes:]


def csr(image, name, kept):
    """A sparse piece of the rows of `image`: the pixels where `kept`, and which have no value."""
    bad = numpy.isnan(image) if name in ("f32", "f16") else image == BAD[name]
    kept = kept & ~bad
    pointers = numpy.concatenate(([0], numpy.cumsum(kept.sum(axis=1)))).astype("<u4")
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate(([0], bad.ravel().astype(int), [0]))))
    runs = numpy.stack((edges[::2], edges[1::2] - edges[::2]), axis=1).astype("<u4")
    rows, columns = image.shape
    head = struct.pack("<4sBBHIII12x", b"CSR1", list(TYPES).index(name), 0, columns, rows, int(kept.sum()), len(runs))
    return head + pointers.tobytes() + runs.tobytes() + image[kept].tobytes() + numpy.nonzero(kept)[1].astype("<u2").tobytes()


def encode(codec, data, element_bytes):
    if codec == ZSTD:
        return zstd(data)
    if codec == LZ4:
        return lz4(data)
    if codec == BITSHUFFLE_LZ4:
        return bitshuffle(data, element_bytes, lz4_block)
    if codec == BITSHUFFLE_ZSTD:
        return bitshuffle(data, element_bytes, zstd)
    if codec == BITS:
        return bits(data, element_bytes)
    return data


class Event:
    """Pixels of some modules: `images` is (modules, rows, columns). Sparse where `kept` is given, which says which pixels are.
    `content` may say that they are something else."""

    def __init__(self, number, images, codec=RAW, kept=None, veto=0, above=0, peaks=0, missing=(), cause=1, content=1, epoch=0):
        self.number, self.images, self.codec, self.kept = number, images, codec, kept
        self.epoch = epoch
        self.content = content
        self.veto, self.above, self.peaks, self.missing, self.cause = veto, above, peaks, missing, cause if missing else 0


def write_received(folder, events, ports, format="ejfat", ledger=None):
    """A finished run of version 1 with messages as they were received. `events` are (number, messages); a message is (source, size, what
    came, missing ranges), where a size of None was never learnt."""
    folder.mkdir()
    config = {"stream": [{"port": "det0", "transport": "udp", "format": format, "udp_dst": ports}], "port": [{"name": "det0", "device": "x"}]}
    text = json.dumps({"name": "made up", "start": {"config": config}}).encode()
    data, entries, payload_bytes, sequence = bytearray(), [], 0, 0

    def put(kind, body, number=0, flags=0):
        nonlocal sequence
        data.extend(block(kind, sequence, body, event=number, flags=flags, version=1))
        sequence += 1

    put(1, struct.pack("<IIqI44x", 0, 0xffffffff, 5, len(text)) + text)
    for number, messages in events:
        start, whole = len(data), all(size is not None and not missing for _, size, _, missing in messages)
        payload = b"".join(came for _, _, came, _ in messages)
        packets = sum(bool(came) for _, _, came, _ in messages)
        put(2, struct.pack("<qqQQIBB26x", 1000, 2000, len(payload), packets, len(messages), whole, not whole), number)
        records = b""
        for source, size, came, missing in messages:
            state = (2 if came else 4) if size is None else 0 if not missing else 1 if came else 3
            meta = struct.pack("!BBHIIQ", 0x10, 0, source, 0, size or 0, number) if came else b""
            records += padded(struct.pack("<IBBHQQIIqqQ8x64s", source, state, len(meta), 0, size or 0, len(came), bool(came), len(missing), 1000, 2000,
                                          0, meta) + b"".join(struct.pack("<II", *pair) for pair in missing))
        put(3, records, number)
        put(4, payload, number, flags=1)
        entries.append((number, 0, 0, start, len(data) - start))
        payload_bytes += len(payload)
    (folder / "events-000000.weir").write_bytes(data)
    index = block(5, 0, b"".join(struct.pack("<QIIQQ", *entry) for entry in entries), version=1)
    (folder / "index.weir").write_bytes(index)
    manifest = {"format": "weir-run", "version": 1, "name": "made up", "run": None, "tag": f"{TAG:016x}", "created_ns": 5, "closed_ns": 6,
                "events": len(entries), "payload_bytes": payload_bytes,
                "segments": [{**Run.describe("events-000000.weir", data, 64), "events": len(entries)}],
                "index": Run.describe("index.weir", index, 64), "ledger": {"events": {"written": len(entries)}, **(ledger or {})}, "config": config}
    text = json.dumps(manifest)[:-1].encode()
    (folder / "manifest.json").write_bytes(text + b',\n "manifest_crc32c": "%08x"\n}\n' % crc32c(text))
    return folder


class Run:
    """Segments of one file each, an index and a manifest. Pieces of `piece_rows` rows."""

    def __init__(self, folder, name="f32", columns=32, piece_rows=4, version=2, config=None, number=None, created_ns=5):
        self.folder, self.name, self.columns, self.piece_rows, self.version = folder, name, columns, piece_rows, version
        self.config, self.number, self.created_ns = config or {"stream": [{"format": "jungfrau"}]}, number, created_ns
        folder.mkdir()
        self.segments, self.entries, self.bytes = [], [], 0
        self.payload = {"content": "pixels", "type": name, "unit": "photon", "rows": 0, "columns": columns}
        self.begin()

    def begin(self):
        """A new segment."""
        text = json.dumps({"name": "made up", "start": {"config": self.config, "payload": self.payload}}).encode()
        number = 0xffffffff if self.number is None else self.number
        self.data = bytearray(block(1, 0, struct.pack("<IIqI44x", len(self.segments), number, self.created_ns, len(text)) + text))
        self.sequence, self.events = 1, 0
        self.segments.append(None)

    def append(self, kind, body, **more):
        self.data += block(kind, self.sequence, body, **more)
        self.sequence += 1

    def pad(self, multiple=4096):
        left = -len(self.data) % multiple
        if left:
            self.append(6, bytes(left - 64))

    def put(self, event, pad=0):
        own = {"event": event.number, "epoch": event.epoch}
        start = len(self.data)
        modules, rows, columns = event.images.shape
        element = numpy.dtype(TYPES[self.name]).itemsize
        raw_bytes = rows * columns * 2                # of a message as it was received
        lost = sum(length for _, length in event.missing)
        received = modules * raw_bytes - lost
        reduced = modules * rows * columns * element
        self.append(2, struct.pack("<qqQQIBBBBIIQ8x", 1000, 2000, received, modules, modules, not event.missing, event.cause, event.content, event.veto,
                                   event.above, event.peaks, reduced), **own)
        records = b""
        for module in range(modules):
            missing = event.missing if module == 0 else ()
            got = raw_bytes - (lost if module == 0 else 0)
            records += padded(struct.pack("<IBBHQQIIqqQ8x64x", module, 1 if missing else 0, 0, 0, raw_bytes, got, 1, len(missing), 1000, 2000,
                                          reduced // modules) + b"".join(struct.pack("<II", *pair) for pair in missing))
        self.append(3, records, **own)
        pieces = [(module, row) for module in range(modules) for row in range(0, rows, self.piece_rows)]
        for i, (module, row) in enumerate(pieces):
            image = event.images[module, row:row + self.piece_rows]
            dense, encoding = image.tobytes(), event.codec
            body = dense
            if event.kept is not None:
                piece = csr(image, self.name, event.kept[module, row:row + self.piece_rows])
                if len(piece) < len(dense):
                    body, encoding = piece, encoding | SPARSE
            packed = encode(event.codec, body, 2 if encoding & SPARSE else element)
            if event.codec and len(packed) >= len(body):
                packed, encoding = body, encoding & SPARSE
            elements = (2 if encoding & SPARSE else element) if encoding & 15 >= BITSHUFFLE_LZ4 else 0
            self.append(4, packed, raw=len(dense), encoding=encoding, flags=int(i + 1 == len(pieces)), element_bytes=elements, **own)
            if pad and i % 3 == 1 and i + 1 < len(pieces):
                self.pad(pad)
        self.entries.append((event.number, event.epoch, len(self.segments) - 1, start, len(self.data) - start))
        self.events += 1
        self.bytes += received

    def flush(self):
        """Writes what there is of the segment so far, behind what has been written of it."""
        name = f"events-{len(self.segments) - 1:06}.weir"
        with open(self.folder / name, "ab") as file:
            file.write(self.data[file.tell():])
        return name

    def end_segment(self):
        name = self.flush()
        self.segments[-1] = {**self.describe(name, self.data), "events": self.events}

    @staticmethod
    def describe(name, data, head_bytes=60):
        at, crc, blocks = 0, 0, 0
        while at < len(data):
            crc = crc32c(data[at:at + head_bytes], crc)
            at += 64 + (struct.unpack_from("<I", data, at + 12)[0] + 63) // 64 * 64
            blocks += 1
        return {"file": name, "bytes": len(data), "blocks": blocks, "headers_crc32c": f"{crc:08x}"}

    def close(self, **more):
        """`more` are members of the manifest."""
        self.end_segment()
        index = block(5, 0, b"".join(struct.pack("<QIIQQ", *entry) for entry in self.entries))
        (self.folder / "index.weir").write_bytes(index)
        manifest = {"format": "weir-run", "version": 2, "name": "made up", "run": self.number, "tag": f"{TAG:016x}",
                    "created_ns": self.created_ns, "closed_ns": self.created_ns + 1,
                    "events": len(self.entries), "payload_bytes": self.bytes, "segments": self.segments,
                    "index": self.describe("index.weir", index), "ledger": {"events": {"written": len(self.entries)}},
                    "config": self.config, "payload": self.payload, **more}
        text = json.dumps(manifest)[:-1].encode()
        (self.folder / "manifest.json").write_bytes(text + b',\n "manifest_crc32c": "%08x"\n}\n' % crc32c(text))
