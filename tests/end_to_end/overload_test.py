#!/usr/bin/env python3
"""More than the pipeline can take: `replay --drop` into a worker that is too slow, with each policy; and what the run says was its limit."""
from packets import EJFAT_PORT, ejfat, pcap_bytes, stamped, udp
from support import FUSED, Case, config, main, stream
from counters_test import noise

SLOW = FUSED + '[[reduce]]\nkind = "zstd"\nlevel = 19\n'
EVENTS = 300
HALF = 4000


class Overload(Case):
    @classmethod
    def setUpClass(cls):
        # Two packets each. All fit into the ring after the reader: what is lost is lost by choice.
        cls.frames = [udp(ejfat(n, noise(HALF, 2 * n + half), offset=half * HALF, total=2 * HALF), EJFAT_PORT)
                      for n in range(1, EVENTS + 1) for half in (0, 1)]

    def run_with(self, policy, *args, window=8, more=SLOW, step_ns=1000):
        text = config(stream(format="ejfat", sources=1), sources=1, events=f'window = {window}\noverload = "{policy}"\ntimeout_ms = 60000\n',
                      more=more)
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(self.frames, step_ns=step_ns))), text, *args)
        events = result.report["events"]
        self.assertTrue(all(event["complete"] for event in result.inspect["events"]), "an event is there by half")
        self.assertEqual(result.report["packets"]["placed"], 2 * events["complete"])
        self.assertEqual(events["complete"] + sum(events["refused"].values()), EVENTS)
        result.lost = set(range(1, EVENTS + 1)) - {number for _, number in result.events}
        return result

    def test_new_events_are_refused_whole(self):
        for policy in ("evict-oldest", "refuse-new"):
            with self.subTest(policy=policy):
                result = self.run_with(policy, "--drop")
                lost = len(result.lost)
                self.assertGreater(lost, 20)
                self.assertEqual(result.packets, {"placed": 2 * (EVENTS - lost), "dropped.queue_full": 2 * lost})
                self.assertEqual(result.report["events"]["refused"], {"no_room": 0, "queue_full": lost, "prescaled": 0})
                self.assertEqual(result.report["overload"],
                                 {"policy": policy, "input_waits": False, "times": 0, "kept": 0, "refused": 0})
                self.assertIn("refused as a whole because of: queue_full", result.output)

    def test_prescaling_leaves_out_what_its_number_says(self):
        result = self.run_with("prescale:7", "--drop")
        events, overload = result.report["events"], result.report["overload"]
        meant = {number for number in result.lost if number % 7 == 0}
        self.assertEqual(len(result.lost - meant), events["refused"]["prescaled"])
        self.assertEqual(len(meant), events["refused"]["queue_full"] + events["refused"]["no_room"])
        self.assertGreater(events["refused"]["prescaled"], 20)
        self.assertEqual(overload["refused"], events["refused"]["prescaled"])
        self.assertGreaterEqual(overload["times"], 1)
        self.assertEqual(result.packets["dropped.prescaled"], 2 * events["refused"]["prescaled"])

    def test_waiting_loses_nothing_that_the_ring_can_hold(self):
        result = self.run_with("wait", "--drop")
        self.assertEqual(result.packets, {"placed": 2 * EVENTS})
        self.assertEqual(result.lost, set())
        self.assertEqual(result.report["overload"]["input_waits"], True)

    def test_a_replay_that_waits_loses_nothing_with_any_policy(self):
        for policy in ("evict-oldest", "refuse-new", "prescale:7", "wait"):
            with self.subTest(policy=policy):
                result = self.run_with(policy, more=FUSED)
                self.assertEqual(result.packets, {"placed": 2 * EVENTS})

    def test_a_detector_that_begins_again_loses_nothing_however_slow_the_worker_is(self):
        # Far more messages than there are places for: most wait for the worker when the next restart comes.
        starts, events = 12, 1000
        frames = [udp(ejfat(n, b"%4d" % n * 50), EJFAT_PORT) for _ in range(starts) for n in range(1, events + 1)]
        path = self.path("restarts.pcap", pcap_bytes(stamped(frames, step_ns=1000)))
        for more in (SLOW, FUSED, ""):
            with self.subTest(more=more):
                result = self.replay(path, config(stream(format="ejfat", sources=1), sources=1, more=more), "--require-lossless")
                self.assertEqual(result.packets, {"placed": starts * events})
                self.assertEqual(set(result.events), {(start, n) for start in range(starts) for n in range(1, events + 1)})

    def test_the_slow_worker_is_named(self):
        # Long enough that the beginning and the end make no difference.
        text = config(stream(format="ejfat", sources=1), sources=1, events="window = 8\n", sink='kind = "null"', more=SLOW)
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(self.frames))), text, "--loop", 8)
        limit = result.report["bottleneck"]
        self.assertEqual(limit["part"], "work0", limit)
        self.assertIn("on lcore 0 (rx0, build0, work0)", limit["sentence"])
        self.assertIn("limit     " + limit["sentence"], result.output)
        self.assertGreater(result.report["stages"]["work0"]["busy"], 0.5)

    def test_levels_have_their_highest(self):
        levels = self.run_with("refuse-new", "--drop").report["levels"]
        self.assertGreaterEqual(levels["queued"]["highest"], levels["queued"]["size"])
        self.assertLessEqual(levels["queued"]["highest"], levels["queued"]["size"] + levels["open"]["size"])
        self.assertGreater(levels["rings"]["capture"]["highest"], 0)

    def test_a_slow_input_is_named(self):
        result = self.run_with("evict-oldest", "--pace", "recorded", window=8, more=FUSED.replace("pause", "sleep"), step_ns=1_000_000)
        self.assertEqual(result.packets, {"placed": 2 * EVENTS})
        limit = result.report["bottleneck"]
        self.assertEqual(limit["part"], "pace", limit)
        self.assertIn("had nothing to do", limit["sentence"])

    def test_full_rings_are_counted_where_they_are(self):
        self.frames = self.frames + [udp(ejfat(EVENTS + 1 + n, b"x"), EJFAT_PORT) for n in range(4000)]
        text = config(stream(format="ejfat", sources=1), sources=1, sink='kind = "null"', more=SLOW)
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(self.frames))), text, "--drop")
        ring = result.report["levels"]["rings"]["capture"]
        self.assertEqual(ring["dropped"], result.report["packets"]["dropped"]["ring_full.capture"])
        self.assertGreater(ring["times_full"], 0)
        self.assertEqual(ring["highest"], ring["size"])


if __name__ == "__main__":
    main()
