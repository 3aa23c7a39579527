#!/usr/bin/env python3
"""DUNE, ESS and SPEAD from packets that this test makes itself, and a real ESS capture: with losses, repetitions and
disorder, against what was put in. What is missing is counted here from the sequence numbers that arrived, as a set."""
import collections
import os
import pathlib
import random
import re
import struct

from packets import datagram, dune, dune_source, ess, ethernet, ipv4, pcap_bytes, read_pcapng, spead, stamped, udp
from support import ROOT, Case, config, digest, gaps, main, stream, weir

DATA = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared") / "data"
PORT = 9000
Sent = collections.namedtuple("Sent", "source event offset data frame sequence", defaults=(None,))


def example(page):
    """The [[stream]] sections that docs/formats shows."""
    return "".join(re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "reference" / "formats" / f"{page}.md").read_text(), re.S))


def disturb(packets, seed, drop=0.02, duplicate=0.05, reorder=25):
    """What a network makes of them."""
    r = random.Random(seed)
    out = [p for p in packets if r.random() >= drop for _ in range(2 if r.random() < duplicate else 1)]
    return [out[i] for i in sorted(range(len(out)), key=lambda i: i + r.uniform(0, reorder))]


class Readout(Case):
    def run_packets(self, packets, settings, *args, extra=None):
        """Replays them; every packet is placed once, further copies are duplicates, and `extra` is what else there must be."""
        frames = [p.frame if isinstance(p, Sent) else p for p in packets]
        result = self.replay(self.path(f"c{self.runs}.pcap", pcap_bytes(stamped(frames))), settings, *args)
        mine = [p for p in packets if isinstance(p, Sent)]
        placed = {(p.source, p.event, p.offset) for p in mine}
        expected = {"placed": len(placed), "dropped.duplicate": len(mine) - len(placed), **(extra or {})}
        self.assertEqual(result.packets, {k: v for k, v in expected.items() if v})
        self.assertEqual(result.report["packets"]["received"], len(frames))
        return result

    def check_contents(self, result, packets, sources, sizes=None):
        """Every event: complete or not, and its bytes. `sizes`: of messages of several packets, by (event, source)."""
        came = collections.defaultdict(dict)
        for p in packets:
            if isinstance(p, Sent):
                came[p.event].setdefault((p.source, p.offset), p.data)
        self.assertEqual({n for _, n in result.events}, set(came))
        for (_, number), event in result.events.items():
            here = came[number]
            self.assertEqual(event["sha256"], digest(*(here[k] for k in sorted(here))), f"event {number}")
            for source in range(sources):
                parts = [(at, at + len(data)) for (s, at), data in here.items() if s == source]
                lost = gaps(parts, sizes[number, source]) if sizes else [] if parts else "all"
                listed = [s for s in event["sources"] if s["id"] == source]
                if not event["complete"] and listed:
                    self.assertEqual(listed[0]["missing"], lost if parts else "all", f"event {number} source {source}")
                self.assertFalse(event["complete"] and lost, f"event {number}")

    def check_missing(self, result, numbers):
        """`numbers`: by source, all sequence numbers that arrived (not cut to their width)."""
        lost = {s: max(n) - min(n) + 1 - len(set(n)) for s, n in numbers.items()}
        self.assertEqual({s["id"]: s["missing_packets"] for s in result.report["sources"]}, lost)
        self.assertEqual(result.report["wire_loss"], sum(lost.values()))
        return lost


class Dune(Readout):
    STREAMS = [dict(crate=5, slot=2, stream=s) for s in (0, 1, 0x81)]

    def settings(self, **events):
        ids = [dune_source(**s) for s in self.STREAMS]
        return config(stream(format="dune", sources=1, first=PORT, source_by='"header"', source_ids=ids), sources=3, **events)

    def packets(self, count, first=0):
        r = random.Random(count)
        out = []
        for n in range(count):
            for source, where in enumerate(self.STREAMS):
                data, time = r.randbytes(64), 10**17 + 2048 * n
                out.append(Sent(source, time, 0, data, udp(dune(time, data, first + n, **where), PORT), first + n))
        return out

    def test_faults_are_counted_by_stream(self):
        # The 12-bit counter wraps on the way.
        packets = disturb(self.packets(1500, first=3500), seed=1)
        result = self.run_packets(packets, self.settings())
        self.check_contents(result, packets, 3)
        numbers = {s: [p.sequence for p in packets if p.source == s] for s in range(3)}
        lost = self.check_missing(result, numbers)
        self.assertGreater(min(lost.values()), 10)
        self.assertEqual([s["packets"] for s in result.report["sources"]], [len(numbers[s]) for s in range(3)])

    def test_lossless_is_lossless(self):
        packets = disturb(self.packets(300), seed=2, drop=0)
        self.run_packets(packets, self.settings(), "--require-lossless")

    def test_a_loss_that_no_event_shows_is_not_lossless(self):
        # Whole events are gone: what is left is complete.
        packets = [p for p in self.packets(50) if not 20 <= p.sequence < 23]
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped([p.frame for p in packets]))), self.settings(), "--require-lossless", status=3)
        self.assertEqual(result.report["events"]["complete"], 47)
        self.assertEqual([s["missing_packets"] for s in result.report["sources"]], [3, 3, 3])
        self.assertEqual(result.report["wire_loss"], 9)
        self.assertIn("3 missing", result.output)

    def test_streams_on_ports_of_their_own(self):
        packets = [p._replace(frame=udp(p.frame[42:], PORT + p.source)) for p in disturb(self.packets(200), seed=3)]
        settings = config(stream(format="dune", sources=3, first=PORT), sources=3)
        result = self.run_packets(packets, settings)
        self.check_contents(result, packets, 3)
        self.check_missing(result, {s: [p.sequence for p in packets if p.source == s] for s in range(3)})

    def test_strays_and_damage_are_named(self):
        packets = self.packets(20)
        stray = udp(dune(5, bytes(64), crate=9), PORT)
        cut = udp(dune(10**17, bytes(64), 5, words=10), PORT)
        result = self.run_packets(packets[:30] + [stray, cut] + packets[30:], self.settings(),
                                  extra={"dropped.malformed.source": 1, "dropped.malformed.payload_length": 1})
        self.assertEqual(result.report["wire_loss"], "unknown", "a packet that could not be read is missing, too")

    def test_a_time_stamp_used_twice_is_a_conflict(self):
        packets = self.packets(20)
        again = udp(dune(packets[0].event, b"12345678", 20, **self.STREAMS[0]), PORT)
        self.run_packets(packets + [again], self.settings(), extra={"dropped.conflict": 1})

    def test_the_example_of_the_page(self):
        packets = [p._replace(frame=udp(dune(p.event, p.data, p.sequence, stream=p.source), 54323)) for p in self.packets(10) if p.source < 2]
        self.run_packets(packets, config(example("dune")), "--require-lossless")


class EssPulses(Readout):
    """Any number of packets for a pulse, without any setting."""
    STREAM = dict(format="ess", sources=1, first=PORT, source_by='"header"', source_ids=[0, 1])

    def packets(self, count, most=40, version=0, heartbeats=0.0):
        r, out, sequence = random.Random(count), [], [2**32 - 50, 7]
        for n in range(count):
            pulse = (1000 + n // 14, n % 14 * 6289464)
            for source in (0, 1):
                for _ in range(r.randint(1, most)):
                    data = b"" if r.random() < heartbeats else r.randbytes(20 * r.randrange(1, 60))
                    out.append(Sent(source, pulse[0] << 32 | pulse[1], sequence[source], data,
                                    udp(ess(pulse, data, sequence[source], source, version), PORT), sequence[source]))
                    sequence[source] += 1
        return out

    def check(self, packets, **keys):
        settings = config(stream(**self.STREAM, **keys), events="timeout_ms = 20000\n")
        frames = [p.frame for p in packets]
        result = self.replay(self.path(f"p{self.runs}.pcap", pcap_bytes(stamped(frames))), settings)
        mine = {(p.source, p.offset): p for p in packets if p.data}
        expected = {"placed": len(mine), "dropped.duplicate": sum(bool(p.data) for p in packets) - len(mine),
                    "control": sum(not p.data for p in packets)}
        self.assertEqual(result.packets, {k: v for k, v in expected.items() if v})
        self.assertEqual(result.report["packets"]["received"], len(frames))
        numbers = {s: {p.sequence for p in packets if p.source == s} for s in (0, 1)}
        self.check_missing(result, numbers)
        came = collections.defaultdict(lambda: ({}, {}))
        for p in packets:
            came[p.event][p.source][p.sequence] = p.data
        with_data = {e: both for e, both in came.items() if any(any(one.values()) for one in both)}
        self.assertEqual({n for _, n in result.events}, set(with_data))
        whole = 0
        for (_, number), event in result.events.items():
            both = with_data[number]
            parts = [[one[s] for s in sorted(one)] for one in both]
            self.assertEqual(event["sha256"], digest(*(part for source in parts for part in source)), f"event {number}")
            complete = all(any(one.values()) for one in both)
            for source, one in enumerate(both):
                beside = lambda s: s in numbers[source] or not min(numbers[source]) <= s <= max(numbers[source])
                if one:
                    complete = complete and len(one) == max(one) - min(one) + 1 and beside(min(one) - 1) and beside(max(one) + 1)
            self.assertEqual(event["complete"], complete, f"event {number}")
            whole += complete
        self.assertEqual(result.report["events"]["complete"], whole)
        return whole, result

    def test_losses_copies_and_disorder(self):
        for seed, (most, heartbeats) in enumerate(((40, 0.0), (21, 0.1), (2, 0.0), (1, 0.2))):
            with self.subTest(most=most, heartbeats=heartbeats):
                packets = disturb(self.packets(200, most, seed % 2, heartbeats), seed, drop=0.01 if most > 20 else 0.05)
                whole, result = self.check(packets)
                self.assertGreater(whole, 20)
                self.assertLess(whole, len(result.events))

    def test_a_generator_with_21_packets_a_pulse_loses_nothing(self):
        packets = []
        for n in range(300):
            pulse = (1000 + n // 14, n % 14 * 6289464)
            packets += [udp(ess(pulse, bytes([n & 255, p]) * 300, n * 21 + p), PORT) for p in range(21)]
        text = config(stream(format="ess", sources=1, first=PORT), sources=1)
        for name, times in (("fast", stamped(packets)), ("slow", [(1_700_000_000 * 10**9 + i // 21 * 71_428_571 + i % 21 * 1000, f)
                                                                  for i, f in enumerate(packets)])):
            with self.subTest(times=name):
                result = self.replay(self.path(f"{name}.pcap", pcap_bytes(times)), text, "--require-lossless")
                self.assertEqual(result.packets, {"placed": 6300})
                self.assertEqual(result.report["events"]["complete"], 300)
                for n, (_, event) in enumerate(sorted(result.events.items())):
                    self.assertEqual(event["sha256"], digest(*(bytes([n & 255, p]) * 300 for p in range(21))))

    def test_packets_in_ip_fragments(self):
        frames = []
        for n in range(20):
            for p in range(3):
                whole = datagram(ess((1000 + n, 0), bytes([n, p]) * 1000, n * 3 + p), PORT)
                pieces = [ethernet(ipv4(whole[:1200], flags=0x2000)), ethernet(ipv4(whole[1200:], flags=1200 // 8))]
                frames += pieces if p == 1 else [udp(whole[8:], PORT)]
        text = config(stream(format="ess", sources=1, first=PORT), sources=1)
        result = self.replay(self.path("pieces.pcap", pcap_bytes(stamped(frames))), text, "--require-lossless")
        self.assertEqual(result.packets, {"placed": len(frames)})
        for n, (_, event) in enumerate(sorted(result.events.items())):
            self.assertEqual((event["complete"], event["sha256"]), (True, digest(*(bytes([n, p]) * 1000 for p in range(3)))))

    def test_a_capture_again_and_again(self):
        frames = [udp(ess((1000 + n, 0), bytes([n, p]) * 50, n * 3 + p), PORT) for n in range(40) for p in range(3)]
        text = config(stream(format="ess", sources=1, first=PORT), sources=1)
        result = self.replay(self.path("again.pcap", pcap_bytes(stamped(frames))), text, "--loop", 3)
        self.assertEqual(result.packets, {"placed": 360})
        self.assertEqual(result.report["events"]["complete"], 120)

    def test_the_time_out_ends_what_no_pulse_follows(self):
        # A pulse a second, and a time-out of 200 ms: none is ended by the next one in time.
        frames = [(1_700_000_000 * 10**9 + n * 10**9 + p * 1000, udp(ess((1000 + n, 0), bytes([n, p]) * 50, n * 3 + p), PORT))
                  for n in range(20) for p in range(3)]
        text = config(stream(format="ess", sources=1, first=PORT), sources=1, events="timeout_ms = 200\n")
        result = self.replay(self.path("seconds.pcap", pcap_bytes(frames)), text, "--require-lossless")
        self.assertEqual(result.report["events"]["complete"], 20)
        del frames[25]
        result = self.replay(self.path("gap.pcap", pcap_bytes(frames)), text, "--require-lossless", status=3)
        self.assertEqual((result.report["events"]["complete"], result.report["wire_loss"]), (19, 1))
        self.assertEqual(result.report["events"]["incomplete"]["timeout"], 1)

    def test_a_declared_number_of_packets(self):
        packets = [p for n in range(100) for p in
                   [Sent(0, (1000 + n) << 32, n * 5 + i, bytes([n, i]) * 40, udp(ess((1000 + n, 0), bytes([n, i]) * 40, n * 5 + i), PORT), n * 5 + i)
                    for i in range(5)]]
        kept = [p for p in packets if p.sequence not in (5, 24, 250)]
        extra = udp(ess((1099, 0), b"more", 500), PORT)
        text = config(stream(format="ess", sources=1, first=PORT, packets_per_pulse=5), sources=1)
        result = self.run_packets(disturb(kept, 3, drop=0) + [extra], text, extra={"dropped.conflict": 1})
        self.assertEqual(result.report["events"]["complete"], 97)
        self.assertEqual(result.report["wire_loss"], 3)

    def test_probe_proposes_what_replays_whole(self):
        packets = self.packets(60, 21)
        capture = self.path("probe.pcap", pcap_bytes(stamped([p.frame for p in packets])))
        text = weir("probe", capture).stdout
        result = self.replay(capture, text, "--require-lossless")
        self.assertEqual(result.packets, {"placed": len(packets)})
        self.assertEqual(result.report["events"]["complete"], 60)


class Ess(Readout):
    def packets(self, count, version=0, heartbeats=()):
        """Two sources at 14 Hz; heartbeats of a source are numbered with its data."""
        r, out, sequence = random.Random(count), [], [2**32 - 50, 7]
        for n in range(count):
            pulse = (1000 + n // 14, n % 14 * 6289464)
            for source in (0, 1):
                data = r.randbytes(20 * r.randrange(1, 60))
                if n in heartbeats:
                    out.append((source, sequence[source], udp(ess(pulse, b"", sequence[source], source, version), PORT)))
                    sequence[source] += 1
                out.append(Sent(source, pulse[0] << 32 | pulse[1], 0, data, udp(ess(pulse, data, sequence[source], source, version), PORT),
                                sequence[source]))
                sequence[source] += 1
        return out

    def settings(self):
        return config(stream(format="ess", sources=1, first=PORT, source_by='"header"', source_ids=[0, 1], packets_per_pulse=1))

    def check(self, packets):
        plain = [p if isinstance(p, Sent) else p[2] for p in packets]
        beats = sum(not isinstance(p, Sent) for p in packets)
        result = self.run_packets(plain, self.settings(), extra={"control": beats})
        self.check_contents(result, plain, 2)
        numbers = collections.defaultdict(list)
        for p in packets:
            numbers[p[0]].append(p.sequence if isinstance(p, Sent) else p[1])
        self.check_missing(result, numbers)
        self.assertEqual([s["packets"] for s in result.report["sources"]], [len(numbers[s]) for s in (0, 1)])
        return result

    def test_faults_are_counted_by_queue(self):
        for version in (0, 1):
            self.check(disturb(self.packets(300, version), seed=4 + version))

    def test_heartbeats_are_numbered_with_the_data(self):
        packets = disturb(self.packets(200, heartbeats=range(0, 200, 3)), seed=6, duplicate=0)
        self.check(packets)

    def test_a_second_packet_of_a_pulse_is_a_conflict(self):
        packets = self.packets(3)
        pulse = (packets[0].event >> 32, packets[0].event & 0xffffffff)
        second = udp(ess(pulse, b"more", packets[0].sequence + 3), PORT)
        result = self.run_packets(packets + [second, packets[2]], self.settings(), extra={"dropped.conflict": 1})
        self.assertEqual(result.report["wire_loss"], 0)
        self.assertEqual(result.report["messages"]["refused"]["conflict"], 1)

    def test_damage_is_named(self):
        packets = self.packets(5)
        bad = {"dropped.malformed.header": [ess((1, 88052500), b"data"), ess((1, 1), b"data", queue=12), ess((1, 1), b"data", version=2)],
               "dropped.malformed.payload_length": [ess((1, 1), b"data", length=40)],
               "dropped.malformed.source": [ess((1, 1), b"data", queue=5)],
               "control": [ess((1, 1), b"", queue=5)]}
        frames = [udp(p, PORT) for group in bad.values() for p in group]
        self.run_packets(packets + frames, self.settings(), extra={name: len(group) for name, group in bad.items()})

    def test_the_example_of_the_page(self):
        packets = [p._replace(frame=udp(p.frame[42:], 9000, source=f"192.168.10.{p.source + 1}")) for p in self.packets(10)]
        self.run_packets(packets, config(example("ess")), "--require-lossless")

    def capture(self):
        path = DATA / "ess" / "example_LET.pcapng"
        if not path.exists():
            self.skipTest(f"there is no {path}")
        return path

    def read_capture(self):
        """(source, pulse, payload, sequence, frame) of every packet, read here."""
        for frame in read_pcapng(self.capture()):
            payload = frame[42:14 + struct.unpack_from("!H", frame, 16)[0]]
            version, length, queue = payload[1], *struct.unpack_from("<HB", payload, 6)
            assert (payload[0], version, payload[2:5], length) == (0, 0, b"ESS", len(payload))
            seconds, ticks = struct.unpack_from("<II", payload, 10)
            yield queue, seconds << 32 | ticks, payload[30:], struct.unpack_from("<I", payload, 26)[0], frame

    def real_settings(self, **keys):
        return config(stream(format="ess", sources=1, first=PORT, source_by='"address"', src='["192.168.10.1", "192.168.10.2"]', **keys))

    def test_a_real_capture_message_by_message(self):
        events = collections.defaultdict(dict)
        for source, pulse, data, _, _ in self.read_capture():
            events[pulse][source] = data
        self.assertEqual((len(events), {len(e) for e in events.values()}), (100, {2}))
        result = self.replay(self.capture(), self.real_settings(), "--require-lossless")
        self.assertEqual(result.packets, {"placed": 200})
        self.assertEqual(result.report["wire_loss"], 0)
        self.assertEqual({n: e["sha256"] for (_, n), e in result.events.items()}, {n: digest(e[0], e[1]) for n, e in events.items()})
        for (_, number), event in result.events.items():
            self.assertTrue(event["complete"])
            self.assertEqual([s["bytes"] for s in event["sources"]], [len(events[number][s]) for s in (0, 1)])

    def test_a_real_capture_with_packets_taken_out(self):
        packets = [Sent(s, pulse, 0, data, frame, number) for s, pulse, data, number, frame in self.read_capture()]
        for seed, drop in ((1, 0.02), (2, 0.3)):
            kept = disturb(packets, seed, drop=drop, duplicate=0.1, reorder=6)
            result = self.run_packets(kept, self.real_settings(packets_per_pulse=1))
            self.check_contents(result, kept, 2)
            lost = self.check_missing(result, {s: [p.sequence for p in kept if p.source == s] for s in (0, 1)})
            self.assertGreater(sum(lost.values()), 0)


class Spead(Readout):
    def settings(self, sources=2, **keys):
        return config(stream(format="spead", sources=sources, first=PORT, **keys), sources=sources)

    def heaps(self, numbers, sources=2, piece=512, declared=True, step=1, bits=48, more=lambda number, source: ()):
        out, sizes, r = [], {}, random.Random(len(numbers))
        for number in numbers:
            for source in range(sources):
                data = r.randbytes(r.randrange(1, 5000))
                sizes[number, source] = len(data)
                out += [Sent(source, number, at, data[at:at + piece],
                             udp(spead(number * step, data[at:at + piece], at, len(data) if declared else None, more(number, source), bits), PORT + source))
                        for at in range(0, len(data), piece)]
        return out, sizes

    def test_declared_heaps_under_faults(self):
        # The heap counter is 48 or 40 bits wide, and wraps on the way: numbers go on.
        for bits in (48, 40):
            packets, sizes = self.heaps(range(2**bits - 30, 2**bits + 30), bits=bits)
            packets = disturb(packets, seed=bits)
            result = self.run_packets(packets, self.settings(address_bits=bits))
            self.check_contents(result, packets, 2, sizes)
            self.assertEqual(result.report["wire_loss"], "unknown", "heaps are not numbered packet by packet")

    def test_event_and_source_from_items(self):
        # As MeerKAT's F-engines send: the heap counter is the sender's own, the time stamp is common.
        packets, sizes = self.heaps(range(1000, 1040), more=lambda n, s: [(0x1600, n << 20), (0x4101, 40 + s), (0, 0)], step=3)
        packets = [p._replace(event=p.event << 20, frame=udp(p.frame[42:], PORT)) for p in packets]
        sizes = {(n << 20, s): size for (n, s), size in sizes.items()}
        settings = config(stream(format="spead", sources=1, first=PORT, source_by='"header"', source_ids=[40, 41], event_item="0x1600",
                                 source_item="0x4101"))
        packets = disturb(packets, seed=7)
        stray = udp(spead(1, b"x", 0, 1, [(0x1600, 5), (0x4101, 42)]), PORT)
        plain = udp(spead(1, b"x", 0, 1), PORT)
        result = self.run_packets(packets + [stray, plain], settings, extra={"dropped.malformed.source": 1, "dropped.malformed.header": 1})
        self.check_contents(result, packets, 2, sizes)

    def test_heaps_that_never_say_their_size(self):
        packets, _ = self.heaps(range(5), sources=1, declared=False)
        result = self.run_packets(packets, self.settings(1))
        self.assertEqual(result.report["events"]["complete"], 0)
        for (_, number), event in result.events.items():
            self.assertEqual([s["missing"] for s in event["sources"]], ["unknown"])
            self.assertEqual(event["sha256"], digest(*(p.data for p in packets if p.event == number)))

    def test_any_packet_may_declare_the_size(self):
        packets, sizes = self.heaps(range(60), declared=False, piece=100)
        for number in range(60):
            for source in (0, 1):
                mine = [i for i, p in enumerate(packets) if (p.event, p.source) == (number, source)]
                which = packets[mine[number % len(mine)]]
                frame = udp(spead(number, which.data, which.offset, sizes[number, source]), PORT + source)
                packets[mine[number % len(mine)]] = which._replace(frame=frame)
        packets = disturb(packets, seed=8, drop=0)
        self.run_packets(packets, self.settings(), "--require-lossless")

    def test_the_configuration_may_declare_the_size(self):
        data = random.Random(9).randbytes(4000)
        packets = [Sent(0, n, at, data[at:at + 500], udp(spead(n, data[at:at + 500], at), PORT)) for n in range(20) for at in range(0, 4000, 500)]
        kept = disturb(packets, seed=9, drop=0.05)
        result = self.run_packets(kept, self.settings(1, heap_bytes=4000))
        self.check_contents(result, kept, 1, {(n, 0): 4000 for n in range(20)})
        self.assertGreater(result.report["events"]["complete"], 0)
        wrong = [udp(spead(50, bytes(500), 0, 3000), PORT), udp(spead(51, bytes(500), 3501), PORT)]
        self.run_packets(packets + wrong, self.settings(1, heap_bytes=4000),
                         extra={"dropped.malformed.message_size": 1, "dropped.malformed.range": 1})

    def test_packets_that_contradict_their_heap(self):
        # The first declared size wins; a flavour that the stream is not said to have is no packet of it.
        first = [Sent(0, 1, 0, b"1234", udp(spead(1, b"1234", 0, 8), PORT)), Sent(0, 1, 4, b"5678", udp(spead(1, b"5678", 4, 8), PORT))]
        bad = [udp(spead(1, b"5678", 4, 12), PORT), udp(spead(1, b"345", 2, 8), PORT), udp(spead(1, b"5678", 4, 8, bits=40), PORT),
               udp(spead(1, b"5678", 4, 8, said=5), PORT), udp(spead(1, b"56789", 4, 8), PORT)]
        frames = [first[0].frame, *bad, first[1].frame]
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), self.settings(1, address_bits=48))
        self.assertEqual(result.packets, {"placed": 2, "dropped.conflict": 2, "dropped.malformed.header": 1,
                                          "dropped.malformed.payload_length": 1, "dropped.malformed.range": 1})
        self.assertEqual(result.events[0, 1]["sha256"], digest(b"12345678"))

    def test_stream_control_is_control(self):
        packets, _ = self.heaps(range(3), sources=1)
        start, stop = (udp(spead(100 + n, b"\0", 0, 1, [(6, n)]), PORT) for n in (0, 2))
        self.run_packets([start, *packets, stop], self.settings(1), "--require-lossless", extra={"control": 2})

    def test_the_example_of_the_page(self):
        packets, _ = self.heaps(range(10), more=lambda n, s: [(0x1600, n), (0x4101, s)])
        packets = [p._replace(frame=udp(p.frame[42:], 7148)) for p in packets]
        self.run_packets(packets, config(example("spead")), "--require-lossless")


if __name__ == "__main__":
    main()
