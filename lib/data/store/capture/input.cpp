#include "store/capture/input.hpp"

#include <algorithm>
#include <cstring>

namespace weir::store {

CaptureInput::CaptureInput(std::unique_ptr<ByteStream> source, BlockLender* lender)
    : source_(std::move(source)), lender_(lender), own_(std::make_unique_for_overwrite<std::byte[]>(memory_bytes)) {
    at_ = end_ = limit_ = own_.get();
}

CaptureInput::~CaptureInput() {
    if (lent_ != nullptr) lender_->leave(*lent_);
}

CaptureInput::CaptureInput(CaptureInput&& other) noexcept
    : source_(std::move(other.source_)),
      lender_(other.lender_),
      own_(std::move(other.own_)),
      lent_(std::exchange(other.lent_, nullptr)),
      at_(other.at_),
      end_(other.end_),
      limit_(other.limit_),
      ended_(other.ended_) {}

CaptureInput& CaptureInput::operator=(CaptureInput&& other) noexcept {
    if (this == &other) return *this;
    if (lent_ != nullptr) lender_->leave(*lent_);
    source_ = std::move(other.source_);
    lender_ = other.lender_;
    own_ = std::move(other.own_);
    lent_ = std::exchange(other.lent_, nullptr);
    at_ = other.at_;
    end_ = other.end_;
    limit_ = other.limit_;
    ended_ = other.ended_;
    return *this;
}

/// What is left over moves to the end of the front of a fresh block, so that reads land at the same place each time.
void CaptureInput::next_block() noexcept {
    CaptureBlock* next = lender_ != nullptr ? lender_->take() : nullptr;
    std::byte* memory = next != nullptr ? next->memory : own_.get();
    const std::size_t left = there();
    std::byte* begin = memory + need_max;
    std::memmove(begin - left, at_, left);
    if (lent_ != nullptr) lender_->leave(*lent_);
    lent_ = next;
    at_ = begin - left;
    end_ = begin;
    limit_ = memory + memory_bytes;
}

bool CaptureInput::fetch(std::size_t bytes) noexcept {
    while (there() < bytes) {
        if (ended_) return false;
        // A block is used up to its end; a record that does not fit moves on.
        if (end_ == limit_) next_block();
        const std::size_t got = source_->read({end_, static_cast<std::size_t>(limit_ - end_)});
        ended_ = got == 0;
        end_ += got;
    }
    return true;
}

bool CaptureInput::skip(std::uint64_t bytes) noexcept {
    while (bytes > 0) {
        if (there() == 0 && !fetch(1)) return false;
        const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, there()));
        at_ += some;
        bytes -= some;
    }
    return true;
}

std::size_t CaptureInput::read(std::span<std::byte> out) noexcept {
    if (there() == 0 && !fetch(1)) return 0;
    const std::size_t some = std::min(out.size(), there());
    std::memcpy(out.data(), at_, some);
    at_ += some;
    return some;
}

}  // namespace weir::store
