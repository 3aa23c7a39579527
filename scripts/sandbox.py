"""A place for live runs of weir on one machine: namespaces of its own, and a cable in it. Used by scripts/soak and the live tests.

All that is started, mounted and made in a sandbox is cleared away by the kernel when its first process has gone.
"""

import ctypes
import os
import shutil
import socket
import subprocess

RECEIVER = "10.1.0.2"  # weir's address; nothing in the kernel has it
SENDER = "10.1.0.10"
CLONE_NEWNET = 0x40000000


def no_sandbox():
    """Why there can be no sandbox here, or nothing."""
    for tool in ("unshare", "ip", "ethtool", "mount"):
        if shutil.which(tool) is None:
            return f"there is no program '{tool}'"
    probe = subprocess.run([*command(), "sh", "-c", "mount -t tmpfs none /run && ip netns add probe"], capture_output=True,
                           text=True)
    return "" if probe.returncode == 0 else f"no network namespaces here ({(probe.stderr or probe.stdout).strip()})"


def command():
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return words if os.geteuid() == 0 else [*words, "--user", "--map-root-user"]


def settle():
    """What the first process of a sandbox does first: a /run of its own, for `ip netns` and sockets; a loopback interface."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


class Network:
    """det0 here, for weir, without an address; gen0 in the namespace "sender", with one. Jumbo frames, no offloads."""

    def __init__(self, queues=1, mtu=9000):
        ip = lambda *words: subprocess.run(["ip", *words], check=True)
        ip("netns", "add", "sender")
        count = ("numtxqueues", str(queues), "numrxqueues", str(queues))
        ip("link", "add", "det0", "mtu", str(mtu), *count, "type", "veth", "peer", "name", "gen0", "mtu", str(mtu), *count, "netns", "sender")
        ip("link", "set", "det0", "up")
        ip("-n", "sender", "address", "add", f"{SENDER}/24", "dev", "gen0")
        ip("-n", "sender", "link", "set", "gen0", "up")
        for prefix, device in (([], "det0"), (["ip", "netns", "exec", "sender"], "gen0")):
            subprocess.run([*prefix, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off", "tx", "off"], check=True,
                           stdout=subprocess.DEVNULL)

    @staticmethod
    def close():
        subprocess.run(["ip", "link", "delete", "det0"])
        subprocess.run(["ip", "netns", "delete", "sender"])

    @staticmethod
    def there(*command):
        """The command, to be run on the sender's side."""
        return ["ip", "netns", "exec", "sender", *map(str, command)]

    @staticmethod
    def socket_there(*kind):
        """A socket on the sender's side; it stays there."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/self/ns/net") as here, open("/run/netns/sender") as there:
            if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                return socket.socket(*kind)
            finally:
                libc.setns(here.fileno(), CLONE_NEWNET)
