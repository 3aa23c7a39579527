// Small configurations that the configuration tests start from, and a way to vary them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::config::test {

inline constexpr std::string_view udp_text = R"([[port]]
name = "det0"
device = "net_null0"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001, 50002]
format = "jungfrau"
[events]
sources = 2
[[sink]]
kind = "events"
path = "runs/{name}-{run:06}"
)";

/// What edits are made after.
inline const std::string udp_dst = "udp_dst = [50001, 50002]";

inline constexpr std::string_view roce_text = R"([[port]]
name = "det0"
device = "net_null0"
[[stream]]
port = "det0"
transport = "roce"
qp = [17, 18]
format = "message"
event = "immediate"
[events]
sources = 2
[[sink]]
kind = "null"
)";

inline constexpr std::string_view declared_text = R"([[format]]
name = "mydet"
header_bytes = 16
event = { offset = 0, bytes = 8 }
index = { offset = 8, bytes = 4 }
payload_bytes = 4096
packets = 64
magic = { offset = 12, bytes = 2, value = 0xCAFE }
[[port]]
name = "det0"
device = "net_null0"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = 50001
format = "mydet"
[events]
sources = 1
[[sink]]
kind = "null"
)";

/// Two readout nodes, two builders.
inline constexpr std::string_view cluster_text = R"([cluster]
block = 4
[[node]]
name = "left"
address = "127.0.0.1:7471"
role = "readout"
[[node]]
name = "right"
address = "127.0.0.1:7472"
role = "readout"
[[node]]
name = "first"
address = "127.0.0.1:7473"
role = "builder"
[[node]]
name = "second"
address = "127.0.0.1:7474"
role = "builder"
[[port]]
name = "det0"
device = "net_null0"
[[port]]
name = "det1"
device = "net_null0"
[[stream]]
port = "det0"
node = "left"
transport = "udp"
udp_dst = [50001, 50002]
format = "ejfat"
[[stream]]
port = "det1"
node = "right"
transport = "udp"
udp_dst = [50001, 50002]
format = "ejfat"
[events]
sources = 4
[[sink]]
kind = "events"
path = "data/{node}/{run}"
)";

inline const std::string sink_tail = "path = \"runs/{name}-{run:06}\"\n";

using Edits = std::vector<std::pair<std::string, std::string>>;

/// Replaces the first occurrence of each left side; an edit that does nothing is a mistake in the test.
inline std::string edited(std::string_view text, const Edits& edits) {
    std::string out(text);
    for (const auto& [from, to] : edits) {
        const std::size_t at = out.find(from);
        if (at == std::string::npos) throw std::logic_error("the text does not contain: " + from);
        out.replace(at, from.size(), to);
    }
    return out;
}

}  // namespace weir::config::test
