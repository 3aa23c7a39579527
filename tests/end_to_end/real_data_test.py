#!/usr/bin/env python3
"""Captures of real detectors, of a detector maker's own simulator, and of the Linux RoCE driver, with what is known of them.
They are not part of the project: WEIR_SHARED names the folder that has them in data/, or they lie in a folder "shared" beside
the checkout; a test whose files are missing is skipped, and says so."""
import hashlib
import json
import os
import pathlib
import re
import struct

from support import ROOT, ZSTD, Case, config, main, stream

DATA = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared") / "data"


def payloads(run):
    """event -> its bytes, from the raw payload blocks of a run; docs/reference/EVENT_FILE.md says where they are."""
    found = {}
    for segment in sorted(run.glob("events-*.weir")):
        data, at = segment.read_bytes(), 0
        while at < len(data):
            kind, stored = struct.unpack_from("<6xH4xI", data, at)
            event = struct.unpack_from("<Q", data, at + 40)[0]
            if kind == 4:
                found[event] = found.get(event, b"") + data[at + 64:at + 64 + stored]
            at += 64 + (stored + 63) // 64 * 64
    return found


class RealData(Case):
    def data(self, name):
        path = DATA / name
        if not path.exists():
            self.skipTest(f"there is no {path}")
        return path

    def sha(self, data):
        return hashlib.sha256(data).hexdigest()

    def test_real_jungfrau_frames(self):
        capture = self.data("jungfrau/jungfrau_3realframes.pcap")
        frames = [self.data(f"jungfrau/mod5_raw{n}.bin").read_bytes() for n in range(3)]
        result = self.replay(capture, config(stream(sources=1), sources=1), "--require-lossless")
        self.assertEqual(payloads(result.run), {n + 1: frame for n, frame in enumerate(frames)})
        packed = self.replay(capture, config(stream(sources=1), sources=1, more=ZSTD), "--require-lossless")
        self.assertEqual([e["sha256"] for e in packed.inspect["events"]], [self.sha(f) for f in frames])
        self.assertLess(packed.report["bytes"]["stored"], result.report["bytes"]["stored"])

    def simulated(self, name, settings, ports, *args):
        """Replays a capture of the maker's simulator and compares every module of every frame with its digest."""
        truth = json.loads(self.data(f"sls/{name}.truth.json").read_text())
        result = self.replay(self.data(f"sls/{name}.pcap"), settings, *args)
        data = payloads(result.run)
        by_port = {p["dst_port"]: {f["frameNumber"]: f for f in p["frames"]} for p in truth["ports"]}
        self.assertEqual(set(data), set(by_port[ports[0]]))
        for (_, number), event in result.events.items():
            at = 0
            for source, port in zip(event["sources"], ports):
                frame = by_port[port][number]
                self.assertEqual(source["bytes"], frame["payload_bytes"])
                self.assertEqual(self.sha(data[number][at:at + source["bytes"]]), frame["sha256_payloads_in_packet_order"])
                at += source["bytes"]
            self.assertEqual(at, event["bytes"])
        return result

    def test_simulated_jungfrau(self):
        self.simulated("jf_1if_short", config(stream(sources=1), sources=1), [50001], "--require-lossless")
        self.simulated("jf_2if_short", config(stream(interfaces=2)), [50001, 50002], "--require-lossless")
        self.simulated("jf_2modules_short", config(stream()), [50001, 50002], "--require-lossless")

    def test_simulated_partial_readout(self):
        result = self.simulated("jf_1if_rows256", config(stream(sources=1, rows=256), sources=1), [50001], "--require-lossless")
        self.assertEqual({e["bytes"] for e in result.inspect["events"]}, {256 * 2048})
        # A receiver that does not know of it sees frames whose first and last quarter are missing.
        result = self.simulated("jf_1if_rows256", config(stream(sources=1), sources=1), [50001])
        for event in result.inspect["events"]:
            self.assertEqual(event["sources"][0]["missing"], [[0, 32 * 8192], [96 * 8192, 32 * 8192]])

    def test_simulated_moench(self):
        settings = config(stream(format="moench", sources=1), sources=1)
        self.simulated("moench_1if", settings, [50001], "--require-lossless")
        # Packets of another detector of the family are told by its type, whatever their length.
        other = self.replay(self.data("sls/jf_1if_short.pcap"), settings)
        self.assertEqual(other.packets, {"dropped.malformed.header": 256})

    def test_simulated_eiger(self):
        for bits, frames in ((12, 6), (16, 6)):
            with self.subTest(bits=bits):
                keys = {"format": "eiger", "bit_depth": bits}
                result = self.simulated(f"eiger_{bits}bit_10g", config(stream(**keys)), [50001, 50002], "--require-lossless")
                self.assertEqual(len(result.events), frames)
                # Half modules say which of their ports a packet comes from.
                by_id = config(stream(source_by='"header"', source_ids=[31, 32], **keys))
                self.simulated(f"eiger_{bits}bit_10g", by_id, [50001, 50002], "--require-lossless")

    def test_two_interfaces_of_one_module_id(self):
        # Both ports say module 1234; the row says which half of the image a packet belongs to.
        truth = json.loads(self.data("sls/jf_2if_short.truth.json").read_text())
        self.assertEqual([p["header_constant_fields"]["row"] for p in truth["ports"]], [0, 1])
        apart = self.simulated("jf_2if_short", config(stream(interfaces=2)), [50001, 50002], "--require-lossless")
        joined = self.replay(self.data("sls/jf_2if_short.pcap"),
                             config(stream(interfaces=2, source_by='"header"', source_ids=[1234]), sources=1), "--require-lossless")
        self.assertEqual(payloads(joined.run), payloads(apart.run))

    def test_fragmented_datagrams(self):
        truth = json.loads(self.data("sls/jf_1if_ipfrag_mtu1500.truth.json").read_text())
        result = self.replay(self.data("sls/jf_1if_ipfrag_mtu1500.pcap"), config(stream(sources=1), sources=1), "--require-lossless")
        self.assertEqual(result.packets, {"placed": truth["ip_packets"]})
        self.assertEqual(result.report["ip_fragments"]["datagrams"], truth["udp_datagrams"])
        self.assertEqual({number: self.sha(data) for number, data in payloads(result.run).items()},
                         {f["frameNumber"]: f["sha256_payloads_in_packet_order"] for f in truth["frames"]})

    def rdma(self, name, **keys):
        """Replays one of the driver's captures; returns what its README says of it, and the complete messages in order."""
        text = self.data("rxe/README.txt").read_text().split(f"\n{name}.pcap ")[1].split("\n\n")[0]
        qp = int(re.search("server qpn (0x[0-9a-f]+)", text)[1], 16)
        dst = "192.168.100.2" if "vlan" in name else "192.168.77.2"
        event = "immediate" if "_imm_" in name else "count"
        settings = config(stream("roce", "message", sources=1, first=qp, dst=f'"{dst}"', event=f'"{event}"', **keys), sources=1)
        result = self.replay(self.data(f"rxe/{name}.pcap"), settings)
        data = payloads(result.run)
        first = 0xC0DE0000 if event == "immediate" else 0
        return text, {n - first: data[n] for (_, n), e in sorted(result.events.items()) if e["complete"]}, result

    def test_rdma_without_loss(self):
        for name in ("rc_send_mtu1024_v4", "rc_send_imm_mtu4096_v4", "rc_send_imm_vlan100_mtu1024_v4", "rc_send_oddsizes_mtu1024_v4",
                     "rc_send_psnwrap_mtu1024_v4", "rc_send_dup5_mtu1024_v4", "rc_send_loss3_mtu1024_v4", "rc_write_imm_mtu1024_v4",
                     "uc_send_imm_mtu1024_v4", "uc_write_imm_mtu4096_v4"):
            with self.subTest(capture=name):
                text, messages, result = self.rdma(name)
                count, digest = re.search(r"msgs=(\d+) .*sha256=([0-9a-f]{64}) pattern=OK", text).groups()
                self.assertEqual(list(messages), list(range(int(count))))
                self.assertEqual(self.sha(b"".join(messages.values())), digest)
                self.assertEqual(len(result.events), int(count))
                self.assertEqual(result.report["packets"]["dropped"]["unbound"], 0)

    def test_rdma_with_loss(self):
        # Messages that are whole on the wire, counted by an independent reader of the same captures.
        for name, whole, size in (("uc_send_imm_loss3_mtu1024_v4", 77, 10000), ("uc_write_imm_loss2_mtu4096_v4", 25, 65536)):
            with self.subTest(capture=name):
                _, messages, _ = self.rdma(name)
                self.assertEqual(len(messages), whole)
                for n, data in messages.items():
                    first = n * size // 4
                    self.assertEqual(data, struct.pack(f"<{size // 4}I", *range(first, first + size // 4)))


if __name__ == "__main__":
    main()
