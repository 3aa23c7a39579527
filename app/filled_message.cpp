// See filled_message.hpp.
#include "filled_message.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "run_text.hpp"

namespace weir::app {

void for_each_piece(const store::SourceInfo& source, std::span<const std::byte> received, const PieceSink& sink) {
    std::uint64_t offset = 0;
    for (const store::MissingRange& gap : source.missing) {
        if (gap.offset > offset) {
            const auto count = std::min<std::uint64_t>(received.size(), gap.offset - offset);
            if (count > 0) sink(offset, received.first(count));
            received = received.subspan(count);
        }
        offset = std::uint64_t{gap.offset} + gap.bytes;
    }
    if (!received.empty() || source.missing.empty()) sink(offset, received);
}

std::uint64_t filled_bytes(const store::SourceInfo& source) {
    if (source.size_known()) return source.declared_bytes;
    std::uint64_t left = source.received_bytes;
    std::uint64_t offset = 0;
    for (const store::MissingRange& gap : source.missing) {
        if (left <= gap.offset - offset) break;  // the last byte that came lies before this gap
        left -= gap.offset - offset;
        offset = std::uint64_t{gap.offset} + gap.bytes;
    }
    return left > 0 ? offset + left : 0;
}

std::uint64_t filled_bytes(const store::EventInfo& event, std::optional<std::uint32_t> only) {
    std::uint64_t bytes = 0;
    for (const store::SourceInfo& source : event.sources)
        if (!only || *only == source.id) bytes += event.reduced() ? source.reduced_bytes : filled_bytes(source);
    return bytes;
}

void append_filled(const store::SourceInfo& source, std::span<const std::byte> received, std::vector<std::byte>& to) {
    const std::size_t begin = to.size();
    to.resize(begin + filled_bytes(source));
    for_each_piece(source, received, [&](std::uint64_t offset, std::span<const std::byte> piece) {
        std::copy(piece.begin(), piece.end(), to.begin() + static_cast<std::ptrdiff_t>(begin + offset));
    });
}

std::string too_large_text(std::uint64_t bytes, std::uint64_t received, std::uint64_t bytes_max) {
    if (bytes <= bytes_max) return {};
    return fmt::format("it has {}{}, at most {} are taken", bytes_text(bytes),
                       bytes > received
                           ? fmt::format(" with its missing bytes filled in, of which {} came", bytes_text(received))
                           : std::string(),
                       bytes_text(bytes_max));
}

}  // namespace weir::app
