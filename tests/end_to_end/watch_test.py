#!/usr/bin/env python3
"""Watching a run: the progress line on terminals of several widths, JSON lines, silence in pipes; and the plain words at its end, with
real causes made by the simulated detector or by hand."""
import fcntl
import json
import os
import pty
import re
import struct
import termios

from packets import EJFAT_PORT, UC, START_NS, ejfat, jungfrau, pcap_bytes, roce, stamped, udp
from support import ROOT, WEIR, Case, config, main, stream, weir

EJFAT = config(stream(format="ejfat", sources=1), sources=1)
TWO = config(stream())


def live(device="sim,format=jungfrau,rate=40,events=50"):
    return config(stream(), events='memory = "64MiB"\n', sink='kind = "null"', more='[lcores]\nidle = "sleep"\n').replace("net_null0", device)


class Progress(Case):
    def run_live(self, *args, text=None, **options):
        return weir("run", "--config", self.path("c.toml", text or live()), "--report", self.path("r.json"), *args, **options)

    def counters(self, value, path=""):
        """Every number that may only grow, by its place."""
        for key, inner in value.items():
            if isinstance(inner, dict):
                yield from self.counters(inner, f"{path}.{key}")
            elif isinstance(inner, int) and not isinstance(inner, bool) and key != "in_flight":
                yield f"{path}.{key}", inner

    def check_lines(self, lines):
        lines = [json.loads(line) for line in lines]
        self.assertGreaterEqual(len(lines), 2)
        self.assertEqual([line["final"] for line in lines], [False] * (len(lines) - 1) + [True])
        before = {}
        for line in lines:
            now = {name: value for part in ("packets", "bytes", "messages", "events") for name, value in self.counters(line[part], part)}
            for name, value in before.items():
                self.assertGreaterEqual(now[name], value, name)
            before = now
            self.assertEqual(set(line["levels"]), {"buffers", "memory", "open", "queued", "writer", "rings"})
            self.assertEqual(set(line["rates"]), {"packets_per_s", "gbps", "events_per_s", "sink_bytes_per_s"})
        times = [line["time_s"] for line in lines]
        self.assertEqual(times, sorted(times))
        report = json.loads(self.path("r.json").read_text())
        for key in ("packets", "bytes", "messages", "events", "sources", "devices", "device_missed", "wire_loss", "balanced"):
            self.assertEqual(lines[-1][key], report[key], key)
        self.assertEqual(lines[-1]["packets"]["received"], 50 * 256)
        self.assertGreater(lines[0]["packets"]["received"], 0)

    def test_json_lines(self):
        done = self.run_live("--progress", "json", "--quiet")
        self.assertEqual(done.stdout, "")
        self.check_lines(done.stderr.splitlines())

    def test_json_lines_to_a_file(self):
        done = self.run_live("--progress", f"json:{self.path('p.jsonl')}")
        self.check_lines(self.path("p.jsonl").read_text().splitlines())
        self.assertNotIn("{", done.stderr)
        failed = self.run_live("--progress", f"json:{self.path('no')}/p", status=1)
        self.assertIn("No such file", failed.stderr)

    def test_silent_in_pipes_unless_asked(self):
        text = live("sim,format=jungfrau,rate=40,events=45")
        self.assertNotIn("packets/s", self.run_live(text=text).stderr)
        self.assertIn("packets/s", self.run_live("--progress", "line", text=text).stderr)
        self.assertIn("accepted: auto", self.run_live("--progress", "loud", status=2).stderr)

    def test_a_terminal_has_one_line_that_fits(self):
        # Both at once, because each takes its second.
        settings = self.path("c.toml", live("sim,format=jungfrau,rate=40,events=45"))
        terminals = []
        for width in (52, 140):
            process, terminal = pty.fork()
            if process == 0:
                fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
                os.execv(WEIR, ["weir", "run", "--config", str(settings)])
            terminals.append((width, process, terminal))
        for width, process, terminal in terminals:
            output = b""
            while True:
                try:
                    output += os.read(terminal, 65536)
                except OSError:
                    break
            os.close(terminal)
            self.assertEqual(os.waitpid(process, 0)[1], 0)
            rewritten = re.findall(r"\r([^\r\n]*packets/s[^\r\n]*)\x1b\[K", output.decode())
            self.assertGreaterEqual(len(rewritten), 1, output)
            for line in rewritten:
                self.assertLess(len(line), width)
            self.assertEqual("memory" in rewritten[0], width > 100, rewritten)


class Words(Case):
    def findings(self, frames, text, *words, section, counter, args=(), first=True):
        """Replays; the first finding must have these words, and must be on the terminal too."""
        records = [f if isinstance(f, tuple) else (START_NS + i * 1000, f) for i, f in enumerate(frames)]
        result = self.replay(self.path(f"c{self.runs}.pcap", pcap_bytes(records)), text, *args)
        return self.check(result, *words, section=section, counter=counter, first=first)

    def check(self, result, *words, section, counter, first=True):
        found = result.report["findings"]
        self.assertGreater(len(found), 0, result.output)
        mine = [f for f in (found[:1] if first else found) if f["page"] == f"docs/guides/LOSSES.md#{section}"]
        self.assertEqual(len(mine), 1, found)
        self.assertEqual(mine[0]["counter"], counter)
        for word in words:
            self.assertIn(word, mine[0]["sentence"])
        self.assertIn(mine[0]["sentence"], result.output)
        self.assertIn(f"\n## {section}\n", (ROOT / "docs/guides/LOSSES.md").read_text())
        self.assertIn("Read on", weir("explain", mine[0]["counter"], trap=False).stdout)
        self.assertEqual([f["packets"] for f in found if f["loss"]], sorted((f["packets"] for f in found if f["loss"]), reverse=True))
        return mine[0]

    def sent(self, *args):
        self.runs += 1
        return self.send(f"s{self.runs}.pcap", "--sources", 2, *args)

    def test_a_source_that_sends_to_another_port(self):
        capture, _ = self.sent("--events", 8)
        result = self.replay(capture, TWO.replace("50002", "50007"))
        self.check(result, "source 1", "sent nothing", "UDP port 50002 from 10.1.0.11 (1024 packets)", section="silent-source",
                   counter="events.incomplete.timeout")

    def test_all_to_other_ports(self):
        capture, _ = self.sent("--events", 3)
        result = self.replay(capture, TWO.replace("50001", "50011").replace("50002", "50012"), status=1)
        self.check(result, "768 packets came, and none for a configured stream", "UDP port 5000", section="silent-source",
                   counter="packets.unsteered", first=False)

    def test_another_queue_pair(self):
        frames = [roce(UC.send_only, n, b"data", qp=0x99) for n in range(5)]
        self.findings(frames, config(stream("roce", "message", sources=1), sources=1), "none for a configured stream",
                      "queue pair 153 from", section="silent-source", counter="packets.unsteered", args=["--allow-empty"])

    def test_loss_on_the_way(self):
        capture, account = self.sent("--events", 10, "--drop", 0.02, "--seed", 3, "--rate", 5)
        finding = self.check(self.replay(capture, TWO.replace("timeout_ms = 2000", "timeout_ms = 300")), "never came", "every source misses some",
                             section="missing", counter="events.incomplete.timeout")
        self.assertEqual(finding["packets"], account["packets"]["dropped"])

    def test_loss_of_one_source(self):
        frames = [udp(jungfrau(n, p), 50001 + m) for n in range(1, 4) for p in range(128) for m in (0, 1) if m == 0 or p % 16 != n]
        self.findings(frames, TWO, "24 of 24 are of source 1 (det0 udp 50002)", section="missing", counter="events.incomplete.timeout")

    def test_late_beyond_the_timeout(self):
        second = 10**9
        records = [(START_NS, udp(ejfat(1, b"1234", total=8), EJFAT_PORT)), (START_NS + 3 * second, udp(ejfat(2, b"x"), EJFAT_PORT)),
                   (START_NS + 3 * second, udp(ejfat(1, b"5678", offset=4, total=8), EJFAT_PORT))]
        self.findings(records, EJFAT, "1 event timed out after 2000 ms", section="late", counter="dropped.late")

    def test_evictions(self):
        text = config(stream(format="ejfat", sources=1), sources=1, events="window = 2\n")
        halves = [ejfat(n, b"1234", total=8) for n in range(1, 6)] + [ejfat(n, b"5678", offset=4, total=8) for n in range(1, 4)]
        self.findings([udp(half, EJFAT_PORT) for half in halves], text, "3 events had been evicted", "limit: window; 2 open at most",
                      section="evicted", counter="dropped.late")

    def test_wrong_geometry(self):
        frames = [udp(jungfrau(1, p)[:4144], 50001) for p in range(9)]
        self.findings(frames, TWO, "wrong length", "4144 bytes in a stream of jungfrau (9 packets)", section="geometry",
                      counter="dropped.malformed.payload_length", first=False)

    def test_another_format(self):
        self.findings([udp(b"no such header, but long enough", EJFAT_PORT)] * 3, EJFAT, "do not begin with a header", section="geometry",
                      counter="dropped.malformed.header", first=False)

    def test_a_short_snap_length(self):
        frames = [(START_NS + n, udp(ejfat(n, bytes(500)), EJFAT_PORT)[:96], 600) for n in range(4)]
        self.findings(frames, EJFAT, "snap length", section="cut-frames", counter="dropped.malformed.truncated", first=False)

    def test_a_sender_without_icrc(self):
        frames = [roce(UC.send_only, n, b"data", bad_crc=True) for n in range(4)]
        self.findings(frames, config(stream("roce", "message", sources=1), sources=1), "none a right one", section="icrc",
                      counter="dropped.malformed.bad_icrc", first=False)

    def test_a_lossless_run_has_nothing_to_say(self):
        capture, _ = self.sent("--events", 3)
        result = self.replay(capture, TWO)
        self.assertEqual(result.report["findings"], [])
        self.assertIn("lossless  yes: all 3 events from number 1 to 3 came and are complete", result.output)


if __name__ == "__main__":
    main()
