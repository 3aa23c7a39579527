// Buffers as workers hand them over, through the run writer, as fast as it takes them. Prints one line of JSON; for
// bench/sink_bench.py.
//
// usage: sink_feed PATH MEBIBYTES QUEUE_DEPTH FILES auto|on|off (direct)
#include <fmt/core.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/huge_bytes.hpp"
#include "store/block_writer.hpp"
#include "store/run_writer.hpp"

namespace {

using namespace weir;

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
constexpr std::size_t buffers = 32;

/// One event that nearly fills the buffer; what of it is used.
std::span<std::byte> format(std::span<std::byte> memory, std::uint64_t number) {
    store::BlockWriter writer;
    writer.reset(memory);
    store::EventRecord event;
    event.id = number;
    event.complete = true;
    event.sources = 1;
    event.payload_bytes = buffer_bytes - 8192;
    static_cast<void>(writer.put_event(event));
    store::SourceRecord source;
    source.declared_bytes = source.received_bytes = event.payload_bytes;
    static_cast<void>(writer.put_source(source, {}));
    const std::span<std::byte> room = writer.open_payload();
    for (std::size_t i = 0; i < event.payload_bytes; ++i)
        room[i] = static_cast<std::byte>(i * 2654435761U >> 13U ^ number);
    const auto bytes = static_cast<std::uint32_t>(event.payload_bytes);
    writer.close_payload(bytes, bytes, store::Encoding::raw, true);
    writer.pad(4096);
    return writer.blocks();
}

int run(char** argv) {
    using Toggle = store::Toggle;
    const std::string direct = argv[5];
    store::RunWriter::Config config;
    config.path = argv[1];
    config.queue_depth = static_cast<std::uint32_t>(std::stoul(argv[3]));
    config.files = static_cast<std::uint32_t>(std::stoul(argv[4]));
    config.direct = direct == "on" ? Toggle::on : direct == "auto" ? Toggle::automatic : Toggle::off;
    config.version = store::format_version_reduced;
    config.segment_bytes = std::uint64_t{64} << 30;
    config.sync = store::SyncPolicy::end;
    store::RunWriter writer(config);
    const core::HugeBytes memory(buffer_bytes * buffers);
    std::vector<std::span<std::byte>> blocks;
    for (std::size_t i = 0; i < buffers; ++i)
        blocks.push_back(format(memory.span().subspan(i * buffer_bytes, buffer_bytes), i));

    const std::size_t count = std::stoul(argv[2]);
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) {
        while (writer.held() == buffers) writer.collect();
        writer.append(blocks[i % buffers]);
    }
    writer.finish_data();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    nlohmann::json result = writer.how();
    result["mib_per_s"] = static_cast<double>(writer.stats().bytes) / seconds / (1 << 20);
    result["events"] = writer.stats().events;
    fmt::print("{}\n", result.dump());
    return writer.stats().events == count ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        fmt::print(stderr, "usage: sink_feed PATH MEBIBYTES QUEUE_DEPTH FILES auto|on|off\n");
        return 2;
    }
    try {
        return run(argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "sink_feed: {}\n", error.what());
        return 1;
    }
}
