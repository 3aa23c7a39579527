"""Decodes payload blocks: the codecs of docs/reference/EVENT_FILE.md, and sparse pieces (docs/reference/reduce/sparse.md). Made for arbitrary bytes:
whatever is wrong with them is a Damaged."""
import struct

import numpy as np

RAW, ZSTD, LZ4, BITSHUFFLE_LZ4, BITSHUFFLE_ZSTD, BITS = range(6)
SPARSE = 0x10
_CHUNK = struct.Struct(">QI")
_LENGTH = struct.Struct(">I")
_CSR = struct.Struct("<4sBBHIII12s")
TYPES = ("<f4", "<f2", "<i2", "<u2")
_BAD = (b"\0\0\xc0\x7f", b"\0\x7e", b"\0\x80", b"\xff\xff")


class Damaged(Exception):
    """Bytes that are not what they should be."""


class Missing(Exception):
    """A package that this needs is not there."""


def is_known(header):
    """Its encoding is one of its version, and says the size of elements where it must."""
    codec = header.encoding & 15
    elements = (1, 2, 4, 8) if codec >= BITSHUFFLE_LZ4 else (0,)
    if header.version == 1:
        return header.encoding <= ZSTD
    return codec <= BITS and header.encoding & ~(15 | SPARSE) == 0 and header.element_bytes in elements


def zstd(data, size):
    """A frame that must decode to `size` bytes."""
    try:
        import zstandard
    except ImportError:
        raise Missing("this run is compressed: install the Python package zstandard (Debian: python3-zstandard)") from None
    try:
        if zstandard.frame_content_size(data) > size:
            raise Damaged("a frame is larger than it should be")
        out = zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise Damaged(str(error)) from None
    return _exactly(out, size)


def _exactly(data, size):
    if len(data) != size:
        raise Damaged("it decodes to another size")
    return data


def lz4(data, size):
    """A block of LZ4 that must decode to `size` bytes: with the package lz4 if it is there, else here, which is slow."""
    try:
        from lz4 import block
    except ImportError:
        return _exactly(_plain_lz4(data, size), size)
    try:
        return _exactly(block.decompress(data, uncompressed_size=size), size)
    except (block.LZ4BlockError, ValueError) as error:
        raise Damaged(str(error)) from None


def _long(data, at, length):
    """A length that goes on in further bytes as long as they are 255."""
    while True:
        length += data[at]
        at += 1
        if data[at - 1] != 255:
            return length, at


def _plain_lz4(data, size):
    """The block format of LZ4: sequences of literals and of a copy from what is there already."""
    out, at = bytearray(), 0
    try:
        while at < len(data):
            token, at = data[at], at + 1
            literals = token >> 4
            if literals == 15:
                literals, at = _long(data, at, 15)
            if at + literals > len(data) or len(out) + literals > size:
                raise Damaged("its literals end outside")
            out += data[at:at + literals]
            at += literals
            if at == len(data):
                break
            distance, at = data[at] | data[at + 1] << 8, at + 2
            length = token & 15
            if length == 15:
                length, at = _long(data, at, 15)
            length += 4
            if not 0 < distance <= len(out) or len(out) + length > size:
                raise Damaged("it copies from outside")
            start = len(out) - distance
            for _ in range(-(-length // distance)):
                piece = out[start:start + min(distance, length)]
                out += piece
                length -= len(piece)
    except IndexError:
        raise Damaged("it ends inside a sequence") from None
    return bytes(out)


def _chunks(data, at, total, block_bytes):
    """The stored blocks of an HDF5 chunk, and how much each decodes to."""
    while total > 0:
        length = min(block_bytes, total)
        if len(data) - at < _LENGTH.size:
            raise Damaged("it ends before a block")
        stored, = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if stored > len(data) - at:
            raise Damaged("it ends inside a block")
        yield data[at:at + stored], length
        at += stored
        total -= length


def _head(data, size):
    if len(data) < _CHUNK.size:
        raise Damaged("it ends inside its header")
    total, block_bytes = _CHUNK.unpack_from(data)
    if total != size or (block_bytes == 0 and total > 0):
        raise Damaged("its header has another size")
    return block_bytes


def _lz4_chunk(data, size):
    parts = [block if len(block) == length else lz4(block, length) for block, length in _chunks(data, _CHUNK.size, size, _head(data, size))]
    used = _CHUNK.size + sum(_LENGTH.size + len(block) for block, _ in _chunks(data, _CHUNK.size, size, _head(data, size)))
    if used != len(data):
        raise Damaged("bytes are left over")
    return b"".join(parts)


def untranspose(data, element_bytes):
    """Blocks of bit rows, (blocks, rows, bytes), to elements as bytes."""
    bits = np.unpackbits(data, axis=2, bitorder="little")                      # (blocks, 8 x element bytes, elements)
    blocks, rows, elements = bits.shape
    ordered = bits.transpose(0, 2, 1).reshape(blocks, elements, rows // 8, 8)
    return np.packbits(ordered, axis=3, bitorder="little").tobytes()


def _bitshuffle(data, size, element_bytes, decompress):
    block_bytes = _head(data, size)
    eight = 8 * element_bytes
    whole = size // eight * eight
    if whole and block_bytes % eight:
        raise Damaged("its block size is not whole elements")
    rows, used, out = [], _CHUNK.size, []
    for block, length in _chunks(data, _CHUNK.size, whole, block_bytes or 1):
        rows.append(np.frombuffer(decompress(block, length), np.uint8).reshape(eight, -1))
        used += _LENGTH.size + len(block)
    if len(data) - used != size - whole:
        raise Damaged("its length does not fit")
    last = rows.pop() if rows and rows[-1].shape != rows[0].shape else None
    if rows:
        out.append(untranspose(np.stack(rows), element_bytes))
    if last is not None:
        out.append(untranspose(last[None], element_bytes))
    return b"".join(out) + data[used:]


def _bits(data, size, element_bytes):
    """Numbers in as few bits as they need (docs/reference/reduce/pack.md)."""
    if len(data) < 16:
        raise Damaged("it ends inside its header")
    said, zeros, per_block, total = struct.unpack_from("<B3sIQ", data)
    if said != element_bytes or any(zeros) or total != size or per_block == 0 or per_block % 8 or per_block > 65536:
        raise Damaged("its header is not valid")
    kind, at, left, out = np.dtype(f"<u{element_bytes}"), 16, size // element_bytes, []

    def take(count):
        nonlocal at
        if count > len(data) - at:
            raise Damaged("it ends inside a block")
        at += count
        return data[at - count:at]

    while left > 0:
        n = min(per_block, left)
        width, zero, exceptions = struct.unpack("<BBH", take(4))
        reference = np.frombuffer(take(element_bytes), kind)[0]
        if width > 8 * element_bytes or zero or exceptions > n:
            raise Damaged("a block's header is not valid")
        rows = np.frombuffer(take(width * ((n + 7) // 8)), np.uint8).reshape(width, (n + 7) // 8)
        bits = np.zeros((8 * element_bytes, n), np.uint8)
        if width:
            bits[:width] = np.unpackbits(rows, axis=1, bitorder="little")[:, :n]
        packed = np.packbits(bits.T.reshape(n, element_bytes, 8), axis=2, bitorder="little")
        block = packed.reshape(-1).view(kind) + reference
        places = np.frombuffer(take(2 * exceptions), "<u2").astype(np.int64)
        values = np.frombuffer(take(element_bytes * exceptions), kind)
        if exceptions and (places[-1] >= n or (np.diff(places) <= 0).any()):
            raise Damaged("an exception's place is not valid")
        block[places] = values
        out.append(block.tobytes())
        left -= n
    if len(data) - at != size % element_bytes:
        raise Damaged("its length does not fit")
    return b"".join(out) + data[at:]


class Csr:
    """A sparse piece: rows x columns pixels, of which some are kept and some have no value."""

    def __init__(self, data):
        if len(data) < _CSR.size:
            raise Damaged("a sparse piece ends inside its header")
        magic, type_, reserved, self.columns, self.rows, count, runs, reserved_too = _CSR.unpack_from(data)
        if magic != b"CSR1" or type_ >= len(TYPES) or reserved or any(reserved_too) or self.columns == 0:
            raise Damaged("the header of a sparse piece is not valid")
        self.type, self.dtype = type_, np.dtype(TYPES[type_])
        ends = np.cumsum([_CSR.size, 4 * (self.rows + 1), 8 * runs, self.dtype.itemsize * count, 2 * count])
        if ends[-1] != len(data):
            raise Damaged("the length of a sparse piece is not that of its arrays")
        self.indptr = np.frombuffer(data, "<u4", self.rows + 1, ends[0]).astype(np.int64)
        self.runs = np.frombuffer(data, "<u4", 2 * runs, ends[1]).reshape(-1, 2).astype(np.int64)
        self.values = np.frombuffer(data, self.dtype, count, ends[2])
        self.indices = np.frombuffer(data, "<u2", count, ends[3]).astype(np.int32)
        self._check(count)

    def _check(self, count):
        pointers, pixels = self.indptr, self.rows * self.columns
        if pointers[0] != 0 or pointers[-1] != count or (np.diff(pointers) < 0).any():
            raise Damaged("the row pointers of a sparse piece are out of order")
        self.places = np.repeat(np.arange(self.rows), np.diff(pointers)) * self.columns + self.indices
        if (self.indices >= self.columns).any() or (np.diff(self.places) <= 0).any():
            raise Damaged("the columns of a sparse piece are out of order")
        begin, end = self.runs[:, 0], self.runs[:, 0] + self.runs[:, 1]
        if (self.runs[:, 1] == 0).any() or (begin[1:] <= end[:-1]).any() or (len(end) and end[-1] > pixels):
            raise Damaged("the bad pixels of a sparse piece are out of order")
        at = np.searchsorted(begin, self.places, "right") - 1
        if len(begin) and ((at >= 0) & (self.places < end[at])).any():
            raise Damaged("a pixel of a sparse piece is kept and bad")

    def bad(self):
        """The places of pixels without a value."""
        lengths = self.runs[:, 1]
        starts = np.repeat(self.runs[:, 0] - np.cumsum(lengths) + lengths, lengths)
        return starts + np.arange(lengths.sum())

    def expand(self):
        dense = np.zeros(self.rows * self.columns, self.dtype)
        dense[self.bad()] = np.frombuffer(_BAD[self.type], self.dtype)[0]
        dense[self.places] = self.values
        return dense.tobytes()


def _size_of(codec, data):
    """What a packed sparse piece says that it decodes to."""
    if codec == RAW:
        return len(data)
    if codec == ZSTD:
        try:
            import zstandard
            size = zstandard.frame_content_size(data)
        except ImportError:
            raise Missing("this run is compressed: install the Python package zstandard (Debian: python3-zstandard)") from None
        except zstandard.ZstdError as error:
            raise Damaged(str(error)) from None
        if size < 0:
            raise Damaged("a frame does not say its size")
        return size
    if len(data) < 16:
        raise Damaged("it ends inside its header")
    return struct.unpack_from("<Q", data, 8)[0] if codec == BITS else _CHUNK.unpack_from(data)[0]


def _unpack(codec, element_bytes, data, size):
    if codec == RAW:
        return _exactly(data, size)
    if codec == ZSTD:
        return zstd(data, size)
    if codec == LZ4:
        return _lz4_chunk(data, size)
    if codec == BITS:
        return _bits(data, size, element_bytes)
    return _bitshuffle(data, size, element_bytes, lz4 if codec == BITSHUFFLE_LZ4 else zstd)


def decode(header, body):
    """The payload of a block, and its sparse piece if it is one."""
    if not is_known(header):
        raise Damaged("its encoding is not known")
    codec = header.encoding & 15
    if not header.encoding & SPARSE:
        return _unpack(codec, header.element_bytes, body, header.raw), None
    size = _size_of(codec, body)
    if size >= header.raw:
        raise Damaged("a sparse piece is not shorter than its pixels")
    piece = Csr(_unpack(codec, header.element_bytes, body, size))
    if piece.rows * piece.columns * piece.dtype.itemsize != header.raw:
        raise Damaged("a sparse piece has another number of pixels")
    return piece.expand(), piece
