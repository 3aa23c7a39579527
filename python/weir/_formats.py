"""What the messages of a format are as received, from the keys of its stream: a function for each format with images.

weir's own table of formats names these functions (lib/wire/format.hpp, FormatEntry::python).
"""

import collections

# What array() gives without being told: `sources` images of rows x columns elements of `dtype`.
Image = collections.namedtuple("Image", "dtype sources rows columns")


def _image(dtype, rows, interfaces, columns):
    if dtype is None or not all(isinstance(value, int) and value > 0 for value in (rows, interfaces)) or rows % interfaces:
        return None
    return Image(dtype, None, rows // interfaces, columns)


def _module(stream, columns, rows):
    # Both interfaces of a module are one source where the module's id tells sources apart.
    interfaces = stream.get("interfaces", 1) if stream.get("source_by") != "header" else 1
    return _image("<u2", stream.get("rows", rows), interfaces, columns)


def jungfrau(stream):
    return _module(stream, 1024, 512)


def moench(stream):
    return _module(stream, 400, 400)


def eiger(stream):
    """Of a port."""
    return _image({8: "u1", 16: "<u2", 32: "<u4"}.get(stream.get("bit_depth", 16)), stream.get("rows", 256), 1, 512)


IMAGES = {decoder.__name__: decoder for decoder in (jungfrau, moench, eiger)}


def image_of(stream):
    """None if the messages are no images."""
    decoder = IMAGES.get(stream.get("format")) if isinstance(stream, dict) else None
    return decoder(stream) if decoder else None
