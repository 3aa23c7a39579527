// Which bytes of a source's messages were missing in every one of them: what a detector does not send, rather than what
// a network loses. A few numbers for each source.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "assemble/message.hpp"

namespace weir::stages {

/// Written by one lcore, read by any thread; a reading while it is written may mix two states.
class AlwaysMissing {
public:
    struct Summary {
        std::vector<assemble::ByteRange> ranges;  ///< missing in all messages; empty: nothing is
        std::uint64_t messages = 0;
        std::uint64_t missing_bytes = 0;  ///< of all messages, other gaps among them

        /// The same for the messages of both.
        void join(const Summary& other);
    };

    /// A message with something in it. Of many gaps the first few are looked at.
    void add(std::span<const assemble::ByteRange> gaps) noexcept;
    [[nodiscard]] Summary summary() const;

private:
    static constexpr std::size_t ranges_max = 8;
    std::array<std::atomic<std::uint64_t>, ranges_max> ranges_{};  ///< begin << 32 | end
    std::atomic<std::uint32_t> count_{0};
    std::atomic<std::uint64_t> messages_{0};
    std::atomic<std::uint64_t> missing_bytes_{0};
};

}  // namespace weir::stages
