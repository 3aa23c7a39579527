#!/usr/bin/env python3
"""The pcapng sink of a live run: packets of a kernel interface with their times, the flight recorder asked by signal and by
telemetry, a full disk, a killed program.

usage: recorder_test.py WEIR
"""

import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import time

import live
from stop_test import config

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "end_to_end"))
from pcapng_file import Pcapng  # noqa: E402
from telemetry_test import Client  # noqa: E402

SIMULATED = "sim,format=ejfat,rate=100,seed=3"


def recording(path, more="", device=SIMULATED, others=""):
    """A run whose first sink is the capture; `others` are further sinks."""
    text = config(device, detector="ejfat")
    before, after = text.split("[[sink]]")
    lcores = after[after.index("[lcores]"):]
    return f'{before}[[sink]]\nkind = "pcapng"\npath = "{path}"\nkeep_free = "0B"\n{more}{others}{lcores}'


class RecorderTest(live.Case):
    def run_with(self, more, *options, name="run", **keys):
        run = self.weir(recording(self.folder / name, more, **keys), *options, name=name)
        run.wait_running()
        return run

    def test_the_flight_recorder_saves_what_is_asked_for(self):
        name = f"weir-record-{os.getpid()}"
        run = self.run_with('packets = "incomplete"\nseconds = 30\nafter = 0.1\nbefore = 0.2\nmemory = "32MiB"\n', "--telemetry", name)
        client = Client(name)
        self.addCleanup(client.socket.close)
        live.wait_for(lambda: client.ask("/weir/recorder")["seen"] > 50, "packets")
        self.assertEqual(client.ask("/weir/recorder")["files"], 0)
        run.process.send_signal(signal.SIGUSR2)
        first = self.folder / "run-0001"
        live.wait_for(first.exists, "file")
        self.assertTrue(any("SIGUSR2: saving the last" in line for line in run.lines), run.lines)
        client.ask("/weir/record")
        second = self.folder / "run-0002"
        live.wait_for(second.exists, "second file")
        run.stop()
        report = run.end()
        self.assert_account(run)
        recorder = report["recorder"]
        self.assertEqual(recorder["triggers"]["request"], 2)
        self.assertEqual(recorder["left_out"], 0)
        files = [Pcapng(first), Pcapng(second)]
        self.assertEqual([file.comments for file in files], [["asked for"], ["asked for"]])
        self.assertEqual(sum(len(file.packets) for file in files), recorder["written"])
        times = [packet[0] for file in files for packet in file.packets]
        self.assertEqual(times, sorted(times))
        self.assertLess(abs(times[-1] * 1e-9 - time.time()), 30)
        self.assertGreater(len(files[0].packets), 50)
        self.assertEqual(files[0].names, ["det0"])
        self.assertGreaterEqual(files[0].statistics[0][4], len(files[0].packets))

    def test_losses_of_the_network_are_saved(self):
        run = self.run_with('packets = "incomplete"\nbefore = 0.05\nafter = 0.05\nmemory = "32MiB"\n',
                            device=SIMULATED + ",events=200,drop=0.01")
        report = run.end()
        self.assert_account(run)
        incomplete = sum(n for cause, n in report["events"]["incomplete"].items() if cause != "end_of_run")
        self.assertGreater(incomplete, 0)
        self.assertEqual(report["recorder"]["triggers"]["incomplete"], incomplete)
        files = [Pcapng(path) for path in sorted(self.folder.glob("run-*"))]
        self.assertGreater(len(files), 0)
        told = sum(len(file.comments) + len(file.last_words) + sum(len(packet[3]) for packet in file.packets) for file in files)
        self.assertEqual(told, incomplete)

    def test_several_rx_lcores_write_one_capture(self):
        sent = {"det0": (19522, 400, 300), "det1": (19523, 300, 250)}
        ports = "".join(f'[[port]]\nname = "{name}"\nrx_descriptors = 4096\ndevice = "sim,format=ejfat,rate={rate},events={events},seed={udp},bytes=40000,port={udp}"\n'
                        for name, (udp, rate, events) in sent.items())
        streams = "".join(f'[[stream]]\nport = "{name}"\ntransport = "udp"\nudp_dst = {udp}\nformat = "ejfat"\n'
                          for name, (udp, _, _) in sent.items())
        path = self.folder / "run"
        sink = f'[[sink]]\nkind = "pcapng"\npath = "{path}"\nkeep_free = "0B"\nmemory = "64MiB"\n'
        progress = self.folder / "progress"
        run = self.weir(f'{ports}{streams}[events]\nsources = 2\nmemory = "16MiB"\ntimeout_ms = 20000\n{sink}'
                        '[lcores]\nrx = [0, 1]\nbuild = [0]\nwork = [1]\nidle = "sleep"\n', "--progress", f"json:{progress}")
        report = run.end()
        self.assert_account(run)
        recorder = report["recorder"]
        self.assertEqual((recorder["left_out"], recorder["written"]), (0, report["packets"]["received"]))
        file = Pcapng(path)
        self.assertEqual(file.names, ["det0", "det1"])
        times = [packet[0] for packet in file.packets]
        self.assertEqual(times, sorted(times))
        for place, name in enumerate(file.names):
            device = next(device for device in report["devices"] if device["port"] == name)
            frames = [packet[1] for packet, interface in zip(file.packets, file.interfaces) if interface == place]
            self.assertEqual(len(frames), device["received"])
            self.assertEqual(len(set(frames)), len(frames), "a packet is there twice")
            self.assertEqual({frame[36:38] for frame in frames}, {sent[name][0].to_bytes(2, "big")})
            numbers = [int.from_bytes(frame[54:62], "big") for frame in frames]
            self.assertEqual(set(numbers), set(range(min(numbers), min(numbers) + sent[name][2])))
            # Of each port in the order in which it sent them.
            self.assertEqual(numbers, sorted(numbers))
        # The last progress object agrees with the report.
        said = [live.json.loads(line) for line in progress.read_text().splitlines()]
        self.assertEqual(said[-1]["recorder"]["written"], recorder["written"])
        self.assertTrue(all(one["recorder"]["seen"] <= recorder["seen"] for one in said))

    def test_a_full_disk_ends_a_capture_with_what_is_whole(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(disk)], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount a small file system: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(disk)])
        run = self.run_with("", name="disk/run", device="sim,format=ejfat,rate=400,seed=3")
        report = run.end(status=1)
        self.assertIn("No space left on device", report["error"])
        self.assertEqual(report["stopped_by"], "the sink failed")
        self.assertTrue(report["balanced"])
        recorder = report["recorder"]
        file = Pcapng(disk / "run")
        self.assertEqual(len(file.packets), recorder["written"])
        self.assertGreater(recorder["written"], 100)
        self.assertEqual(recorder["seen"], recorder["written"] + recorder["left_out"])
        (disk / "run").unlink()
        # The same beside events, which go on.
        (self.folder / "run.json").unlink(missing_ok=True)
        events = f'on_error = "continue"\n[[sink]]\nkind = "events"\npath = "{self.folder}/events"\n'
        run = self.weir(recording(disk / "again", "", "sim,format=ejfat,rate=400,events=400,seed=3", events), name="disk/again")
        report = run.end()
        self.assertIn("no more packets are recorded", run.errors)
        self.assertEqual(report["events"]["written"], 400)
        self.assertIn("No space left", report["recorder"]["stopped"])
        self.assertEqual(len(run.inspect(self.folder / "events")["events"]), 400)

    def test_of_a_killed_run_what_was_flushed_can_be_read(self):
        run = self.run_with("", name="killed.pcapng")
        hidden = self.folder / ".killed.pcapng.part"
        live.wait_for(lambda: hidden.exists() and hidden.stat().st_size > 2 << 20, "a flush")
        run.process.kill()
        run.process.wait()
        file = self.folder / "left.toml"
        file.write_text(config("none", detector="ejfat"))
        done = subprocess.run([live.Weir.program, "replay", str(hidden), "--config", str(file), "--out", str(self.folder / "left"), "--quiet"],
                              capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(run.inspect(self.folder / "left")["events"]), 10)


class NetworkTest(live.Case):
    def test_packets_of_a_kernel_interface(self):
        if not live.is_real_root() and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < 256 << 20:
            self.skipTest("net_af_packet locks its rings in memory: needs root, or a higher `ulimit -l`")
        network = live.Network()
        self.addCleanup(network.close)
        run = self.weir(recording(self.folder / "run", device="net_af_packet0,iface=det0,framesz=16384,blocksz=65536"), "--allow-empty", name="run")
        run.wait_running()
        begin = time.time_ns()
        sender = network.socket_there(socket.AF_INET, socket.SOCK_DGRAM)
        subprocess.run(network.there("ip", "neigh", "add", live.RECEIVER, "lladdr", "02:00:00:00:00:02", "dev", "gen0"), check=True)
        payloads = [bytes([i]) * (100 + 80 * i) for i in range(100)]
        for payload in payloads:
            sender.sendto(payload, (live.RECEIVER, 7777))  # nobody's: recorded all the same
            time.sleep(0.001)  # so that no ring overflows
        sender.close()
        run.wait_progress(lambda one: one["packets"]["unsteered"] >= 100 and one["recorder"]["written"] == one["packets"]["received"], "all of it")
        end = time.time_ns()
        run.stop()
        report = run.end()
        self.assert_account(run)
        file = Pcapng(self.folder / "run")
        found = [(stamp, data[42:]) for stamp, data, _, _ in file.packets if data[36:38] == (7777).to_bytes(2, "big")]
        self.assertEqual([data for _, data in found], payloads)
        slack = 50_000_000  # between the run's line of time and the system's clock
        self.assertTrue(all(begin - slack <= stamp <= end + slack for stamp, _ in found))
        self.assertEqual(report["packets"]["unsteered"], 100)
        self.assertEqual(report["recorder"]["written"], report["packets"]["received"])
        self.assertGreaterEqual(file.statistics[0][4], 100)


if __name__ == "__main__":
    live.main()
