"""Reads the pcapng files that weir writes, by the draft's rules; capinfos looks at them too, where it is installed."""
import shutil
import struct
import subprocess


def options_of(body):
    options = []
    while len(body) >= 4:
        code, length = struct.unpack_from("<HH", body)
        if code == 0:
            break
        options.append((code, body[4:4 + length]))
        body = body[4 + (length + 3) // 4 * 4:]
    return options


class Pcapng:
    """A whole file: section comments, interface names, packets, statistics."""

    def __init__(self, path):
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout
        self.packets, self.statistics, self.names, self.dropped = [], [], [], 0
        self.interfaces = []  # of each packet
        at = 0
        while at < len(data):
            kind, length = struct.unpack_from("<II", data, at)
            assert length % 4 == 0 and struct.unpack_from("<I", data, at + length - 4) == (length,), f"block at {at}"
            body = data[at + 8:at + length - 4]
            if kind == 0x0a0d0d0a:
                assert struct.unpack_from("<IHHq", body) == (0x1a2b3c4d, 1, 0, -1)
                self.comments = [text.decode() for code, text in options_of(body[16:]) if code == 1]
            elif kind == 1:
                options = dict(options_of(body[8:]))
                assert body[:4] == b"\1\0\0\0" and options[9] == b"\t"
                self.snap = struct.unpack_from("<I", body, 4)[0]
                self.names.append(options[2].decode())
            elif kind == 6:
                interface, high, low, captured, wire = struct.unpack_from("<5I", body)
                options = options_of(body[20 + (captured + 3) // 4 * 4:])
                self.packets.append((high << 32 | low, body[20:20 + captured], wire, [t.decode() for c, t in options if c == 1]))
                self.interfaces.append(interface)
                self.dropped += sum(struct.unpack("<Q", value)[0] for code, value in options if code == 4)
            elif kind == 5:
                options = options_of(body[12:])
                self.statistics.append({code: struct.unpack("<Q", value)[0] for code, value in options if 4 <= code <= 8})
                self.last_words = [text.decode() for code, text in options if code == 1]
            else:
                raise AssertionError(f"block of type {kind}")
            at += length
        if shutil.which("capinfos") and path.suffix != ".zst":
            done = subprocess.run(["capinfos", "-M", "-c", path], capture_output=True, text=True)
            assert done.returncode == 0 and done.stderr.replace('Running as user "root"', "").count("\n") <= 1, done.stderr
            assert f"Number of packets:   {len(self.packets)}\n" in done.stdout, done.stdout

    @property
    def records(self):
        return [packet[:3] for packet in self.packets]
