// Whether a run is whole: everything of it, or all but the payload.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/event_scanner.hpp"
#include "store/format.hpp"
#include "store/run_contents.hpp"

namespace weir::store {

/// The result of reading everything.
struct Verification {
    bool verified = false;              ///< nothing is wrong and nothing is missing
    std::vector<std::string> problems;  ///< the first hundred, one sentence each
    std::uint64_t problem_count = 0;
    std::uint64_t events = 0;
    std::uint64_t complete = 0;
    std::uint64_t payload_bytes = 0;
    std::uint64_t stored_bytes = 0;  ///< all segments
    std::uint64_t segments = 0;
    std::uint64_t heads = 0;  ///< events of which everything but the payload was read; `complete` counts among them
    /// What payload blocks have, by encoding; empty where the payload was not read.
    std::map<Encoding, EncodingTotals> encodings;
    bool payload_read = true;  ///< false: `verified` says nothing of the payload

    /// What was found of another run is added to this, its problems with `name` before them.
    void add(const Verification& run, const std::string& name);
};

/// Reads every byte of the run and checks that segments, index, manifest and ledger are whole and agree. The hooks see
/// the events on the way.
Verification check_run(const RunContents& run, const ScanHooks& hooks);
/// Reads and checks all but the payload: manifest, index, the first block of every segment, and that events lie there
/// without gaps as the index says; of the first `heads_max` events also what comes before their payload, which
/// hooks.end sees. The run is closed: without a manifest nothing vouches for the index.
Verification check_run_description(const RunContents& run, const ScanHooks& hooks, std::uint64_t heads_max);

}  // namespace weir::store
