// NumberBy::format: the detector header at the start of a message says its number, and is taken out of the message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "assemble/message.hpp"
#include "roce/message_source.hpp"
#include "wire/packet_counter.hpp"

namespace weir::roce {

class MessageHeader {
public:
    /// Throws core::UsageError where the number is in a header and the format carries none.
    static void check(const MessageSource& source);

    /// Reads the header of a message of `total` bytes, whose references have their final offsets, and takes it out of
    /// the references. Anything but ok: the message can have no number, and is as it was.
    [[nodiscard]] wire::Verdict strip(const MessageSource& source, assemble::Message& message, std::uint64_t total,
                                      std::uint64_t& number, std::uint32_t& header_bytes) noexcept;

private:
    std::array<std::byte, 1024> bytes_{};  ///< a header may lie in several packets
};

}  // namespace weir::roce
