#!/usr/bin/env python3
"""Makes the captures of this folder once more: real packets of Linux, recorded on the wire. What is in them differs in times, ports and
queue pair numbers each time, so do it only to add one; README.md says what each is for.

usage: make.py WEIR udp     datagrams of a kernel's UDP socket over an MTU of 1500, in namespaces
       make.py WEIR roce    perftest over soft-RoCE in a guest (scripts/guest), weir at the other end
"""

import hashlib
import json
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "live"), str(HERE.parent / "guest")]

import guest  # noqa: E402
import live  # noqa: E402

ETH_P_ALL = 3


class Recording:
    """Writes what passes an interface to a capture, both directions, with nanosecond stamps."""

    def __init__(self, interface, path):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self.socket.bind((interface, 0))
        self.socket.settimeout(0.5)
        self.path, self.frames, self.over = path, [], False
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while True:
            try:
                self.frames.append((time.time_ns(), self.socket.recv(65536)))
            except TimeoutError:
                if self.over:
                    return

    def end(self):
        self.over = True
        self.thread.join()
        out = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
        for stamp, frame in self.frames:
            out += struct.pack("<IIII", stamp // 10**9, stamp % 10**9, len(frame), len(frame)) + frame
        self.path.write_bytes(out)
        print(f"{self.path.name}: {len(self.frames)} packets, {len(out)} bytes")


def jungfrau_rows(random_bytes, number, rows=8):
    """The datagrams of a module that reads out the rows in its middle."""
    packets = range(64 - rows // 8, 64 + rows // 8)
    image = random_bytes(len(packets) * 8192)
    heads = [struct.pack("<QIIQQHHHHIHBB", number, 100, packet, 0xB0C0 + number, 10 * number, 1, 0, 0, 0, 0, 0, 3, 2) for packet in packets]
    return image, [head + image[8192 * i:8192 * (i + 1)] for i, head in enumerate(heads)]


def udp():
    network = live.Network()
    there = lambda *words: subprocess.run(["ip", "-n", "sender", *words], check=True)
    there("link", "set", "gen0", "mtu", "1500")
    there("-6", "address", "add", "fd00::10/64", "dev", "gen0", "nodad")
    for address in ("10.1.0.2", "fd00::2"):
        there("neighbour", "add", address, "lladdr", "02:00:00:00:00:02", "dev", "gen0")
    time.sleep(2)  # the kernel's own greetings
    generator = random.Random(1)
    for name, family, address in (("udp_ipv4_fragments", socket.AF_INET, "10.1.0.2"), ("udp_ipv6_fragments", socket.AF_INET6, "fd00::2")):
        sender = network.socket_there(family, socket.SOCK_DGRAM)
        recording = Recording("det0", HERE / f"{name}.pcap")
        events = {}
        for number in range(1, 4):
            image, datagrams = jungfrau_rows(generator.randbytes, number)
            events[number] = hashlib.sha256(image).hexdigest()
            for datagram in datagrams:
                sender.sendto(datagram, (address, 50001))
            time.sleep(0.01)
        recording.end()
        (HERE / f"{name}.json").write_text(json.dumps({"events": events}, indent=1) + "\n")
    network.close()


SETUP = """
modprobe virtio_net; modprobe rdma_rxe; modprobe sch_netem
interface eth0 10.1.0.10/24
interface eth1 10.2.0.10/24
rdma link add rxe0 type rxe netdev eth0 || fail "no soft-RoCE"
for i in 0 1 2 3; do
    [ "$(cat /sys/class/infiniband/rxe0/ports/1/gids/$i)" = 0000:0000:0000:0000:0000:ffff:0a01:000a ] && echo $i >/tmp/gid
done
"""

CONFIG = """name = "made"
[[port]]
name = "det0"
device = "net_af_packet0,iface=det0"
profile = "{profile}"
address = "10.1.0.2/24"
[[stream]]
port = "det0"
transport = "roce"
service = "{service}"
qp = 0x11
format = "message"
event = "count"
max_message_bytes = "1MiB"
message_bytes = {size}
exchange = "perftest"
[events]
sources = 1
memory = "256MiB"
[[sink]]
kind = "events"
path = "unused"
[lcores]
idle = "sleep"
"""

# name, service, program and its options, size of a message, loss on the way
ROCE = [("roce_rc_send", "rc", "ib_send_bw -c RC -m 1024 -n 8", 3000, ""), ("roce_rc_write", "rc", "ib_write_bw -c RC -m 1024 -n 8", 3000, ""),
        ("roce_rc_write_with_losses", "rc", "ib_write_bw -c RC -m 1024 -n 12", 6000, "3%"), ("roce_uc_send", "uc", "ib_send_bw -c UC -m 1024 -n 8", 3000, ""),
        ("roce_uc_write", "uc", "ib_write_bw -c UC -m 1024 -n 8", 3000, ""), ("roce_ud_send", "ud", "ib_send_bw -c UD -m 1024 -n 16", 1000, "")]


def roce():
    folder = pathlib.Path(tempfile.mkdtemp())
    networks = guest.tap("det0", "n0") + guest.tap("mgmt0", "n1", "10.2.0.1/24")
    client = guest.Shell(folder, SETUP, *networks, *guest.nic("virtio-net-pci", "10", "n0"), *guest.nic("virtio-net-pci", "11", "n1"),
                         limit_s=600)
    client.run("cat /sys/class/infiniband/rxe0/ports/1/state | grep ACTIVE")
    for name, service, program, size, loss in ROCE:
        run = live.Weir(folder, CONFIG.format(profile=live.ROOT / "pmd-config/net_af_packet.toml", service=service, size=size), "--duration", 120,
                        "--allow-empty", name=name)
        run.wait_running()
        recording = Recording("det0", HERE / f"{name}.pcap")
        if loss:
            client.run(f"tc qdisc add dev eth0 root netem loss {loss}")
        try:
            client.run(f"timeout 60 {program} -s {size} -F -d rxe0 -x $(cat /tmp/gid) 10.2.0.1")
        finally:
            if loss:
                client.run("tc qdisc del dev eth0 root", None)
        recording.end()
        run.stop()
        run.process.wait(60)
    client.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in ("udp", "roce"):
        sys.exit(__doc__)
    live.enter_sandbox(True)
    live.Weir.program = str(pathlib.Path(sys.argv[1]).resolve())
    {"udp": udp, "roce": roce}[sys.argv[2]]()
