"""CRC-32C (Castagnoli), which every block of a run is checked with: by ISA-L if its library is there (Debian: libisal2, which weir itself
needs), else by the package crc32c (python3-crc32c), else in numpy, a tenth as fast. `IMPLEMENTATION` says which."""
import ctypes
import functools
import os
import struct

import numpy as np

_POLYNOMIAL = np.uint32(0x82F63B78)
_LANE = 64       # bytes that one lane works through; blocks are multiples of it
_MOST = 1 << 30   # bytes in one call of ISA-L, which counts them in an int
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


def by_numpy(data, crc=0):
    """The checksum of `data`, or of what `crc` is the checksum of followed by `data`."""
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


def by_isal():
    """The same by ISA-L; None if it is not there."""
    try:
        update = ctypes.CDLL("libisal.so.2").crc32_iscsi
    except (OSError, AttributeError):
        return None
    update.argtypes, update.restype = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint), ctypes.c_uint

    def crc32c(data, crc=0):
        state = crc ^ 0xFFFFFFFF
        if isinstance(data, bytes) and len(data) < _MOST:
            return update(data, len(data), state) ^ 0xFFFFFFFF
        view = np.frombuffer(data, np.uint8) if len(data) else ()
        for at in range(0, len(view), _MOST):
            part = view[at:at + _MOST]
            state = update(part.ctypes.data, len(part), state)
        return state ^ 0xFFFFFFFF
    return crc32c


def by_package():
    """The same by the package crc32c; None if it is not there."""
    try:
        from crc32c import crc32c
    except ImportError:
        return None
    return crc32c


IMPLEMENTATIONS = {"isal": by_isal, "package": by_package, "numpy": lambda: by_numpy}


def chosen(wanted):
    """The first of these implementations that is there and counts right."""
    for name in wanted:
        function = IMPLEMENTATIONS[name]()
        if function is not None and function(b"6789", function(b"12345")) == 0xE3069283:
            return name, function
    raise ImportError(f"no CRC-32C of {', '.join(wanted)}")


# WEIR_CRC32C names one, for tests and benchmarks.
IMPLEMENTATION, crc32c = chosen([os.environ["WEIR_CRC32C"]] if os.environ.get("WEIR_CRC32C") else IMPLEMENTATIONS)
