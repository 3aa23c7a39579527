#!/usr/bin/env python3
"""Several queues of a port, each on an rx lcore of its own, and frames in several buffers. Which queue a packet comes through
is the device's affair: what belongs to another rx lcore goes there, and the events are the same.

usage: queues_test.py WEIR
"""

import re
import struct

import live
from devices_test import needs

OPTIONS = ("--sources", 3, "--events", 4, "--seed", 9)  # few enough for the rings between lcores, however slow these are
LCORES = '\n[lcores]\nrx = {}\nbuild = {}\nwork = {}\nidle = "sleep"\n'


def config(device, queues=1, lcores="", mtu=9000, streams='udp_dst = "50001-50003"\nformat = "jungfrau"', sources=3, more=""):
    return (f'[[port]]\nname = "det0"\ndevice = "{device}"\nqueues = {queues}\nmtu = {mtu}\n{more}\n[[stream]]\nport = "det0"\ntransport = "udp"\n'
            f'{streams}\n[events]\nsources = {sources}\nmemory = "64MiB"\ntimeout_ms = 20000\n[[sink]]\nkind = "events"\npath = "unused"\n{lcores}')


def records(capture):
    data = capture.read_bytes()
    at = 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at:at + 16 + length]
        at += 16 + length


class Case(live.Case):
    def capture(self, *options):
        path = self.folder / "all.pcap"
        return path, self.send(*options, "--to", path)["packets"]["sent"]

    def split(self, capture, parts):
        """The packets of a capture, dealt out to captures: none of them has all packets of a source."""
        head = capture.read_bytes()[:24]
        files = [self.folder / f"part{i}.pcap" for i in range(parts)]
        for i, file in enumerate(files):
            file.write_bytes(head + b"".join(r for n, r in enumerate(records(capture)) if n // 5 % parts == i))
        return files

    def check(self, run, sent, options, text, expected=None):
        report = run.end()
        self.assert_account(run, sent=sent)
        self.assertEqual(report["packets"]["placed"], sent)
        self.assertEqual(sum(report["packets"]["dropped"].values()), 0)
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        numbers = [(event["epoch"], event["id"]) for event in inspected["events"]]
        self.assertEqual(numbers, sorted(numbers))
        expected = expected or self.expected(text, options)
        self.assertEqual({event["id"]: event["sha256"] for event in inspected["events"]}, expected)
        return report

    def expected(self, text, options):
        """Of a replay on one lcore."""
        text = re.sub(r'(?m)^device = .*\n', 'device = "net_null0"\n', re.sub(r"(?s)\[lcores\].*idle[^\n]*", "", text))
        return self.expected_digests(re.sub(r"(?m)^(queues|mtu|mbuf_bytes) = .*\n", "", text), *options)


class QueuesTest(Case):
    def test_streams_that_come_through_any_queue(self):
        needs("net_pcap")
        capture, sent = self.capture(*OPTIONS)
        expected = self.expected(config("net_null0"), OPTIONS)
        for queues, lcores in ((2, LCORES.format([0, 1], [2], [3])), (4, LCORES.format([0, 1], [0, 1], [1])),
                               (2, LCORES.format([2, 3, 4], [5, 6], [7, 8]))):
            with self.subTest(queues=queues, lcores=lcores):
                files = self.split(capture, queues)
                device = ",".join(["net_pcap0", *(f"rx_pcap={file}" for file in files)])
                text = config(device, queues, lcores)
                run = self.weir(text, "--idle-exit", 5, "--duration", live.PATIENCE_S, name=f"run{queues}{len(lcores)}")
                self.check(run, sent, OPTIONS, text, expected)

    def test_more_queues_than_the_device_has(self):
        needs("net_pcap")
        capture, _ = self.capture("--sources", 1, "--events", 1)
        run = self.weir(config(f"net_pcap0,rx_pcap={capture}", 3), "--duration", 5)
        run.end(status=1)
        self.assertIn("3 queues are configured, the device has at most 1", run.errors)

    def test_fanout_of_a_packet_socket(self):
        needs("net_af_packet", root=True)
        network = live.Network()
        self.addCleanup(network.close)
        device = "net_af_packet0,iface=det0,qpairs=2,framesz=16384,blocksz=65536,framecnt=2048"  # room for all that is sent
        text = config(device, 2, LCORES.format([0, 1], [2, 3], [4]), more=f'address = "{live.RECEIVER}/24"\nmbuf_bytes = 16640')
        run = self.weir(text, "--duration", live.PATIENCE_S)
        run.wait_running()
        options = ("--sources", 3, "--events", 4, "--seed", 9)
        sent = self.send(*options, "--rate", 10, "--to", f"udp:{live.RECEIVER}:50001", where=network.there())
        run.wait_received(sent["packets"]["sent"])
        run.stop()
        report = self.check(run, sent["packets"]["sent"], options, text)
        self.assertGreaterEqual(report["packets"]["not_for_us"]["arp"], 1)  # and it was answered: the sender found the way


class SegmentsTest(Case):
    """Buffers of 1.5 KiB for frames of 8 KiB."""

    def test_from_a_capture(self):
        needs("net_pcap")
        capture, sent = self.capture(*OPTIONS)
        text = config(f"net_pcap0,rx_pcap={capture}", 1, LCORES.format([0, 1], [0, 1], [1]), mtu=1500)
        self.check(self.weir(text, "--idle-exit", 5, "--duration", live.PATIENCE_S), sent, OPTIONS, text)

    def test_headers_in_several_buffers(self):
        needs("net_pcap")
        # 300 bytes of header, and buffers of 128 bytes: it ends in the third or fourth.
        file = self.folder / "h.toml"
        form = ('[[format]]\nname = "long"\nheader_bytes = 300\nevent = { offset = 290, bytes = 8 }\nindex = { offset = 0, bytes = 4 }\n'
                'payload_bytes = 1000\npackets = 7\n')
        options = ("--config", file, "--format", "long", "--sources", 2, "--events", 12, "--seed", 3, "--reorder", 10)
        text = config(f"net_pcap0,rx_pcap={self.folder / 'all.pcap'}", mtu=68, streams='udp_dst = "50001-50002"\nformat = "long"', sources=2) + form
        file.write_text(form)
        _, sent = self.capture(*options)
        self.check(self.weir(text, "--idle-exit", 5, "--duration", live.PATIENCE_S), sent, options, text)

    def test_from_a_guest(self):
        needs("net_vhost")
        needs("net_virtio")
        path = self.folder / "v.sock"
        text = config(f"net_vhost0,iface={path}", mtu=1500)
        run = self.weir(text, "--duration", live.PATIENCE_S)
        run.wait_running()
        sent = self.send(*OPTIONS, "--rate", 60, "--to", f"device:net_virtio_user0,path={path},queue_size=256")["packets"]["sent"]
        run.wait_quiet()
        run.stop()
        report = run.end()
        self.assert_account(run)
        # What is still in the queue when the sender leaves goes with it.
        self.assertEqual(report["packets"]["placed"], report["packets"]["received"])
        self.assertGreater(report["packets"]["placed"], sent / 2)
        self.assertLessEqual(report["packets"]["placed"], sent)
        expected = self.expected(text, OPTIONS)
        whole = {event["id"]: event["sha256"] for event in run.inspect()["events"] if event["complete"]}
        self.assertGreater(len(whole), 0)
        self.assertEqual(whole, {number: expected[number] for number in whole})


if __name__ == "__main__":
    live.main(sandbox_required=True)
