// Plain words at the end of a run: for each loss the most likely cause, what speaks for it, and where to read on. Works
// on the account and a few observations, so it can be tested without a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/ledger.hpp"
#include "pipeline/bottleneck.hpp"
#include "pipeline/finding.hpp"

namespace weir::observe {

/// What is known besides the account.
struct Observations {
    struct Source {
        std::string label;       ///< "det0 udp 50001"
        double silent_s = 0;     ///< nothing came from it in the last so many seconds of the run; 0: it sent to the end
        bool by_header = false;  ///< only the header of a packet says that it is of this source
        std::uint64_t same_missing = 0;     ///< packets of a message that were missing in every one of them
        std::uint64_t message_packets = 0;  ///< if every message has as many
        std::uint64_t messages = 0;         ///< of which that is said
        std::uint64_t other_missing = 0;    ///< packets that were missing in some of them
        std::string setting{};              ///< that would fit: "`rows = 256`"
    };
    struct Port {
        std::string name;
        std::string driver;  ///< "net_af_packet", "pci", "sim", ...
        std::uint64_t missed = 0;
        std::uint64_t no_buffer = 0;
        std::uint32_t mtu = 0;
        std::uint64_t received = 0;
        std::uint64_t answered = 0;  ///< ARP requests, neighbour solicitations and pings
        bool link_up = true;
        std::uint32_t mbps = 0;                 ///< 0: not known
        std::uint64_t missed_by_interface = 0;  ///< of `missed`
        std::string interface {};               ///< of the kernel; empty: none
        /// The longest that its rx lcores were away between two looks at their queues, and how long after their first
        /// packet that began.
        double pause_s = 0;
        double pause_after_s = 0;
    };
    struct Count {
        std::string what;
        std::uint64_t packets = 0;
        bool own_format = false;  ///< headers: it has the mark of the stream's own format
    };

    bool replay = false;
    bool going_on = false;  ///< the run has not ended yet
    double seconds = 0;
    std::uint32_t timeout_ms = 0;
    std::string open_limit;  ///< what limits the number of open events, in the plan's words
    std::uint32_t open_max = 0;
    double queued_max = 0;  ///< the highest fraction of events on their way to the sink that was seen
    double writer_max = 0;  ///< of output buffers that wait for the disk
    bool reducer = false;
    std::vector<Source> sources;
    std::vector<Port> ports;           ///< empty in a replay
    std::vector<Count> wrong_lengths;  ///< "4144 bytes in a stream of jungfrau"
    /// Datagrams that are several, handed over as one: "4160 bytes = 4 x 1040 in a stream of mine".
    std::vector<Count> merged;
    /// Frames inside of others: "ERSPAN II over GRE"; and how to take that off, as far as it can be said.
    std::vector<Count> encapsulated;
    std::vector<std::string> decapsulate;  ///< what `[[port]] decapsulate` would take off of that
    std::string take_off;
    double stamps_ran_back_s = 0;    ///< a replay: the furthest between one stamp and a later one
    std::vector<Count> unknown_ids;  ///< that headers name as their source: "7"
    std::string known_ids;           ///< of the sources that headers name: "1, 2"
    /// What refused packets are: "eiger (slsDetector header version 2)", "" if that cannot be told, or
    /// "mine with byte_order = \"big\"".
    std::vector<Count> headers;
};

/// Losses first, the largest first. Empty: everything came and was kept.
[[nodiscard]] std::vector<pipeline::Finding> diagnose(const Ledger& ledger, const Observations& seen);

}  // namespace weir::observe
