"""Stops one thread of another process, as a disk that does not answer stops the thread that writes to it."""

import ctypes
import os

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WAIT_FOR_THREADS = 0x40000000  # __WALL

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Frozen:
    """The thread stands still until `thaw`, and goes on if this program ends before that."""

    def __init__(self, thread):
        self.thread = thread
        self.call(PTRACE_SEIZE)
        self.call(PTRACE_INTERRUPT)
        os.waitpid(thread, WAIT_FOR_THREADS)

    def call(self, request):
        if libc.ptrace(request, self.thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace: {os.strerror(ctypes.get_errno())}")

    def thaw(self):
        try:
            self.call(PTRACE_DETACH)
        except OSError:
            pass  # it has gone
