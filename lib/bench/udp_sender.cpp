#include "bench/udp_sender.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>

#include "bench/sending_socket.hpp"
#include "core/clock_ns.hpp"

namespace weir::bench {
namespace {

class UdpSender : public Sender {
public:
    explicit UdpSender(const Endpoint& to) : to_(to), socket_(connected_socket(to)) {}

    void prepare(const PacketPlan& plan) override {
        maker_.emplace(plan);
        for (std::uint32_t i = 0; i < most; ++i) {
            parts_[i][0] = {heads_[i].data(), PacketPlan::head_bytes};
            parts_[i][1] = {const_cast<std::byte*>(maker_->body().data()), maker_->body().size()};
            messages_[i].msg_hdr.msg_iov = parts_[i].data();
            messages_[i].msg_hdr.msg_iovlen = parts_[i].size();
        }
    }

    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        const core::TimeNs now = core::monotonic_ns();
        for (std::uint32_t i = 0; i < count; ++i) maker_->write_head(first + i, now, heads_[i].data());
        const int sent = ::sendmmsg(socket_.get(), messages_.data(), count, 0);
        if (sent >= 0) return static_cast<std::uint32_t>(sent);
        if (!may_try_again(errno)) throw_not_sent(to_, errno);
        return 0;
    }

    [[nodiscard]] std::uint32_t burst() const noexcept override { return most; }

private:
    static constexpr std::uint32_t most = 64;

    Endpoint to_;
    FileDescriptor socket_;
    std::optional<PacketMaker> maker_;
    std::array<std::array<std::byte, PacketPlan::head_bytes>, most> heads_{};
    std::array<std::array<iovec, 2>, most> parts_{};
    std::array<mmsghdr, most> messages_{};
};

}  // namespace

std::unique_ptr<Sender> open_udp_sender(const Endpoint& to) {
    return std::make_unique<UdpSender>(to);
}

}  // namespace weir::bench
