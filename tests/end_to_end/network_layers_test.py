#!/usr/bin/env python3
"""IPv6, VLAN tags and IP fragments through whole runs; the frames are written here, without code of the program."""
import hashlib
import ipaddress
import json
import os
import pathlib
import random
import struct

from packets import EJFAT_PORT, START_NS, UC, datagram, ejfat, ethernet, ipv4, ones_sum, pcap_bytes, roce, stamped, udp
from support import FUSED, ROOT, Case, config, main, stream

DATA = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared") / "data"
EJFAT = config(stream(format="ejfat", sources=1), sources=1)
V4 = ("10.1.0.10", "10.1.0.2")
V6 = ("fd00::10", "fd00::2")


def ipv6(payload, next_header=17, source=V6[0], target=V6[1], extensions=()):
    """`extensions`: (kind, bytes after the next header field) in their order."""
    kinds = [kind for kind, _ in extensions] + [next_header]
    body = b"".join(bytes([kinds[i + 1]]) + rest for i, (_, rest) in enumerate(extensions)) + payload
    addresses = ipaddress.ip_address(source).packed + ipaddress.ip_address(target).packed
    return struct.pack("!IHBB", 6 << 28, len(body), kinds[0], 64) + addresses + body


def udp6(payload, port, extensions=(), **addresses):
    return ethernet(ipv6(datagram(payload, port), extensions=extensions, **addresses), 0x86dd)


def cut(payload, port, number, step=1480, version=4, source=None, begin=0):
    """The frames of one datagram from byte `begin` on, fragmented as a router of a small MTU does it; `number` is its identification."""
    whole = datagram(payload, port)
    out = []
    for at in range(begin, len(whole), step):
        part, more = whole[at:at + step], at + step < len(whole)
        if version == 6:
            header = b"\0" + struct.pack("!HI", at | more, number)
            out.append(ethernet(ipv6(part, source=source or V6[0], extensions=[(44, header)]), 0x86dd))
            continue
        packet = bytearray(ipv4(part, flags=at // 8 | (0x2000 if more else 0), source=source or V4[0]))
        packet[4:6], packet[10:12] = struct.pack("!H", number), b"\0\0"
        packet[10:12] = struct.pack("!H", 0xffff ^ ones_sum(packet[:20]))
        out.append(ethernet(bytes(packet)))
    return out


def noise(count, seed):
    return random.Random(seed).randbytes(count)


class NetworkLayers(Case):
    def run_frames(self, frames, text=EJFAT, *args, step_ns=1000):
        records = frames if isinstance(frames[0], tuple) else stamped(frames, step_ns=step_ns)
        return self.replay(self.path(f"c{self.runs}.pcap", pcap_bytes(records)), text, *args)

    def check_events(self, result, expected):
        """`expected`: number -> payload."""
        found = {event["id"]: event["sha256"] for event in result.inspect["events"] if event["complete"]}
        self.assertEqual(found, {number: hashlib.sha256(data).hexdigest() for number, data in expected.items()})

    def test_IPv6_with_extension_headers_and_any_two_tags(self):
        data = {n: noise(500, n) for n in range(1, 8)}
        options, authentication = bytes([1]) + bytes(14), bytes([4]) + bytes(22)
        frames = [udp6(ejfat(1, data[1]), EJFAT_PORT), udp6(ejfat(2, data[2]), EJFAT_PORT, [(0, options)]),
                  udp6(ejfat(3, data[3]), EJFAT_PORT, [(0, options), (43, options), (51, authentication), (60, options)])]
        for n, tags in ((4, (0x8100, 0x8100)), (5, (0x88a8, 0x8100)), (6, (0x8100, 0x88a8)), (7, (0x88a8, 0x88a8))):
            plain = udp(ejfat(n, data[n]), EJFAT_PORT) if n % 2 else udp6(ejfat(n, data[n]), EJFAT_PORT)
            frames.append(plain[:12] + b"".join(struct.pack("!HH", tag, 5) for tag in tags) + plain[12:])
        result = self.run_frames(frames)
        self.assertEqual(result.packets, {"placed": 7})
        self.check_events(result, data)

    def test_IPv6_addresses_filter_and_number_sources(self):
        frames = [udp6(ejfat(n, b"%d%d" % (n, s)), EJFAT_PORT, source=source) if ":" in source
                  else udp(ejfat(n, b"%d%d" % (n, s)), EJFAT_PORT, source=source)
                  for n in (1, 2) for s, source in enumerate(("fd00::11", "10.1.0.11", "fd00::12"))]
        sources = '["fd00::11", "10.1.0.11", "fd00::12"]'
        result = self.run_frames(frames, config(stream(format="ejfat", sources=1, source_by='"address"', src=sources), sources=3))
        self.check_events(result, {1: b"101112", 2: b"202122"})
        only = self.run_frames(frames, config(stream(format="ejfat", sources=1, src='"fd00::12"', dst='"fd00::2"'), sources=1))
        self.assertEqual(only.packets, {"placed": 2, "unsteered": 4})

    def test_fragments_in_order_shuffled_and_interleaved(self):
        data = {n: noise(8000 + n, n) for n in range(1, 25)}
        for version in (4, 6):
            groups = [cut(ejfat(n, data[n]), EJFAT_PORT, n, version=version) for n in data]
            ordered = [frame for group in groups for frame in group]
            shuffled = []
            for at in range(0, len(groups), 8):  # eight datagrams on their way at once
                part = [frame for group in groups[at:at + 8] for frame in group]
                random.Random(at).shuffle(part)
                shuffled += part
            for frames in (ordered, shuffled):
                result = self.run_frames(frames)
                self.assertEqual(result.packets, {"placed": len(frames)})
                self.check_events(result, data)
                self.assertEqual([result.report["sources"][0][key] for key in ("packets", "missing_packets")], [len(frames), 0])
                self.assertEqual(result.report["ip_fragments"], {"fragments": len(frames), "datagrams": len(data),
                                                                 "reused_identification": 0, "reusing_source": ""})

    def test_messages_of_several_fragmented_datagrams(self):
        # 7 datagrams of 6 fragments make one message; also copied out of their buffers, and over two rx lcores.
        data = {n: noise(50_000, n) for n in range(1, 9)}
        frames = [frame for n in data for at in range(0, 50_000, 8000)
                  for frame in cut(ejfat(n, data[n][at:at + 8000], offset=at, total=50_000), EJFAT_PORT, n * 10 + at // 8000)]
        two = FUSED.replace("rx = [0]", "rx = [0, 1]")
        steered = config(stream(format="ejfat", sources=1, first=1), stream(format="ejfat", sources=1), sources=1, more=two)
        for text in (EJFAT, config(stream(format="ejfat", sources=1), sources=1, events='assembly = "copy"\n'), steered):
            result = self.run_frames(frames, text)
            self.assertEqual(result.packets, {"placed": len(frames)})
            self.check_events(result, data)

    def test_lost_and_repeated_fragments_end_in_their_counters(self):
        data = {n: noise(4000, n) for n in range(1, 9)}  # three fragments each
        groups = {n: cut(ejfat(n, data[n]), EJFAT_PORT, n) for n in data}
        frames = []
        for n, group in groups.items():
            frames += group[:2] if n == 2 else group[1:] if n == 4 else [group[0], *group] if n == 6 else group
        records = stamped(frames) + [(START_NS + 10**9, udp(ejfat(9, b"x"), EJFAT_PORT)), (START_NS + 10**9 + 1, groups[8][0])]
        result = self.run_frames(records)
        # What came at the end waits in vain.
        self.assertEqual(result.packets, {"placed": 6 * 3 + 1, "dropped.ip_fragment.timeout": 2 + 2 + 1, "dropped.duplicate": 1})
        self.check_events(result, {**{n: data[n] for n in (1, 3, 5, 6, 7, 8)}, 9: b"x"})

    def test_a_mirror_that_shows_every_fragment_twice_loses_nothing(self):
        data = {n: noise(8000, n) for n in range(1, 193)}
        for version in (4, 6):
            frames = [frame for n in data for frame in cut(ejfat(n, data[n]), EJFAT_PORT, n, version=version) for _ in range(2)]
            result = self.run_frames(frames, EJFAT, "--require-lossless")
            self.assertEqual(result.packets, {"placed": len(frames) // 2, "dropped.duplicate": len(frames) // 2})
            self.check_events(result, data)
            self.assertEqual(result.report["ip_fragments"]["reused_identification"], 0)

    def test_the_same_place_with_other_bytes_spoils_its_datagram_alone(self):
        data = {n: noise(4000, n) for n in range(1, 5)}
        groups = {n: cut(ejfat(n, data[n]), EJFAT_PORT, n) for n in data}
        other = groups[2][1][:-1] + bytes([groups[2][1][-1] ^ 1])
        frames = groups[1] + groups[2][:2] + [other] + groups[2][2:] + groups[3] + groups[4]
        result = self.run_frames(frames)
        self.assertEqual(result.packets, {"placed": 9, "dropped.ip_fragment.conflict": 4})
        self.check_events(result, {n: data[n] for n in (1, 3, 4)})

    def test_a_small_first_fragment(self):
        # All headers are in it, or in several, or it ends within UDP's payload; a capture's buffers end where the frame ends.
        for version in (4, 6):
            for first in (8, 16, 24, 48, 104, 552, 1480):
                data = {n: noise(4000, n) for n in range(1, 5)}
                frames = []
                for n in data:
                    group = cut(ejfat(n, data[n]), EJFAT_PORT, n, step=first, version=version)
                    whole = cut(ejfat(n, data[n]), EJFAT_PORT, n, step=1480, version=version, begin=first)
                    frames += [group[0], *whole] if n % 2 else [*whole, group[0]]
                with self.subTest(version=version, first=first):
                    result = self.run_frames(frames, EJFAT, "--require-lossless")
                    self.assertEqual(result.packets, {"placed": len(frames)})
                    self.check_events(result, data)

    def test_datagrams_up_to_the_largest(self):
        for version, largest in ((4, 65507), (6, 65527)):
            sizes = (11_833, 24_000, 47_000, largest - 20)
            data = {n: noise(size, n) for n, size in enumerate(sizes, 1)}
            for step in (552, 1232, 1480, 8952):
                frames = [frame for n in data for frame in cut(ejfat(n, data[n]), EJFAT_PORT, n, step=step, version=version)]
                with self.subTest(version=version, step=step):
                    result = self.run_frames(frames, EJFAT, "--require-lossless")
                    self.assertEqual(result.packets, {"placed": len(frames)})
                    self.check_events(result, data)

    def test_random_losses_and_repetitions_balance(self):
        for version in (4, 6):
            dice = random.Random(version)
            frames = []
            for n in range(1, 200):
                group = [f for f in cut(ejfat(n, noise(dice.randrange(1500, 9000), n)), EJFAT_PORT, n, version=version) if dice.random() > 0.05]
                frames += group + [f for f in group if dice.random() < 0.02]
            for at in range(len(frames) - 1):
                other = min(len(frames) - 1, at + dice.randrange(4))
                frames[at], frames[other] = frames[other], frames[at]
            result = self.run_frames(frames, step_ns=20_000)  # so that time-outs happen on the way
            self.assertGreater(result.report["events"]["complete"], 50)
            self.assertEqual(result.report["events"]["complete"], result.report["ip_fragments"]["datagrams"])
            self.assertGreater(result.packets["dropped.ip_fragment.timeout"], 0)

    def test_too_many_fragments_are_named(self):
        result = self.run_frames(cut(ejfat(1, noise(1100, 1)), EJFAT_PORT, 1, step=8) + cut(ejfat(2, b"x" * 960), EJFAT_PORT, 2, step=8))
        self.assertEqual(result.packets, {"placed": 124, "dropped.ip_fragment.too_many": 141})
        self.check_events(result, {2: b"x" * 960})

    def test_a_source_that_reuses_its_identification_is_named(self):
        data = {n: noise(3000, n) for n in range(1, 6)}
        frames = [f for n in data for f in cut(ejfat(n, data[n]), EJFAT_PORT, 0x00db, source="10.1.0.77")]
        result = self.run_frames(frames)
        self.check_events(result, data)
        self.assertEqual(result.report["ip_fragments"], {"fragments": 15, "datagrams": 5, "reused_identification": 4,
                                                         "reusing_source": "10.1.0.77"})
        self.assertRegex(result.output, r"4 fragmented datagrams had the IP identification of the one before .*10\.1\.0\.77")

    def test_no_room_for_more_fragments(self):
        # More datagrams than fit lack their last fragment at the same time.
        groups = [cut(ejfat(n, noise(2000, n)), EJFAT_PORT, n) for n in range(1, 601)]
        result = self.run_frames([g[0] for g in groups] + [g[1] for g in groups])
        whole = result.report["ip_fragments"]["datagrams"]
        refused = result.packets["dropped.ip_fragment.no_room"]
        self.assertGreater(whole, 64)
        self.assertEqual(result.packets["placed"], 2 * whole)
        self.assertEqual(result.packets, {"placed": 2 * whole, "dropped.ip_fragment.no_room": refused,
                                          "dropped.ip_fragment.timeout": 1200 - 2 * whole - refused})

    def test_little_memory_does_not_stop_a_replay_of_fragments(self):
        data = {n: noise(8000, n) for n in range(1, 201)}
        groups = [cut(ejfat(n, data[n]), EJFAT_PORT, n) for n in data]
        frames = [group[0] for group in groups[:30]] + [f for n, group in enumerate(groups) for f in group[1 if n < 30 else 0:]]
        text = config(stream(format="ejfat", sources=1, max_message_bytes='"1MB"'), sources=1, events='memory = "1MiB"\n')
        result = self.run_frames(frames, text)
        self.assertEqual(result.packets, {"placed": 6 * 200})
        self.check_events(result, data)

    def test_fragments_of_what_is_not_ours(self):
        frames = cut(noise(3000, 1), 9, 1) + [ethernet(ipv4(bytes(800), protocol=6, flags=0x2000)), ethernet(ipv4(bytes(800), protocol=1, flags=7))]
        frames += cut(roce(UC.send_only, 5, bytes(2048))[42:], 4791, 2)
        result = self.run_frames(frames, config(stream(format="ejfat", sources=1), stream("roce", "message", sources=1), sources=2))
        self.assertEqual(result.packets, {"unsteered": 3, "not_for_us.ip_protocol": 1, "not_for_us.icmp": 1, "dropped.ip_fragment.roce": 2})

    def test_fragments_of_a_kernel(self):
        for capture in sorted((ROOT / "tests/captures").glob("udp_*.pcap")):
            with self.subTest(capture=capture.name):
                sent = json.loads(capture.with_suffix(".json").read_text())["events"]
                result = self.replay(capture, config(stream(sources=1, rows=8), sources=1), "--require-lossless")
                self.assertEqual({str(event["id"]): event["sha256"] for event in result.inspect["events"]}, sent)
                self.assertEqual(result.packets["placed"], 36)

    def test_real_fragments_of_name_servers(self):
        path = DATA / "ipfrag/dns_fragmented.pcap"
        if not path.exists():
            self.skipTest(f"there is no {path}")
        result = self.replay(path, EJFAT, "--allow-empty")  # none of them is ours
        self.assertEqual(result.report["ip_fragments"]["datagrams"], 7)  # four of IPv4, three of IPv6
        self.assertEqual(result.report["ip_fragments"]["fragments"], 14)
        self.assertEqual(result.report["packets"]["placed"], 0)
        self.assertEqual({name for name in result.packets if name.startswith("dropped")}, set())


if __name__ == "__main__":
    main()
