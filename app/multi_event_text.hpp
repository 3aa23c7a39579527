// What `weir inspect` says of multi-event packets (the reducer `mfp`): what is in each, and in all of them together.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reduce/mfp/mep_view.hpp"
#include "store/run_reader.hpp"

namespace weir::app {

/// Fragments of one source.
struct MultiEventSource {
    reduce::MepSource name;
    std::uint64_t fragments = 0;
    std::uint64_t missing = 0;  ///< fragments of which bytes did not arrive
    std::uint64_t bytes = 0;
    std::uint64_t largest = 0;
    std::set<std::uint8_t> types;  ///< of those that arrived

    void add(const reduce::MepFragment& fragment);
    void add(const MultiEventSource& other);
};

struct MultiEventSummary {
    reduce::MepOrder order = reduce::MepOrder::sources;
    std::uint64_t first_event = 0;
    std::uint64_t events = 0;
    std::vector<MultiEventSource> sources;  ///< in the order of the packet

    /// All sources together.
    [[nodiscard]] MultiEventSource total() const;
};

/// Takes the payload of one event after the other, as a scan gives it. Memory: the largest packet.
class MultiEventReader {
public:
    void begin(const store::EventInfo& event);
    void payload(std::span<const std::byte> bytes);
    /// What is in it; nothing if it is no multi-event packet, was not read, or cannot be understood. The latter is said
    /// by add_problems().
    std::optional<MultiEventSummary> end(const store::EventInfo& event);

    /// A packet that cannot be understood is as bad as a damaged block.
    void add_problems(store::Verification& result) const;
    /// {"blocks": …, "events": …, "fragments": …, "missing_fragments": …, "bytes": …}; null if there were no packets.
    [[nodiscard]] nlohmann::json totals_json() const;
    /// The same for people, and a line for each source; empty if there were no packets.
    [[nodiscard]] std::string totals_text() const;

private:
    std::vector<std::byte> bytes_;
    bool wanted_ = false;
    std::uint64_t blocks_ = 0;
    std::uint64_t events_ = 0;
    std::map<std::uint32_t, MultiEventSource> sources_;  ///< by id and version
    std::vector<std::string> problems_;                  ///< the first hundred
    std::uint64_t problem_count_ = 0;
};

/// {"order": "sources", "first_event": 1000, "events": 300, "sources": [{"id": 4097, "version": 3, …}, …]}
nlohmann::json multi_event_json(const MultiEventSummary& packet);

/// "300 events from 1000 on, 450 of 600 fragments"
std::string multi_event_text(const MultiEventSummary& packet);

}  // namespace weir::app
