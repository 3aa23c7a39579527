"""The images of PSI's detectors that a capture has, read without any code of the program under test."""
import struct

import numpy

UDP_PAYLOAD = 14 + 20 + 8


def datagrams(capture):
    """(port, payload) of each packet of a pcap file."""
    data, at = capture.read_bytes(), 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frame = data[at + 16:at + 16 + length]
        yield struct.unpack_from("!H", frame, 36)[0], frame[UDP_PAYLOAD:]
        at += 16 + length


class Sent:
    """The pixels of a capture, by frame and source; `came` says which arrived as a whole."""

    def __init__(self, capture, bits, rows, columns, first_packet=0, sources=2):
        size = rows * columns * bits // 8
        self.frames = {}
        for port, payload in datagrams(capture):
            number, _, packet = struct.unpack_from("<QII", payload)
            data, there = self.frames.setdefault(number, (numpy.zeros((sources, size), "u1"), numpy.zeros((sources, size), "u1")))
            pixels = numpy.frombuffer(payload[48:], "u1")
            at = (packet - first_packet) * pixels.size
            data[port - 50001, at:at + pixels.size] = pixels
            there[port - 50001, at:at + pixels.size] = 255
        self.frames = {number: (self.numbers(data, bits, rows, columns), self.numbers(there, bits, rows, columns) == (1 << bits) - 1)
                       for number, (data, there) in self.frames.items()}

    @staticmethod
    def numbers(data, bits, rows, columns):
        """Any number of bits, the lowest first."""
        each = numpy.unpackbits(data, axis=1, bitorder="little").reshape(-1, bits)
        weights = 1 << numpy.arange(bits, dtype="u8")
        return (each.astype("u8") @ weights).reshape(len(data), rows, columns)
