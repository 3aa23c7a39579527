#include "wire/format_marks.hpp"

#include <algorithm>
#include <array>

namespace weir::wire {

// As in formats/table.cpp.
#define FORMAT(name) FormatMarks name##_marks();
WEIR_FORMATS
#undef FORMAT

const FormatMarks& marks_of(const FormatEntry& format) noexcept {
#define FORMAT(name) name##_marks(),
    static const std::array all{WEIR_FORMATS};
#undef FORMAT
    return all[static_cast<std::size_t>(&format - formats().data())];
}

std::optional<std::uint64_t> HeaderField::value(std::span<const std::byte> header) const noexcept {
    if (bytes < 1 || bytes > sizeof(std::uint64_t) || offset > header.size() || bytes > header.size() - offset)
        return std::nullopt;
    std::uint64_t out = 0;
    for (std::uint32_t i = 0; i < bytes; ++i) {
        const std::uint32_t at = order == ByteOrder::big ? i : bytes - 1 - i;
        out = out << 8U | std::to_integer<std::uint64_t>(header[offset + at]);
    }
    return (out & mask) >> shift;
}

double confidence_of(const Recognition& recognition, std::size_t packets) noexcept {
    // So many bits right by chance happen once in sixteen million.
    constexpr double bits_enough = 24;
    const double bits = recognition.share * static_cast<double>(packets) * recognition.mark_bits;
    return recognition.share * std::min(1.0, bits / bits_enough);
}

std::string span_text(std::uint64_t from, std::uint64_t to) {
    return from == to ? std::to_string(from) : std::to_string(from) + " to " + std::to_string(to);
}

}  // namespace weir::wire
