"""An independent reading of RoCEv2 captures: which messages are whole, and what is proven of the others. Plain maps by PSN over
the whole file, so nothing here knows about order of arrival, time-outs or memory."""
import collections
import hashlib
import struct
import zlib

RESPONSES, REQUESTS = (13, 14, 15, 16, 17, 18), (12, 19, 20, 28, 29)
FIRST, LAST, ONLY = (0, 6), (2, 3, 8, 9, 22), (4, 5, 10, 11, 23)
Packet = collections.namedtuple("Packet", "end pair qp sender psn kind op data length immediate")


def records(path):
    data = path.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(data):
        size = struct.unpack_from(order + "I", data, at + 8)[0]
        yield data[at + 16:at + 16 + size]
        at += 16 + size


def read(frame, check=True):
    """The counter in which a frame ends (None: a data packet), with the packet."""
    def ends(name, **known):
        return Packet(name, **{**dict.fromkeys(Packet._fields[1:]), **known})
    at = 12
    while frame[at:at + 2] == b"\x81\x00":
        at += 4
    ip = bytearray(frame[at + 2:])
    if frame[at:at + 2] == b"\x08\x00":
        head, total, masked, pair = 20, struct.unpack_from("!H", ip, 2)[0], (1, 8, 10, 11), bytes(ip[12:20])
        if ip[9] != 17:
            return ends("not_for_us.icmp" if ip[9] == 1 else "not_for_us.ip_protocol")
    elif frame[at:at + 2] == b"\x86\xdd":
        head, total, masked, pair = 40, 40 + struct.unpack_from("!H", ip, 4)[0], (1, 2, 3, 7), bytes(ip[8:40])
        if ip[6] != 17:
            return ends("not_for_us.icmp" if ip[6] == 58 else "not_for_us.ip_protocol")
        ip[0] |= 15
    else:
        others = {b"\x08\x06": "not_for_us.arp", b"\x89\x15": "not_for_us.roce_v1"}
        return ends(others.get(frame[at:at + 2], "not_for_us.ethertype"))
    if struct.unpack_from("!H", ip, head + 2)[0] != 4791:
        return ends("unsteered")
    del ip[min(total, head + struct.unpack_from("!H", ip, head + 4)[0]):]
    bth = bytes(ip[head + 8:])
    for mask in (*masked, head + 6, head + 7, head + 12):
        ip[mask] = 255
    if check and zlib.crc32(b"\xff" * 8 + ip[:-4]) != struct.unpack("<I", bth[-4:])[0]:
        return ends("dropped.malformed.bad_icrc")
    kind, op, qp, psn = bth[0] >> 5, bth[0] & 31, int.from_bytes(bth[5:8], "big"), int.from_bytes(bth[9:12], "big")
    known = dict(pair=pair, qp=qp, psn=psn, kind=kind, op=op)
    if bth[0] == 0x81:
        return ends("not_for_us.roce_management", **known)
    if kind == 0 and op in RESPONSES:
        return ends("not_for_us.roce_response", **known)
    if kind == 0 and op in REQUESTS:
        return ends("not_for_us.roce_request", **known)
    if not (kind in (0, 1) and op < 12 or kind == 0 and op in (22, 23) or kind == 3 and op in (4, 5)):
        return ends("dropped.malformed.roce_header", **known)
    if qp < 2:
        return ends("not_for_us.roce_management", **known)
    more = 12 + (8 if kind == 3 else 0)
    length = struct.unpack_from("!I", bth, more + 12)[0] if op in (6, 10, 11) else None
    more += 16 if length is not None else 0
    immediate = struct.unpack_from("!I", bth, more)[0] if op in (3, 5, 9, 11) else None
    more += 4 if op in (3, 5, 9, 11, 22, 23) else 0
    sender = (pair, kind, bth[17:20] if kind == 3 else b"")
    return Packet(None, pair, qp, sender, psn, kind, op, bth[more:len(bth) - 4 - (bth[1] >> 4 & 3)], length, immediate)


class Chain:
    """Packets that are one message for sure: consecutive, or with one packet between that must have been a MIDDLE."""
    def __init__(self, psn, packet):
        self.psns, self.packets = [psn], [packet]
        self.start = psn if packet.op in FIRST + ONLY else None
        self.extent = None

    def ends(self):
        return self.packets[-1].op in LAST + ONLY

    def message(self, pmtu):
        """immediate (or None), size (or None), bytes of what came, ranges of what came."""
        size = None
        if self.ends():
            size = (self.psns[-1] - self.start) * pmtu + len(self.packets[-1].data)
        elif self.extent:
            size = self.packets[0].length
        at = [(psn - self.start) * pmtu for psn in self.psns]
        return Message(self.packets[-1].immediate if self.ends() else None, size, b"".join(p.data for p in self.packets),
                       [(a, a + len(p.data)) for a, p in zip(at, self.packets)], len(self.psns))


Message = collections.namedtuple("Message", "immediate size data ranges packets")


def chains_of(packets):
    """Of one sender, by extended PSN."""
    out = []
    for psn in sorted(packets):
        packet, last = packets[psn], out[-1] if out else None
        if (last is None or packet.op in FIRST + ONLY or last.ends() or psn - last.psns[-1] > 2 or
                (packet.op in (6, 7, 8, 9)) != (last.packets[-1].op in (6, 7, 8, 9))):
            out.append(Chain(psn, packet))
        else:
            last.psns.append(psn)
            last.packets.append(packet)
    return out


def messages_of(packets):
    """What is proven of one sender's messages; and how many packets belong to nothing."""
    found, lost, behind = [], 0, None  # behind: where a message must start
    sizes = {len(p.data) for p in packets.values() if p.op in (0, 1, 6, 7)}
    pmtu = sizes.pop() if len(sizes) == 1 else 0
    writes = None  # a WRITE that is not at its end yet
    for chain in chains_of(packets):
        if chain.start is None and writes and chain.psns[-1] < writes.extent:
            writes.psns += chain.psns
            writes.packets += chain.packets
            continue
        if chain.start is None and behind is not None and chain.psns[0] == behind + 1 and pmtu:
            chain.start = behind
        writes = None
        head = chain.packets[0]
        if chain.start is not None and head.op == 6:
            chain.extent = chain.start + (head.length + pmtu - 1) // pmtu
            writes = chain
        behind = chain.extent or (chain.psns[-1] + 1 if chain.ends() else None)
        if chain.start is None:
            lost += len(chain.psns)
        else:
            found.append(chain)
    return [chain.message(pmtu) for chain in found], lost


class Truth:
    """A capture as one queue pair of one destination address sees it."""
    def __init__(self, path, destination, qp, check=True, numbered=False):
        self.counts = collections.Counter()
        senders, newest = collections.defaultdict(dict), {}
        for frame in records(path):
            packet = read(frame, check)
            if packet.end is not None:
                self.counts[packet.end] += 1
                continue
            if packet.qp != qp or packet.pair[len(packet.pair) // 2:] != destination:
                self.counts["unsteered"] += 1
                continue
            last = newest.setdefault(packet.sender, (1 << 40) + packet.psn)
            psn = last + ((packet.psn - last + (1 << 23)) % (1 << 24)) - (1 << 23)
            newest[packet.sender] = max(last, psn)
            if psn in senders[packet.sender]:
                self.counts["dropped.duplicate"] += 1
            else:
                senders[packet.sender][psn] = packet
        self.messages = []
        for packets in senders.values():
            messages, lost = messages_of(packets)
            self.counts["dropped.unbound"] += lost
            for message in messages:
                bound = not numbered or message.immediate is not None
                self.counts["placed" if bound else "dropped.unbound"] += message.packets
                self.messages += [message] if bound else []

    def described(self):
        """What `weir inspect` must say, without the numbers of events: a multiset."""
        from support import gaps
        return collections.Counter(
            (m.immediate, hashlib.sha256(m.data).hexdigest(), "unknown" if m.size is None else str(gaps(m.ranges, m.size)))
            for m in self.messages)


def queue_pairs(path, check=True):
    """(destination address, queue pair) of everything that carries data, the busiest first."""
    seen = collections.Counter((p.pair[len(p.pair) // 2:], p.qp) for p in (read(f, check) for f in records(path)) if p.end is None)
    return [key for key, _ in seen.most_common()]
