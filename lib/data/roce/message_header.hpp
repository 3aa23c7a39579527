// NumberBy::format: the detector header at the start of a message says its number, and is taken out of the message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "assemble/message.hpp"
#include "roce/message_source.hpp"
#include "wire/fragment.hpp"
#include "wire/packet_counter.hpp"

namespace weir::roce {

class MessageHeader {
public:
    /// Throws core::UsageError where the number is in a header and the format carries none.
    static void check(const MessageSource& source);

    /// What a header says of the message of `total` bytes, itself included, that it is at the beginning of. `bytes` are
    /// its first header_read_bytes, or all of it where it is shorter.
    [[nodiscard]] static wire::Verdict read(const MessageSource& source, const std::byte* bytes, std::uint64_t total,
                                            wire::Fragment& out) noexcept;

    /// Takes a header out of the references and the count of bytes, and keeps it with the message. Not out of the
    /// ranges.
    static void take_out(assemble::Message& message, const std::byte* header, std::uint32_t header_bytes) noexcept;
    /// Moves the ranges accordingly. The header lies in the first of them.
    static void shift_ranges(assemble::Message& message, std::uint32_t header_bytes) noexcept;

    /// Reads the header of a message of `total` bytes, whose references have their final offsets, and takes it out of
    /// the references. Anything but ok: the message can have no number, and is as it was.
    [[nodiscard]] wire::Verdict strip(const MessageSource& source, assemble::Message& message, std::uint64_t total,
                                      std::uint64_t& number, std::uint32_t& header_bytes) noexcept;

private:
    std::array<std::byte, 1024> bytes_{};  ///< a header may lie in several packets
};

}  // namespace weir::roce
