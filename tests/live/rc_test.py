#!/usr/bin/env python3
"""Reliable connections between two processes: `weir send --service rc` and `weir run`, over memif and over a kernel interface.

What the sender saw acknowledged is in an event, intact and once, whatever the network did, in both directions.
usage: rc_test.py WEIR FROZEN_DISK_LIBRARY
"""

import json
import os
import struct
import subprocess
import sys

import live
from devices_test import PROFILES, needs

FROZEN_DISK = None

CONFIG = """
[[port]]
name = "det0"
device = "{device}"
profile = "{profile}"
address = "10.1.0.2/24"
mtu = 9000

[[stream]]
port = "det0"
transport = "roce"
format = "message"
event = "immediate"
qp = [0x11, 0x12]
service = "{service}"
{keys}
[events]
sources = 2
memory = "{memory}"
timeout_ms = 30000

[[sink]]
kind = "events"
path = "unused"

[lcores]
rx = [0]
build = [0]
work = [0]
idle = "sleep"
"""
REGION = 'region = {{ va = 0x10000000, bytes = "16MiB", rkey = {rkey}, count = 2, stride = 0x10000000 }}\n'
PEERS = "peer = [{ qp = 0x21 }, { qp = 0x22 }]\n"
ROWS = 64  # of a JUNGFRAU module, read out by the frames
FAULTS = ("--drop", 0.01, "--duplicate", 0.01, "--truncate", 0.005, "--corrupt", 0.005, "--reorder", 2)


class RcTest(live.Case):
    def start(self, device, service="rc", memory="64MiB", rkey="0x1234", peers=PEERS, **more):
        keys = REGION.format(rkey=rkey) + (peers if service == "rc" else "")
        run = self.weir(CONFIG.format(device=device, profile=PROFILES / f"{device.split(',')[0].rstrip('0')}.toml", service=service, keys=keys, memory=memory), "--duration", live.PATIENCE_S, **more)
        run.wait_running()
        return run

    def memif(self):
        needs("net_memif")
        socket = self.folder / "rc.sock"
        return f"net_memif0,socket={socket},socket-abstract=no", f"device:net_memif0,role=client,id=0,socket={socket},socket-abstract=no"

    def send_rc(self, to, *options, status=0, where=(), transport="roce-write", retry=50):
        report = self.folder / "sent.json"
        command = [*where, live.Weir.program, "send", "--format", "message", "--transport", transport, "--service", "rc", "--sources", 2,
                   "--local-qp", "0x21", "--seed", 5, "--digests", "--timeout", 20, "--retry", retry, "--report", report, *options, "--to", to]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(report.read_text()), done.stdout

    def check(self, run, sent, events):
        """Everything that was acknowledged, all of it, and each once."""
        run.stop()
        report = run.end()
        self.assert_account(run)
        self.assertEqual(sent["messages"], {"posted": 2 * events, "acknowledged": 2 * events, "failed": 0})
        self.assertEqual(sent["events"]["acknowledged"], [1, events])
        self.assertEqual(report["events"]["complete"], events)
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        self.assertEqual(sorted(event["id"] for event in inspected["events"]), list(range(1, events + 1)))
        self.assertEqual({str(event["id"]): event["sha256"] for event in inspected["events"]}, sent["digests"])
        return report

    def test_writes_over_memif_with_losses_both_ways(self):
        device, to = self.memif()
        run = self.start(device)
        sent, said = self.send_rc(to, "--events", 60, "--bytes", 30000, "--mtu", 1024, *FAULTS, "--drop-answers", 0.02)
        run.wait_received(sent["packets"]["sent"])  # what was sent again, too
        report = self.check(run, sent, 60)
        self.assertGreater(sent["packets"]["dropped"], 0)
        self.assertGreater(sent["recovery"]["answers_dropped"], 0)
        self.assertGreater(sent["recovery"]["retransmitted"], sent["packets"]["dropped"])
        self.assertIn("120 acknowledged, 0 failed", said)
        # The link loses nothing, so both accounts agree to the packet.
        packets = report["packets"]
        self.assertEqual(packets["received"] - sum(packets["not_for_us"].values()), sent["packets"]["sent"])
        self.assertEqual(packets["placed"], sum(-(-event["bytes"] // 1024) for event in self.messages(run)))

    @staticmethod
    def messages(run):
        return [source for event in run.inspect()["events"] for source in event["sources"]]

    def test_sends_over_a_kernel_interface(self):
        needs("net_af_packet")
        network = live.Network()
        self.addCleanup(network.close)
        run = self.start("net_af_packet0,iface=det0")
        sent, _ = self.send_rc("device:net_af_packet0,iface=gen0", "--events", 40, "--bytes", 30000, "--psn", 0xffffc0, *FAULTS,
                               "--drop-answers", 0.02, where=network.there(), transport="roce-send")
        self.check(run, sent, 40)

    def frames(self, service, *faults):
        """JUNGFRAU frames by WRITE over memif, through conversion; returns the run and the sender's account."""
        device, to = self.memif()
        g0, g1, g2 = (self.folder / f"g{gain}.f32" for gain in range(3))
        for name, value in ((g0, 2700), (g1, 13600), (g2, 13600)):
            name.write_bytes(struct.pack("<f", value) * (512 * 1024))
        regions = ", ".join(f'{{ va = {0x10000000 * (i + 1):#x}, bytes = {48 + ROWS * 2048}, rkey = 0x1234, count = 8, backing = "memory", qp = {0x11 + i} }}'
                            for i in range(2))
        keys = f"region = [{regions}]\nrows = {ROWS}\n" + (PEERS if service == "rc" else "")
        text = CONFIG.format(device=device, profile=PROFILES / "net_memif.toml", service=service, keys=keys, memory="64MiB")
        text = text.replace('format = "message"\nevent = "immediate"', 'format = "jungfrau"').replace("timeout_ms = 30000", "timeout_ms = 5000")
        text += f'[[reduce]]\nkind = "jungfrau"\npedestal = [["{g0}", "{g0}"], ["{g1}", "{g1}"], ["{g2}", "{g2}"]]\ngain = [41.0, -1.439, -0.1145]\n'
        run = self.weir(text, "--duration", live.PATIENCE_S)
        run.wait_running()
        report = self.folder / "sent.json"
        command = [live.Weir.program, "send", "--format", "jungfrau", "--rows", ROWS, "--transport", "roce-write", "--service", service, "--sources", 2, "--regions", 8,
                   "--events", 60, "--seed", 5, "--report", report, *faults, "--to", to]
        if service == "rc":
            command += ["--local-qp", "0x21", "--timeout", 20, "--retry", 50]
        else:
            command += ["--rate", 200]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        sent = json.loads(report.read_text())
        if service == "uc":
            run.wait_received(sent["packets"]["sent"])
        run.stop()
        run.end()
        self.assert_account(run)
        self.assertTrue(run.inspect()["verified"])
        return run, sent

    def test_frames_by_write_are_whole_whatever_is_lost(self):
        run, sent = self.frames("rc", *FAULTS, "--drop-answers", 0.02)
        self.assertGreater(sent["packets"]["dropped"], 0)
        self.assertEqual(sent["events"]["whole"], 60)
        self.assertEqual(run.report["events"]["complete"], 60)
        reduced = run.report["reduce"][0]
        self.assertEqual((reduced["kind"], reduced["events"], reduced["missing_pixels"], reduced["refused_size"]), ("jungfrau", 60, 0, 0))

    def test_frames_by_write_without_acknowledgement_have_the_gaps_they_have(self):
        run, sent = self.frames("uc", "--drop", 0.01)
        report, lost = run.report, sent["packets"]["dropped"]
        self.assertGreater(lost, 5)
        self.assertEqual(report["packets"]["received"] - sum(report["packets"]["not_for_us"].values()), sent["packets"]["sent"])
        for event in run.inspect()["events"]:
            self.assertEqual(event["complete"], all(not source["missing"] for source in event["sources"]) and len(event["sources"]) == 2)
        whole = sent["events"]["whole"]
        self.assertLessEqual(report["events"]["complete"], whole)
        self.assertGreater(report["events"]["complete"], whole / 2)
        self.assertGreater(report["events"]["incomplete"]["ended"], 0)
        self.assertGreater(report["reduce"][0]["missing_pixels"], 0)

    def example(self, name):
        return (live.ROOT / f"examples/live-{name}.toml").read_text().replace('"../pmd-config/', f'"{PROFILES}/')

    def test_the_example_and_what_it_says_to_send(self):
        needs("net_af_packet")
        network = live.Network()
        self.addCleanup(network.close)
        run = self.weir(self.example("roce-rc"), "--duration", live.PATIENCE_S)
        run.wait_running()
        sent, _ = self.send_rc("device:net_af_packet0,iface=gen0", "--events", 30, "--bytes", 60000, "--mtu", 4096, "--va", "0x10000000", "--rkey",
                               "0x1234", where=network.there())
        self.check(run, sent, 30)

    def test_queue_pairs_are_agreed_on_as_perftest_does(self):
        device, to = self.memif()
        text = self.example("perftest").replace('"net_af_packet0,iface=det0"', f'"{device}"').replace("net_af_packet.toml", "net_memif.toml")
        run = self.weir(text, "--duration", live.PATIENCE_S)
        run.wait_running()
        for _ in range(2):  # one client after the other: its queue pair is another's when it has gone
            report = self.folder / "sent.json"
            done = subprocess.run([live.Weir.program, "send", "--format", "message", "--transport", "roce-write", "--service", "rc", "--sources", "1",
                                   "--bytes", "30000", "--mtu", "4096", "--events", "20", "--connect", "127.0.0.1", "--report", str(report), "--to", to],
                                  capture_output=True, text=True, timeout=live.PATIENCE_S)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(json.loads(report.read_text())["messages"], {"posted": 20, "acknowledged": 20, "failed": 0})
        run.stop()
        report = run.end()
        self.assert_account(run)
        self.assertEqual(report["events"]["complete"], 40)
        self.assertTrue(run.inspect()["verified"])
        self.assertEqual([event["id"] for event in run.inspect()["events"]], list(range(40)))

    def test_a_frozen_disk_holds_the_sender_up_and_loses_nothing(self):
        device, to = self.memif()
        frozen = self.folder / "frozen"
        self.addCleanup(frozen.unlink, missing_ok=True)
        environment = {**os.environ, "LD_PRELOAD": FROZEN_DISK, "WEIR_FROZEN": str(frozen)}
        run = self.start(device, memory="16MiB", environment=environment)
        frozen.touch()
        sender = live.threading.Thread(target=lambda: self.sent.append(self.send_rc(to, "--events", 400, "--bytes", 65536, "--bytes-min", 65536)))
        self.sent = []
        sender.start()
        run.wait_progress(lambda one: one["packets"]["dropped"]["roce.not_ready"] > 0, "sender that is told to wait")
        self.assertTrue(sender.is_alive(), "52 MB do not go into a memory of 16 MiB")
        frozen.unlink()
        sender.join(live.PATIENCE_S)
        self.assertEqual(len(self.sent), 1)
        sent = self.sent[0][0]
        self.assertGreater(sent["recovery"]["rnr_waits"], 0)
        report = self.check(run, sent, 400)
        self.assertEqual(report["packets"]["dropped"].get("no_room", 0), 0)
        self.assertGreater(report["packets"]["dropped"]["roce.not_ready"], 0)

    def test_a_wrong_key_fails_and_says_why(self):
        device, to = self.memif()
        run = self.start(device, rkey="0x77")
        sent, said = self.send_rc(to, "--events", 3, status=1)
        self.assertEqual(sent["messages"]["acknowledged"], 0)
        self.assertEqual({source["failed_by"] for source in sent["sources"]}, {"access_error"})
        self.assertIn("FAILED: access_error", said)
        run.stop()
        report = run.end()
        self.assert_account(run)
        self.assertEqual(report["packets"]["dropped"]["roce.access"], 2)
        self.assertEqual(report["events"]["opened"], 0)

    def test_answers_for_a_queue_pair_that_nobody_has_are_named_on_both_sides(self):
        device, to = self.memif()
        run = self.start(device, peers=PEERS.replace("0x2", "0x5"))
        sent, said = self.send_rc(to, "--events", 3, retry=8, status=1)
        self.assertEqual(sent["messages"]["acknowledged"], 0)
        self.assertEqual(sent["recovery"]["answers"], 0)
        self.assertGreater(sent["recovery"]["stray_answers"], 0)
        self.assertIn(sent["recovery"]["stray_qp"], (0x51, 0x52))
        self.assertIn("ANSWERS CAME FOR QUEUE PAIR 0x5", said)
        self.assertIn("ours begin with 0x21", said)
        run.stop()
        report = run.end()
        self.assert_account(run)
        said = [found["sentence"] for found in report["findings"] if "hears no acknowledgement" in found["sentence"]]
        self.assertEqual(len(said), 2)
        self.assertIn("weir answers to queue pair 0x51", said[0])

    def test_unreliable_connections_account_for_every_loss(self):
        device, to = self.memif()
        run = self.start(device, service="uc")
        sent = self.send("--format", "message", "--transport", "roce-write", "--sources", 2, "--events", 200, "--bytes", 30000, "--seed", 6, "--drop",
                         0.01, "--to", to)
        run.wait_received(sent["packets"]["sent"])  # nobody acknowledges
        run.stop()
        report = run.end()
        self.assert_account(run, sent=sent["packets"]["sent"])
        self.assertGreater(sent["events"]["damaged"], 0)
        self.assertEqual(report["events"]["complete"], sent["events"]["whole"])
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        self.assertEqual(sum(event["complete"] for event in inspected["events"]), sent["events"]["whole"])


if __name__ == "__main__":
    FROZEN_DISK = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
    live.main(sandbox_required=True, more_arguments=1)
