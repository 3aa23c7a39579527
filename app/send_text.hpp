// What `weir send --help` says around the list of options.
#pragma once

#include <string_view>

namespace weir::app {

inline constexpr std::string_view send_intro = R"(usage: weir send --to TARGET [options]

Simulates a detector: frames with the headers of a real one and contents that depend only on seed and event number,
to a capture file, a UDP socket of the kernel, or a DPDK device. What the simulated network does to the packets is
drawn from the seed, so the same command sends the same packets again. At the end it says what was sent, and whether
it kept to the rate that was asked for.

)";

inline constexpr std::string_view send_examples = R"(
targets:
  FILE.pcap            a new capture with nanosecond stamps (an existing file is refused); needs --events
  udp:HOST[:PORT]      a kernel socket; PORT is that of source 0. Truncation makes shorter datagrams
  device:VDEV[,ARGS]   a DPDK device without hugepages; or a PCI address, with them

examples:
  weir send --format jungfrau --sources 2 --events 20 --drop 0.001 --to jf.pcap
      20 frames of two modules, one packet in a thousand lost
  weir send --sources 2 --rate 100 --to udp:10.1.0.2:50001
      two modules at 100 frames/s (1.7 Gb/s) to the ports 50001 and 50002, until Ctrl-C
  weir send --format ejfat --lb --sources 2 --bytes 500000 --gbps 3 --events 10000 --to udp:10.1.0.2
      EJFAT event buffers of 1 to 500,000 bytes behind a load balancer header, to the ports 19522 and 19523
  weir send --format dune --sources 4 --rate 30517 --events 1000000 --to udp:10.1.0.2
      WIBEth frames of four streams, 2048 ticks of 16 ns apart (7.1 Gb/s), to the ports 50001 to 50004
  weir send --format message --transport roce-write --bytes 65536 --mtu 1024 --first-psn 16777200 --events 50 \
            --reorder 5 --duplicate 0.01 --seed 7 --to roce.pcap
      RoCEv2 UC WRITEs whose packet numbers wrap, out of order by up to 5 places, 1 % twice
  weir send --format message --transport roce-write --service rc --sources 2 --events 1000 --drop 0.01 \
            --to device:net_memif0,role=client,socket=/run/weir.sock,socket-abstract=no
      RoCEv2 RC WRITEs to a weir run at the other end, until all are acknowledged although 1 % of the packets is lost
  weir send --format eiger --bit-depth 12 --sources 2 --events 10 --to eiger.pcap
      one EIGER half module; jungfrau and moench have --interfaces and --rows
  weir send --format srs --config formats/srs.toml --port 6006 --one-port --source-id 1 --sources 2 --events 50 --to srs.pcap
      a declared format: two front-end cards that send to one port
  weir send --sources 2 --rate 50 --to device:net_af_packet0,iface=gen0
      the same frames through DPDK onto a kernel interface

Exit status: 0 handed over (also when Ctrl-C ended it), 1 it could not send, or a message was not acknowledged, 2 wrong usage.
docs/guides/SEND.md has the formats and the faults, docs/guides/SEND_RELIABLE.md the reliable connections, docs/reference/SEND_REPORT.md the report.
)";

}  // namespace weir::app
