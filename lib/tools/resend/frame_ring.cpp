#include "resend/frame_ring.hpp"

#include <cstring>
#include <new>

namespace weir::resend {

namespace {

constexpr std::size_t align = sizeof(FrameRing::Frame);
static_assert(align == 16, "a frame's head lies in one piece wherever it begins");

/// In the place of a frame: the rest up to the end of the memory is empty.
constexpr std::uint32_t skip_mark = 0xffffffff;

std::size_t stored(std::uint32_t bytes) noexcept {
    return align + (bytes + align - 1) / align * align;
}

}  // namespace

FrameRing::FrameRing(std::size_t bytes) : capacity_(bytes), memory_(std::make_unique<std::byte[]>(bytes)) {}

std::byte* FrameRing::reserve(const Frame& frame) noexcept {
    const std::uint64_t begin = written_.load(std::memory_order_relaxed);
    const std::size_t at = begin % capacity_;
    const std::size_t need = stored(frame.bytes);
    const std::size_t skipped = at + need > capacity_ ? capacity_ - at : 0;
    if (begin + skipped + need - read_.load(std::memory_order_acquire) > capacity_) {
        was_full_.store(true, std::memory_order_relaxed);
        return nullptr;
    }
    if (skipped > 0) {
        const Frame mark{0, skip_mark, 0};
        std::memcpy(memory_.get() + at, &mark, sizeof mark);
    }
    std::byte* const place = memory_.get() + (begin + skipped) % capacity_;
    std::memcpy(place, &frame, sizeof frame);
    reserved_ = begin + skipped + need;
    return place + align;
}

void FrameRing::commit() noexcept {
    written_.store(reserved_, std::memory_order_release);
}

const FrameRing::Frame* FrameRing::front() noexcept {
    std::uint64_t at = read_.load(std::memory_order_relaxed);
    if (at == written_.load(std::memory_order_acquire)) return nullptr;
    const auto* frame = std::launder(reinterpret_cast<const Frame*>(memory_.get() + at % capacity_));
    if (frame->bytes != skip_mark) return frame;
    at += capacity_ - at % capacity_;
    read_.store(at, std::memory_order_release);
    // A mark is committed together with the frame after it.
    return std::launder(reinterpret_cast<const Frame*>(memory_.get()));
}

std::span<const std::byte> FrameRing::front_bytes() const noexcept {
    const std::size_t at = read_.load(std::memory_order_relaxed) % capacity_;
    Frame frame;
    std::memcpy(&frame, memory_.get() + at, sizeof frame);
    return {memory_.get() + at + align, frame.bytes};
}

void FrameRing::pop() noexcept {
    const std::uint64_t at = read_.load(std::memory_order_relaxed);
    Frame frame;
    std::memcpy(&frame, memory_.get() + at % capacity_, sizeof frame);
    read_.store(at + stored(frame.bytes), std::memory_order_release);
}

bool FrameRing::is_full_or_ended() const noexcept {
    return was_full_.load(std::memory_order_relaxed) || ended_.load(std::memory_order_acquire);
}

}  // namespace weir::resend
