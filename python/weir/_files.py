"""Files of a run, read by place: no position is shared, so events may be read in several threads."""
import contextlib
import fcntl
import os
import pathlib
import struct
import threading

_KEPT = 64           # files that stay open
_LOCK = "hhqqi"      # struct flock, with the compiler's padding
BATCH = 256          # buffers that one system call fills; 1024 is the kernel's limit


class Files:
    """Opens files and keeps some of them open."""

    def __init__(self):
        self._open, self._guard = {}, threading.Lock()

    @contextlib.contextmanager
    def descriptor(self, path):
        name = str(path)
        with self._guard:
            number = self._open.get(name)
            kept = number is not None
            if not kept:
                number = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
                if len(self._open) < _KEPT:
                    self._open[name], kept = number, True
        try:
            yield number
        finally:
            if not kept:
                os.close(number)

    def __del__(self):
        self.close()

    def close(self, folder=None):
        """All of them, or those in `folder`."""
        with self._guard:
            for name in [name for name in self._open if folder is None or pathlib.Path(name).parent == folder]:
                os.close(self._open.pop(name))


class Window:
    """Reads small pieces out of larger ones. What goes beyond the end is shorter."""

    def __init__(self, descriptor, window_bytes):
        self._descriptor, self._window_bytes = descriptor, window_bytes
        self._start, self._data = 0, b""

    def read_at(self, at, count):
        inside = at - self._start
        if 0 <= inside and inside + count <= len(self._data):
            return self._data[inside:inside + count]
        if count >= self._window_bytes:
            return read_at(self._descriptor, at, count)
        self._start, self._data = at, read_at(self._descriptor, at, self._window_bytes)
        return self._data[:count]


def read_at(descriptor, at, count):
    data = os.pread(descriptor, count, at)
    while len(data) < count:
        more = os.pread(descriptor, count - len(data), at + len(data))
        if not more:
            break
        data += more
    return data


def read_into(descriptor, at, buffers):
    """Fills buffers one after the other; False if the file ends before they are full."""
    for first in range(0, len(buffers), BATCH):
        batch = buffers[first:first + BATCH]
        got = os.preadv(descriptor, batch, at)
        for buffer in batch:
            # A call that was cut short (signals, 2 GiB): the rest buffer by buffer.
            done, got = min(got, len(buffer)), max(0, got - len(buffer))
            while done < len(buffer):
                more = os.preadv(descriptor, [buffer[done:]], at + done)
                if more == 0:
                    return False
                done += more
            at += len(buffer)
    return True


def is_locked(path):
    """Whether some program has a lock on it, as one that writes a run has on its index."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        return struct.unpack(_LOCK, fcntl.fcntl(number, fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(number)
