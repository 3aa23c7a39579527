#!/usr/bin/env python3
"""`weir replay --to`: captures onto a wire. What comes out is caught by a socket, or in the file of a net_pcap device, and held
against the capture; checksums are computed here, and not with weir's code."""
import json
import os
import signal
import socket
import struct
import subprocess
import zlib

from packets import (EJFAT_PORT, START_NS, UC, datagram, ejfat, ethernet, ipv4, ones_sum, pcap_bytes, pcapng_bytes, roce, roce_message,
                     stamped, udp)
from support import ROOT, TIMEOUT_S, WEIR, Case, config, main, stream, weir

NULL = "device:net_null0"


def read_any_pcap(path):
    """(time in ns, frame) of a pcap in microseconds or nanoseconds, as DPDK writes them."""
    data = path.read_bytes()
    unit = {0xa1b23c4d: 1, 0xa1b2c3d4: 1000}[struct.unpack_from("<I", data)[0]]
    at, records = 24, []
    while at < len(data):
        seconds, fraction, captured, _ = struct.unpack_from("<IIII", data, at)
        records.append((seconds * 10**9 + fraction * unit, data[at + 16:at + 16 + captured]))
        at += 16 + captured
    return records


def ipv6(payload, protocol=17, source="fd00::10", target="fd00::2"):
    pack = lambda text: socket.inet_pton(socket.AF_INET6, text)
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + pack(source) + pack(target) + payload


def checked_datagram(payload, port, addresses, source_port=30000):
    """UDP with its checksum."""
    head = struct.pack("!HHHH", source_port, port, 8 + len(payload), 0)
    pseudo = addresses + struct.pack("!II", 8 + len(payload), 17)
    value = 0xffff ^ ones_sum(pseudo + head + payload + bytes(len(payload) % 2))
    return head[:6] + struct.pack("!H", value or 0xffff) + payload


def right_checksums(frame, at=14):
    """Whether IPv4 header and UDP checksums of this packet are right."""
    if frame[at] >> 4 == 4:
        if ones_sum(frame[at:at + 20]) != 0xffff:
            return False
        body, addresses = frame[at + 20:at + struct.unpack_from("!H", frame, at + 2)[0]], frame[at + 12:at + 20]
    else:
        body, addresses = frame[at + 40:at + 40 + struct.unpack_from("!H", frame, at + 4)[0]], frame[at + 8:at + 40]
    if body[6:8] == bytes(2):
        return True
    return ones_sum(addresses + struct.pack("!II", len(body), 17) + body + bytes(len(body) % 2)) == 0xffff


def right_icrc(frame):
    covered = bytearray(frame[14:-4])
    for at in (1, 8, 10, 11, 26, 27, 32):
        covered[at] = 0xff
    return struct.pack("<I", zlib.crc32(bytes(8 * [0xff]) + covered)) == frame[-4:]


class Wire(Case):
    def out(self, captures, to, *args, status=0):
        """`weir replay --to`; returns the report, of which what holds for all is checked."""
        captures = captures if isinstance(captures, (list, tuple)) else [captures]
        self.runs += 1
        report = self.path(f"wire{self.runs}.json")
        done = weir("replay", *captures, "--to", to, "--report", report, *args, status=status)
        found = json.loads(report.read_text())
        packets = found["packets"]
        self.assertIs(found["balanced"], True)
        self.assertEqual(packets["read"], packets["sent"] + sum(packets["not_sent"].values()))
        if found["timing"]:
            self.assertEqual(sum(row[2] for row in found["timing"]["histogram_ns"]), packets["sent"])
            error = found["timing"]["error_ns"]
            self.assertLessEqual(error["min"], error["median"])
            self.assertLessEqual(error["median"], error["p99"])
            self.assertLessEqual(error["p99.9"], error["max"])
            for low, high, _ in found["timing"]["histogram_ns"]:
                self.assertTrue(high == 2 * low or (low, high) == (0, 1))
        found["said"] = done.stdout + done.stderr
        return found

    def through_device(self, records, *args, **more):
        """What a device got for the records of a capture: [(time, frame)], and the report."""
        capture = self.path(f"in{self.runs}.pcap", pcap_bytes(records))
        file = self.path(f"out{self.runs}.pcap")
        report = self.out(capture, f"device:net_pcap0,tx_pcap={file}", *args, **more)
        return read_any_pcap(file), report

    def events(self, count=10, size=600):
        return [udp(ejfat(n, bytes([n, s]) * (size // 2)), EJFAT_PORT + s) for n in range(1, count + 1) for s in range(2)]

    # --- whole frames ---

    def test_frames_are_the_same_and_keep_their_distances(self):
        frames = [udp(os.urandom(size), 50001, vlan=vlan) for size in (1, 18, 500, 1400, 8240) for vlan in ((), (7,), (7, 9))]
        records = [(START_NS + i * 20_000_000, frame) for i, frame in enumerate(frames)]
        caught, report = self.through_device(records)
        self.assertEqual([frame for _, frame in caught], frames)
        self.assertEqual(report["pace"], "recorded")
        self.assertAlmostEqual(report["seconds"]["intended"], 0.28, 9)
        worst = report["timing"]["error_ns"]["max"]
        for (sent, _), (wanted, _) in zip(caught, records):
            # Never early; late by no more than is reported. The device stamps by the TSC, some 0.2 % off.
            self.assertGreater(sent - caught[0][0], (wanted - START_NS) * 0.99 - worst - 1e6)
            self.assertLess(sent - caught[0][0], (wanted - START_NS) * 1.01 + worst + 1e6)

    def test_pace(self):
        records = stamped(self.events(), step_ns=10_000_000)  # 190 ms
        _, slow = self.through_device(records, "--pace", "x0.5")
        self.assertAlmostEqual(slow["seconds"]["intended"], 0.38, 9)
        self.assertGreater(slow["seconds"]["actual"], 0.38 - 1e-9 * slow["timing"]["error_ns"]["max"])
        _, fast = self.through_device([(START_NS + i * 10**12, frame) for i, (_, frame) in enumerate(records)], "--pace", "max")
        self.assertIsNone(fast["timing"])
        self.assertIsNone(fast["seconds"]["intended"])
        self.assertEqual(fast["packets"]["sent"], 20)

    def test_what_a_device_does_not_get(self):
        good = self.events(2)
        records = stamped(good)
        records += [(START_NS + 10_000, good[0][:100], len(good[0])), (START_NS + 11_000, udp(bytes(2000), 50001)), (START_NS + 12_000, b"short")]
        records += [(START_NS + 13_000, ethernet(bytes(46), 0x0806)), (START_NS + 14_000, udp(bytes(1472), 50001, vlan=(5, 6)))]
        caught, report = self.through_device(records, "--mtu", "1500")
        self.assertEqual([frame for _, frame in caught], good + [records[-2][1], records[-1][1]])
        not_sent = {name: count for name, count in report["packets"]["not_sent"].items() if count}
        self.assertEqual(not_sent, {"truncated": 1, "too_long": 1, "too_short": 1})
        self.assertIn("not sent 3\n    truncated 1: ", report["said"])
        page = (ROOT / "docs/guides/REPLAY_ONTO_A_WIRE.md").read_text()
        for name in report["packets"]["not_sent"]:
            self.assertIn(f"`{name}`", page)

    def test_captures_are_merged_cut_looped_and_compressed(self):
        frames = self.events(8)
        left, right = self.path("left.pcap", pcap_bytes(stamped(frames)[0::2])), self.path("right.pcapng", pcapng_bytes(stamped(frames)[1::2]))
        file = self.path("merged.pcap")
        report = self.out([left, right], f"device:net_pcap0,tx_pcap={file}", "--from", "+2us", "--to", "+6us", "--loop", "3")
        self.assertEqual([frame for _, frame in read_any_pcap(file)], frames[2:6] * 3)
        self.assertEqual((report["captures"]["passes"], report["captures"]["skipped"]), (3, 36))
        self.assertIn("repeated as they are", report["said"])
        cut = self.path("cut.pcap", pcap_bytes(stamped(frames))[:-5])
        report = self.out(cut, NULL)
        self.assertEqual(report["packets"]["sent"], 15)
        self.assertIn("cut.pcap", report["captures"]["warnings"][0])

    def test_events_of_what_was_sent_are_those_of_the_capture(self):
        records = stamped(self.events(50))
        caught, _ = self.through_device(records, "--pace", "max")
        text = config(stream(format="ejfat"), events="timeout_ms = 100\n")
        direct = self.replay(self.folder / "in0.pcap", text).run
        again = self.replay(self.path("again.pcap", pcap_bytes(caught)), text).run
        weir("diff", direct, again, trap=False)

    # --- other addresses ---

    def test_rewritten_frames_are_right(self):
        v4 = bytes([10, 1, 0, 10, 10, 1, 0, 2])
        v6 = socket.inet_pton(socket.AF_INET6, "fd00::10") + socket.inet_pton(socket.AF_INET6, "fd00::2")
        frames = [udp(os.urandom(100), 50001), ethernet(ipv4(checked_datagram(os.urandom(101), 50001, v4))),
                  ethernet(ipv4(checked_datagram(os.urandom(102), 50002, v4)), vlan=(7, 8)),
                  ethernet(ipv6(checked_datagram(os.urandom(103), 50001, v6)), 0x86dd), ethernet(bytes(46), 0x0806)]
        rewrite = "dst-mac=02:aa:00:00:00:01,src-mac=02:aa:00:00:00:02,dst-ip=192.168.3.4,src-ip=172.16.9.8,dst-ip=fd07::4,src-ip=fd07::8,dst-port=50001:60001"
        caught, report = self.through_device(stamped(frames), "--rewrite", rewrite)
        self.assertEqual(len(caught), 5)
        self.assertEqual(report["rewritten"]["changed"], 5)
        macs = bytes.fromhex("02aa00000001" "02aa00000002")
        new4 = socket.inet_aton("172.16.9.8") + socket.inet_aton("192.168.3.4")
        new6 = socket.inet_pton(socket.AF_INET6, "fd07::8") + socket.inet_pton(socket.AF_INET6, "fd07::4")
        for (_, got), frame, at, port in zip(caught, frames, (14, 14, 22, 14, 14), (60001, 60001, 50002, 60001, None)):
            self.assertEqual(got[:12], macs)
            self.assertEqual(got[12:at], frame[12:at])  # tags and all
            if port is None:
                self.assertEqual(got[12:], frame[12:])
                continue
            ip = 20 if got[at] >> 4 == 4 else 40
            self.assertEqual(got[at + 12:at + 20] if ip == 20 else got[at + 8:at + 40], new4 if ip == 20 else new6)
            self.assertEqual(struct.unpack_from("!H", got, at + ip + 2)[0], port)
            self.assertEqual(got[at + ip + 8:], frame[at + ip + 8:])
            self.assertTrue(right_checksums(got, at))
        self.assertEqual(caught[0][1][40:42], bytes(2))  # no checksum before, none after

    def test_rewritten_roce_and_fragments(self):
        payload = os.urandom(3000)
        frames = roce_message(payload, 5, immediate=7, mtu=1024)
        bad = roce(UC.send_only, 9, b"abcd", bad_crc=True)
        body = checked_datagram(os.urandom(1500), 50001, bytes([10, 1, 0, 10, 10, 1, 0, 2]))
        pieces = [ethernet(ipv4(body[:800], flags=0x2000)), ethernet(ipv4(body[800:], flags=100))]
        caught, report = self.through_device(stamped(frames + [bad] + pieces), "--rewrite", "dst-ip=10.9.8.7,src-ip=10.9.8.6,dst-port=50001:9")
        got = [frame for _, frame in caught]
        for before, after in zip(frames, got):
            self.assertTrue(right_icrc(before) and right_icrc(after))
            self.assertNotEqual(before[-4:], after[-4:])
            self.assertEqual(before[34:-4], after[34:-4])
        self.assertFalse(right_icrc(got[3]))
        self.assertEqual(report["rewritten"], {"changed": 6, "icrc_made_again": 3, "icrc_left_wrong": 1, "unreadable": 0})
        # Put together, the datagram is right under its new addresses.
        first, second = got[4], got[5]
        self.assertEqual((first[26:34], second[26:34]), (bytes([10, 9, 8, 6, 10, 9, 8, 7]),) * 2)
        whole = first[34:] + second[34:]
        self.assertEqual(struct.unpack_from("!H", whole, 2)[0], 9)
        self.assertEqual(ones_sum(first[26:34] + struct.pack("!II", len(whole), 17) + whole), 0xffff)
        self.assertEqual([ones_sum(frame[14:34]) for frame in (first, second)], [0xffff, 0xffff])

    # --- sockets ---

    def listen(self, family=socket.AF_INET, host="127.0.0.1", count=1):
        sockets = []
        for _ in range(count):
            one = socket.socket(family, socket.SOCK_DGRAM)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            one.bind((host, 0))
            one.settimeout(TIMEOUT_S)
            self.addCleanup(one.close)
            sockets.append(one)
        return sockets

    @staticmethod
    def waiting(one, count):
        got = [one.recv(65536) for _ in range(count)]
        one.setblocking(False)
        try:
            raise AssertionError(f"one datagram too many: {one.recv(65536)[:40]}")
        except BlockingIOError:
            return got

    def test_payloads_go_to_the_ports_of_the_capture(self):
        left, right = self.listen(count=2)
        ports = [one.getsockname()[1] for one in (left, right)]
        payloads = [os.urandom(size) for size in (1, 0, 1400, 8240, 20)]
        frames = [udp(payload, ports[i % 2], vlan=(3,) * (i % 3)) for i, payload in enumerate(payloads)]
        others = [ethernet(bytes(46), 0x0806), ethernet(ipv4(bytes(30), protocol=1)), ethernet(ipv4(bytes(30), protocol=6)), ethernet(bytes(50), 0x88cc),
                  ethernet(ipv4(datagram(bytes(100), ports[0], length=300))), ethernet(ipv4(bytes(64), flags=0x2000))]
        records = stamped(frames + others) + [(START_NS + 50_000, frames[2][:200], len(frames[2]))]
        report = self.out(self.path("c.pcap", pcap_bytes(records)), "udp:127.0.0.1")
        self.assertEqual(self.waiting(left, 3), payloads[0::2])
        self.assertEqual(self.waiting(right, 2), payloads[1::2])
        not_sent = {name: count for name, count in report["packets"]["not_sent"].items() if count}
        self.assertEqual(not_sent, {"arp": 1, "icmp": 1, "other_ip": 1, "not_ip": 1, "malformed": 1, "ip_fragment": 1, "truncated": 1})
        self.assertEqual(report["bytes"], {"sent": sum(map(len, payloads)), "of": "payload"})
        self.assertIn("source addresses and ports are this host's", report["said"])

    def test_one_port_for_all_and_some_for_others(self):
        one, = self.listen()
        port = one.getsockname()[1]
        capture = self.path("c.pcap", pcap_bytes(stamped([udp(b"a", 1000), udp(b"b", 2000)])))
        self.out(capture, f"udp:127.0.0.1:{port}")
        self.out(capture, "udp:127.0.0.1", "--rewrite", f"dst-port=1000:{port},dst-port=2000:{port}")
        self.assertEqual(self.waiting(one, 4), [b"a", b"b"] * 2)

    def test_ipv6(self):
        if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6") or not any("::1" == socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0])) for line in open("/proc/net/if_inet6")):
            self.skipTest("no IPv6 loopback here")
        one, = self.listen(socket.AF_INET6, "::1")
        port = one.getsockname()[1]
        report = self.out(self.path("c.pcap", pcap_bytes(stamped([udp(b"six", port), udp(b"again", port)]))), "udp:::1")
        self.out(self.path("d.pcap", pcap_bytes(stamped([udp(b"third", 7)]))), f"udp:[::1]:{port}")
        self.assertEqual(self.waiting(one, 3), [b"six", b"again", b"third"])
        self.assertEqual(report["packets"]["sent"], 2)

    def test_nobody_listens_and_it_is_said(self):
        one, = self.listen()
        port = one.getsockname()[1]
        one.close()
        report = self.out(self.path("c.pcap", pcap_bytes(stamped([udp(b"x" * 100, port)] * 20, step_ns=1_000_000))), "udp:127.0.0.1")
        self.assertGreater(report["network_errors"]["port_unreachable"], 0)
        self.assertEqual(report["packets"]["sent"], 20)
        self.assertIn("no socket is at the port", report["said"])

    # --- ends ---

    def test_interrupted(self):
        records = stamped(self.events(1)) + [(START_NS + 3600 * 10**9, frame) for frame in self.events(100)]
        report = self.path("i.json")
        process = subprocess.Popen([WEIR, "replay", str(self.path("c.pcap", pcap_bytes(records))), "--to", NULL, "--report", str(report), "--progress", "line"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        told = b""
        while b"  2 packets" not in told:
            told += os.read(process.stderr.fileno(), 1000) or self.fail(f"it ended: {told}")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=TIMEOUT_S)[0].decode()
        self.assertEqual(process.returncode, 0)
        found = json.loads(report.read_text())
        self.assertEqual((found["packets"]["sent"], found["packets"]["not_sent"]["unsent"]), (2, 200))
        self.assertTrue(found["balanced"] and found["interrupted"])
        self.assertIn("(interrupted)", said)

    def test_from_standard_input(self):
        data = pcap_bytes(stamped(self.events(3)))
        done = subprocess.run([WEIR, "replay", "-", "--to", NULL], input=data, capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"sent 6 packets", done.stdout)

    def test_nothing_sent_is_a_failure(self):
        capture = self.path("c.pcap", pcap_bytes(stamped(self.events(1))))
        report = self.out(capture, NULL, "--from", "+1s", status=1)
        self.assertIn("outside of --from and --to", report["said"])
        self.out(self.path("arp.pcap", pcap_bytes(stamped([ethernet(bytes(46), 0x0806)]))), "udp:127.0.0.1:9", status=1)

    def test_wrong_usage(self):
        capture = self.path("c.pcap", pcap_bytes(stamped(self.events(1))))
        settings = self.path("c.toml", config(stream(format="ejfat")))
        for args, text in ((("--to", "udp:127.0.0.1", "--config", settings), "--config means nothing there"), (("--to", NULL, "--drop"), "--drop"),
                           (("--to", NULL, "--port", "det0"), "--port"), (("--to", NULL, "--out", "x"), "--out"), (("--to", NULL, "--to", NULL), "one destination"),
                           (("--to", "+1s", "--to", "+2s", "--config", settings), "one moment"), (("--to", "udp:"), "udp:HOST"), (("--to", "device:"), "which one?"),
                           (("--to", "upd:host"), "--to: found 'upd:host'"), (("--to", NULL, "--rewrite", "ttl=1"), "not known"), (("--to", NULL, "--mtu", "10"), "68 to"),
                           (("--to", "udp:127.0.0.1", "--mtu", "1500"), "--mtu is for"), (("--to", "udp:127.0.0.1", "--rewrite", "dst-ip=1.2.3.4"), "the kernel writes"),
                           (("--to", "udp:127.0.0.1:7", "--rewrite", "dst-port=8"), "contradict"), (("--config", settings, "--rewrite", "dst-ip=1.2.3.4"), "--rewrite is for"),
                           (("--config", settings, "--mtu", "1500"), "--mtu is for"), (("--to", NULL, "--pace", "fast"), "--pace"), (("--to", NULL, "--loop", "0"), "--loop"),
                           (("--to", NULL, "--progress", "json"), "--progress")):
            with self.subTest(args=args):
                self.assertIn(text, weir("replay", capture, *args, status=2, trap=False).stderr)
        for args, text in (((self.folder / "none", "--to", NULL), "none"), ((capture, "--to", "udp:no-such-host.invalid"), "no address"),
                           ((capture, "--to", "device:net_nosuch0"), "net_nosuch0")):
            with self.subTest(args=args):
                done = weir("replay", *args, status=None, trap=False)
                self.assertIn(done.returncode, (1, 2))
                self.assertIn(text, done.stderr)


if __name__ == "__main__":
    main()
