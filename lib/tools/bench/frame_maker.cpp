#include "bench/frame_maker.hpp"

#include <cassert>
#include <cstring>

namespace weir::bench {

FrameMaker::FrameMaker(const wire::FrameSpec& spec, const PacketPlan& plan) : maker_(plan) {
    assert(wire::frame_header_bytes(spec) == header_bytes);
    wire::write_frame_headers(spec, plan.bytes, headers_);
}

void FrameMaker::write_head(std::uint64_t sequence, core::TimeNs now, std::byte* out) const noexcept {
    std::memcpy(out, headers_.data(), header_bytes);
    maker_.write_head(sequence, now, out + header_bytes);
}

void FrameMaker::write_body(std::uint64_t sequence, std::byte* frame) const noexcept {
    const std::span<const std::byte> piece = body(sequence);
    std::memcpy(frame + head_bytes, piece.data(), piece.size());
}

}  // namespace weir::bench
