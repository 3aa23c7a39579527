#!/usr/bin/env python3
"""Ends of `weir run`: signals in the middle of traffic, limits, a second signal; and what idle strategies cost.

The detector is the simulated one, so no privileges are needed. usage: stop_test.py WEIR
"""

import pathlib
import re
import signal
import sys
import time

import live


def config(device, lcores='idle = "sleep"', detector="jungfrau", memory="64MiB"):
    first_port = {"jungfrau": 50001, "ejfat": 19522}[detector]
    # A long queue, and time where nothing is dropped: an lcore that a busy machine does not run for a while is not what is tested.
    timeout = "" if "drop" in device else "timeout_ms = 20000\n"
    return f"""name = "live"
[[port]]
name = "det0"
rx_descriptors = 4096
device = "{device}"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [{first_port}, {first_port + 1}]
format = "{detector}"
[events]
sources = 2
memory = "{memory}"
{timeout}[[sink]]
kind = "events"
path = "runs/{{name}}-{{run}}"
[lcores]
{lcores}
"""


SIMULATED = "sim,format=jungfrau,rate=40,seed=3"


class SignalTest(live.Case):
    def end_by(self, number):
        live.repeated(lambda attempt: self.end_once(number, attempt))

    def end_once(self, number, attempt):
        run = self.weir(config(SIMULATED), name=f"run{attempt}")
        run.wait_running()
        run.wait_events(6)
        run.stop(number)
        report = run.end()
        if report["device_missed"] > 0:
            raise live.Disturbed("the detector found no room in its queue")
        self.assertEqual(report["stopped_by"], number.name)
        self.assert_account(run)
        self.assert_no_leftovers(run)
        # The detector was in the middle of something; what was open is there, as far as it had come.
        self.assertGreater(report["events"]["complete"], 5)
        self.assertEqual(set(cause for cause, n in report["events"]["incomplete"].items() if n > 0) - {"end_of_run"}, set())
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        self.assertEqual(len(inspected["events"]), report["events"]["written"])
        whole = [event for event in inspected["events"] if event["complete"]]
        cut = [event for event in inspected["events"] if not event["complete"]]
        self.assertEqual(len(whole), report["events"]["complete"])
        self.assertEqual(len(cut), report["events"]["incomplete"]["end_of_run"])
        self.assertLessEqual(len(cut), 1)
        self.assertEqual(report["wire_loss"], 0)  # what the end of the run cut off is not lost
        for event in cut:
            self.assertTrue(any(source["missing"] for source in event["sources"]))
        self.assertEqual(inspected["ledger"]["events"], report["events"])

    def test_sigint(self):
        self.end_by(signal.SIGINT)

    def test_sigterm(self):
        self.end_by(signal.SIGTERM)

    def test_the_same_signal_twice_at_once_is_one(self):
        live.repeated(self.signal_at_once)

    def signal_at_once(self, attempt):
        run = self.weir(config(SIMULATED), name=f"run{attempt}")
        run.wait_running()
        run.wait_events(1)
        begun = time.monotonic()
        for _ in range(5):
            run.stop(signal.SIGINT)
            time.sleep(0.005)  # the kernel joins those that have not been delivered
        if time.monotonic() - begun > 0.5:
            raise live.Disturbed("five signals took so long that they are not one any more")
        run.end()
        self.assert_account(run)
        self.assertTrue(run.inspect()["verified"])

    def test_a_signal_right_after_the_start(self):
        run = self.weir(config(SIMULATED))
        run.wait_running()
        run.stop(signal.SIGTERM)
        run.end()
        self.assert_account(run)
        self.assertTrue(run.inspect()["verified"])

    def test_killed(self):
        run = self.weir(config(SIMULATED))
        run.wait_running()
        run.wait_events(21)
        run.stop(signal.SIGKILL)
        run.process.wait(live.PATIENCE_S)
        self.assertFalse(run.out.exists())
        hidden = run.out.with_name(f".{run.out.name}.part")
        inspected = run.inspect(hidden, status=1)
        self.assertGreater(len(inspected["events"]), 20)
        self.assertTrue(all(event["complete"] for event in inspected["events"]))


class LimitTest(live.Case):
    def test_duration(self):
        run = self.weir(config(SIMULATED), "--duration", 1.5)
        report = run.end()
        self.assertEqual(report["stopped_by"], "--duration")
        self.assertGreater(report["seconds"], 1.4)
        self.assertLess(report["seconds"], live.PATIENCE_S)
        self.assert_account(run)

    def test_events(self):
        run = self.weir(config("sim,format=jungfrau,rate=40,events=2000,seed=3"), "--events", 25)
        report = run.end()
        self.assertEqual(report["stopped_by"], "--events")
        self.assertGreaterEqual(report["events"]["complete"], 25)
        self.assertLess(report["events"]["complete"], 1000)  # some, until that is seen
        self.assert_account(run)

    def test_idle_exit(self):
        run = self.weir(config("net_null0,no-rx=1"), "--idle-exit", 0.7, "--duration", live.PATIENCE_S)
        report = run.end(status=1)
        self.assertIn("nothing came for any stream (no packet came)", run.errors)
        self.assertEqual(report["lossless"], "unknown")
        self.assertEqual(report["stopped_by"], "--idle-exit")
        self.assertLess(report["seconds"], live.PATIENCE_S)
        self.assert_account(run)
        self.assertEqual(run.inspect()["events"], [])

    def test_the_simulated_detector_ends_by_itself(self):
        run = self.weir(config("sim,format=jungfrau,events=30,seed=4,drop=0.001").replace("sources = 2\n", "sources = 2\ntimeout_ms = 20000\n"))
        report = run.end()
        self.assertEqual(report["events"]["opened"], 30)
        self.assert_account(run)
        self.assertEqual(report["wire_loss"], 30 * 256 - report["packets"]["received"])

    def test_a_signal_after_the_end_changes_nothing(self):
        # As a user's Ctrl-C in the moment in which the run ends by itself. The report is there before the program has gone.
        for attempt in range(5):
            run = self.weir(config("sim,format=jungfrau,events=5,seed=4"), name=f"run{attempt}")
            live.wait_for(lambda: (run.report_file.exists() and run.report_file.stat().st_size > 0) or run.process.poll() is not None, "report")
            for _ in range(20):
                if run.process.poll() is None:
                    run.stop(signal.SIGINT)
                    time.sleep(0.002)  # so that they fall into different moments of its end
            self.assertEqual(run.end()["events"]["complete"], 5)

    def test_require_lossless(self):
        run = self.weir(config("sim,format=jungfrau,events=20,seed=4,drop=0.01"), "--require-lossless")
        run.end(status=3)
        self.assert_account(run)
        run = self.weir(config("sim,format=jungfrau,events=20,seed=4"), "--require-lossless", name="whole")
        run.end()
        self.assertEqual(run.report["events"]["complete"], 20)


class IdleTest(live.Case):
    def naps(self, run, seconds):
        """How often the busiest thread gave its processor away by itself, for each second in which it had one. However slow the machine is,
        who spins does that hardly ever, and who sleeps does it after a few turns."""
        def seen():
            found = {}
            for task in pathlib.Path(f"/proc/{run.process.pid}/task").iterdir():
                naps = re.search(r"(?m)^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text())
                found[task.name] = (int((task / "schedstat").read_text().split()[0]) / 1e9, int(naps[1]))
            return found
        before = seen()
        time.sleep(seconds)  # over a longer time it is the same
        used = {task: (now[0] - before[task][0], now[1] - before[task][1]) for task, now in seen().items() if task in before}
        cpu_s, naps = max(used.values())
        return naps / cpu_s

    def test_every_strategy_runs(self):
        for idle in ("spin", "pause", "sleep"):
            with self.subTest(idle=idle):
                run = self.weir(config("sim,format=jungfrau,events=60,seed=5,rate=60", lcores=f'idle = "{idle}"'), name=idle)
                report = run.end()
                self.assert_account(run)
                self.assertTrue(run.inspect()["verified"])
                # A busy machine may not run the lcore for longer than the queue lasts; whole events are missing then.
                missed = report["device_missed"]
                self.assertEqual(report["packets"]["received"] + missed, 60 * 256)
                self.assertLessEqual(report["wire_loss"], missed)
                if missed == 0:
                    self.assertEqual(report["events"]["opened"], 60)

    def test_sleeping_leaves_the_processor_alone(self):
        run = self.weir(config("net_null0,no-rx=1"), "--allow-empty")
        run.wait_running()
        self.assertGreater(self.naps(run, 1.5), 500)
        run.stop()
        run.end()

    def test_spinning_does_not(self):
        run = self.weir(config("net_null0,no-rx=1", lcores='idle = "spin"'), "--allow-empty")
        run.wait_running()
        self.assertLess(self.naps(run, 1.5), 100)
        run.stop()
        run.end()


if __name__ == "__main__":
    live.main()
