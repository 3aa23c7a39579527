#!/usr/bin/env python3
"""Detector frames that come by RDMA are the events that the same frames are by UDP, byte by byte: as received and through the reducers,
scattered over memory or in one piece, with losses and without. And an unreliable sender that loses the end of a frame never makes two
frames one."""
import itertools
import json
import random
import struct

from packets import JUNGFRAU_PORT, RC, START_NS, UC, jungfrau, pcap_bytes, read_pcap, reth, roce, stamped, udp
from support import Case, config, digest, main, stream, weir

ROW_BYTES, HEADER_BYTES = 2048, 48
ROWS = 64  # of 512 that are read out, but where all are
FRAME_BYTES = ROWS * ROW_BYTES
EVENTS = 6
VA = 0x10000000

def region(frame_bytes, count=EVENTS, header=HEADER_BYTES):
    return f'{{ va = {VA:#x}, bytes = {header + frame_bytes}, rkey = 0x1234, count = {count}, backing = "memory" }}'


class Frames(Case):
    def setUp(self):
        super().setUp()
        energies = self.energies([2700, 13600, 13600])
        self.chain = {
            "energies": energies,
            "pedestal": '[[reduce]]\nkind = "pedestal"\nevery = 2\ninterval = 4\n' + energies,
            "veto": '[[reduce]]\nkind = "veto"\nthreshold = 6.0\nmin_pixels = 200\nmin_peaks = 1\nrequire = "any"\n',
            "sparse": '[[reduce]]\nkind = "sparse"\nthreshold = 6.0\n',
            "pack": '[[reduce]]\nkind = "pack"\ncodec = "lz4"\n',
        }

    def energies(self, pedestals, modules=2, more=""):
        """The jungfrau reducer with a pedestal for each gain, or for each gain and storage cell."""
        files = []
        for gain, cells in enumerate(pedestals):
            of_module = b"".join(struct.pack("<f", value) * (512 * 1024) for value in (cells if isinstance(cells, list) else [cells]))
            files.append(str(self.path(f"pedestal{self.runs}_{gain}_{modules}.f32", of_module * modules)))
        return f'[[reduce]]\nkind = "jungfrau"\npedestal = {json.dumps(files)}\ngain = [41.0, -1.439, -0.1145]\n{more}'

    @staticmethod
    def readout(args, format, keys):
        """Few rows, unless the test says which."""
        if format != "jungfrau" or "--rows" in args:
            return args, keys
        return ("--rows", ROWS, *args), {"rows": ROWS, **keys}

    def by_udp(self, *args, sources=2, format="jungfrau", more="", **keys):
        args, keys = self.readout(args, format, keys)
        capture, _ = self.send(f"udp{self.runs}.pcap", "--format", format, "--sources", sources, "--events", EVENTS, "--seed", 11, *args)
        return capture, self.replay(capture, config(stream(format=format, sources=sources, **keys), sources=sources, more=more))

    def by_rdma(self, *args, sources=2, format="jungfrau", frame_bytes=FRAME_BYTES, service="uc", verb="roce-write", memory=True, more="", **keys):
        args, keys = self.readout(args, format, keys)
        if memory:
            args = ("--regions", EVENTS, *args)
            keys["region"] = f"[{', '.join(each for each in self.regions(sources, frame_bytes))}]"
            keys["service"] = f'"{service}"'
            if service == "rc":
                keys["peer"] = self.peer(sources)
        capture, _ = self.send(f"rdma{self.runs}.pcap", "--format", format, "--sources", sources, "--events", EVENTS, "--seed", 11, "--transport", verb,
                               "--service", service, *args)
        return capture, self.replay(capture, config(stream("roce", format, sources=sources, **keys), sources=sources, more=more))

    @staticmethod
    def regions(sources, frame_bytes):
        for source in range(sources):
            yield (f"{{ va = {VA * (source + 1):#x}, bytes = {HEADER_BYTES + frame_bytes}, rkey = 0x1234, count = {EVENTS}, "
                   f'backing = "memory", qp = {0x11 + source} }}')

    @staticmethod
    def peer(sources):
        return "[" + ", ".join(f'{{ qp = {0x21 + i}, address = "10.1.0.{10 + i}" }}' for i in range(sources)) + "]"

    def same(self, found, expected, complete=True):
        def told(result):
            return {key: (e["complete"], e["sha256"], [(s["id"], s["missing"]) for s in e["sources"]]) for key, e in result.events.items()}
        self.assertEqual(told(found), told(expected))
        if complete:
            self.assertEqual(len(found.events), EVENTS)
            self.assertTrue(all(event["complete"] for event in found.events.values()))

    def test_every_way_of_rdma_brings_what_udp_brings(self):
        _, udp = self.by_udp()
        for service in ("uc", "rc"):
            for write_bytes, chips in ((None, None), (8192, 1), (10000, 7), (32768, 3), (FRAME_BYTES, None)):
                cut = [] if write_bytes is None else ["--write-bytes", write_bytes]
                cut += [] if chips is None else ["--readout-chips", chips]
                with self.subTest(service=service, cut=cut):
                    _, found = self.by_rdma(*cut, service=service)
                    self.same(found, udp)
                    self.assertEqual(set(found.packets), {"placed"})
            for verb, more in (("roce-send", ()), ("roce-write", ("--write-bytes", FRAME_BYTES))):
                with self.subTest(service=service, verb=verb, memory=False):
                    _, found = self.by_rdma(*more, service=service, verb=verb, memory=False)
                    self.same(found, udp)

    def test_packets_that_come_twice_change_nothing(self):
        _, udp = self.by_udp()
        for service in ("uc", "rc"):
            with self.subTest(service=service):
                _, found = self.by_rdma("--duplicate", 0.05, "--write-bytes", 8192, service=service)
                self.same(found, udp)
                self.assertEqual(set(found.packets), {"placed", "dropped.duplicate"})

    def test_half_modules_partial_readouts_and_other_detectors(self):
        for format, bytes_, args, keys in (("jungfrau", 512 * ROW_BYTES, ("--rows", 512), {"rows": 512}),
                                           ("jungfrau", 256 * ROW_BYTES, ("--rows", 512, "--interfaces", 2), {"rows": 512, "interfaces": 2}),
                                           ("jungfrau", 256 * ROW_BYTES, ("--rows", 256), {"rows": 256}),
                                           ("jungfrau", 64 * ROW_BYTES, ("--rows", 128, "--interfaces", 2), {"rows": 128, "interfaces": 2}),
                                           ("moench", 400 * 800, (), {}), ("eiger", 256 * 1024, (), {}),
                                           ("eiger", 256 * 256, ("--bit-depth", 4), {"bit_depth": 4})):
            with self.subTest(format=format, args=args):
                _, udp = self.by_udp(*args, format=format, **keys)
                _, found = self.by_rdma(*args, format=format, frame_bytes=bytes_, **keys)
                self.same(found, udp)

    def test_the_reducers_give_the_same(self):
        chains = [("energies",), ("pedestal",), ("energies", "veto"), ("energies", "sparse"), ("energies", "veto", "sparse", "pack"),
                  ("pedestal", "sparse", "pack")]
        for chain in chains:
            more = "".join(self.chain[name] for name in chain)
            for args, keys in (((), {}), (("--interfaces", 2), {"interfaces": 2})):
                with self.subTest(chain=chain, args=args):
                    _, udp = self.by_udp(*args, more=more, **keys)
                    frame_bytes = FRAME_BYTES // (2 if args else 1)
                    _, found = self.by_rdma(*args, more=more, frame_bytes=frame_bytes, **keys)
                    self.same(found, udp, complete=False)
                    counters = lambda run: [{key: value for key, value in reducer.items() if not key.startswith(("cycles", "ns_per", "seconds"))} for reducer in run.report["reduce"]]
                    self.assertEqual(counters(found), counters(udp))
                    self.assertGreater(len(found.events), 0)
        _, found = self.by_rdma("--write-bytes", FRAME_BYTES, more=self.chain["energies"], memory=False)
        self.same(found, self.by_udp(more=self.chain["energies"])[1])

    def test_what_is_exported_is_the_same(self):
        for chain in ("", "energies"):
            more = self.chain.get(chain, "")
            runs = [self.by_udp(more=more)[1].run, self.by_rdma(more=more)[1].run]
            for kind in ("npy", "raw"):
                out = [self.path(f"{kind}{i}{chain}") for i in range(2)]
                for run, to in zip(runs, out):
                    weir("export", run, "--to", kind, "--out", to, *(["--concatenate"] if kind == "raw" else []), trap=False)
                self.assertEqual(out[0].read_bytes(), out[1].read_bytes())
        _, first = self.by_rdma()
        packets = self.path("packets.pcap")
        weir("export", first.run, "--to", "pcap", "--out", packets, trap=False)
        again = self.replay(packets, config(stream("roce", sources=2, rows=ROWS), sources=2))
        self.same(again, first)

    def test_storage_cells_are_those_of_the_header(self):
        cells = [[2600.0 + 50 * cell + 11000 * (gain > 0) for cell in range(3)] for gain in range(3)]
        more = self.energies(cells, modules=1, more="storage_cells = 3\n")
        random_ = random.Random(5)
        raw = {n: random_.randbytes(16 * ROW_BYTES) for n in range(1, 5)}
        headers = {n: self.header(n, cell=n % 3) for n in raw}
        udp = [self.datagram(headers[n], 62 + k, raw[n][8192 * k:8192 * k + 8192]) for n in raw for k in range(4)]
        rdma, psn = [], 0
        for place, n in enumerate(raw):
            frames = self.writes(n, headers[n], raw[n], psn, va=VA + place * (HEADER_BYTES + len(raw[n])))
            rdma += frames
            psn += len(frames)
        expected = self.replay(self.path("cells.pcap", pcap_bytes(stamped(udp))), config(stream(sources=1, rows=16), sources=1, more=more))
        text = config(stream("roce", sources=1, rows=16, service='"uc"', region=region(16 * ROW_BYTES)), sources=1, more=more)
        capture = self.path("cells_rdma.pcap", pcap_bytes(stamped(rdma)))
        found = self.replay(capture, text)
        self.assertEqual(found.digests, expected.digests)
        self.assertEqual(len(set(found.digests.values())), 4)
        self.assertEqual(found.report["reduce"][0]["unknown_cell"], 0)
        bare = text.replace('service =', 'event = "immediate"\nservice =').replace(str(16 * ROW_BYTES + HEADER_BYTES), str(16 * ROW_BYTES))
        said = weir("replay", capture, "--config", self.path("bare.toml", bare), "--out", self.folder / "bare", status=2, trap=False).stderr
        self.assertIn("storage cells", said)

    @staticmethod
    def header(number, cell=0):
        data = bytearray(jungfrau(number, 0, b""))
        struct.pack_into("<I", data, 40, cell << 8)
        return bytes(data)

    @staticmethod
    def datagram(header, packet, pixels):
        data = bytearray(header)
        struct.pack_into("<I", data, 12, packet)
        return udp(bytes(data) + pixels, JUNGFRAU_PORT)

    @staticmethod
    def writes(number, header, pixels, psn, va=VA, size=4096, kind=UC):
        """The packets of a frame: rows where they belong, in an order of their own, then the header with the immediate."""
        order = list(range(0, len(pixels), size))
        random.Random(number).shuffle(order)
        frames = [roce(kind.write_only, psn + i, pixels[at:at + size], extension=reth(len(pixels[at:at + size]), va + HEADER_BYTES + at))
                  for i, at in enumerate(order)]
        return frames + [roce(kind.write_only_immediate, psn + len(order), header, extension=reth(len(header), va) + struct.pack("!I", number))]

    def test_losses_are_the_same_pixels(self):
        """What is lost are 4 rows at a time, a packet by UDP and two packets of a WRITE by RDMA. The first frame stays whole: from it
        weir knows how many packets a frame has. Headers stay, too: without its end a frame is nothing."""
        random_ = random.Random(3)
        lost = {(event, source, group) for event in range(1, EVENTS) for source in range(2) for group in range(ROWS // 4) if random_.random() < 0.05}
        udp, _ = self.send("whole_udp.pcap", "--rows", ROWS, "--sources", 2, "--events", EVENTS, "--seed", 11)
        rdma, _ = self.send("whole_rdma.pcap", "--rows", ROWS, "--sources", 2, "--events", EVENTS, "--seed", 11, "--transport", "roce-write", "--write-bytes", 8192,
                            "--regions", EVENTS)

        def udp_place(frame):
            number, packet = struct.unpack_from("<Q4xI", frame, 42)
            return number - 1, struct.unpack_from("!H", frame, 36)[0] - 50001, packet - (64 - ROWS // 8)

        place = [None, None, None]

        def rdma_place(frame):
            opcode, source = frame[42], frame[49] - 0x11
            if opcode & 0x1f in (6, 0xa, 0xb):  # FIRST, ONLY, ONLY with immediate
                at = struct.unpack_from("!Q", frame, 54)[0] - VA * (source + 1)
                event, offset = divmod(at, FRAME_BYTES + HEADER_BYTES)
                place[source] = event, source, (offset - HEADER_BYTES) // 8192
            return place[source]
        kept = {}
        for name, place_of in ((udp, udp_place), (rdma, rdma_place)):
            records = read_pcap(name)
            kept[name] = [record for record in records if place_of(record[1]) not in lost]
            self.assertEqual(len(records) - len(kept[name]), len(lost) * (1 if name == udp else 2))
        for more in ("", self.chain["energies"], self.chain["energies"] + self.chain["sparse"]):
            a = self.replay(self.path("udp_lossy.pcap", pcap_bytes(kept[udp])), config(stream(sources=2, rows=ROWS), sources=2, more=more))
            text = config(stream("roce", sources=2, rows=ROWS, service='"uc"', region=f"[{', '.join(self.regions(2, FRAME_BYTES))}]"), sources=2, more=more)
            b = self.replay(self.path("rdma_lossy.pcap", pcap_bytes(kept[rdma])), text)
            self.same(b, a, complete=False)
            self.assertEqual(len(b.events), EVENTS)
            self.assertEqual(sum(len(s["missing"]) > 0 for e in b.events.values() for s in e["sources"]), len({(e, s) for e, s, _ in lost}))

    def test_an_unreliable_sender_never_makes_two_frames_one(self):
        """Bursts of losses over the ends of frames, into one buffer and into three. Whatever is delivered holds bytes of its own frame."""
        seed = random.SystemRandom().randrange(1 << 30)
        print(f"# seed {seed}")
        random_ = random.Random(seed)
        rows, size = 16, 2048
        frame_bytes = rows * ROW_BYTES
        for count, burst in itertools.product((1, 3), (1, 9, 30)):
            with self.subTest(count=count, burst=burst):
                pixels = {n: bytes([n & 0xff]) * frame_bytes for n in range(1, 250)}
                frames, psn = [], 0
                for n, data in pixels.items():
                    one = self.writes(n, self.header(n), data, psn, va=VA + (n % count) * (frame_bytes + HEADER_BYTES), size=size)
                    frames += one
                    psn += len(one)
                out = set()
                for at in range(34, len(frames)):
                    if random_.random() < 0.03 / burst * 3:
                        out.update(range(at, at + burst))
                # A buffer is back before its next frame comes.
                left = [(START_NS + i * 1000 + i // 17 * 4_000_000, frame) for i, frame in enumerate(frames) if i not in out]
                text = config(stream("roce", sources=1, rows=rows, service='"uc"', region=region(frame_bytes, count)), sources=1)
                result = self.replay(self.path("ends.pcap", pcap_bytes(left)), text, "--pace", "recorded")
                self.assertGreater(len(result.events), 20)
                for (_, number), event in result.events.items():
                    gone = sum(length for _, length in event["sources"][0]["missing"])
                    self.assertEqual(event["complete"], gone == 0)
                    self.assertEqual(event["sha256"], digest(pixels[number][:frame_bytes - gone]), f"frame {number}")
                self.assertLessEqual(set(result.packets), {"placed", "dropped.unbound", "dropped.duplicate", "dropped.conflict", "dropped.no_room"})

    def test_a_frame_needs_its_own_header(self):
        frames = []
        for place, (n, header) in enumerate(((1, self.header(1)), (2, self.header(7)), (3, bytes(48)), (4, self.header(4)))):
            frames += self.writes(n, header, bytes(16 * ROW_BYTES), 9 * place, va=VA + place * (16 * ROW_BYTES + HEADER_BYTES))
        del frames[-1]  # the end of the last one never comes
        text = config(stream("roce", sources=1, rows=16, service='"uc"', region=region(16 * ROW_BYTES)), sources=1)
        result = self.replay(self.path("headers.pcap", pcap_bytes(stamped(frames))), text)
        self.assertEqual([number for _, number in result.events], [1])
        self.assertEqual(result.packets, {"placed": 9, "dropped.conflict": 9, "dropped.malformed.header": 9, "dropped.unbound": 8})
        wrong = text.replace(str(16 * ROW_BYTES + HEADER_BYTES), str(16 * ROW_BYTES))
        said = weir("run", "--config", self.path("wrong.toml", wrong), "--print-config", status=2, trap=False).stderr
        self.assertIn("32816", said)
        self.assertIn("header", said)

    def test_frames_without_a_header_have_the_immediates_number(self):
        pixels = {n: random.Random(n).randbytes(16 * ROW_BYTES) for n in range(1, 5)}
        frames, psn = [], 0
        for place, (n, data) in enumerate(pixels.items()):
            va = VA + place * len(data)
            rows = [roce(RC.write_only, psn + i, data[at:at + 4096], extension=reth(4096, va + at)) for i, at in enumerate(range(0, len(data), 4096))]
            end = roce(RC.write_only_immediate, psn + len(rows), b"", extension=reth(0, va) + struct.pack("!I", n))
            frames += [*rows, end]
            psn += len(rows) + 1
        text = config(stream("roce", sources=1, rows=16, service='"rc"', peer=self.peer(1), event='"immediate"', region=region(16 * ROW_BYTES, header=0)), sources=1,
                      more=self.chain["energies"])
        result = self.replay(self.path("bare.pcap", pcap_bytes(stamped(frames))), text)
        self.assertEqual(result.report["events"]["complete"], 4)
        plain = self.replay(self.folder / "bare.pcap", text.replace(self.chain["energies"], ""))
        self.assertEqual({n: e["sha256"] for (_, n), e in plain.events.items()}, {n: digest(data) for n, data in pixels.items()})


if __name__ == "__main__":
    main()
