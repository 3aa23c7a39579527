// Multi-event packets out of an event's multi-fragment packets; events in which they cannot be made stay as received.
#pragma once

#include <memory>
#include <vector>

#include "core/counters.hpp"
#include "reduce/mfp/mfp_counter.hpp"
#include "reduce/mfp/multi_event.hpp"
#include "reduce/reducer_counters.hpp"
#include "stages/bytes_encoder.hpp"

namespace weir::stages {

class MepEncoder final : public EventEncoder {
public:
    /// What stays as received is not compressed either: it is rare, and somebody will want to look at it.
    MepEncoder(const reduce::MepWriter::Config& config, std::unique_ptr<reduce::PieceCodec> codec);

    [[nodiscard]] store::Content content() const noexcept override {
        return is_packet_ ? store::Content::mep : store::Content::received;
    }
    [[nodiscard]] bool begin(const assemble::Event& event) noexcept override;
    /// A packet is of all sources: all its bytes count as the first one's.
    [[nodiscard]] std::uint64_t reduced_bytes(std::uint32_t source) const noexcept override {
        return is_packet_ && source == listed_.front() ? packet_bytes_ : 0;
    }
    [[nodiscard]] Step step(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept override;
    [[nodiscard]] std::vector<reduce::ReducerCounters> counters() const override;

private:
    reduce::MepWriter packets_;
    reduce::PieceStore store_;
    BytesEncoder received_;
    core::Tally<reduce::MfpCounter> tally_;
    std::vector<std::uint32_t> listed_;
    std::vector<std::byte> piece_;
    std::size_t piece_filled_ = 0;  ///< collected and not yet written
    bool is_packet_ = false;
    std::uint64_t packet_bytes_ = 0;
    std::uint64_t left_ = 0;  ///< of the packet, not made yet
};

}  // namespace weir::stages
