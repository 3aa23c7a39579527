#!/usr/bin/env python3
"""A capture onto a wire and into `weir run`: by memif, and by a socket over a virtual cable. The events are those of the capture
replayed directly, which `weir diff` says. usage: resend_test.py WEIR"""

import json
import re
import signal
import subprocess
import unittest

import live
from devices_test import PROFILES, needs

JUNGFRAU = ("--sources", 2, "--events", 12, "--seed", 4, "--rate", 40)


class Resend(live.Case):
    def example(self, name, *replacements):
        text = live.patient((live.ROOT / f"examples/live-{name}.toml").read_text())
        for old, new in (('"../pmd-config/', f'"{PROFILES}/'), *replacements):
            self.assertIn(old, text)
            text = text.replace(old, str(new))
        return text

    def resend(self, capture, *options, where=()):
        report = self.folder / "wire.json"
        done = subprocess.run([*where, live.Weir.program, "replay", str(capture), *map(str, options), "--report", str(report)], capture_output=True,
                              text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads(report.read_text())
        self.assertTrue(found["balanced"])
        return found

    def same_as_direct(self, run, capture):
        """What came over the wire is what is in the capture."""
        text = re.sub(r'(?m)^(device = ).*\n(profile = .*\n)?', r'\1"net_null0"\n', (self.folder / f"{run.out.name}.toml").read_text())
        config = self.folder / "direct.toml"
        config.write_text(text)
        direct = self.folder / f"{run.out.name}-direct"
        subprocess.run([live.Weir.program, "replay", str(capture), "--config", str(config), "--out", str(direct), "--quiet"], check=True, timeout=live.PATIENCE_S)
        done = subprocess.run([live.Weir.program, "diff", str(run.out), str(direct)], capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("12 events in both: 12 the same, 0 not", done.stdout)

    def test_memif(self):
        needs("net_memif")
        self.send(*JUNGFRAU, "--to", self.folder / "c.pcap")
        live.repeated(self.by_memif)

    def by_memif(self, attempt):
        """The driver of DPDK 22.11 unmaps what its lcore may be reading in that moment when the other side leaves."""
        capture, path = self.folder / "c.pcap", self.folder / f"m{attempt}.sock"
        run = self.weir(self.example("memif", ("/tmp/weir-memif.sock", path)), "--duration", live.PATIENCE_S, name=f"run{attempt}")
        run.wait_running()
        found = self.resend(capture, "--to", f"device:net_memif0,role=client,id=0,socket={path},socket-abstract=no,rsize=11,bsize=10240")
        complete = lambda: any(one["events"]["complete"] == 12 for one in run.objects())
        live.wait_for(lambda: complete() or run.process.poll() is not None, "complete events")
        if run.process.poll() == -signal.SIGSEGV:
            raise live.Disturbed("the driver ended the process when the other side left")
        self.assertTrue(complete(), "\n".join(run.lines[-10:]))
        run.stop()
        run.end()
        self.assert_account(run, sent=found["packets"]["sent"])
        self.assertEqual(found["packets"]["sent"], 12 * 2 * 128)
        self.same_as_direct(run, capture)

    def test_socket(self):
        needs("net_af_packet")
        network = live.Network()
        self.addCleanup(network.close)
        capture = self.folder / "c.pcap"
        self.send(*JUNGFRAU, "--to", capture)
        run = self.weir(self.example("af-packet", ('net_af_packet0,iface=det0"', 'net_af_packet0,iface=det0,framecnt=8192"')), "--events", 12, "--duration", live.PATIENCE_S)
        run.wait_running()
        found = self.resend(capture, "--to", f"udp:{live.RECEIVER}", "--pace", "x0.2", where=network.there())
        self.assertEqual(found["packets"]["sent"], 12 * 2 * 128)
        run.end()
        self.same_as_direct(run, capture)


if __name__ == "__main__":
    live.main(sandbox_required=True)
