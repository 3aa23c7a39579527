// libFuzzer target: lines of the other side of a benchmark, as whatever they may be taken for.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "bench/content.hpp"
#include "bench/frame_kind.hpp"
#include "bench/results.hpp"
#include "bench/verbs_end.hpp"
#include "core/error.hpp"
#include "core/foreign_json.hpp"

using namespace weir;

namespace {

/// The two ways in which a message may be refused; anything else ends the target.
template <class Read>
void refused_or_read(Read read) {
    try {
        read();
    } catch (const nlohmann::json::exception&) {
    } catch (const core::RunError&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    bench::ContentReader content;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1);
        const auto message = core::read_json(text.substr(0, end + 1));
        text.remove_prefix(end + 1);
        if (!message) continue;
        static_cast<void>(core::text_member(*message, "what", ""));
        static_cast<void>(message->dump());
        refused_or_read([&] { static_cast<void>(bench::host_from_json(*message)); });
        refused_or_read([&] { static_cast<void>(bench::receiver_counts_from_json(*message)); });
        refused_or_read([&] { static_cast<void>(bench::results_from_json(*message)); });
        refused_or_read([&] { static_cast<void>(bench::frames_from_json(*message)); });
        refused_or_read([&] { static_cast<void>(bench::verbs_end_from_json(*message)); });
        refused_or_read([&] { content.add(*message); });
    }
    return 0;
}
