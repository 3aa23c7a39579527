// What a run has seen when nothing of what it waits for comes: the link, ARP, packets for other ports. For whoever asks
// while it goes on, and for the summary.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "observe/diagnosis.hpp"
#include "observe/ledger.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

/// No packet of a live run was for any configured stream so far.
[[nodiscard]] bool nothing_for_streams(const Ledger& ledger, const Observations& seen);

/// "port det0 (net_af_packet): link up, 312 packets; 3 ARP, 309 to no stream, most to UDP port 9 from 10.1.0.10 (309)".
[[nodiscard]] std::string seen_text(const Ledger& ledger, const Observations& seen);

/// The same in few words, for the progress line: "link down", "3 ARP, 309 to no stream".
[[nodiscard]] std::string seen_words(const Ledger& ledger, const Observations& seen);

/// {"nothing_for_streams", "text", "ports": [{"port", "link", "mbps", ...}], "arp", ..., "other_senders": [{"to",
/// "packets"}]}
[[nodiscard]] nlohmann::json seen_json(const Ledger& ledger, const Observations& seen);

}  // namespace weir::observe
