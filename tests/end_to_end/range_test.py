#!/usr/bin/env python3
"""Which records of which files are replayed, and for which port: ranges of time, several captures, pipes, compressed files;
and that the size of a capture does not matter to the memory."""
import gzip
import json
import os
import struct
import subprocess

from packets import EJFAT_PORT, START_NS, ejfat, jungfrau, pcap_bytes, pcapng_bytes, stamped, udp
from support import TRAP, TIMEOUT_S, WEIR, Case, config, main, stream, weir

TWO = config(stream(format="ejfat"))
STEP_NS = 1_000_000


def frames(events, sources=2):
    return [udp(ejfat(n, bytes([n, s]) * 300), EJFAT_PORT + s) for n in range(1, events + 1) for s in range(sources)]


class Range(Case):
    def setUp(self):
        super().setUp()
        # Event n has two packets, at 2(n-1) and 2(n-1) + 1 ms.
        self.records = stamped(frames(10), step_ns=STEP_NS)
        self.capture = self.path("all.pcap", pcap_bytes(self.records))

    def ids(self, *args, captures=None):
        result = self.replay(captures or self.capture, TWO, *args)
        report = result.report
        self.assertEqual(report["capture"]["records"] - report["capture"]["skipped"], report["packets"]["received"])
        return [n for _, n in sorted(result.events)], report

    def test_times_relative_to_the_first_record(self):
        for args, events in ((("--from", "+4ms"), range(3, 11)), (("--to", "+4ms"), range(1, 3)), (("--from", "+0.004", "--to", "+8000us"), range(3, 5)),
                             (("--from", "+4000001ns"), range(3, 11)), (("--from", "+1s"), ()), (("--to", "+0s"), ())):
            with self.subTest(args=args):
                ids, report = self.ids("--allow-empty", *args)
                self.assertEqual(ids, list(events))
                self.assertEqual(report["capture"]["records"], 20)

    def test_absolute_times(self):
        # START_NS is 2023-11-14T22:13:20Z.
        for begin in ("1700000000.004", "2023-11-14T22:13:20.004Z", "2023-11-14t22:13:20.004000000z", "2023-11-14T23:43:20.004+01:30",
                      "2023-11-14 17:13:20.004-05:00"):
            with self.subTest(begin=begin):
                self.assertEqual(self.ids("--from", begin, "--to", "1700000000.008")[0], [3, 4])
        self.assertEqual(self.ids("--from", "1700000000.004000001")[1]["capture"]["skipped"], 5)

    def test_wrong_times_are_refused(self):
        settings = self.path("c.toml", TWO)
        for wrong in ("", "+", "4ms later", "-3s", "+1h", "+1.5.s", "2023-11-14", "2023-11-14T22:13:20", "2023-13-14T22:13:20Z", "2023-02-30T00:00:00Z",
                      "2023-11-14T22:13:20.Z", "1700000000.", "99999999999", "+0.5ns", "1e9"):
            with self.subTest(text=wrong):
                done = weir("replay", self.capture, "--config", settings, "--out", self.folder / "out", f"--from={wrong}", status=2)
                if wrong:
                    self.assertIn(f"--from: found '{wrong}'; accepted:", done.stderr)

    def test_with_several_files_and_passes(self):
        files = [self.path("a.pcap", pcap_bytes(self.records[::2])), self.path("b.pcap", pcap_bytes(self.records[1::2]))]
        ids, report = self.ids("--from", "+4ms", "--to", "+8ms", "--loop", 3, captures=files)
        self.assertEqual(ids, list(range(3, 9)))
        self.assertEqual(report["capture"]["skipped"], 3 * 16)
        self.assertEqual(report["capture"]["passes"], 3)
        self.assertEqual(self.ids("--from", "+1000s", "--loop", 3, "--allow-empty")[1]["packets"]["received"], 0)

    def test_one_port_for_each_capture(self):
        # The same UDP port on both: only the port of the appliance tells the sources apart.
        text = "".join(f'[[port]]\nname = "{name}"\ndevice = "net_null{i}"\n[[stream]]\nport = "{name}"\ntransport = "udp"\nudp_dst = [{EJFAT_PORT}]\nformat = "ejfat"\n'
                       for i, name in enumerate(("left", "right")))
        text += '[events]\nsources = 2\n[[sink]]\nkind = "events"\npath = "unused"\n'
        sides = [[(t, udp(ejfat(n, bytes([n, side]) * 50), EJFAT_PORT)) for n, t in zip(range(1, 9), range(START_NS + side, START_NS + 8000, 1000))] for side in (0, 1)]
        files = [self.path("l.pcap", pcap_bytes(sides[0])), self.path("r.pcapng", pcapng_bytes(sides[1]))]
        result = self.replay(files, text, "--port", "left", "--port", "right", "--require-lossless")
        self.assertEqual(sorted(n for _, n in result.events), list(range(1, 9)))
        swapped = self.replay(files, text, "--port", "right", "--port", "left", "--require-lossless")
        self.assertNotEqual(swapped.events[0, 1]["sha256"], result.events[0, 1]["sha256"])
        # One for all: the other port's source never comes.
        one = self.replay(files[0], text, "--port", "right")
        self.assertEqual(one.report["events"]["complete"], 0)
        settings = self.path("c.toml", text)
        for args, words in ((("--port", "left") * 3, "3 names for 2 captures"), (("--port", "middle"), "found 'middle'; accepted: left, right")):
            done = weir("replay", *files, "--config", settings, "--out", self.folder / "out", *args, status=2)
            self.assertIn(words, done.stderr)

    def test_standard_input(self):
        settings = self.path("c.toml", TWO)
        for data in (pcap_bytes(self.records), gzip.compress(pcapng_bytes(self.records))):
            report = self.path("r.json")
            command = [WEIR, "replay", "-", "--config", settings, "--out", self.folder / f"out{len(data)}", "--report", report, "--require-lossless"]
            done = subprocess.run(command, input=data, capture_output=True, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(b"10 complete", done.stdout)
        done = subprocess.run([WEIR, "replay", "-", "-", "--config", settings], input=b"", capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"only once", done.stderr)

    def test_compressed_captures(self):
        plain = pcap_bytes(self.records)
        half = len(plain) // 2
        packed = {"whole.gz": gzip.compress(plain), "members.bin": gzip.compress(plain[:half]) + gzip.compress(plain[half:])}
        for name, data in packed.items():
            self.assertEqual(self.ids("--require-lossless", captures=self.path(name, data))[0], list(range(1, 11)))
        self.assertEqual(self.ids("--loop", 2, captures=self.folder / "whole.gz")[0], list(range(1, 21)))
        result = self.replay(self.path("cut.gz", packed["whole.gz"][:-30]), TWO)
        self.assertIn("gzip data are cut off", result.report["warnings"][0])
        done = weir("replay", self.path("x.pcap", b"\xfd7zXZ\0" + bytes(40)), "--config", self.path("c.toml", TWO), "--out", self.folder / "o", status=1)
        self.assertIn("x.pcap: compressed with xz; accepted: pcap and pcapng, plain or compressed with gzip or zstd", done.stderr)


class Memory(Case):
    def test_a_large_capture_takes_no_more_memory_than_a_small_one(self):
        # Events stay open past any block: with every tenth one incomplete, references pin blocks until the time-out.
        text = config(stream(sources=1), sources=1, events='memory = "32MiB"\ntimeout_ms = 5\n', sink='kind = "null"')
        peaks = []
        for events in (12, 190):
            capture = self.path(f"{events}.pcap")
            with capture.open("wb") as file:
                file.write(pcap_bytes([]))
                for n in range(1, events + 1):
                    time_ns = START_NS + n * 128 * 6600
                    for p in range(128 - (n % 10 == 0)):
                        frame = udp(jungfrau(n, p), 50001)
                        file.write(struct.pack("<IIII", *divmod(time_ns + p * 6600, 10**9), len(frame), len(frame)) + frame)
            settings, report = self.path("m.toml", text), self.path("m.json")
            child = subprocess.Popen([WEIR, "replay", capture, "--config", settings, "--report", report, "--quiet"])
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(child.returncode, 0)
            peaks.append(usage.ru_maxrss >> 10)
            found = json.loads(report.read_text())
            self.assertEqual(found["events"]["complete"], events - events // 10)
            self.assertIs(found["balanced"], True)
            capture.unlink()
        print(f"# peak resident memory: {peaks[0]} MiB for 13 MB, {peaks[1]} MiB for 200 MB")
        # 32 MiB for events, a quarter of it for blocks, and what the program needs anyway; a sanitizer needs its own.
        if TRAP:
            self.assertLess(peaks[1], 200)
        self.assertLess(peaks[1] - peaks[0], 48)


if __name__ == "__main__":
    main()
