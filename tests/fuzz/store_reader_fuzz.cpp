// libFuzzer target: any bytes as a segment or a manifest. The first byte chooses; with its high bit set the
// checksums of block headers and bodies are made right first, so that what lies after them is reached too.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "store/event_scanner.hpp"
#include "store/manifest.hpp"
#include "store/memory_sources.hpp"
#include "store/run_reader.hpp"

namespace {

using namespace weir::store;

/// Turns every place where a block could start into one with good checksums, as far as it fits.
void repair(std::span<std::byte> bytes) {
    std::size_t at = 0;
    while (bytes.size() - at >= sizeof(BlockHeader)) {
        BlockHeader header;
        std::memcpy(&header, bytes.data() + at, sizeof header);
        header.magic = block_magic;
        if (header.version != format_version_reduced) header.version = format_version;
        header.header_bytes = sizeof header;
        header.reserved = 0;
        if (header.version == format_version) header.element_bytes = 0;
        header.reserved_too = 0;
        header.run_tag = 1;
        const std::size_t left = bytes.size() - at - sizeof header;
        header.stored_bytes = std::min<std::uint32_t>(header.stored_bytes % 1024,
                                                      static_cast<std::uint32_t>(left / block_align * block_align));
        const std::size_t body_bytes = padded(header.stored_bytes);
        const std::span<std::byte> body = bytes.subspan(at + sizeof header, body_bytes);
        std::fill(body.begin() + header.stored_bytes, body.end(), std::byte{0});
        header.body_crc = weir::core::crc32c(body);
        header.header_crc = weir::core::crc32c({reinterpret_cast<const std::byte*>(&header), header_crc_bytes});
        std::memcpy(bytes.data() + at, &header, sizeof header);
        at += sizeof header + body_bytes;
    }
}

void scan(std::span<const std::byte> bytes) {
    EventInfo current;
    std::uint64_t placed = 0;
    std::unique_ptr<PayloadPlacer> placer;
    ScanHooks hooks;
    hooks.begin = [&](const EventInfo& event) {
        current = event;
        placed = 0;
        placer = std::make_unique<PayloadPlacer>(
            current, [&](std::size_t source, std::uint64_t offset, std::span<const std::byte> piece) {
                const SourceInfo& info = current.sources[source];
                if (current.reduced() && offset + piece.size() > info.reduced_bytes) std::abort();
                if (!current.reduced() && info.size_known() && offset + piece.size() > info.declared_bytes)
                    std::abort();
                placed += piece.size();
            });
    };
    hooks.payload = [&](std::span<const std::byte> piece) { placer->take(piece); };
    hooks.end = [&](const EventInfo& event) {
        if (placed != event.content_bytes()) std::abort();
    };
    hooks.problem = [](const std::string& text) {
        if (text.empty()) std::abort();
    };
    const test::MemorySource source(bytes);
    EventScanner scanner(hooks);
    scanner.scan(source, 0, "fuzz");
    scanner.read_event(source, 0, 0, "fuzz");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::uint8_t kind = data[0];
    // Exactly as large as the input, so that a read beyond its end is seen.
    const std::size_t bytes = size - 1;
    const auto copy = std::make_unique<std::byte[]>(bytes);
    if (bytes > 0) std::memcpy(copy.get(), data + 1, bytes);
    const std::span<std::byte> all(copy.get(), bytes);
    if (kind == 1) {
        try {
            static_cast<void>(parse_manifest({reinterpret_cast<const char*>(all.data()), all.size()}));
        } catch (const weir::core::RunError&) {
        }
        return 0;
    }
    if (kind == 2) {
        static_cast<void>(parse_json({reinterpret_cast<const char*>(all.data()), all.size()}));
        return 0;
    }
    if ((kind & 0x80) != 0) repair(all);
    scan(all);
    return 0;
}
