// libFuzzer target: any bytes as messages, looks for packets, answers and passing time of an initiator. Whatever comes:
// results come in the order of posting and once, acknowledged ones only when all their packets went out, packets lie in
// the window, and what a packet carries lies in its message.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>

#include "roce/initiator/initiator.hpp"

namespace {

using namespace weir;
using roce::Initiator;

class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
    [[nodiscard]] bool empty() const { return left_ == 0; }
    std::uint32_t byte() {
        if (left_ == 0) return 0;
        --left_;
        return *data_++;
    }

private:
    const std::uint8_t* data_;
    std::size_t left_;
};

void must(bool holds) {
    if (!holds) std::abort();
}

struct Posted {
    std::uint32_t bytes = 0;
    std::uint32_t carried = 0;  ///< the furthest byte that went out
    bool ended = false;         ///< its last packet went out
};

class Run {
public:
    explicit Run(Input& in) : in_(in), initiator_(config(in)) {}

    void step() {
        switch (const std::uint32_t what = in_.byte(); what & 7U) {
            case 0:
            case 1:
                post(what);
                break;
            case 2:
            case 3:
                look();
                break;
            case 4:
                take();
                break;
            case 5:
                now_ += core::TimeNs{in_.byte()} << (what >> 3U);
                break;
            default:
                answer(what);
        }
        must(posted_ - taken_ <= initiator_.config().messages_max);
        must(initiator_.unacknowledged() <= initiator_.sent_end());
        must(initiator_.account().posted == posted_);
    }
    void finish() {
        if (!initiator_.idle()) initiator_.abort();
        take();
        must(taken_ == posted_);
        const Initiator::Account& account = initiator_.account();
        must(account.acknowledged + account.sent + account.failed == posted_);
    }

private:
    static Initiator::Config config(Input& in) {
        Initiator::Config config;
        const std::uint32_t shape = in.byte();
        config.service = (shape & 3U) < 2   ? wire::RoceTransport::rc
                         : (shape & 3U) < 3 ? wire::RoceTransport::uc
                                            : wire::RoceTransport::ud;
        config.is_write = (shape & 4U) != 0 && (shape & 3U) != 3;
        config.psn = 0xffffff - in.byte();
        config.path_mtu = 256;
        config.window = 1 + in.byte() % 40;
        config.messages_max = 1 + in.byte() % 10;
        config.ack_every = 1 + in.byte() % 20;
        config.retries = in.byte() % 10;
        config.rnr_retries = in.byte() % 8;
        config.timeout_ns = 1000;
        return config;
    }
    void post(std::uint32_t what) {
        const bool datagram = initiator_.config().service == wire::RoceTransport::ud;
        const std::uint32_t bytes = datagram ? in_.byte() : in_.byte() * 16;
        roce::SendMessage message{.id = posted_, .bytes = bytes};
        if ((what & 8U) != 0) message.immediate = what;
        if (!initiator_.post(message)) return;
        ++posted_;
        messages_.push_back({.bytes = bytes});
    }
    void look() {
        roce::SendPacket packet;
        if (!initiator_.next(now_, packet)) return;
        must(packet.id >= taken_ && packet.id < posted_);
        Posted& message = messages_[packet.id - taken_];
        must(packet.packet.bytes <= 256 && packet.offset + packet.packet.bytes <= message.bytes);
        must(packet.again || packet.offset == message.carried);
        message.carried = std::max(message.carried, packet.offset + packet.packet.bytes);
        message.ended = message.ended || packet.packet.place == wire::RocePlace::last ||
                        packet.packet.place == wire::RocePlace::only;
        must(!message.ended || message.carried == message.bytes);
        if (initiator_.config().service == wire::RoceTransport::rc)
            must(initiator_.sent_end() - initiator_.unacknowledged() <= initiator_.config().window);
    }
    void answer(std::uint32_t what) {
        roce::Acknowledgement answer;
        answer.psn = static_cast<std::uint32_t>(initiator_.unacknowledged()) + in_.byte() % 64 - 8;
        if ((what & 8U) != 0) answer.psn += in_.byte() << 16U;
        answer.psn &= 0xffffff;
        answer.syndrome = static_cast<std::uint8_t>((what & 16U) != 0 ? in_.byte() : wire::roce_ack_unlimited);
        answer.msn = in_.byte();
        initiator_.answered(answer, now_);
    }
    void take() {
        for (roce::SendResult result; initiator_.take(result); ++taken_, messages_.pop_front()) {
            must(result.id == taken_);
            using roce::SendStatus;
            if (result.status == SendStatus::acknowledged || result.status == SendStatus::sent)
                must(messages_.front().ended);
        }
    }

    Input& in_;
    Initiator initiator_;
    std::deque<Posted> messages_;  ///< from taken_ on
    std::uint64_t posted_ = 0;
    std::uint64_t taken_ = 0;
    core::TimeNs now_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    Run run(in);
    while (!in.empty()) run.step();
    run.finish();
    return 0;
}
