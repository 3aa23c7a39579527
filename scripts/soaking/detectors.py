"""What the soak's detector sends, and what weir is told of it: frames over UDP, messages by RDMA. A new run may be of the other kind."""

import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = 2

CONFIG = """name = "soak"
[[port]]
name = "det0"
device = "net_af_packet0,iface=det0"
profile = "{root}/pmd-config/net_af_packet.toml"
address = "10.1.0.2/24"
[[stream]]
port = "det0"
{stream}
[events]
sources = {sources}
memory = "8MiB"
timeout_ms = 500
[[sink]]
kind = "events"
path = "{data}/{{name}}-{{run:06}}"
segment_bytes = "64MiB"
full_warning_seconds = {warning_s}
# The flight recorder: what led to an incomplete event, and whatever SIGUSR2 asks for.
[[sink]]
kind = "pcapng"
path = "{data}/{{name}}-{{run:06}}.pcapng"
packets = "incomplete"
seconds = 2
memory = "16MiB"
bytes_max = "32MiB"
keep_free = "1MiB"
[lcores]
idle = "sleep"
"""


@dataclasses.dataclass(frozen=True)
class Detector:
    name: str
    stream: str  # of weir's configuration
    options: tuple  # of weir send
    port: int
    packets: int  # of an event
    event_bytes: int
    numbered_packets: bool  # --first-psn has a meaning

    def config(self, data, warning_s):
        return CONFIG.format(root=ROOT, data=data, stream=self.stream, sources=SOURCES, warning_s=warning_s)


# Eight packets or more for a message: so many does weir want to see before it believes that a detector begins again.
FRAMES = Detector("jungfrau by UDP", 'transport = "udp"\nudp_dst = [50001, 50002]\nformat = "jungfrau"\nrows = 32',
                  ("--format", "jungfrau", "--rows", "32", "--truncate", "0.0002"), 50001, 16, 131072, False)
MESSAGES = Detector("ejfat by RoCE", 'transport = "roce"\nqp = [0x11, 0x12]\nformat = "ejfat"',
                    ("--format", "ejfat", "--transport", "roce-send", "--bytes-min", "65536", "--bytes", "65536", "--corrupt", "0.0002"),
                    4791, 34, 131072, True)
DETECTORS = (FRAMES, MESSAGES)
# On the way to weir: one packet in a few thousand is lost, sent twice or damaged, and all may overtake each other a little.
WAY = ("--drop", "0.0002", "--duplicate", "0.0002", "--reorder", "4")
