#!/usr/bin/env python3
"""RoCEv2: captures of adapters, of the Linux driver, and made here with every kind of damage, message by message against an
independent reading of the same file. The captures that are not part of the project lie in WEIR_SHARED."""
import collections
import hashlib
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

    def captures(self, folder, icrc="check", pattern="*.pcap"):
        found = sorted((DATA / folder).glob(pattern))
        if not found:
            self.skipTest(f"there is nothing in {DATA / folder}")
        for path in found:
            for destination, qp in queue_pairs(path, icrc == "check")[:2]:
                with self.subTest(capture=path.name, qp=hex(qp)):
                    self.compare(path, destination, qp, icrc)

    def test_captures_that_are_kept_here(self):
        self.captures(ROOT / "tests/captures", pattern="roce_*.pcap")

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
                    bit = r.randrange(8 * 42, 8 * len(frame))  # after the network layers
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
                    if kind != "ud":  # without a checksum, those in the middle of messages are compared with earlier ones
                        capture = self.path("d.pcap", pcap_bytes(stamped(self.frames(r, kind, faults | {"damage": 0}))))
                        self.compare(capture, bytes([10, 1, 0, 2]), 0x11, icrc="ignore", event="immediate")


class LostPsns(Case):
    """Packet sequence numbers say what was lost, also where nothing of a message came, and never more than that."""
    def settings(self, sources=1, **keys):
        return config(stream("roce", "message", sources=sources, first=0x11, **keys), sources=sources, events=EVENTS)

    def frames(self, messages, lost=(), kind=UC, qp=0x11, **how):
        """Messages of three packets each, numbered from 1, from PSN 100 on; without the packets whose place is in `lost`."""
        frames = [frame for n in range(messages) for frame in roce_message(bytes(2500), 100 + 3 * n, n + 1, qp=qp, kind=kind, **how)]
        return [frame for at, frame in enumerate(frames) if at not in lost]

    def datagrams(self, psns, qp=0x11, sender=7, source="10.1.0.10"):
        head = struct.pack("!II", 0x11111111, sender)
        return [roce(0x65, psn, b"datagram", qp=qp, extension=head + struct.pack("!I", 1000 * sender + psn), source=source) for psn in psns]

    def run_of(self, frames, settings, status=3):
        return self.replay(self.path(f"c{self.runs}.pcap", pcap_bytes(stamped(frames))), settings, "--require-lossless", status=status)

    def psns(self, result, source=0):
        return result.report["roce"]["psns"][source]

    def test_whole_messages_of_an_unreliable_connection(self):
        result = self.run_of(self.frames(20, lost=(*range(12, 18), 30)), self.settings())
        self.assertEqual(result.report["events"]["complete"], 17)
        self.assertEqual(result.report["wire_loss"], 7)
        said = self.psns(result)
        self.assertEqual((said["transport"], said["expected"], said["seen"], said["missing"], said["lost"], said["known"]), ("uc", 60, 53, 7, 7, True))
        self.assertIn("psn       qp 0x11 (source 0): 7 of 60 packets never came", result.output)

    def test_nothing_but_whole_messages(self):
        # Every event that is there is complete: only the PSNs tell.
        result = self.run_of(self.frames(20, lost=range(12, 18)), self.settings())
        self.assertEqual((result.report["events"]["complete"], sum(result.report["events"]["incomplete"].values())), (18, 0))
        self.assertEqual(result.report["wire_loss"], 6)
        self.assertEqual(result.report["sources"][0]["missing_packets"], 6)
        self.assertIn(6, [found["packets"] for found in result.report["findings"] if found["loss"]])

    def test_datagrams_of_one_sender(self):
        result = self.run_of(self.datagrams([n for n in range(1, 61) if n not in (20, 21, 40)]), self.settings())
        self.assertEqual(result.report["wire_loss"], 3)
        self.assertEqual(self.psns(result)["transport"], "ud")

    def test_datagrams_of_which_nobody_knows(self):
        some = [n for n in range(1, 61) if n % 5 != 0]
        cases = {"two senders": (self.datagrams(some) + self.datagrams(some, sender=8), 1, "2 senders"),
                 "sent elsewhere, too": (self.datagrams(range(1, 61, 2)) + self.datagrams(range(2, 61, 2), qp=0x12), 2, "queue pair 0x12"),
                 "mostly gaps": (self.datagrams(range(1, 61, 3)), 1, "probably")}
        for name, (frames, sources, why) in cases.items():
            with self.subTest(name):
                result = self.run_of(frames, self.settings(sources=sources), status=None)
                self.assertEqual(result.report["wire_loss"], "unknown")
                said = self.psns(result)
                self.assertGreater(said["missing"], 0)
                self.assertEqual((said["lost"], said["known"]), (0, False))
                self.assertIn(why, said["unknown_because"])
                self.assertNotIn("missing", [loss for loss in result.report.get("losses", {})])

    def test_retransmissions_are_no_loss(self):
        whole = self.frames(20, kind=RC)
        result = self.run_of(whole[:10] + whole[11:30] + whole[9:], self.settings(), status=0)
        said = self.psns(result)
        self.assertEqual((said["transport"], said["missing"], said["repeated"], result.report["wire_loss"]), ("rc", 0, 20, 0))

    def test_a_jump_is_not_known(self):
        far = [frame for n in range(20) for frame in roce_message(bytes(2500), 200_000 + 3 * n, n + 50, qp=0x11, kind=UC)]
        result = self.run_of(self.frames(20) + far, self.settings(), status=None)
        self.assertEqual(result.report["wire_loss"], "unknown")
        self.assertEqual((self.psns(result)["jumps"], self.psns(result)["lost"]), (1, 0))

    def test_a_connection_that_weir_answers(self):
        result = self.run_of(self.frames(20, lost=(*range(12, 18), 30)), self.settings(service='"uc"', psn="[100]"))
        said = self.psns(result)
        self.assertEqual((said["expected"], said["seen"], said["missing"], result.report["wire_loss"]), (60, 53, 7, 7))


class CountedQueuePairs(Case):
    """event = "count" with several queue pairs: their numbers meet only if all are known to begin alike."""
    def outcome(self, psn, lost=0):
        messages = {qp: [bytes([qp, n]) * 1250 for n in range(20)] for qp in (0x11, 0x12)}
        frames = [frame for n in range(20) for qp in (0x11, 0x12) for frame in roce_message(messages[qp][n], 100 * qp + 3 * n, qp=qp)
                  if not (qp == 0x12 and n < lost)]
        keys = {"event": '"count"', "message_bytes": 2500, **({"psn": psn} if psn else {})}
        settings = config(stream("roce", "message", sources=2, first=0x11, **keys), sources=2, events="timeout_ms = 2000\n")
        capture = self.path(f"c{self.runs}.pcap", pcap_bytes(stamped(frames)))
        result = self.replay(capture, settings, "--require-lossless", status=None)
        joined = {number: event["sha256"] for (_, number), event in result.events.items() if event["complete"]}
        right = {n: hashlib.sha256(messages[0x11][n] + messages[0x12][n]).hexdigest() for n in range(20)}
        return result, {n for n in joined if joined[n] == right[n]}, set(joined)

    def test_without_psn_it_is_said_that_nobody_knows(self):
        result, right, complete = self.outcome(psn=None, lost=1)
        self.assertEqual((len(right), len(complete)), (0, 19))  # message n of one with message n + 1 of the other
        self.assertIn('event: "count" with 2 sources and no psn', result.output)
        self.assertIn("no psn", result.report["numbers_unknown_because"])

    def test_with_psn_a_lost_beginning_shifts_nothing(self):
        result, right, complete = self.outcome(psn=f"[{100 * 0x11}, {100 * 0x12}]", lost=1)
        self.assertEqual((right, complete), (set(range(1, 20)), set(range(1, 20))))
        self.assertEqual(result.report["events"]["incomplete"]["timeout"] + result.report["events"]["incomplete"]["end_of_run"], 1)
        self.assertEqual(result.report["wire_loss"], 3)
        self.assertNotIn("no psn", result.output)
        self.assertNotIn("numbers_unknown_because", result.report)


class Findings(Case):
    """What a run says of queue pairs that were set up for something else than the sender does."""
    def test_messages_without_immediates(self):
        frames = [frame for n in range(5) for frame in roce_message(bytes(2500), 3 * n, verb="write")]
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))), config(stream("roce", "message", sources=1), sources=1), status=None)
        self.assertEqual(result.packets, {"dropped.unbound": 15})
        self.assertIn('lost      15: packets are of messages that came whole and carry no immediate', result.output)
        self.assertIn('set event = "format"', result.output)
        self.assertNotIn("FIRST or LAST packet never came", result.output)

    def test_acknowledgements_that_nobody_hears(self):
        frames = [frame for n in range(5) for frame in roce_message(bytes(2500), 3 * n, n, kind=RC)]
        settings = config(stream("roce", "message", sources=1, service='"rc"', peer="{ qp = 0x77 }", psn="[0]"), sources=1)
        result = self.replay(self.path("c.pcap", pcap_bytes(stamped(4 * frames))), settings, status=None)
        self.assertEqual(result.report["events"]["complete"], 5)
        self.assertIn("its sender hears no acknowledgement. weir answers to queue pair 0x77", result.output)
        # A few repeats are what the connection is made for.
        result = self.replay(self.path("d.pcap", pcap_bytes(stamped(frames + frames[-3:]))), settings, status=None)
        self.assertNotIn("hears no acknowledgement", result.output)


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
