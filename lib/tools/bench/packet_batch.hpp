// Packets that go to a socket in one call (sendmmsg): a head of its own for each, and a body that is not copied.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/units.hpp"

namespace weir::bench {

/// `Maker` makes what goes into the socket: PacketMaker, or FrameMaker where that has Ethernet's headers.
template <class Maker>
class PacketBatch {
public:
    static constexpr std::uint32_t most = 64;

    /// A message for each packet.
    template <class... Args>
    void prepare(Args&&... args) {
        maker_.emplace(std::forward<Args>(args)...);
        same_body_ = maker_->body(0).data() == maker_->body(1).data();
        for (std::uint32_t i = 0; i < most; ++i) {
            parts_[i][0] = {heads_[i].data(), Maker::head_bytes};
            set_body(i, i);
            put(i, i, 1);
        }
    }
    /// The packets of the next call: from number `first` on.
    void stamp(std::uint64_t first, std::uint32_t count, core::TimeNs now) noexcept {
        for (std::uint32_t i = 0; i < count; ++i) {
            maker_->write_head(first + i, now, heads_[i].data());
            if (!same_body_) set_body(i, first + i);
        }
    }
    /// Puts `packets` packets from the one at `place` on into one message.
    void put(std::uint32_t message, std::uint32_t place, std::uint32_t packets) noexcept {
        messages_[message].msg_hdr.msg_iov = parts_[place].data();  // those of its packets follow each other
        messages_[message].msg_hdr.msg_iovlen = std::size_t{2} * packets;
    }
    /// As sendmmsg(2).
    [[nodiscard]] int send(int socket, std::uint32_t messages) noexcept {
        return ::sendmmsg(socket, messages_.data(), messages, 0);
    }
    [[nodiscard]] const Maker& maker() const noexcept { return *maker_; }

private:
    void set_body(std::uint32_t place, std::uint64_t packet) noexcept {
        const std::span<const std::byte> body = maker_->body(packet);
        parts_[place][1] = {const_cast<std::byte*>(body.data()), body.size()};
    }

    std::optional<Maker> maker_;
    bool same_body_ = true;
    std::array<std::array<std::byte, Maker::head_bytes>, most> heads_{};
    std::array<std::array<iovec, 2>, most> parts_{};
    std::array<mmsghdr, most> messages_{};
};

}  // namespace weir::bench
