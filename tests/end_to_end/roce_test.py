#!/usr/bin/env python3
"""RoCEv2: captures of adapters, of the Linux driver, and made here with every kind of damage, message by message against an
independent reading of the same file. The captures that are not part of the project lie in WEIR_SHARED."""
import collections
import ipaddress
import os
import pathlib
import random
import struct

from packets import RC, UC, pcap_bytes, roce, roce_message, stamped
from roce_reader import Truth, queue_pairs
from support import ROOT, Case, config, main, stream

DATA = pathlib.Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared") / "data"
EVENTS = "timeout_ms = 3600000\nwindow = 4096\nmemory = \"128MiB\"\n"
SEEDS = int(os.environ.get("WEIR_ROCE_SEEDS", "2"))


class Roce(Case):
    def compare(self, path, destination, qp, icrc="check", event=None):
        """One queue pair of a capture: every message, every missing range and every count."""
        truth = Truth(path, destination, qp, icrc == "check")
        by_number = event == "immediate" or (event is None and truth.messages and all(m.immediate is not None for m in truth.messages if m.size is not None))
        if by_number:
            truth = Truth(path, destination, qp, icrc == "check", numbered=True)
        settings = config(stream("roce", "message", sources=1, first=qp, dst=f'"{ipaddress.ip_address(destination)}"', icrc=f'"{icrc}"',
                                 event='"immediate"' if by_number else '"arrival"'), sources=1, events=EVENTS)
        result = self.replay(path, settings)
        said = collections.Counter()
        for (_, number), event in result.events.items():
            source = event["sources"][0]
            missing = source["missing"]
            said[number if by_number else None, event["sha256"], missing if isinstance(missing, str) else str(missing)] += 1
            self.assertEqual(event["complete"], missing == [])
        want = truth.described()
        if not by_number:
            want = collections.Counter()
            for (_, digest, missing), count in truth.described().items():
                want[None, digest, missing] += count
        self.assertEqual(said - want, collections.Counter(), "events that are not in the capture")
        self.assertEqual(want - said, collections.Counter(), "messages that got lost")
        self.assertEqual(result.packets, {k: v for k, v in truth.counts.items() if v})
        return truth

    def captures(self, folder, icrc="check"):
        found = sorted((DATA / folder).glob("*.pcap"))
        if not found:
            self.skipTest(f"there is nothing in {DATA / folder}")
        for path in found:
            for destination, qp in queue_pairs(path, icrc == "check")[:2]:
                with self.subTest(capture=path.name, qp=hex(qp)):
                    self.compare(path, destination, qp, icrc)

    def test_captures_of_adapters(self):
        self.captures("roce")

    def test_captures_of_the_linux_driver(self):
        self.captures("rxe")

    def test_capture_with_a_rewritten_port(self):
        path = DATA / "roce/rc-small.pcap"
        if not path.exists():
            self.skipTest(f"there is no {path}")
        (destination, qp), *_ = queue_pairs(path, check=False)
        self.assertEqual(self.compare(path, destination, qp, "check").messages, [])
        self.assertEqual(len(self.compare(path, destination, qp, "ignore").messages), 16)


def datagrams(r, content, psn, immediate, qp, source):
    head = struct.pack("!I", 0x11111111) + struct.pack("!I", 7 + r.randrange(2))
    return [roce(0x65, psn, content, qp=qp, extension=head + struct.pack("!I", immediate), source=source)]


class Generated(Case):
    """Several senders and queue pairs, with loss, repetition, disorder and damage."""
    compare = Roce.compare

    def frames(self, r, kind, faults):
        mtu = r.choice([256, 1024])
        out = []
        for qp, source in ((0x11, "10.1.0.10"), (0x12, "10.1.0.10"), (0x11, "10.1.0.11")):
            psn = r.choice([0, 0xffffff - r.randrange(60), r.randrange(1 << 24)])
            stream_of = []
            for n in range(60):
                size = r.choice([0, 1, mtu - 1, mtu, mtu + 1, r.randrange(12 * mtu)])
                number = n + (1000 if source.endswith("11") else 0)
                # The first bytes tell messages apart; what is in them tells their places apart.
                content = (struct.pack("<II", number, qp) + r.randbytes(max(0, size)))[:size]
                if kind == "ud":
                    frames = datagrams(r, content[:4096], psn, number, qp, source)
                else:
                    frames = roce_message(content, psn, number, qp=qp, mtu=mtu, kind=RC if kind == "rc" else UC, verb=r.choice(["send", "write"]),
                                          source=source)
                psn += len(frames)
                stream_of += frames
            kept = []
            for at, frame in enumerate(stream_of):
                chance = r.random()
                if chance < faults["loss"]:
                    continue
                if chance < faults["loss"] + faults["damage"]:
                    bit = r.randrange(8 * 42, 8 * len(frame))  # behind the network layers
                    frame = bytearray(frame)
                    frame[bit // 8] ^= 1 << bit % 8
                for _ in range(2 if r.random() < faults["repeat"] else 1):
                    kept.append((at + r.randrange(faults["disorder"] + 1), bytes(frame)))
            out.append([frame for _, frame in sorted(kept, key=lambda item: item[0])])
        flat = []
        while any(out):
            row = r.choice([frames for frames in out if frames])
            flat.append(row.pop(0))
        return flat

    def test_random_streams(self):
        for seed in range(int(os.environ.get("WEIR_ROCE_SEED", "1")), int(os.environ.get("WEIR_ROCE_SEED", "1")) + SEEDS):
            for kind in ("rc", "uc", "ud"):
                with self.subTest(seed=seed, kind=kind):
                    r = random.Random(f"{seed} {kind}")
                    faults = {"loss": r.choice([0, 0.02, 0.2]), "damage": r.choice([0, 0.02]), "repeat": r.choice([0, 0.1]),
                              "disorder": r.choice([0, 4, 30])}
                    capture = self.path("c.pcap", pcap_bytes(stamped(self.frames(r, kind, faults))))
                    self.compare(capture, bytes([10, 1, 0, 2]), 0x11, event="immediate")


class SentServices(Case):
    """What `weir send` makes of every service, over IPv4 and IPv6, in the eyes of the independent reader."""
    compare = Roce.compare

    def test_services(self):
        for service, transport, target, size in (("rc", "roce-send", "fd00::2", 9000), ("uc", "roce-write", "fd00::2", 9000),
                                                 ("ud", "roce-send", "fd00::2", 1024), ("ud", "roce-send", "10.1.0.2", 1000),
                                                 ("rc", "roce-write", "10.1.0.2", 9000)):
            with self.subTest(service=service, transport=transport, target=target):
                self.folder.joinpath("s.pcap").unlink(missing_ok=True)
                capture, account = self.send("s.pcap", "--format", "message", "--transport", transport, "--service", service, "--dst-ip", target,
                                             "--sources", 2, "--events", 60, "--bytes", size, "--mtu", 1024, "--first-psn", 0xfffff0,
                                             "--drop", 0.03, "--duplicate", 0.03, "--reorder", 9, "--seed", 5)
                truth = self.compare(capture, ipaddress.ip_address(target).packed, 0x12, event="immediate")
                self.assertGreater(len(truth.messages), 40)
                self.assertEqual(truth.counts["dropped.malformed.bad_icrc"], 0)
                mine = account["sources"][1]
                self.assertEqual(sum(truth.counts.values()) - truth.counts["unsteered"], mine["emitted"])
                self.assertEqual(truth.counts["dropped.duplicate"], mine["duplicated"])


if __name__ == "__main__":
    main()
