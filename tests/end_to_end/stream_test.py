#!/usr/bin/env python3
"""`[[sink]] kind = "stream"` and `weir receive`: what a program of somebody else decodes is, pixel for pixel, what is in the event
file of the same run; what is not sent is counted by cause; and a series that is received is the run again."""
import json
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy_python
numpy_python.under_python_with("zmq", "cbor2", "lz4", packages="python3-zmq, python3-cbor2, python3-lz4")
import cbor2
import lz4.block
import numpy as np
import zmq
import zstandard

from packets import JUNGFRAU_PORT, jungfrau, pcap_bytes, stamped, udp
from sent_images import Sent
from support import ROOT, TIMEOUT_S, WEIR, Case, config, main, stream, weir

TYPES = {64: "u1", 69: "<u2", 70: "<u4", 72: "i1", 77: "<i2", 78: "<i4", 84: "<f2", 85: "<f4", 86: "<f8"}
EVENTS = 12
ROWS, COLUMNS = 512, 1024
PATIENCE_MS = 20000


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def unpack(algorithm, size, data):
    (total, block), at, out = struct.unpack_from(">QI", data), 12, []
    for done in range(0, total, block):
        length, n = struct.unpack_from(">I", data, at)[0], min(block, total - done)
        packed = data[at + 4:at + 4 + length]
        plain = lz4.block.decompress(packed, uncompressed_size=n) if algorithm == "bslz4" else zstandard.decompress(packed, n)
        bits = np.unpackbits(np.frombuffer(plain, "u1").reshape(8 * size, -1), axis=1, bitorder="little")
        out.append(np.packbits(bits.T, axis=1, bitorder="little").tobytes())
        at += 4 + length
    assert at == len(data), "bytes are left over"
    return b"".join(out)


def pack(size, data):
    """As a detector's server does."""
    out = [struct.pack(">QI", len(data), 8192)]
    for at in range(0, len(data), 8192):
        block = np.frombuffer(data[at:at + 8192], "u1").reshape(-1, size)
        bits = np.unpackbits(block, axis=1, bitorder="little").T
        packed = lz4.block.compress(np.packbits(bits, axis=1, bitorder="little").tobytes(), store_size=False)
        out += [struct.pack(">I", len(packed)), packed]
    return b"".join(out)


class Decoder:
    def __init__(self):
        self.algorithms = set()

    def tag_hook(self, decoder, tag):
        if tag.tag == 56500:
            self.algorithms.add(tag.value[0])
            return unpack(*tag.value)
        if tag.tag in TYPES:
            return np.frombuffer(tag.value, TYPES[tag.tag])
        if tag.tag == 40:
            return tag.value[1].reshape(tag.value[0])
        return tag

    def decode(self, data):
        assert data.startswith(b"\xd9\xd9\xf7"), "a message says that it is CBOR: tag 55799"
        message = cbor2.loads(data, tag_hook=self.tag_hook)
        assert next(iter(message)) == "type", message
        return message


class Consumer:
    """Takes messages until the end, in a thread of its own."""
    def __init__(self, port, most=None, queue=1000):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.PULL)
        self.socket.setsockopt(zmq.RCVHWM, queue)
        self.socket.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(f"tcp://127.0.0.1:{port}")
        self.decoder, self.messages, self.most = Decoder(), [], most
        self.error = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while self.most is None or len(self.messages) < self.most:
                self.messages.append(self.decoder.decode(self.socket.recv()))
                if self.messages[-1]["type"] == "end":
                    break
        except Exception as error:
            self.error = error

    def finish(self):
        self.thread.join(60)
        self.close()
        if self.error is not None:
            raise self.error
        return self.messages

    def close(self):
        self.socket.close(0)
        self.context.term()

    def of(self, kind):
        return [message for message in self.messages if message["type"] == kind]


def sinks(port, *keys, events=True):
    text = 'kind = "events"\npath = "unused"\n[[sink]]\n' if events else ""
    return text + f'kind = "stream"\nlisten = "tcp://127.0.0.1:{port}"\n' + "\n".join(keys)


WAIT = ('on_full = "wait"', "start_timeout_ms = 20000", "linger_ms = 20000")


class Stream(Case):
    def setUp(self):
        super().setUp()
        noise = np.random.default_rng(5)
        self.frames, packets = {}, []
        self.lost = {(3, 1, 7), (3, 1, 8), (5, 0, 0)}  # event, module, packet
        for number in range(1, EVENTS + 1):
            frames = (2700 + noise.normal(0, 6, (2, ROWS, COLUMNS))).astype("<u2")
            self.frames[number] = frames
            for module in range(2):
                for k in range(128):
                    if (number, module, k) not in self.lost:
                        packets.append(udp(jungfrau(number, k, frames[module, 4 * k:4 * k + 4].tobytes(), module=module), JUNGFRAU_PORT + module))
        self.capture = self.path("frames.pcap", pcap_bytes(stamped(packets)))
        self.port = free_port()

    def text(self, sink, more=""):
        return config(stream(sources=2), sources=2, sink=sink, more=more)

    def exported(self, run, event):
        out = self.folder / "exported.bin"
        out.unlink(missing_ok=True)
        weir("inspect", run, "--export", event, out, trap=False)
        return out.read_bytes()

    def energies(self, output):
        pedestals = [str(self.path(f"pedestal{g}.f32", np.full((2 * ROWS, COLUMNS), 2700 + 11000 * (g > 0), "<f4").tobytes())) for g in range(3)]
        return f'[[reduce]]\nkind = "jungfrau"\npedestal = {json.dumps(pedestals)}\ngain = [41.0, -1.439, -0.1145]\noutput = "{output}"\n'

    def compare(self, reducers, algorithm, dtype):
        port = free_port()
        consumer = Consumer(port)
        result = self.replay(self.capture, self.text(sinks(port, *WAIT), reducers))
        messages = consumer.finish()
        self.assertEqual([m["type"] for m in messages], ["start"] + ["image"] * EVENTS + ["end"])
        start, end = messages[0], messages[-1]
        self.assertEqual((start["image_size_x"], start["image_size_y"]), (COLUMNS, 2 * ROWS))
        self.assertEqual(np.dtype(start["image_dtype"]), np.dtype(dtype))
        self.assertEqual([m["image_id"] for m in consumer.of("image")], list(range(EVENTS)))
        for message in consumer.of("image"):
            image, said = message["data"]["default"], message["user_data"]
            self.assertEqual((image.shape, image.dtype), ((2 * ROWS, COLUMNS), np.dtype(dtype)))
            inspected = result.events[said["epoch"], said["event"]]
            self.assertEqual(said["complete"], inspected["complete"])
            missing = {s["id"]: s["missing"] for s in said["sources"] if "missing" in s}
            self.assertEqual(missing, {s["id"]: s["missing"] for s in inspected["sources"] if s["missing"]})
            expected = np.frombuffer(self.exported(result.run, said["event"]), dtype).reshape(image.shape)
            if said["content"] == "received":
                expected = expected.copy()
                for source, ranges in missing.items():
                    module = expected.reshape(2, -1)[source].view("u1")
                    for offset, count in ranges:
                        module[offset:offset + count] = 0xff
            np.testing.assert_array_equal(image, expected)
            if said["content"] == "received" and said["complete"]:
                np.testing.assert_array_equal(image.reshape(2, ROWS, COLUMNS), self.frames[said["event"]])
        self.assertEqual(end["user_data"], {"events": EVENTS, "sent": EVENTS, "dropped": {"no_consumer": 0, "consumer_behind": 0, "too_late": 0}})
        self.assertEqual(consumer.decoder.algorithms, {algorithm} if algorithm else set())
        sink = result.report["sinks"][1]
        self.assertEqual((sink["kind"], sink["written"], sink["synced"], sink["lost"]), ("stream", EVENTS, EVENTS, 0))
        self.assertEqual(sink["dropped"], {"no_consumer": 0, "consumer_behind": 0, "too_late": 0})
        self.assertEqual([c["sent"] for c in sink["consumers"]], [EVENTS])
        return result

    def test_frames_pixel_for_pixel(self):
        self.compare("", None, "u2")

    def test_packed_frames(self):
        self.compare('[[reduce]]\nkind = "pack"\ncodec = "bitshuffle-lz4"\n', "bslz4", "u2")
        self.compare('[[reduce]]\nkind = "pack"\ncodec = "bitshuffle-zstd"\n', "bszstd", "u2")
        self.compare('[[reduce]]\nkind = "pack"\ncodec = "bits"\n', None, "u2")  # has no name in a stream

    def test_energies(self):
        self.compare(self.energies("f32"), None, "f4")
        self.compare(self.energies("i16") + '[[reduce]]\nkind = "pack"\ncodec = "bitshuffle-lz4"\n', "bslz4", "i2")

    def test_eiger_has_a_number_for_each_pixel(self):
        for bits, dtype in ((4, "u1"), (8, "u1"), (12, "<u2"), (32, "<u4")):
            with self.subTest(bits=bits):
                port = free_port()
                capture, _ = self.send(f"eiger{bits}.pcap", "--format", "eiger", "--sources", 2, "--events", 4, "--seed", 3, "--bit-depth", bits,
                                       "--rows", 64, "--drop", 0.1)
                consumer = Consumer(port)
                self.replay(capture, config(stream(format="eiger", bit_depth=bits, rows=64), sink=sinks(port, *WAIT)))
                start, sent = consumer.finish()[0], Sent(capture, bits, 64, 512)
                self.assertEqual((np.dtype(start["image_dtype"]), start["image_size_x"], start["image_size_y"]), (np.dtype(dtype), 512, 128))
                images = {message["user_data"]["event"]: message["data"]["default"] for message in consumer.of("image")}
                self.assertEqual(set(images), set(sent.frames))
                for number, (pixels, came) in sent.frames.items():
                    np.testing.assert_array_equal(images[number], np.where(came, pixels, np.iinfo(dtype).max).reshape(128, 512))

    def test_events_without_pixels_are_byte_strings(self):
        capture, _ = self.send("e.pcap", "--format", "ejfat", "--sources", "2", "--bytes", "70000", "--bytes-min", "10", "--events", "9")
        consumer = Consumer(self.port)
        result = self.replay(capture, config(stream(format="ejfat", sources=2), sources=2, sink=sinks(self.port, *WAIT)))
        consumer.finish()
        self.assertEqual(len(consumer.of("event")), 9)
        self.assertNotIn("image_dtype", consumer.of("start")[0])
        for message in consumer.of("event"):
            data = message["data"]
            self.assertEqual(list(data), ["0", "1"])
            self.assertEqual(data["0"] + data["1"], self.exported(result.run, message["user_data"]["event"]))

    # --- consumers that are not as they should be --------------------------------------------------------------------

    def test_nobody_is_there(self):
        result = self.replay(self.capture, self.text(sinks(self.port, "start_timeout_ms = 0", "linger_ms = 0")), "--require-lossless=known", status=3)
        sink = result.report["sinks"][1]
        self.assertEqual((sink["written"], sink["dropped"]["no_consumer"]), (0, EVENTS))
        # What the file has is no loss of the run: it is not lossless for the packets that never came.
        self.assertEqual(result.report["events"]["dropped"]["not_taken"], 0)
        self.assertEqual(result.report["events"]["written"], EVENTS)
        self.assertFalse(any("not written" in line for line in result.report["evidence"]), result.report["evidence"])

    def test_nobody_is_there_and_nothing_else_has_the_events(self):
        settings = self.path("only.toml", self.text(sinks(self.port, "start_timeout_ms = 0", "linger_ms = 0", events=False)))
        report = self.folder / "only.json"
        done = weir("replay", self.capture, "--config", settings, "--report", report, "--require-lossless", status=3)
        report = json.loads(report.read_text())
        self.assertIs(report["balanced"], True)
        self.assertEqual((report["events"]["written"], report["events"]["dropped"]["not_taken"]), (0, EVENTS))
        self.assertEqual(report["lossless"], "no")
        self.assertTrue(any(f"{EVENTS} closed events not written" in line for line in report["evidence"]), report["evidence"])
        self.assertTrue(any(f["counter"] == "events.dropped.not_taken" for f in report["findings"]), report["findings"])
        self.assertIn("no_consumer", done.stdout + done.stderr)
        self.assertNotIn("path", report)

    def test_a_slow_consumer_does_not_hold_up_the_run(self):
        consumer = Consumer(self.port, most=1, queue=1)  # takes the start, and then nothing any more
        result = self.replay(self.capture, self.text(sinks(self.port, "start_timeout_ms = 20000", "queue = 1", "linger_ms = 0")), "--loop", "20")
        consumer.finish()
        sink = result.report["sinks"][1]
        self.assertEqual(result.report["events"]["written"], 20 * EVENTS)
        self.assertEqual(sink["written"] + sum(sink["dropped"].values()), 20 * EVENTS)
        self.assertGreater(sink["dropped"]["consumer_behind"], 0)
        self.assertEqual(sink["dropped"]["no_consumer"], 0)

    def test_one_dies_and_another_comes_and_the_run_waits(self):
        first = Consumer(self.port, most=4)
        settings = self.path("wait.toml", self.text(sinks(self.port, *WAIT, "queue = 1", events=False)))
        report = self.folder / "wait.json"
        process = subprocess.Popen([WEIR, "replay", self.capture, "--config", settings, "--report", report, "--require-lossless", "--loop", "30"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        first.finish()
        time.sleep(0.2)  # for nothing to happen
        self.assertIsNone(process.poll(), "it waits")
        second = Consumer(self.port)
        second.finish()
        said = process.communicate(timeout=TIMEOUT_S)[0]
        self.assertEqual(process.returncode, 3, said)
        ids = [m["image_id"] for m in first.of("image")]
        self.assertEqual(ids, [0, 1, 2])
        self.assertEqual(second.messages[0]["type"], "start")
        ids = [m["image_id"] for m in second.of("image")]
        self.assertEqual(ids, list(range(ids[0], 30 * EVENTS)))
        self.assertLessEqual(second.messages[0]["user_data"]["next_image_id"], ids[0])
        report = json.loads(report.read_text())
        (sink,) = report["sinks"]
        self.assertEqual((sink["written"], sum(sink["dropped"].values()), sink["interrupted"]), (30 * EVENTS, 0, 1))
        self.assertTrue(any("went away 1 time" in line for line in report["evidence"]) or report["lossless"] == "no", report["evidence"])
        self.assertIs(report["balanced"], True)

    def test_a_run_that_waits_can_be_stopped(self):
        consumer = Consumer(self.port, most=2)  # the start and an image: then the run has begun
        settings = self.path("stop.toml", self.text(sinks(self.port, 'on_full = "wait"', "start_timeout_ms = 20000", "queue = 1", "linger_ms = 50", events=False)))
        report = self.folder / "stop.json"
        process = subprocess.Popen([WEIR, "replay", self.capture, "--config", settings, "--report", report, "--loop", "1000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        consumer.finish()
        time.sleep(0.2)  # for nothing to happen
        self.assertIsNone(process.poll(), "it waits")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=TIMEOUT_S)[0]
        self.assertEqual(process.returncode, 0, said)
        report = json.loads(report.read_text())
        self.assertIs(report["balanced"], True)
        self.assertGreater(report["events"]["dropped"]["not_taken"], 0)

    def test_previews(self):
        other = free_port()
        context = zmq.Context()
        self.addCleanup(context.term)
        subscriber = context.socket(zmq.SUB)
        self.addCleanup(subscriber.close, 0)
        subscriber.setsockopt(zmq.SUBSCRIBE, b"")
        subscriber.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
        subscriber.connect(f"tcp://127.0.0.1:{other}")
        consumer = Consumer(self.port)
        self.replay(self.capture, self.text(sinks(self.port, *WAIT, f'previews = "tcp://127.0.0.1:{other}"', "preview_every = 4", "preview_bin = 8")), "--loop", "4")
        consumer.finish()
        decoder, found = Decoder(), 0
        while (message := decoder.decode(subscriber.recv()))["type"] != "end":
            if message["type"] == "start":
                continue
            found += 1
            image, number = message["data"]["default"], message["user_data"]["event"]
            self.assertEqual((message["image_id"] % 4, image.shape, image.dtype), (0, (2 * ROWS // 8, COLUMNS // 8), np.dtype("f4")))
            if message["user_data"]["complete"] and number in self.frames:
                whole = self.frames[number].reshape(2 * ROWS // 8, 8, COLUMNS // 8, 8).astype("f8")
                np.testing.assert_allclose(image, whole.mean(axis=(1, 3)), rtol=1e-5)
        self.assertGreater(found, 0)

    # --- weir receive ------------------------------------------------------------------------------------------------

    def receiving(self, *args):
        process = subprocess.Popen([WEIR, "receive", f"tcp://127.0.0.1:{self.port}", "--out", self.folder / "received", *map(str, args)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def test_received_is_the_same_run(self):
        for name, reducers in {"plain": "", "packed": '[[reduce]]\nkind = "pack"\ncodec = "bitshuffle-lz4"\n',
                               "energies": self.energies("i16") + '[[reduce]]\nkind = "pack"\ncodec = "bitshuffle-zstd"\n'}.items():
            with self.subTest(name):
                self.port = free_port()
                process = self.receiving("--series", 1, "--json", "--report", self.folder / f"{name}.json")
                result = self.replay(self.capture, self.text(sinks(self.port, *WAIT), reducers))
                out, error = process.communicate(timeout=TIMEOUT_S)
                self.assertEqual(process.returncode, 0, out + error)
                account = json.loads(out)
                self.assertEqual(account, json.loads((self.folder / f"{name}.json").read_text()))
                (series,) = account["series"]
                self.assertEqual((series["received"], series["missing"], series["incomplete"], series["announced"]), (EVENTS, 0, 2, EVENTS))
                inspected = json.loads(weir("inspect", series["path"], "--json", "--digest", "sha256", trap=False).stdout)
                self.assertIs(inspected["verified"], True)
                self.assertEqual({(e["epoch"], e["id"]): e["sha256"] for e in inspected["events"]}, result.digests)
                weir("diff", result.run, series["path"], "--times", trap=False)
                if name == "packed":  # as it came, not unpacked and kept
                    self.assertLess(sum(f.stat().st_size for f in pathlib.Path(series["path"]).glob("events-*.weir")), 0.8 * EVENTS * 2 * ROWS * COLUMNS * 2)

    def test_received_of_another_sender(self):
        process = self.receiving("--series", 1, "--json", "--require-lossless")
        context = zmq.Context()
        self.addCleanup(context.term)
        server = context.socket(zmq.PUSH)
        self.addCleanup(server.close, 0)
        server.bind(f"tcp://127.0.0.1:{self.port}")
        ids = {"series_id": 44, "series_unique_id": "01GG7EQ2"}
        images = np.random.default_rng(2).integers(0, 50, (6, 2, 96, 128)).astype("<u4")

        def typed(image, packed):
            data = image.tobytes()
            return cbor2.CBORTag(40, [list(image.shape), cbor2.CBORTag(70, cbor2.CBORTag(56500, ["bslz4", 4, pack(4, data)]) if packed else data)])
        server.send(cbor2.dumps({"type": "start", **ids, "number_of_images": 6, "channels": ["threshold_1", "threshold_2"], "image_dtype": "uint32"}))
        for i, image in enumerate(images):
            server.send(cbor2.dumps({"type": "image", **ids, "image_id": i, "data": {f"threshold_{c + 1}": typed(image[c], i % 2) for c in range(2)}}))
        server.send(cbor2.dumps({"type": "end", **ids}))
        out, error = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0, out + error)
        account = json.loads(out)
        self.assertEqual((account["lossless"], account["series"][0]["received"]), ("yes", 6))
        path = account["series"][0]["path"]
        self.assertIs(json.loads(weir("inspect", path, "--json", trap=False).stdout)["verified"], True)
        for i, image in enumerate(images):
            self.assertEqual(self.exported(path, i), image.tobytes())

    def test_what_cannot_be_understood_is_counted(self):
        process = self.receiving("--idle-exit", "1", "--json", "--require-lossless=known")
        context = zmq.Context()
        self.addCleanup(context.term)
        server = context.socket(zmq.PUSH)
        self.addCleanup(server.close, 0)
        server.bind(f"tcp://127.0.0.1:{self.port}")
        ids = {"series_id": 1, "series_unique_id": "../../x"}
        image = cbor2.dumps({"type": "image", **ids, "image_id": 0, "data": {"a": cbor2.CBORTag(40, [[2, 2], cbor2.CBORTag(69, b"12345678")])}})
        for message in (b"", b"\xff", b"\x9b" + b"\xff" * 8, b"\xc1" * 100000, cbor2.dumps([1]), image[:-1], image.replace(b"\x82\x02\x02", b"\x82\x02\x03"), image):
            server.send(message)
        out, error = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 3, out + error)
        account = json.loads(out)
        self.assertEqual((account["messages"], account["malformed"], account["events"], account["lossless"]), (8, 7, 1, "no"))
        self.assertEqual(len(account["problems"]), 7)
        path = pathlib.Path(account["series"][0]["path"])
        self.assertEqual(path.parent, self.folder / "received")
        self.assertIs(json.loads(weir("inspect", path, "--json", trap=False).stdout)["verified"], True)

    def test_what_receive_refuses(self):
        for args, words in ({(): "found 0 addresses", ("tcp://127.0.0.1:1",): "needs --out", ("nowhere", "--out", "x"): "accepted: tcp://HOST:PORT"}.items()):
            self.assertIn(words, weir("receive", *args, status=2, trap=False).stderr)
        done = weir("receive", f"tcp://127.0.0.1:{self.port}", "--out", self.folder / "received", "--idle-exit", "0.2", status=1, trap=False)
        self.assertIn("no event came", done.stderr)

    # --- what the guide says -----------------------------------------------------------------------------------------

    def test_the_client_in_the_guide(self):
        text = (ROOT / "docs" / "guides" / "STREAMING.md").read_text()
        client = self.path("client.py", re.search(r"```python\n(.*?)```", text, re.S)[1])
        process = subprocess.Popen([sys.executable, client, f"tcp://127.0.0.1:{self.port}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        self.replay(self.capture, self.text(sinks(self.port, *WAIT), '[[reduce]]\nkind = "pack"\ncodec = "bitshuffle-lz4"\n'))
        lines = process.communicate(timeout=TIMEOUT_S)[0].splitlines()
        self.assertEqual(process.returncode, 0, lines)
        self.assertEqual(len(lines), EVENTS + 1, lines)
        self.assertEqual(lines[1], f"1 2 ({2 * ROWS}, {COLUMNS}) uint16 {self.frames[2].sum()}")
        self.assertIn(f"'sent': {EVENTS}", lines[-1])


if __name__ == "__main__":
    main()
