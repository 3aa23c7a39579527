// libFuzzer target: any bytes as a message of a stream, up to the event that it says it is, and its pixels unpacked.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reduce/pack/unpacker.hpp"
#include "stream/stream_message.hpp"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // Exactly as large as the input, so that a read beyond its end is seen.
    const auto copy = std::make_unique<std::byte[]>(size);
    if (size > 0) std::memcpy(copy.get(), data, size);
    std::string problem;
    const auto message = stream::read_message({copy.get(), size}, problem);
    if (message.has_value() != problem.empty()) std::abort();
    if (!message) return 0;
    const auto event = stream::event_of(*message, problem);
    if (event && !problem.empty()) std::abort();
    constexpr std::uint64_t worth_unpacking = 1U << 20U;
    for (const stream::StreamedChannel& channel : message->channels) {
        if (!channel.codec || channel.raw_bytes > worth_unpacking) continue;
        std::vector<std::byte> out(channel.raw_bytes);
        reduce::pack::Unpacker unpacker;
        static_cast<void>(unpacker.unpack(*channel.codec, channel.type->bytes, channel.bytes, out));
    }
    return 0;
}
