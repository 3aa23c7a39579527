"""CRC-32C (Castagnoli) in numpy: what every block of a run is checked with."""
import functools
import struct

import numpy as np

_POLYNOMIAL = np.uint32(0x82F63B78)
_LANE = 64       # bytes that one lane works through; blocks are multiples of it
_SMALL = 4096    # below this many bytes a plain loop is faster


def _table(bits):
    """What `bits` more bits of input make of the state, for every value of them."""
    state = np.arange(1 << bits, dtype=np.uint32)
    for _ in range(bits):
        state = (state >> np.uint32(1)) ^ np.where(state & np.uint32(1), _POLYNOMIAL, np.uint32(0))
    return state


_BYTES = _table(8).tolist()
_WORDS = _table(16)
_WORD_LIST = _WORDS.tolist()


def _advance(tables, state):
    return tables[0][state & 255] ^ tables[1][state >> 8 & 255] ^ tables[2][state >> 16 & 255] ^ tables[3][state >> 24]


@functools.lru_cache(maxsize=None)
def _zeros(level):
    """Tables for _advance() that take a state over 64 * 2**level zero bytes: the state is linear in its bits."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    if level == 0:
        for _ in range(_LANE // 2):
            bits = _WORDS[bits & 0xFFFF] ^ (bits >> 16)
    else:
        bits = _advance(_zeros(level - 1), _advance(_zeros(level - 1), bits))
    tables = np.zeros((4, 256), np.uint32)
    for bit in range(32):
        tables[bit // 8] ^= np.where(np.arange(256) >> bit % 8 & 1, bits[bit], np.uint32(0)).astype(np.uint32)
    return tables


def crc32c(data, crc=0):
    """The checksum of `data`, or of what `crc` is the checksum of with `data` behind it."""
    state = crc ^ 0xFFFFFFFF
    size = len(data)
    if size < _SMALL:
        for word in struct.unpack_from(f"<{size // 2}H", data):
            state = state >> 16 ^ _WORD_LIST[(state ^ word) & 0xFFFF]
        if size % 2:
            state = state >> 8 ^ _BYTES[(state ^ data[-1]) & 255]
        return state ^ 0xFFFFFFFF
    # Zeros in front change nothing in a state of 0, so the lanes can all be full; the state that there is goes into the
    # first four bytes. Lanes are worked through side by side, then put together in pairs.
    padded = np.zeros(-(-size // _LANE) * _LANE, np.uint8)
    padded[len(padded) - size:] = np.frombuffer(data, np.uint8)
    padded[len(padded) - size:][:4] ^= np.frombuffer(state.to_bytes(4, "little"), np.uint8)
    columns = np.ascontiguousarray(padded.view("<u2").reshape(-1, _LANE // 2).T)
    lanes = np.zeros(columns.shape[1], np.uint32)
    for column in columns:
        lanes = _WORDS[(lanes ^ column) & 0xFFFF] ^ (lanes >> 16)
    level = 0
    while len(lanes) > 1:
        if len(lanes) % 2:
            lanes = np.concatenate((np.zeros(1, np.uint32), lanes))
        lanes = _advance(_zeros(level), lanes[0::2]) ^ lanes[1::2]
        level += 1
    return int(lanes[0]) ^ 0xFFFFFFFF
