// Payload as pixels: all pixels of all sources that an event lists, whatever of them came, in pieces of whole rows that
// never reach over the border of a source. What becomes of the pixels is reduce::PixelChain's business.
#pragma once

#include <memory>

#include "reduce/chain/pixel_chain.hpp"
#include "stages/event_encoder.hpp"

namespace weir::stages {

class PixelEncoder final : public EventEncoder {
public:
    PixelEncoder(const reduce::PixelChain::Config& config, std::unique_ptr<reduce::PieceCodec> codec);

    [[nodiscard]] std::size_t whole_event_bytes() const noexcept override { return whole_event_bytes_; }
    [[nodiscard]] store::Content content() const noexcept override { return store::Content::pixels; }
    [[nodiscard]] bool begin(const assemble::Event& event) noexcept override;
    [[nodiscard]] std::uint64_t reduced_bytes(std::uint32_t source) const noexcept override {
        return chain_.decoded_bytes(chain_.source(source).pixels());
    }
    [[nodiscard]] Step step(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept override;
    [[nodiscard]] std::vector<reduce::ReducerCounters> counters() const override { return chain_.counters(); }

private:
    void load_source() noexcept;

    reduce::PixelChain chain_;
    std::size_t whole_event_bytes_ = 0;
    const assemble::Event* event_ = nullptr;
    std::size_t source_ = 0;  ///< that the next piece is of
    std::size_t left_ = 0;    ///< pixels of it
};

/// An upper bound of what an event takes of an output buffer, all its blocks included.
[[nodiscard]] std::size_t pixel_event_bytes_max(const reduce::PixelChain& chain, std::size_t sources) noexcept;

}  // namespace weir::stages
