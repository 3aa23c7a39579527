"""Packets and capture files for the end-to-end tests, written and read without any code of the program under test."""
import struct
import zlib

START_NS = 1_700_000_000 * 10**9
JUNGFRAU_PORT = 50001
EJFAT_PORT = 19522
ROCE_PORT = 4791
QUEUE_PAIR = 0x11


def ones_sum(header):
    total = sum(int.from_bytes(header[i:i + 2], "big") for i in range(0, len(header), 2))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return total


def address(text):
    return bytes(int(part) for part in text.split("."))


def ethernet(payload, ethertype=0x0800, vlan=()):
    tags = b"".join(struct.pack("!HH", 0x8100, tag) for tag in vlan)
    return bytes.fromhex("020000000002" "02000000000a") + tags + struct.pack("!H", ethertype) + payload


def ipv4(payload, protocol=17, source="10.1.0.10", target="10.1.0.2", total=None, first=0x45, flags=0x4000, checksum=None):
    length = 20 + len(payload) if total is None else total
    header = struct.pack("!BBHHHBBH", first, 0, length, 0, flags, 64, protocol, 0) + address(source) + address(target)
    value = 0xffff ^ ones_sum(header) if checksum is None else checksum
    return header[:10] + struct.pack("!H", value) + header[12:] + payload


def datagram(payload, port, length=None):
    return struct.pack("!HHHH", 30000, port, 8 + len(payload) if length is None else length, 0) + payload


def udp(payload, port, vlan=(), **ip):
    return ethernet(ipv4(datagram(payload, port), **ip), vlan=vlan)


def jungfrau(number, packet, pixels=None, kind=3, version=2, module=0):
    header = struct.pack("<QIIQ", number, 1000, packet, 7 * number) + bytes(8)
    header += struct.pack("<HHHHIHBB", module, 0, 0, 0, 0, 0, kind, version)
    return header + (bytes([number & 0xff, packet & 0xff]) * 4096 if pixels is None else pixels)


def ejfat(number, data, offset=0, total=None, source=0, balancer=None, version=1):
    total = len(data) if total is None else total
    front = b"" if balancer is None else struct.pack("!2sBBHHQ", b"LB", balancer, 1, 0, 0, number)
    return front + struct.pack("!HHIIQ", version << 12, source, offset, total, number) + data


def dune(timestamp, data, sequence=0, detector=3, crate=0, slot=0, stream=0, words=None):
    words = len(data) // 8 if words is None else words
    first = words << 52 | (sequence & 0xfff) << 40 | stream << 26 | slot << 22 | crate << 12 | detector << 6 | 1
    return struct.pack("<QQ", first, timestamp) + data


def dune_source(detector=3, crate=0, slot=0, stream=0):
    return detector | crate << 6 | slot << 16 | stream << 20


def ess(pulse, data, sequence=0, queue=0, version=0, kind=0x30, length=None):
    """`pulse` is (seconds, ticks); without data it is a heartbeat."""
    length = 30 + 2 * version + len(data) if length is None else length
    header = struct.pack("<BB3sBHBBIIIII", 0, version, b"ESS", kind, length, queue, 0x0b, *pulse, *pulse, sequence & 0xffffffff)
    return header + bytes(2 * version) + data


def spead(heap, data, offset=0, total=None, items=(), bits=48, said=None):
    """`items` are (id, value), immediate; `said` is a payload length that is not the true one."""
    sizes = [] if total is None else [(2, total)]
    items = [(1, heap)] + sizes + [(3, offset), (4, len(data) if said is None else said)] + list(items)
    front = struct.pack("!HBBHH", 0x5304, 8 - bits // 8, bits // 8, 0, len(items))
    return front + b"".join(struct.pack("!Q", 1 << 63 | i << bits | v & (1 << bits) - 1) for i, v in items) + data


def roce(opcode, psn, data=b"", qp=QUEUE_PAIR, extension=b"", bad_crc=False, flags=0, crc=True, source="10.1.0.10"):
    """A RoCEv2 packet; the extension headers are given as they are on the wire."""
    pad = -len(data) % 4
    transport = struct.pack("!BBHII", opcode, pad << 4 | 0x40 | flags, 0xffff, qp, psn & 0xffffff)
    body = transport + extension + data + bytes(pad)
    frame = udp(body + bytes(4), ROCE_PORT, source=source)
    # What routers may change counts as ones, after eight bytes of ones for a header that Ethernet does not have.
    covered = bytearray(frame[14:-4])
    for at in (1, 8, 10, 11, 26, 27, 32):
        covered[at] = 0xff
    value = zlib.crc32(bytes(8 * [0xff]) + covered) ^ (1 if bad_crc else 0)
    return frame[:-4] + (struct.pack("<I", value) if crc else b"")


def reth(length, va=0x10000000, key=0x1234):
    return struct.pack("!QII", va, key, length)


class Operation:
    """Opcodes by name: RC.send_first, UC.write_only_immediate, ..."""
    def __init__(self, base):
        for verb, at in (("send", 0), ("write", 6)):
            for place, step in (("first", 0), ("middle", 1), ("last", 2), ("last_immediate", 3), ("only", 4), ("only_immediate", 5)):
                setattr(self, f"{verb}_{place}", base + at + step)


RC = Operation(0x00)
UC = Operation(0x20)


def roce_message(data, psn, immediate=None, qp=QUEUE_PAIR, mtu=1024, kind=UC, verb="send", source="10.1.0.10"):
    """The frames of one SEND or WRITE."""
    parts = [data[i:i + mtu] for i in range(0, len(data), mtu)] or [b""]
    frames = []
    for i, part in enumerate(parts):
        place = "only" if len(parts) == 1 else "first" if i == 0 else "last" if i == len(parts) - 1 else "middle"
        ends = place in ("only", "last")
        name = f"{verb}_{place}" + ("_immediate" if ends and immediate is not None else "")
        extension = reth(len(data)) if verb == "write" and place in ("only", "first") else b""
        if ends and immediate is not None:
            extension += struct.pack("!I", immediate)
        frames.append(roce(getattr(kind, name), psn + i, part, qp=qp, extension=extension, source=source))
    return frames


def stamped(frames, first_ns=START_NS, step_ns=1000):
    return [(first_ns + i * step_ns, frame) for i, frame in enumerate(frames)]


def pcap_bytes(records, order="<", nanoseconds=True, snap=262144, link=1):
    """Records are (time in ns, frame) or (time, frame, length on the wire)."""
    magic, unit = (0xa1b23c4d, 1) if nanoseconds else (0xa1b2c3d4, 1000)
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for time, frame, *wire in records:
        out.append(struct.pack(order + "IIII", time // 10**9, time % 10**9 // unit, len(frame), wire[0] if wire else len(frame)))
        out.append(frame)
    return b"".join(out)


def pcapng_bytes(records, order="<", link=1):
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)

    resolution = struct.pack(order + "HHB3xHH", 9, 1, 9, 0, 0)  # if_tsresol: nanoseconds
    out = [block(0x0a0d0d0a, struct.pack(order + "IHHq", 0x1a2b3c4d, 1, 0, -1)),
           block(1, struct.pack(order + "HHI", link, 0, 262144) + resolution)]
    for time, frame, *wire in records:
        head = struct.pack(order + "IIIII", 0, time >> 32, time & 0xffffffff, len(frame), wire[0] if wire else len(frame))
        out.append(block(6, head + frame))
    return b"".join(out)


def read_pcapng(path):
    """The frames of a little-endian pcapng."""
    data, at, frames = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            captured = struct.unpack_from("<I", data, at + 20)[0]
            frames.append(data[at + 28:at + 28 + captured])
        at += length
    return frames


def read_pcap(path):
    """(time in ns, frame) of every record of a little-endian pcap with nanoseconds, as `weir send` writes them."""
    data = path.read_bytes()
    assert data[:4] == struct.pack("<I", 0xa1b23c4d), path
    at = 24
    records = []
    while at < len(data):
        seconds, nanoseconds, captured, _ = struct.unpack_from("<IIII", data, at)
        records.append((seconds * 10**9 + nanoseconds, data[at + 16:at + 16 + captured]))
        at += 16 + captured
    return records
