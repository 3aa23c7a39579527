#!/usr/bin/env python3
"""What `weir replay` has written: a flipped byte anywhere is noticed, and what a killed run leaves behind can be read."""
import json
import random
import shutil
import signal
import subprocess
import time

from packets import EJFAT_PORT, ejfat, pcap_bytes, stamped, udp
from support import FUSED, TIMEOUT_S, WEIR, ZSTD, Case, config, main, stream, weir

POSITIONS = 250


class Damage(Case):
    def test_any_flipped_byte_is_noticed(self):
        seed = random.SystemRandom().randrange(1 << 30)
        print(f"# seed {seed}")
        r = random.Random(seed)
        frames = [udp(ejfat(n, bytes([n]) * 300 + r.randbytes(300), offset=600 * p, total=1800), EJFAT_PORT)
                  for n in range(1, 9) for p in range(3) if (n, p) != (4, 1)]
        run = self.replay(self.path("c.pcap", pcap_bytes(stamped(frames))),
                          config(stream(format="ejfat", sources=1), sources=1, more=ZSTD)).run
        files = sorted(run.iterdir())
        self.assertEqual([f.name for f in files], ["events-000000.weir", "index.weir", "manifest.json"])
        sizes = [f.stat().st_size for f in files]
        # As many in each file, whatever its size, and the ends of all.
        places = [(f, at) for f, size in zip(files, sizes) for at in {0, size - 1, *(r.randrange(size) for _ in range(POSITIONS // len(files)))}]
        for file, at in places:
            data = bytearray(file.read_bytes())
            data[at] ^= 1 << r.randrange(8)
            whole = file.read_bytes()
            file.write_bytes(data)
            status = weir("inspect", run, "--json", status=None, trap=False).returncode
            file.write_bytes(whole)
            self.assertEqual(status, 1, f"{file.name}, byte {at}: {whole[at]:#x} became {data[at]:#x}")
        for file in files:
            whole = file.read_bytes()
            for data in (whole[:-1], whole + b"\0", b""):
                file.write_bytes(data)
                self.assertEqual(weir("inspect", run, "--json", status=None, trap=False).returncode, 1, file.name)
            file.unlink()
            self.assertEqual(weir("inspect", run, "--json", status=None, trap=False).returncode, 1, f"without {file.name}")
            file.write_bytes(whole)
        weir("inspect", run, trap=False)


class Killed(Case):
    def test_a_replay_closes_what_a_killed_one_left(self):
        frames = [udp(ejfat(n, bytes([n]) * 500), EJFAT_PORT) for n in range(1, 6)]
        capture = self.path("c.pcap", pcap_bytes(stamped(frames)))
        runs = self.folder / "runs"
        settings = self.path("c.toml", config(stream(format="ejfat", sources=1), sources=1, sink=f'kind = "events"\npath = "{runs}/run-{{run:06}}"'))
        replay = ("replay", capture, "--config", settings)
        weir(*replay, trap=False)
        # As a kill leaves it: hidden, and without what is written last.
        hidden = runs / ".run-000001.part"
        (runs / "run-000001").rename(hidden)
        for name in ("index.weir", "manifest.json"):
            (hidden / name).unlink()
        done = weir(*replay, trap=False)
        self.assertIn("run-000001 from a run that was interrupted: 5 events", done.stdout + done.stderr)
        self.assertEqual(sorted(path.name for path in runs.iterdir() if path.is_dir()), ["run-000001", "run-000002"])
        for name, interrupted in (("run-000001", True), ("run-000002", False)):
            manifest = json.loads((runs / name / "manifest.json").read_text())
            self.assertEqual("interrupted" in manifest, interrupted, name)
        found = json.loads(weir("inspect", runs / "run-000001", "--json", status=None, trap=False).stdout)
        self.assertEqual([event["id"] for event in found["events"]], list(range(1, 6)))

    def test_what_a_killed_run_leaves(self):
        # 400 events over 20 s as recorded, of which the first tenth is waited for; what is a sync interval old must be there.
        frames = [udp(ejfat(n, bytes([n & 0xff]) * 5000), EJFAT_PORT) for n in range(1, 401)]
        capture = self.path("c.pcap", pcap_bytes(stamped(frames, step_ns=50_000_000)))
        settings = self.path("c.toml", config(stream(format="ejfat", sources=1), sources=1,
                                              sink='kind = "events"\npath = "unused"\nsync_ms = 50', more=FUSED))
        hidden = self.folder / ".out.part"
        out = self.folder / "out"
        process = subprocess.Popen([WEIR, "replay", capture, "--config", settings, "--out", out, "--pace", "x2", "--quiet"])
        try:
            deadline = time.monotonic() + TIMEOUT_S
            segment = hidden / "events-000000.weir"
            while time.monotonic() < deadline and (not segment.exists() or segment.stat().st_size < 200_000):
                time.sleep(0.02)
            self.assertIsNone(process.poll(), "still running")
            size = segment.stat().st_size
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assertFalse(out.exists())
        done = weir("inspect", hidden, "--json", "--digest", "sha256", status=1, trap=False)
        found = json.loads(done.stdout)
        self.assertIs(found["verified"], False)
        ids = [e["id"] for e in found["events"]]
        self.assertEqual(ids, list(range(1, len(ids) + 1)))
        self.assertGreaterEqual(len(ids), (size - 20_000) // 5500)
        self.assertLess(len(ids), 400)
        self.assertTrue(all(e["complete"] and e["bytes"] == 5000 for e in found["events"]))
        # It says what is missing, names what is there, and a second run does not touch it.
        text = weir("inspect", hidden, status=1, trap=False)
        self.assertIn("manifest", text.stdout + text.stderr)
        again = weir("replay", capture, "--config", settings, "--out", out, status=1)
        self.assertIn(str(hidden), again.stderr)
        # Torn in the middle of a block, as after a power failure: one event less.
        copy = self.folder / ".torn.part"
        shutil.copytree(hidden, copy)
        data = (copy / "events-000000.weir").read_bytes()
        (copy / "events-000000.weir").write_bytes(data[:len(data) - 700])
        torn = json.loads(weir("inspect", copy, "--json", status=1, trap=False).stdout)
        self.assertEqual([e["id"] for e in torn["events"]], ids[:-1])


if __name__ == "__main__":
    main()
