// Payload as received: the messages of an event one after the other, in pieces that may be compressed.
#pragma once

#include <memory>
#include <span>

#include "reduce/chain/piece_store.hpp"
#include "reduce/gather.hpp"
#include "stages/event_encoder.hpp"

namespace weir::stages {

class BytesEncoder final : public EventEncoder {
public:
    struct Config {
        std::uint32_t refs_max = 4096;  ///< references that one message can have
        bool reads_payload = true;      ///< false: nobody asks for the payload, so it is not even read
    };

    BytesEncoder(const Config& config, std::unique_ptr<reduce::PieceCodec> codec);

    [[nodiscard]] bool begin(const assemble::Event& event) noexcept override;
    [[nodiscard]] Step step(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept override;
    [[nodiscard]] std::vector<reduce::ReducerCounters> counters() const override { return store_.counters(); }

private:
    void load_source() noexcept;
    [[nodiscard]] std::size_t fill(std::span<std::byte> out) noexcept;
    [[nodiscard]] Step step_raw(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept;
    [[nodiscard]] Step step_packed(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept;

    Config config_;
    reduce::PieceStore store_;
    reduce::SortedRefs refs_;
    std::vector<std::byte> piece_;
    std::size_t piece_filled_ = 0;  ///< collected and not yet written
    const assemble::Event* event_ = nullptr;
    std::size_t source_ = 0;
    reduce::GatherCursor cursor_;
    std::uint64_t left_ = 0;  ///< payload bytes not read yet
};

}  // namespace weir::stages
