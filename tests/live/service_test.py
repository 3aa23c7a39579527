#!/usr/bin/env python3
"""`weir run` as a service: what it tells the service manager, when it stops feeding the watchdog, and which rights it keeps.

usage: service_test.py WEIR
"""

import ctypes
import os
import pathlib
import signal
import socket
import time

import live
from devices_test import needs
from stop_test import SIMULATED, config

CAP_NET_ADMIN, CAP_DAC_OVERRIDE = 12, 1
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000


class Frozen:
    """One thread of a process, held still while the others go on."""

    def __init__(self, thread):
        self.thread = thread
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.ptrace(PTRACE_SEIZE)
        self.ptrace(PTRACE_INTERRUPT)
        os.waitpid(thread, WALL)

    def ptrace(self, request):
        if self.libc.ptrace(request, self.thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def release(self):
        self.ptrace(PTRACE_DETACH)


class ServiceTest(live.Case):
    def listen(self):
        """A socket as the service manager has it: [(time, message), ...] come by heard()."""
        self.notified = live.Notified(self.folder / "notify")
        self.addCleanup(self.notified.close)
        self.taken = 0
        return self.notified.environment

    def hear(self, heard):
        """Adds what has come since the last time."""
        new = self.notified.heard[self.taken:]
        self.taken += len(new)
        heard += new

    def heard_for(self, seconds):
        """For what must not come: more of it the longer one listens."""
        heard = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.hear(heard)
            time.sleep(0.02)
        return heard

    def heard_until(self, enough, what):
        """Until enough(texts)."""
        heard = []

        def listen():
            self.hear(heard)
            return enough([text for _, text in heard])

        live.wait_for(listen, what)
        return heard

    def service(self, watchdog_s=None, device=SIMULATED, **more):
        environment = {**os.environ, **self.listen()}
        environment.pop("WATCHDOG_PID", None)
        if watchdog_s:
            environment["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))
        return self.weir(config(device, **more), environment=environment)

    @staticmethod
    def threads(run):
        return {int(task.name): (task / "comm").read_text().strip() for task in pathlib.Path(f"/proc/{run.process.pid}/task").iterdir()}

    def test_ready_status_and_stopping(self):
        run = self.service()
        run.wait_running()
        of_status = lambda texts: [text for text in texts[1:] if text.startswith("STATUS=")]
        begun = time.monotonic()
        heard = [text for _, text in self.heard_until(lambda texts: len(of_status(texts)) >= 3, "three lines of status")]
        self.assertEqual(heard[0], "READY=1\nSTATUS=running")
        status = of_status(heard)
        self.assertLessEqual(len(status), time.monotonic() - begun + 2, "one a second")
        # The simulated detector waits for nobody: beside other work it may lose something.
        self.assertRegex(status[-1], r"packets/s +[0-9.]+ Gb/s +[1-9][0-9]* events.*; (nothing lost|lost [0-9]+ device)")
        self.assertFalse(any("WATCHDOG" in text for text in heard), "nobody waits for it")
        run.stop(signal.SIGTERM)
        last = self.heard_until(lambda texts: any("STOPPING=1" in text for text in texts), "word of the end")[-1][1]
        self.assertTrue(last.startswith("STOPPING=1\n"), last)
        self.assertIn("STATUS=SIGTERM", last)
        run.end()

    def test_the_watchdog_is_fed_while_all_lcores_poll(self):
        watchdog_s = 4
        for idle in ("sleep", "pause"):
            with self.subTest(idle=idle):
                live.repeated(lambda _: self.feed_while_all_poll(watchdog_s, idle), attempts=3)

    def feed_while_all_poll(self, watchdog_s, idle):
        run = self.service(watchdog_s, lcores=f'idle = "{idle}"')
        run.wait_running()
        with live.Stalls(run.process.pid) as stalls:
            heard = self.heard_until(lambda texts: texts.count("WATCHDOG=1") >= 6, "six feeds")
        feeds = [at for at, text in heard if text == "WATCHDOG=1"]
        run.stop(signal.SIGTERM)
        run.end()
        (self.folder / "notify").unlink()
        live.shutil.rmtree(self.folder / "run")
        pause = max(b - a for a, b in zip(feeds, feeds[1:]))
        if pause >= watchdog_s and stalls.longest_s > watchdog_s / 4:
            raise live.Disturbed(f"somebody stood still for {stalls.longest_s:.1f} s")
        self.assertLess(pause, watchdog_s)

    def test_an_lcore_that_is_stuck_ends_the_feeding(self):
        watchdog_s = 4
        run = self.service(watchdog_s)
        run.wait_running()
        workers = [thread for thread, name in self.threads(run).items() if "worker" in name]
        self.assertTrue(workers, self.threads(run))
        self.heard_until(lambda texts: "WATCHDOG=1" in texts, "first feed")
        try:
            frozen = Frozen(workers[0])
        except OSError as error:
            self.skipTest(f"no ptrace here: {error}")
        run.wait_for(lambda: any("has not polled" in line for line in run.lines), "word of the lcore")
        self.hear([])
        self.assertNotIn("WATCHDOG=1", [text for _, text in self.heard_for(1.5 * watchdog_s)], "fed, although an lcore is stuck")
        frozen.release()
        self.heard_until(lambda texts: "WATCHDOG=1" in texts, "feed when it polls again")
        run.stop(signal.SIGTERM)
        run.end()

    # --- rights -----------------------------------------------------------------------------------------------------------

    @staticmethod
    def capabilities(process):
        """{thread's name: {"CapEff": number, ...}} of all but the kernel's own workers."""
        found = {}
        for task in pathlib.Path(f"/proc/{process}/task").iterdir():
            status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
            if not status["Name"].startswith("iou-"):
                found[f'{status["Name"]} {task.name}'] = {key: int(status[key], 16) for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} | {
                    "NoNewPrivs": int(status["NoNewPrivs"])}
        return found

    def need_capabilities(self):
        if not next(iter(self.capabilities(os.getpid()).values()))["CapEff"] & 1 << CAP_NET_ADMIN:
            self.skipTest("there are no capabilities to give up: not root, and no user namespaces")

    def assert_only(self, run, keep):
        """Every thread has these capabilities, and no way to others."""
        threads = self.capabilities(run.process.pid)
        self.assertGreaterEqual(len(threads), 3, threads)
        for name, has in threads.items():
            self.assertEqual({key: has[key] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
                             {"CapInh": 0, "CapPrm": keep, "CapEff": keep, "CapBnd": keep, "CapAmb": 0}, name)
            self.assertEqual(has["NoNewPrivs"], 1, name)

    def test_no_thread_keeps_a_capability(self):
        self.need_capabilities()
        for number, text in enumerate((config(SIMULATED), config(SIMULATED, lcores='rx = [0]\nbuild = [1]\nwork = [1]\nidle = "sleep"'),
                                       config(SIMULATED).replace('kind = "events"', 'kind = "events"\ndirect = "auto"\nsegment_bytes = "1MiB"'),
                                       config(SIMULATED).replace('kind = "events"', 'kind = "hdf5"'))):
            with self.subTest(number=number):
                run = self.weir(text, "--telemetry", f"weir{os.getpid()}", name=f"run{number}")
                run.wait_running()
                self.assertIn("privileges: given up", run.lines)
                self.assert_only(run, 0)
                run.wait_progress(lambda one: one["events"]["written"] > 0, "written events")
                self.assert_only(run, 0)
                run.stop(signal.SIGTERM)
                self.assertGreater(run.end()["events"]["written"], 0)

    def test_they_stay_where_that_is_asked_for(self):
        self.need_capabilities()
        run = self.weir(config(SIMULATED), "--keep-privileges")
        run.wait_running()
        self.assertNotIn("privileges: given up", run.lines)
        for has in self.capabilities(run.process.pid).values():
            self.assertTrue(has["CapEff"] & 1 << CAP_NET_ADMIN)
        run.wait_received(1)
        run.stop(signal.SIGTERM)
        run.end()

    def test_a_device_keeps_what_it_needs_and_it_is_said(self):
        self.need_capabilities()
        needs("net_tap")
        if not os.path.exists("/dev/net/tun"):
            self.skipTest("the kernel has no TUN/TAP")
        text = config("net_tap0,iface=weir7")
        (self.folder / "c.toml").write_text(text)
        plan = live.subprocess.run([live.Weir.program, "run", "--config", str(self.folder / "c.toml"), "--print-config"], capture_output=True, text=True)
        self.assertIn("# kept while running: CAP_NET_ADMIN, port 'det0' (net_tap)", plan.stdout)
        run = self.weir(text, "--allow-empty")
        run.wait_running()
        self.assertTrue(any(line.startswith("privileges: given up, but CAP_NET_ADMIN for port 'det0' (net_tap)") for line in run.lines), run.lines)
        self.assert_only(run, 1 << CAP_NET_ADMIN)
        self.assertIn("weir7", dict(socket.if_nameindex()).values())
        run.stop(signal.SIGTERM)
        run.end()
        self.assertNotIn("weir7", dict(socket.if_nameindex()).values())

    def test_a_folder_of_somebody_else_is_still_written_to(self):
        self.need_capabilities()
        if not live.is_real_root():
            self.skipTest("needs root outside of a user namespace")
        theirs = self.folder / "theirs"
        theirs.mkdir(mode=0o755)
        os.chown(theirs, 12345, 12345)
        run = self.weir(config(SIMULATED).replace('kind = "events"', 'kind = "events"\nsegment_bytes = "1MiB"'), name="theirs/run")
        run.wait_running()
        self.assert_only(run, 1 << CAP_DAC_OVERRIDE)
        run.wait_events(3)  # and their segments, each of one
        run.stop(signal.SIGTERM)
        self.assertGreater(run.end()["events"]["written"], 0)
        self.assertTrue(run.inspect()["verified"])


if __name__ == "__main__":
    live.main()
