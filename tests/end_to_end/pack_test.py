#!/usr/bin/env python3
"""`[[reduce]] kind = "pack"`: whatever the codec, what is read back is what is read back of a run that was not packed; and the
blocks are of the encoding that was asked for, and smaller."""
import json
import random
import struct
import sys

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips
import numpy as np

from packets import EJFAT_PORT, JUNGFRAU_PORT, ejfat, jungfrau, pcap_bytes, stamped, udp
from support import FUSED, ROOT, Case, config, main, stream, weir

sys.path.insert(0, str(ROOT / "python"))
import weir as weir_python  # noqa: E402

CODECS = {"zstd": 1, "lz4": 2, "bitshuffle-lz4": 3, "bitshuffle-zstd": 4, "bits": 5}
SPREAD = '[lcores]\nrx = [0]\nbuild = [1]\nwork = [2, 3]\nidle = "sleep"\n'
PAYLOAD = 4


def pack(codec, **keys):
    return f'[[reduce]]\nkind = "pack"\ncodec = "{codec}"\n' + "".join(f"{key} = {value}\n" for key, value in keys.items())


def payload_blocks(run):
    """(version, encoding, element bytes, stored bytes, raw bytes) of each payload block of a run."""
    out = []
    for segment in sorted(run.glob("events-*.weir")):
        data, at = segment.read_bytes(), 0
        while at < len(data):
            version, kind, stored = struct.unpack_from("<4xHH4xI", data, at)
            if kind == PAYLOAD:
                out.append((version, data[at + 32], data[at + 34], stored, struct.unpack_from("<I", data, at + 28)[0]))
            at += 64 + (stored + 63) // 64 * 64
    return out


class Pack(Case):
    def setUp(self):
        super().setUp()
        noise = np.random.default_rng(1)
        packets = []
        for number in (1, 2, 3):
            frame = (2700 + noise.normal(0, 6, (512, 1024)) + 508 * noise.poisson(0.01, (512, 1024))).astype("<u2")
            frame[noise.random(frame.shape) < 1e-3] |= 0x4000
            for k in range(128):
                if (number, k) not in ((2, 5), (2, 6)):
                    packets.append(udp(jungfrau(number, k, frame[4 * k:4 * k + 4].tobytes()), JUNGFRAU_PORT))
        self.capture = self.path("frames.pcap", pcap_bytes(stamped(packets)))
        self.pedestals = [str(self.path(f"pedestal{g}.f32", np.full((512, 1024), 2700 + 11000 * (g > 0), "<f4").tobytes())) for g in range(3)]

    def text(self, reducers, lcores=FUSED):
        return config(stream(sources=1), sources=1, more=reducers + lcores)

    def energies(self, output):
        return f'[[reduce]]\nkind = "jungfrau"\npedestal = {json.dumps(self.pedestals)}\ngain = [41.0, -1.439, -0.1145]\noutput = "{output}"\n'

    def check(self, before, codecs, element_bytes):
        plain = self.replay(self.capture, self.text(before))
        whole = sum(block[4] for block in payload_blocks(plain.run))
        for codec in codecs:
            with self.subTest(codec):
                result = self.replay(self.capture, self.text(before + pack(codec)))
                self.assertEqual(result.digests, plain.digests)
                self.assertEqual({(e.epoch, e.id): e.sha256() for e in weir_python.open(result.run)}, plain.digests)
                blocks = payload_blocks(result.run)
                self.assertEqual(sum(block[4] for block in blocks), whole)
                kept = [block for block in blocks if block[1] == 0]
                asked = {(CODECS[codec], element_bytes if CODECS[codec] >= 3 else 0)}
                self.assertEqual({block[1:3] for block in blocks if block[1] != 0}, asked if len(kept) < len(blocks) else set())
                counted = result.report["reduce"][-1]
                self.assertEqual((counted["kind"], counted["pieces"], counted["kept_raw"]), ("pack", len(blocks), len(kept)))
                self.assertEqual((counted["bytes_in"], counted["bytes_out"]), (whole, sum(block[3] for block in blocks)))
                self.assertAlmostEqual(counted["ratio"], counted["bytes_in"] / counted["bytes_out"])
                # LZ4 alone finds nothing in the noise of the lowest bits.
                if codec != "lz4":
                    self.assertLess(counted["bytes_out"], 0.8 * counted["bytes_in"])

    def test_bytes_as_received(self):
        self.check("", CODECS, 2)

    def test_energies_as_floats(self):
        self.check(self.energies("f32"), [codec for codec in CODECS if codec != "bits"], 4)

    def test_energies_as_whole_numbers(self):
        self.check(self.energies("u16"), CODECS, 2)
        self.check(self.energies("i16"), ["bits"], 2)

    def test_the_same_bytes_on_several_workers(self):
        fused = self.replay(self.capture, self.text(pack("bitshuffle-zstd")))
        spread = self.replay(self.capture, self.text(pack("bitshuffle-zstd"), SPREAD))
        self.assertEqual(sorted(payload_blocks(spread.run)), sorted(payload_blocks(fused.run)))
        self.assertEqual(spread.digests, fused.digests)

    def test_what_does_not_get_shorter_is_stored_as_it_is(self):
        r = random.Random(1)
        data = [r.randbytes(5000), bytes(5000), b""]
        frames = [udp(ejfat(n + 1, each, 0, len(each)), EJFAT_PORT) for n, each in enumerate(data)]
        capture = self.path("bytes.pcap", pcap_bytes(stamped(frames)))
        result = self.replay(capture, config(stream(format="ejfat", sources=1), sources=1, more=pack("bits", element_bytes=1) + FUSED))
        self.assertEqual(sorted((block[0], block[1], block[4]) for block in payload_blocks(result.run)), [(2, 0, 0), (2, 0, 5000), (2, 5, 5000)])
        self.assertEqual(result.report["reduce"][0]["kept_raw"], 1)

    def test_codec_zstd_is_what_kind_zstd_is(self):
        one = self.replay(self.capture, self.text(pack("zstd", level=3)))
        other = self.replay(self.capture, self.text('[[reduce]]\nkind = "zstd"\nlevel = 3\n'))
        self.assertEqual(payload_blocks(one.run), payload_blocks(other.run))
        self.assertEqual({block[0] for block in payload_blocks(one.run)}, {1})

    def test_a_file_that_was_cut_off_or_damaged_gives_no_wrong_event(self):
        result = self.replay(self.capture, self.text(pack("bitshuffle-lz4")))
        good = result.digests
        segment = next(result.run.glob("events-*.weir"))
        whole = segment.read_bytes()
        r = random.Random(2)
        for turn in range(12):
            data = bytearray(whole)
            if turn % 2 == 0:
                data = data[:r.randrange(len(data))]
            else:
                data[r.randrange(len(data))] ^= 1 << r.randrange(8)
            segment.write_bytes(data)
            done = weir("inspect", result.run, "--json", "--digest", "sha256", status=None, trap=False)
            self.assertIn(done.returncode, (1, 2, 3, 4), done.stderr)
            if not done.stdout:
                continue
            found = json.loads(done.stdout)
            self.assertIs(found["verified"], False)
            for event in found["events"]:
                if "sha256" in event and event["sha256"] is not None:
                    self.assertEqual(event["sha256"], good[(event["epoch"], event["id"])])


if __name__ == "__main__":
    main()
