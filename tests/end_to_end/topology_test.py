#!/usr/bin/env python3
"""The same capture on one lcore and on several, at full speed and as recorded, compressed or not: time is the capture's, so the
events, their digests, causes and gaps are the same."""
import random

from packets import EJFAT_PORT, START_NS, ejfat, pcap_bytes, roce_message, udp
from support import FUSED, TRAP, ZSTD, Case, config, main, stream, weir

TIMEOUT_MS = 40
TOPOLOGIES = {
    "fused": FUSED,
    "sleeping": FUSED.replace("pause", "sleep"),
    "three lcores": '[lcores]\nrx = [0]\nbuild = [1]\nwork = [2]\nidle = "pause"\n',
    "two rx lcores": '[lcores]\nrx = [0, 1]\nbuild = [2]\nwork = [3]\nidle = "sleep"\n',
    "two builder shards, fused": '[lcores]\nrx = [0]\nbuild = [0, 1]\nwork = [0]\nidle = "pause"\n',
    "six lcores": '[lcores]\nrx = [0, 1]\nbuild = [2, 3, 4]\nwork = [5, 0]\nidle = "sleep"\n',
    "two of each, shared": '[lcores]\nrx = [0, 1]\nbuild = [1]\nwork = [0, 1]\nidle = "pause"\n',
}
# What matters to the sanitizers is who shares what: each combination of lcores once.
SANITIZED = not TRAP
NUMBERS = {"sources": 4, "bursts": 6, "events": 12}


def capture_bytes(seed):
    """Bursts of events of two UDP and two RoCE sources with losses, repetitions and disorder, pauses longer than the time-out
    between some of them, and packets for events that the pause has ended."""
    r = random.Random(seed)
    records, stragglers, time = [], [], START_NS
    psn = [0, 1 << 23]
    for burst in range(NUMBERS["bursts"]):
        frames = []
        for number in range(burst * NUMBERS["events"] + 1, (burst + 1) * NUMBERS["events"] + 1):
            for source in (0, 1):
                size = r.randrange(1, 9000)
                data = r.randbytes(size // 2) + bytes(size - size // 2)
                frames += [udp(ejfat(number, data[at:at + 1000], offset=at, total=size), EJFAT_PORT + source) for at in range(0, size, 1000)]
                message = roce_message(data[:4000], psn[source], number, qp=0x11 + source, verb=r.choice(["send", "write"]))
                psn[source] += len(message)
                frames += message
        frames = [f for f in frames for _ in range(r.choices((0, 1, 2), (0.01, 0.95, 0.04))[0])]
        frames = [frames[i] for i in sorted(range(len(frames)), key=lambda i: i + r.uniform(0, 30))]
        late = r.sample(frames, 6)
        frames = [f for f in frames if f not in late] + stragglers
        stragglers = late
        for frame in frames:
            time += r.randrange(1000, 20000)
            records.append((time, frame))
        if burst % 2:
            time += r.randrange(2, 4) * TIMEOUT_MS * 10**6
    return pcap_bytes(records), len(records)


class Topologies(Case):
    def settings(self, more, events="", sink='kind = "events"\npath = "unused"'):
        return config(stream(format="ejfat"), stream("roce", "message"), sources=4, events=f"timeout_ms = {TIMEOUT_MS}\n{events}", sink=sink, more=more)

    def outcome(self, result):
        """All of a run that must not depend on who did what when."""
        events = [(e["epoch"], e["id"], e["complete"], e.get("cause"), e["bytes"], e["sha256"], e["first_ns"], e["last_ns"],
                   [(s["id"], s["bytes"], s["missing"]) for s in e["sources"]]) for e in result.inspect["events"]]
        counts = {key: result.report[key] for key in ("packets", "messages", "events", "sources", "wire_loss")}
        self.assertEqual(events, sorted(events, key=lambda e: e[:2]))  # whatever order the file has
        return events, counts, result.report["bytes"]["placed"]

    def test_same_events_everywhere(self):
        seed = random.SystemRandom().randrange(1 << 30)
        print(f"# seed {seed}")
        data, count = capture_bytes(seed)
        capture = self.path("c.pcap", data)
        expected = None
        for name, lcores in TOPOLOGIES.items():
            if SANITIZED and name == "sleeping":
                continue
            for pace in ("max", "recorded") if name in ("fused", "two rx lcores") and not SANITIZED else ("max",):
                for more in ((lcores, lcores + ZSTD) if pace == "max" else (lcores,))[:1 if SANITIZED and name != "six lcores" else 2]:
                    with self.subTest(topology=name, pace=pace, zstd=ZSTD in more):
                        result = self.replay(capture, self.settings(more), "--pace", pace)
                        self.assertEqual(result.report["packets"]["received"], count)
                        outcome = self.outcome(result)
                        if expected is None:
                            expected = outcome
                            causes = result.report["events"]["incomplete"]
                            self.assertGreater(result.report["events"]["complete"], 0)
                            self.assertGreater(causes["timeout"], 0)
                            self.assertGreater(result.report["packets"]["dropped"]["late"], 0)
                            self.assertTrue(any(len(s["missing"]) > 0 for e in result.inspect["events"] for s in e["sources"]))
                        for part, should in zip(outcome, expected):
                            self.assertEqual(part, should)

    def test_as_many_lcores_as_a_large_machine_has(self):
        # More than there are CPUs here: those that have none of their own share what there is.
        if SANITIZED:
            self.skipTest("33 threads on the CPUs of a small machine take long under the sanitizers, which see the same edges with six")
        data, count = capture_bytes(7)
        capture = self.path("c.pcap", data)
        many = '[lcores]\nrx = "0-15"\nbuild = "16-19"\nwork = "20-31"\nidle = "sleep"\n'
        few = self.replay(capture, self.settings(FUSED))
        result = self.replay(capture, self.settings(many))
        self.assertEqual(result.report["packets"]["received"], count)
        self.assertEqual(self.outcome(result), self.outcome(few))
        self.assertEqual(len(result.report["plan"]["lcores"]["rx"]), 16)
        # Rings and buffers grow with the number of lcores, not with its square.
        self.assertLess(result.report["plan"]["dpdk_memory_bytes"], 16 * few.report["plan"]["dpdk_memory_bytes"])

    def test_more_lcores_than_can_be(self):
        capture = self.path("c.pcap", pcap_bytes([]))
        for lcores, found, accepted in (('build = "0-16"', "lcores.build: found 17 lcores", "at most 16"),
                                        ('rx = "0-47"\nwork = "48-60"', "found 48 rx, 1 build and 13 work lcores", "at most 2400")):
            done = weir("replay", capture, "--config", self.path("c.toml", self.settings(f"[lcores]\n{lcores}\n")), "--out", self.path("out"), status=2)
            self.assertIn(found, done.stderr)
            self.assertIn(accepted, done.stderr)

    def test_jungfrau_with_losses_on_any_number_of_lcores(self):
        # Four modules; packets lost, twice and out of order.
        capture, _ = self.send("jf.pcap", "--format", "jungfrau", "--sources", 4, "--events", 30, "--drop", 0.002, "--duplicate", 0.002,
                               "--reorder", 20, "--seed", 11)
        texts = [config(stream(format="jungfrau", sources=4), sources=4, events="timeout_ms = 100000\n", more=lcores) for lcores in (
            FUSED, '[lcores]\nrx = [0, 1]\nbuild = [0]\nwork = [1]\nidle = "sleep"\n',
            '[lcores]\nrx = [0, 1, 2]\nbuild = [3, 4]\nwork = [5]\nidle = "sleep"\n')]
        outcomes = [self.outcome(self.replay(capture, text)) for text in texts]
        self.assertEqual(outcomes[1], outcomes[0])
        self.assertEqual(outcomes[2], outcomes[0])

    def test_other_sinks(self):
        data, _ = capture_bytes(4)
        capture = self.path("c.pcap", data)
        kept = self.replay(capture, self.settings(FUSED))
        nowhere = self.replay(capture, self.settings(TOPOLOGIES["three lcores"], sink='kind = "null"'))
        self.assertIsNone(nowhere.inspect)
        self.assertEqual(nowhere.report["events"], kept.report["events"])
        self.assertEqual(nowhere.report["packets"], kept.report["packets"])
        complete_only = self.replay(capture, self.settings(FUSED, 'incomplete = "drop"\n'))
        self.assertEqual({k: e["sha256"] for k, e in complete_only.events.items()},
                         {k: e["sha256"] for k, e in kept.events.items() if e["complete"]})
        self.assertEqual(complete_only.report["events"]["dropped"]["incomplete"], sum(kept.report["events"]["incomplete"].values()))

    def test_large_events_in_pieces(self):
        # Larger than an output buffer and than what is compressed at a time; half of it does not compress.
        r = random.Random(3)
        data = r.randbytes(1_700_000) + bytes(1_700_000)
        frames = [udp(ejfat(n, data[at:at + 8500], offset=at, total=len(data)), EJFAT_PORT) for n in (1, 2, 3) for at in range(0, len(data), 8500)]
        del frames[150:230]
        capture = self.path("c.pcap", pcap_bytes([(START_NS + i, f) for i, f in enumerate(frames)]))
        results = [self.replay(capture, config(stream(format="ejfat", sources=1), sources=1, more=more))
                   for more in (FUSED, FUSED + ZSTD, TOPOLOGIES["three lcores"] + ZSTD)]
        first = results[0]
        self.assertEqual([e["bytes"] for e in first.inspect["events"]], [len(data) - 80 * 8500, len(data), len(data)])
        self.assertEqual(first.events[0, 1]["sources"][0]["missing"], [[150 * 8500, 80 * 8500]])
        for result in results[1:]:
            self.assertEqual(result.digests, first.digests)
            self.assertLess(result.report["bytes"]["stored"], 0.7 * first.report["bytes"]["stored"])


if __name__ == "__main__":
    main()
