#include "port/answer_sender.hpp"

#include <rte_ethdev.h>

#include <algorithm>

namespace weir::port {

std::span<std::byte> AnswerSender::begin() noexcept {
    if (count_ == burst) flush();
    next_ = count_ < burst ? pool_->allocate() : nullptr;
    if (next_ == nullptr) {
        ++failures_;
        return {};
    }
    return {rte_pktmbuf_mtod(next_, std::byte*), room_bytes};
}

void AnswerSender::commit(std::size_t bytes) noexcept {
    if (bytes == 0) {
        ::rte_pktmbuf_free(next_);
        ++failures_;
    } else {
        // Not every driver pads a frame to what Ethernet asks for.
        constexpr std::size_t frame_bytes_min = 60;
        auto* frame = rte_pktmbuf_mtod(next_, std::byte*);
        if (bytes < frame_bytes_min) std::fill(frame + bytes, frame + frame_bytes_min, std::byte{0});
        next_->data_len = static_cast<std::uint16_t>(std::max(bytes, frame_bytes_min));
        next_->pkt_len = next_->data_len;
        frames_[count_++] = next_;
    }
    next_ = nullptr;
}

void AnswerSender::flush() noexcept {
    if (count_ == 0 || (shared_ != nullptr && shared_->test_and_set(std::memory_order_acquire))) return;
    const std::uint32_t sent = ::rte_eth_tx_burst(port_, queue_, frames_.data(), static_cast<std::uint16_t>(count_));
    if (shared_ != nullptr) shared_->clear(std::memory_order_release);
    failures_ += count_ - sent;
    for (std::uint32_t i = sent; i < count_; ++i) ::rte_pktmbuf_free(frames_[i]);
    count_ = 0;
}

}  // namespace weir::port
