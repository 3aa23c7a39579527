#!/usr/bin/env python3
"""Declared formats, headers that name the source, and RDMA messages in every way of numbering them, from packets that this
test makes itself; with losses, repetitions and disorder, against what was put in."""
import random
import struct

from packets import EJFAT_PORT, RC, UC, ejfat, jungfrau, pcap_bytes, reth, roce, roce_message, stamped, udp
from support import Case, config, digest, gaps, main, stream

# index: a big-endian header with flags around the numbers; the event counter has 20 bits.
INDEXED = '''[[format]]
name = "indexed"
byte_order = "big"
header_bytes = 12
event = { offset = 0, bytes = 4, mask = 0xFFFFF, shift = 0, wrap_bits = 20 }
index = { offset = 4, bytes = 2, mask = 0x0FF0, shift = 4 }
payload_bytes = 500
packets = 9
magic = { offset = 6, bytes = 2, value = 0xBEEF }
source = { offset = 8, bytes = 1 }
'''
# offset and total: a little-endian header; the source is known by its address.
PLACED = '''[[format]]
name = "placed"
header_bytes = 16
event = { offset = 0, bytes = 8 }
offset = { offset = 8, bytes = 4 }
total = { offset = 12, bytes = 4 }
'''
# Every packet is a whole message.
WHOLE = '''[[format]]
name = "whole"
header_bytes = 4
event = { offset = 0, bytes = 4 }
'''


class Made(Case):
    """Messages by (event, source), each with its packets as (offset, bytes, frame)."""
    def check(self, messages, settings, drop=0.02, duplicate=0.05, reorder=25, seed=1):
        r = random.Random(seed)
        sent, came, repeated = [], {}, 0
        for key, pieces in messages.items():
            for offset, size, frame in pieces:
                if r.random() < drop:
                    continue
                copies = 2 if r.random() < duplicate else 1
                repeated += copies - 1
                came.setdefault(key, []).append((offset, offset + size))
                sent += [frame] * copies
        sent = [sent[i] for i in sorted(range(len(sent)), key=lambda i: i + r.uniform(0, reorder))]
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(sent))), settings)
        self.assertEqual(result.report["packets"]["received"], len(sent))
        self.assertEqual(result.packets, {"placed": len(sent) - repeated, "dropped.duplicate": repeated})
        return result, came

    def compare(self, result, came, contents, sources):
        events = {}
        for number in {n for n, _ in contents}:
            missing = {s: gaps(came.get((number, s), []), len(contents[number, s])) for s in sources}
            if any((number, s) in came for s in sources):
                events[number] = missing
        self.assertEqual({n for _, n in result.events}, set(events))
        for (_, number), event in result.events.items():
            self.assertEqual(event["complete"], not any(events[number].values()), f"event {number}")
            data = []
            for source in event["sources"]:
                content = bytearray(contents[number, source["id"]])
                if source["missing"] not in ("all", "unknown"):
                    self.assertEqual(source["missing"], events[number][source["id"]], f"event {number}")
                for at, size in reversed(events[number][source["id"]]):
                    del content[at:at + size]
                data.append(bytes(content))
            self.assertEqual(event["sha256"], digest(*data), f"event {number}")

    def test_declared_by_index(self):
        contents, messages = {}, {}
        for step in range(40):
            number = (1 << 20) - 20 + step  # wraps on the way
            for source, name in enumerate((7, 3)):
                data = random.Random(number * 2 + source).randbytes(4500)
                contents[number, source] = data
                messages[number, source] = [
                    (500 * i, 500, udp(struct.pack("!IHHB3x", number & 0xfffff | 0xa00000, i << 4 | 0x5005, 0xbeef, name) + data[500 * i:500 * i + 500], 50001))
                    for i in range(9)]
        settings = config(stream(format="indexed", sources=1, source_by='"header"', source_ids=[7, 3]), more=INDEXED)
        result, came = self.check(messages, settings)
        # The numbers go on where the counter wraps.
        self.compare(result, came, contents, (0, 1))

    def test_declared_by_offset(self):
        contents, messages = {}, {}
        for number in range(5, 45):
            for source in (0, 1):
                data = random.Random(number * 2 + source).randbytes(100 + number * 37)
                contents[number, source] = data
                messages[number, source] = [
                    (at, len(data[at:at + 300]),
                     udp(struct.pack("<QII", number, at, len(data)) + data[at:at + 300], 50001, source=f"10.1.0.{20 + source}"))
                    for at in range(0, len(data), 300)]
        settings = config(stream(format="placed", sources=1, source_by='"address"', src='["10.1.0.20", "10.1.0.21"]'), more=PLACED)
        self.compare(*self.check(messages, settings, seed=2), contents, (0, 1))

    def test_declared_whole(self):
        contents = {(n, 0): random.Random(n).randbytes(n * 11) for n in range(1, 60)}
        messages = {k: [(0, len(c), udp(struct.pack("<I", k[0]) + c, 50001))] for k, c in contents.items()}
        self.compare(*self.check(messages, config(stream(format="whole", sources=1), sources=1, more=WHOLE)), contents, (0,))

    def test_ejfat_spread_over_ports(self):
        # Each event to one of four ports, as a load balancer does; the header says which source it is.
        contents, messages = {}, {}
        for number in range(1, 60):
            for source, name in enumerate((900, 4)):
                data = random.Random(number * 2 + source).randbytes(number * 60)
                contents[number, source] = data
                messages[number, source] = [(at, len(data[at:at + 1000]), udp(ejfat(number, data[at:at + 1000], at, len(data), name, balancer=2),
                                                                              EJFAT_PORT + number % 4)) for at in range(0, len(data), 1000)]
        settings = config(stream(format="ejfat", sources=4, source_by='"header"', source_ids=[900, 4]))
        self.compare(*self.check(messages, settings, seed=3), contents, (0, 1))

    def test_jungfrau_modules_told_apart_by_the_header(self):
        pixels = {(n, s): random.Random(n * 2 + s).randbytes(1 << 20) for n in (1, 2) for s in (0, 1)}
        messages = {(n, s): [(8192 * p, 8192, udp(jungfrau(n, p, c[8192 * p:8192 * p + 8192], module=11 + s), 50001)) for p in range(128)]
                    for (n, s), c in pixels.items()}
        settings = config(stream(sources=1, source_by='"header"', source_ids=[11, 12]))
        self.compare(*self.check(messages, settings, drop=0.005, reorder=200), pixels, (0, 1))

    def test_datagrams_in_order_of_arrival(self):
        data = [bytes([n]) * n for n in range(100)]
        settings = config(stream(format="message", sources=1, event='"arrival"'), sources=1)
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped([udp(d, 50001) for d in data]))), settings, "--require-lossless=known")
        self.assertEqual([(e["id"], e["sha256"]) for e in result.inspect["events"]], [(n, digest(d)) for n, d in enumerate(data)])


class Rdma(Case):
    def messages(self, kind, verb, count=40, immediate=True, mtu=512, first_psn=(1 << 24) - 60, size=None):
        r = random.Random(count)
        contents = [r.randbytes(size or r.randrange(1, 5000)) for _ in range(count)]
        frames, psn = [], first_psn
        for n, content in enumerate(contents):
            frames.append(roce_message(content, psn, 1000 + n if immediate else None, kind=kind, verb=verb, mtu=mtu))
            psn += len(frames[-1])
        return contents, frames

    def settings(self, **keys):
        return config(stream("roce", "message", sources=1, **keys), sources=1)

    def digests(self, result):
        return {number: e["sha256"] for (_, number), e in result.events.items() if e["complete"]}

    def test_every_kind_and_numbering(self):
        for name, kind in (("RC", RC), ("UC", UC)):
            for verb in ("send", "write"):
                for event in ("immediate", "arrival", "count"):
                    if event == "count" and name == "UC":
                        continue  # needs messages of one size, below
                    with self.subTest(kind=name, verb=verb, event=event):
                        contents, frames = self.messages(kind, verb, immediate=event == "immediate")
                        flat = [f for message in frames for f in message]
                        if name == "RC":  # goes back to where something was lost, which was not
                            flat = flat[:80] + flat[60:]
                        flat = flat[:10] + [flat[7]] + flat[10:]
                        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(flat))), self.settings(event=f'"{event}"'), "--require-lossless=known")
                        first = 1000 if event == "immediate" else 0
                        self.assertEqual(self.digests(result), {first + n: digest(c) for n, c in enumerate(contents)})
                        self.assertEqual(result.packets, {"placed": len(flat) - (21 if name == "RC" else 1),
                                                          "dropped.duplicate": 21 if name == "RC" else 1})

    def test_counting_over_losses(self):
        # With messages of one size a number is arithmetic: what is lost costs its own message only.
        contents, frames = self.messages(UC, "write", immediate=False, size=2000)
        del frames[13][1], frames[20][:]
        flat = [f for message in frames for f in message]
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(flat))), self.settings(event='"count"', message_bytes=2000))
        self.assertEqual(self.digests(result), {n: digest(c) for n, c in enumerate(contents) if n not in (13, 20)})
        self.assertEqual(result.events[0, 13]["sources"][0]["missing"], [[512, 512]])
        self.assertNotIn((0, 20), result.events)

    def test_number_inside_the_message(self):
        contents, frames, psn = {}, [], 77
        for number in range(500, 540):
            contents[number] = random.Random(number).randbytes(number * 5)
            message = roce_message(ejfat(number, contents[number]), psn, kind=RC, verb="write", mtu=1024)
            psn += len(message)
            frames += message
        settings = config(stream("roce", "ejfat", sources=1), sources=1)
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames + frames[-20:]))), settings, "--require-lossless")
        self.assertEqual(self.digests(result), {n: digest(c) for n, c in contents.items()})

    def test_rc_between_other_traffic(self):
        # Acknowledgements, a READ in the other queue pair, management and a queue pair of somebody else around the data.
        contents, frames = self.messages(RC, "send", count=10)
        flat = []
        for i, frame in enumerate(f for message in frames for f in message):
            flat += [frame, roce(0x11, i, extension=bytes(4), qp=0x99)]
        flat += [roce(RC.send_only, 5, b"hello", qp=0x98), roce(0x64, 1, bytes(256), qp=1, extension=bytes(8)),
                 roce(0x0c, 9, extension=reth(100), qp=0x97)]
        # The other queue pair's sender has the same address: its message may have been meant for us.
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(flat))), self.settings(), "--require-lossless=known")
        self.assertEqual(result.report["lossless"], "unknown")
        self.assertEqual(len(self.digests(result)), 10)
        data = sum(len(m) for m in frames)
        self.assertEqual(result.packets["placed"], data)
        self.assertEqual(result.packets["not_for_us.roce_response"], data)

    def test_icrc(self):
        # Without the check a wrong checksum is believed; with it, it is malformed and the message incomplete.
        bad = [roce(UC.send_only_immediate, 1, b"good", extension=struct.pack("!I", 1)),
               roce(UC.send_only_immediate, 2, b"bad!", extension=struct.pack("!I", 2), bad_crc=True)]
        capture = self.path("c.pcap", pcap_bytes(stamped(bad)))
        checked = self.replay(capture, self.settings())
        self.assertEqual(self.digests(checked), {1: digest(b"good")})
        ignored = self.replay(capture, self.settings(icrc='"ignore"'), "--require-lossless")
        self.assertEqual(self.digests(ignored), {1: digest(b"good"), 2: digest(b"bad!")})


if __name__ == "__main__":
    main()
