// What `weir inspect` says of how a run's payload was reduced: how large it was after each step.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "store/run_reader.hpp"

namespace weir::app {

/// "bitshuffle-zstd", "sparse + lz4", "raw"
std::string encoding_text(store::Encoding encoding);

/// Of the payload of all whole events, decoded.
std::uint64_t decoded_bytes(const store::Verification& result);
/// {"sparse + lz4": {"blocks": …, "decoded_bytes": …, "sparse_bytes": …, "stored_bytes": …}, …}
nlohmann::json encodings_json(const store::Verification& result);

/// What was received, decoded, sparse and stored, a line each; empty if the payload is as it was received.
std::string reduction_text(const store::RunReader& run, const store::Verification& result);

}  // namespace weir::app
