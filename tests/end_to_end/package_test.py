#!/usr/bin/env python3
"""The Python package python/weir as a scientist uses it: installed by pip, with slices and images, on a run that is still growing, and what
it says of itself. What it reads is compared with `weir inspect` in reader_test.py."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips

from packets import EJFAT_PORT, ejfat, pcap_bytes, stamped, udp
from support import ROOT, TIMEOUT_S, WEIR, Case, config, main, stream, weir as command

sys.path.insert(0, str(ROOT / "python"))
import numpy  # noqa: E402
import weir  # noqa: E402
from made_up_run import write_received  # noqa: E402
from weir import _crc32c  # noqa: E402


class Installed(Case):
    def test_pip_installs_it_from_the_tree(self):
        shutil.copytree(ROOT / "python", self.path("python"), ignore=shutil.ignore_patterns("__pycache__"))
        pip = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True)
        if pip.returncode != 0:
            self.skipTest("no pip for this Python")
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--target",
                               self.path("target"), self.path("python")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = subprocess.run([sys.executable, "-c", "import weir, importlib.metadata as m; print(weir.__file__, weir.__version__, m.version('weir'))"],
                              capture_output=True, text=True, env={"PYTHONPATH": str(self.path("target"))}, cwd=self.folder, check=True).stdout.split()
        version = re.search(r"^ *version : '(.*)'", (ROOT / "meson.build").read_text(), re.M)[1]
        self.assertEqual(said, [str(self.path("target") / "weir" / "__init__.py"), version, version])
        # All modules of the package are in it.
        self.assertEqual({p.name for p in (self.path("target") / "weir").glob("*.py")}, {p.name for p in (ROOT / "python" / "weir").glob("*.py")})


class Use(Case):
    def setUp(self):
        super().setUp()

        def event(number, **message):
            return number, [(0, 8, bytes([number]) * 8, []), (1, 8, *(([*message.values()] if message else [b"12345678", []])))]
        events = [event(5), event(3), event(4, came=b"1278", missing=[(2, 4)]), event(9)]
        self.run_path = write_received(self.path("run"), events, [19522, 19523])
        self.assertTrue(json.loads(command("inspect", self.run_path, "--json", trap=False).stdout)["verified"])

    def test_slices_and_negative_indices_count_places(self):
        with weir.open(self.run_path) as run:
            self.assertEqual([event.id for event in run], [3, 4, 5, 9])
            self.assertEqual((run[-1].id, run[-4].id, run[5].id), (9, 3, 5))
            self.assertEqual([event.id for event in run[1:3]], [4, 5])
            self.assertEqual([event.id for event in run[::-2]], [9, 4])
            some = run[1:]
            self.assertEqual((len(some), some[0].id, some[-1].id, [e.id for e in some[1:]]), (3, 4, 9, [5, 9]))
            self.assertEqual(len(run[7:]), 0)
            for wrong, error in ((-5, IndexError), (7, KeyError)):
                with self.assertRaises(error):
                    run[wrong]
            self.assertNotIn(-1, run)
        self.assertEqual(run[3].payload(source=0), b"\3" * 8)  # closed files are opened again

    def test_what_it_says_of_itself(self):
        run = weir.open(self.run_path)
        for word in ("run", "made up", "finished", "4 events", "lossless: unknown"):
            self.assertIn(word, repr(run))
        self.assertRegex(repr(run[3]), "0:3: complete, 2 sources, 16 bytes")
        self.assertRegex(repr(run[4]), "incomplete \\(timeout\\)")
        self.assertRegex(repr(run[1:]), "3 events of .*: 0:4 to 0:9")
        self.assertRegex(repr(run[9:]), "0 events")
        (self.run_path / "manifest.json").unlink()
        self.assertIn("not closed", repr(weir.open(self.run_path)))

    def test_nothing_missing_has_no_mask(self):
        run = weir.open(self.run_path)
        self.assertIs(run[3].array("<u2", 4).mask, numpy.ma.nomask)
        self.assertIs(run[4].array("<u2", 4, source=0).mask, numpy.ma.nomask)
        numpy.testing.assert_array_equal(run[4].array("<u2", 4).mask, [[False] * 4, [False, True, True, False]])
        self.assertEqual(run[4].array("<u2", 4, fill=7)[1].tolist(), [0x3231, 7, 7, 0x3837])
        self.assertEqual(run[4].array("<u4", 2).mask.tolist(), [[False, False], [True, True]])

    def test_errors_are_those_that_are_promised(self):
        run = weir.open(self.run_path)
        for wrong in (("no such type",), ("<u2", (8, 1024)), ("<u2", "wide"), ("<u8", 1, 7), ("O",)):
            with self.assertRaises(weir.RunError, msg=wrong):
                run[3].array(*wrong)

    def test_lossless_is_what_the_ledger_says(self):
        self.assertEqual(weir.open(self.run_path).lossless, "unknown")
        self.assertRegex(" ".join(weir.open(self.run_path).evidence), "older weir")
        for said, evidence in (("yes", ["every number from 1 to 4 came"]), ("no", ["3 packets were lost", "1 event"]), ("unknown", [])):
            run = weir.open(write_received(self.path(said), [], [19522], ledger={"lossless": said, "evidence": evidence}))
            self.assertEqual((run.lossless, run.evidence), (said, evidence))
        odd = weir.open(write_received(self.path("odd"), [], [19522], ledger={"lossless": True, "evidence": "none"}))
        self.assertEqual(odd.lossless, "unknown")
        (self.run_path / "manifest.json").unlink()
        killed = weir.open(self.run_path)
        self.assertEqual(killed.lossless, "unknown")
        self.assertRegex(" ".join(killed.evidence), "no manifest.*nobody can say")


class Images(Case):
    def test_raw_images_have_their_shape(self):
        cases = {"jungfrau": ((), "", "<u2", (512, 1024)), "moench": ((), "", "<u2", (400, 400)),
                 "eiger": (("--bit-depth", "32"), "bit_depth = 32\n", "<u4", (256, 512))}
        for name, (arguments, keys, dtype, shape) in cases.items():
            with self.subTest(name):
                capture, _ = self.send(f"{name}.pcap", "--format", name, "--sources", "2", "--events", "2", *arguments)
                run = weir.open(self.replay(capture, config(stream(format=name) + keys)).run)
                self.assertEqual(run.image, (dtype, 2, *shape))
                event = run[-1]
                image = event.array()
                self.assertEqual((image.shape, image.dtype), ((2, *shape), numpy.dtype(dtype)))
                self.assertEqual(image.tobytes(), event.payload())
                self.assertEqual(event.array(source=1).shape, shape)
                self.assertEqual(event.array("u1").shape, (len(event.payload()),))
                self.assertIn(f"2 x {shape[0]} x {shape[1]}", repr(run))

    def test_interfaces_share_the_rows(self):
        capture, _ = self.send("two.pcap", "--format", "jungfrau", "--interfaces", "2", "--rows", "256", "--sources", "2", "--events", "1")
        run = weir.open(self.replay(capture, config(stream(sources=4) + "interfaces = 2\nrows = 256\n", sources=4)).run)
        self.assertEqual(run.image, ("<u2", 4, 128, 1024))
        self.assertEqual(run[-1].array().shape, (4, 128, 1024))

    def test_where_it_is_not_known_arrays_are_bytes(self):
        frames = [udp(ejfat(n, b"12345678"), EJFAT_PORT + s) for n in (1, 2) for s in (0, 1)]
        run = weir.open(self.replay(self.path("e.pcap", pcap_bytes(stamped(frames))), config(stream(format="ejfat"))).run)
        self.assertIsNone(run.image)
        self.assertEqual(run[-1].array().shape, (16,))


class Growing(Case):
    """A live run of the built-in detector, followed. A busy machine may lose some of it."""

    def setUp(self):
        super().setUp()
        self.out = self.path("run")
        text = config(stream(), events='memory = "64MiB"\n', more='[lcores]\nidle = "sleep"\n')
        settings = self.path("c.toml", text.replace("net_null0", "sim,format=jungfrau,rate=40"))
        self.process = subprocess.Popen([WEIR, "run", "--config", settings, "--out", self.out, "--quiet"])
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.run_ = self.opened()

    def opened(self):
        """As soon as something of it is there. By the name that it will have."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            try:
                run = weir.open(self.out)
                if len(run):
                    return run
            except weir.RunError:
                pass
            time.sleep(0.05)
        self.fail("nothing was written")

    def stop(self):
        self.process.send_signal(signal.SIGINT)

    def test_every_event_comes_once(self):
        run, found = self.run_, []
        self.assertEqual((run.closed, run.being_written, run.lossless), (False, True, "unknown"))
        self.assertIn("being written", repr(run))
        for event in run.follow(poll_s=0.01, timeout_s=TIMEOUT_S):
            found.append(event.id)
            self.assertEqual(event.array().shape, (2, 512, 1024))
            if len(found) == 50:
                self.stop()
        self.assertEqual(self.process.wait(TIMEOUT_S), 0)
        self.assertEqual((len(found), len(set(found))), (run.manifest["events"],) * 2)
        self.assertEqual((run.closed, run.being_written, run.path.name), (True, False, "run"))
        self.assertEqual((sorted(found), run.verify()), ([event.id for event in run], []))

    def test_refresh_finds_more(self):
        run = self.run_
        before = len(run)
        while len(self.opened()) <= before:
            time.sleep(0.01)
        self.stop()
        self.assertEqual(self.process.wait(TIMEOUT_S), 0)
        self.assertTrue(run.refresh())
        self.assertEqual((len(run), run.closed), (run.manifest["events"], True))
        self.assertGreater(len(run), before)
        self.assertFalse(run.refresh())

    def test_a_run_that_was_ended_by_force_ends_it_too(self):
        self.process.kill()
        self.process.wait()
        found = [event.id for event in self.run_.follow(poll_s=0.01)]
        self.assertGreater(len(found), 0)
        self.assertEqual((self.run_.closed, self.run_.being_written), (False, False))

    def test_following_gives_up_when_nothing_comes(self):
        self.process.send_signal(signal.SIGSTOP)
        found = list(self.run_.follow(poll_s=0.01, timeout_s=0.1))
        self.assertGreater(len(found), 0)
        self.assertEqual((self.run_.closed, self.run_.being_written), (False, True))


class Checksums(Case):
    def test_all_implementations_give_the_same(self):
        data = numpy.random.default_rng(1).integers(0, 256, 300_000, dtype=numpy.uint8)
        for name in ("isal", "package"):
            try:
                _, function = _crc32c.chosen([name])
            except ImportError:
                print(f"# no CRC-32C by {name}")
                continue
            for size in (0, 1, 60, 64, 4095, 4096, 100_001, 300_000):
                for start in (0, 7):
                    for part in (data[start:start + size], memoryview(data)[start:start + size], data[start:start + size].tobytes()):
                        self.assertEqual(function(part, 77), _crc32c.by_numpy(bytes(part), 77), (name, size, start))

    def test_damage_is_found_by_each(self):
        run = write_received(self.path("run"), [(1, [(0, 5000, bytes(5000), [])])], [19522])
        file = run / "events-000000.weir"
        data = bytearray(file.read_bytes())
        data[-2000] ^= 4
        file.write_bytes(data)
        program = "import sys, weir\ntry:\n    weir.open(sys.argv[1])[1].payload()\nexcept weir.RunError as error:\n    print(error)"
        for name in _crc32c.IMPLEMENTATIONS:
            done = subprocess.run([sys.executable, "-c", program, str(run)], capture_output=True, text=True, cwd=ROOT / "python",
                                  env={**os.environ, "WEIR_CRC32C": name})
            if "no CRC-32C of" not in done.stderr:
                self.assertIn("does not match its checksum", done.stdout, name + done.stderr)


if __name__ == "__main__":
    main()
