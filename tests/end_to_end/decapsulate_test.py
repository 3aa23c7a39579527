#!/usr/bin/env python3
"""What mirrors and switches put around packets, taken off: the same events as without. The frames are written here, without code of the program."""
import json
import os
import pathlib
import random
import struct

from packets import EJFAT_PORT, datagram, ejfat, ethernet, ipv4, jungfrau, pcap_bytes, roce_message, stamped, udp
from support import ROOT, Case, config, main, stream, weir

FIELD = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared") / "data" / "field"
ALL = ("erspan", "vxlan", "mpls", "gre")


def gre(kind, inside, more=b"", flags=0):
    return ethernet(ipv4(struct.pack("!HH", flags, kind) + more + inside, protocol=47))


def vxlan(inside, port=4789):
    return udp(bytes.fromhex("0800000000123400") + inside, port)


def mpls(inside, *labels):
    stack = b"".join(struct.pack("!I", label << 12 | (at == len(labels) - 1) << 8 | 64) for at, label in enumerate(labels))
    return ethernet(stack + inside, 0x8847)


SEQUENCE = struct.pack("!I", 7)
ERSPAN_2 = bytes.fromhex("1007000100000000")
ERSPAN_3 = bytes.fromhex("200700011234567800000000")
WAYS = {
    "erspan 1": ("erspan", lambda f: gre(0x88be, f)),
    "erspan 2": ("erspan", lambda f: gre(0x88be, f, SEQUENCE + ERSPAN_2, 0x1000)),
    "erspan 3": ("erspan", lambda f: gre(0x22eb, f, SEQUENCE + ERSPAN_3, 0x1000)),
    "erspan 3 of a platform": ("erspan", lambda f: gre(0x22eb, f, SEQUENCE + ERSPAN_3[:-1] + b"\1" + bytes(8), 0x1000)),
    "ethernet in gre": ("gre", lambda f: gre(0x6558, f, bytes(4), 0x2000)),
    "ip in gre": ("gre", lambda f: gre(0x0800, f[14:])),
    "vxlan": ("vxlan", vxlan),
    "vxlan of an old Linux": ("vxlan", lambda f: vxlan(f, 8472)),
    "labels": ("mpls", lambda f: mpls(f[14:], 16, 17)),
    "pseudo-wire": ("mpls", lambda f: mpls(f, 16)),
    "pseudo-wire with a control word": ("mpls", lambda f: mpls(bytes(4) + f, 16)),
}


class Decapsulate(Case):
    def conf(self, tunnels, *streams, **more):
        text = config(*(streams or (stream(sources=1),)), sources=more.pop("sources", 1), **more)
        listed = ", ".join(f'"{name}"' for name in tunnels)
        return text.replace("[[port]]", f"[[port]]\ndecapsulate = [{listed}]", 1)

    def run_frames(self, frames, text, *args):
        return self.replay(self.path(f"c{self.runs}.pcap", pcap_bytes(stamped(frames))), text, *args)

    def test_each_way_gives_the_events_of_the_plain_capture(self):
        frames = [udp(jungfrau(n, packet, bytes([n + packet]) * 8192), 50001) for n in (1, 2, 3) for packet in range(128)]
        plain = self.run_frames(frames, config(stream(sources=1), sources=1), "--require-lossless")
        self.assertEqual(plain.report["events"]["complete"], 3)
        self.assertNotIn("decapsulated", plain.report)
        for name, (tunnel, wrap) in WAYS.items():
            with self.subTest(name=name):
                result = self.run_frames([wrap(frame) for frame in frames], self.conf([tunnel]), "--require-lossless")
                self.assertEqual(result.digests, plain.digests)
                self.assertEqual(result.packets, {"placed": len(frames)})
                self.assertEqual(result.report["decapsulated"], [{"port": "det0", tunnel: len(frames)}])
                self.assertIn(f"{tunnel} taken off {len(frames)}", result.output)

    def test_what_is_not_listed_stays_and_is_named_with_what_to_set(self):
        frames = [WAYS["erspan 2"][1](udp(jungfrau(1, packet), 50001)) for packet in range(20)]
        result = self.run_frames(frames, self.conf(["vxlan", "mpls", "gre"]), "--allow-empty")
        self.assertEqual(result.packets, {"not_for_us.ip_protocol": 20})
        sentence = next(f["sentence"] for f in result.report["findings"] if "ERSPAN II" in f["sentence"])
        self.assertIn('decapsulate = ["erspan"]', sentence)

    def test_packets_with_and_without_and_loops(self):
        # A loop reads the file again: nothing that was written over may be in it.
        data = {n: random.Random(n).randbytes(2000) for n in range(1, 9)}
        frames = []
        for n, (_, wrap) in zip(data, list(WAYS.values())):
            frames.append(wrap(udp(ejfat(n, data[n]), EJFAT_PORT)))
        frames.append(udp(ejfat(9, b"plain"), EJFAT_PORT))
        text = self.conf(ALL, stream(format="ejfat", sources=1))
        result = self.run_frames(frames, text, "--loop", "3", "--require-lossless")
        self.assertEqual(result.packets, {"placed": 3 * len(frames)})
        self.assertEqual(result.report["events"]["complete"], 3 * len(frames))

    def test_inner_fragments_and_two_layers(self):
        payload = ejfat(5, bytes(range(256)) * 10)
        whole = datagram(payload, EJFAT_PORT)
        pieces = [ethernet(ipv4(whole[at:at + 1000], flags=at // 8 | (0x2000 if at + 1000 < len(whole) else 0)))
                  for at in range(0, len(whole), 1000)]
        nested = WAYS["erspan 2"][1](vxlan(udp(ejfat(6, b"x"), EJFAT_PORT)))
        deep = vxlan(vxlan(vxlan(udp(ejfat(7, b"x"), EJFAT_PORT))))
        result = self.run_frames([vxlan(piece) for piece in pieces] + [nested, deep], self.conf(ALL, stream(format="ejfat", sources=1)))
        self.assertEqual(result.packets, {"placed": len(pieces) + 1, "dropped.malformed.nested": 1})
        self.assertEqual(result.report["decapsulated"], [{"port": "det0", "erspan": 1, "vxlan": len(pieces) + 3, "mpls": 0, "gre": 0}])

    def test_RoCE_inside_with_its_checksum(self):
        frames = [frame for n in range(4) for frame in roce_message(bytes(3000), 3 * n, immediate=n)]
        text = self.conf(["erspan"], stream("roce", "message", 1, event='"immediate"', icrc='"check"'))
        result = self.run_frames([WAYS["erspan 3"][1](frame) for frame in frames], text)
        self.assertEqual(result.report["events"]["complete"], 4, result.packets)

    def test_every_truncation_ends_in_one_counter(self):
        inner = udp(ejfat(1, bytes(64)), EJFAT_PORT)
        text = self.conf(ALL, stream(format="ejfat", sources=1))
        frames = [wrap(inner) for _, wrap in WAYS.values()]
        cut = [frame[:size] for frame in frames for size in range(14, len(frame))]
        result = self.run_frames(cut, text, "--allow-empty")  # balanced() is checked
        self.assertEqual(sum(result.packets.values()), len(cut))
        self.assertNotIn("placed", result.packets)

    def test_outer_fragments_are_named(self):
        first = bytearray(WAYS["erspan 2"][1](udp(ejfat(1, bytes(64)), EJFAT_PORT)))
        first[20:22], first[24:26] = b"\x20\0", b"\0\0"
        result = self.run_frames([bytes(first)], self.conf(ALL, stream(format="ejfat", sources=1)), "--allow-empty")
        self.assertEqual(result.packets, {"dropped.ip_fragment.encapsulated": 1})

    def test_probe_proposes_it_and_the_proposal_works(self):
        frames = [WAYS["erspan 2"][1](udp(jungfrau(n, packet), 50001)) for n in range(1, 9) for packet in range(128)]
        capture = self.path("mirror.pcap", pcap_bytes(stamped(frames)))
        out = weir("probe", capture)
        self.assertIn('decapsulate = ["erspan"]', out.stdout)
        proposed = self.path("proposed.toml", out.stdout)
        result = self.replay(capture, pathlib.Path(proposed).read_text(), "--require-lossless")
        self.assertEqual(result.report["events"]["complete"], 8)
        flows = json.loads(weir("probe", capture, "--json").stdout)["flows"]
        self.assertEqual([flow["decapsulated"] for flow in flows], [["erspan"]])
        # Of packets that were cut the headers inside are read.
        short = self.path("short.pcap", pcap_bytes([(time, frame[:150], len(frame)) for time, frame in stamped(frames)]))
        self.assertIn('decapsulate = ["erspan"]', weir("probe", short).stdout)
        self.assertIn('decapsulate = ["erspan"]', weir("probe", capture, "--packet", "3").stdout)

    def test_the_capture_of_the_field(self):
        capture = FIELD / "15a_erspan2.pcap"
        if not capture.exists():
            self.skipTest(f"{capture} is not there")
        text = (FIELD / "jf1.toml").read_text().replace("[[port]]", '[[port]]\ndecapsulate = ["erspan"]', 1)
        result = self.replay(capture, text, "--require-lossless")
        self.assertEqual(result.report["events"]["complete"], 6)

    def test_configurations_that_cannot_be(self):
        for more, word in (('decapsulate = ["erspan", "vlan"]', '"vlan"'), ("decapsulate = []", "empty array"), ('decapsulate = ["gre", "gre"]', "twice"),
                           ('steer = "rules"\ndecapsulate = ["gre"]', "outer headers")):
            text = config(stream(sources=1), sources=1).replace("[[port]]", f"[[port]]\n{more}", 1)
            result = weir("replay", self.path("none.pcap", pcap_bytes([])), "--config", self.path("wrong.toml", text), status=2)
            self.assertIn(word, result.stderr)


if __name__ == "__main__":
    main()
