// See reduction_text.hpp.
#include "reduction_text.hpp"

#include <fmt/core.h>

#include "reduce/pack/codec.hpp"
#include "run_text.hpp"
#include "store/payload_info.hpp"

namespace weir::app {

using nlohmann::json;
using store::Encoding;

namespace {

/// "pixels, f32 photon"
std::string content_text(const store::PayloadInfo& info) {
    std::string text(store::content_names[static_cast<std::size_t>(info.content)]);
    if (info.content != store::Content::pixels) return text;
    text += fmt::format(", {}", reduce::pixel_type_names[static_cast<std::size_t>(info.type)]);
    return info.unit.empty() ? text : text + " " + info.unit;
}

std::string line(const std::string& what, std::uint64_t bytes, std::uint64_t received) {
    const double percent = 100.0 * static_cast<double>(bytes) / static_cast<double>(received);
    return fmt::format("  {:<36} {:>10}  {:6.1f} %\n", what, bytes_text(bytes), percent);
}

}  // namespace

std::string encoding_text(Encoding encoding) {
    const std::string codec(reduce::pack::codec_names[static_cast<std::size_t>(store::codec_of(encoding))]);
    if (!store::is_sparse(encoding)) return codec;
    return store::codec_of(encoding) == Encoding::raw ? "sparse" : "sparse + " + codec;
}

std::uint64_t decoded_bytes(const store::Verification& result) {
    std::uint64_t bytes = 0;
    for (const auto& [encoding, totals] : result.encodings) bytes += totals.raw_bytes;
    return bytes;
}

json encodings_json(const store::Verification& result) {
    json object = json::object();
    for (const auto& [encoding, totals] : result.encodings) {
        json& entry = object[encoding_text(encoding)];
        entry = {{"blocks", totals.blocks}, {"decoded_bytes", totals.raw_bytes}, {"stored_bytes", totals.stored_bytes}};
        if (store::is_sparse(encoding)) entry["sparse_bytes"] = totals.sparse_bytes;
    }
    return object;
}

std::string reduction_text(const store::RunReader& run, const store::Verification& result) {
    const store::PayloadInfo info = store::payload_of(run);
    const std::uint64_t received = result.payload_bytes;
    const std::uint64_t decoded = decoded_bytes(result);
    std::uint64_t sparse = 0;
    std::uint64_t stored = 0;
    bool any_sparse = false;
    std::string codecs;
    for (const auto& [encoding, totals] : result.encodings) {
        any_sparse = any_sparse || store::is_sparse(encoding);
        sparse += store::is_sparse(encoding) ? totals.sparse_bytes : totals.raw_bytes;
        stored += totals.stored_bytes;
        const std::string codec(reduce::pack::codec_names[static_cast<std::size_t>(store::codec_of(encoding))]);
        if (store::codec_of(encoding) != Encoding::raw && codecs.find(codec) == std::string::npos)
            codecs += (codecs.empty() ? "" : ", ") + codec;
    }
    if (run.version().value_or(store::format_version) < store::format_version_reduced) return {};
    if (received == 0 || (info.content == store::Content::received && codecs.empty())) return {};
    std::string text = "\nhow the payload became smaller or larger, of what was received\n";
    text += line("received", received, received);
    if (info.content != store::Content::received) text += line(content_text(info), decoded, received);
    if (any_sparse) text += line("sparse", sparse, received);
    text += line(codecs.empty() ? "stored" : "stored: " + codecs, stored, received);
    return text;
}

}  // namespace weir::app
