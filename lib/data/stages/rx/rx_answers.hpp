// Answers to RoCE requests on their way from an rx lcore: through the port that the packet came from, or, in a replay,
// into a file, where they are kept. In a replay without one nobody hears them.
#pragma once

#include <cstdint>
#include <vector>

#include "port/answer_sender.hpp"
#include "port/buffers.hpp"
#include "roce/responder/answer_counter.hpp"
#include "stages/answer_log.hpp"
#include "wire/fragment.hpp"
#include "wire/roce_answer.hpp"

namespace weir::stages {

class RxAnswers {
public:
    /// `ports`: by the index of the port that a packet came from; null where nothing is answered. Empty in a replay,
    /// which may have a `log`.
    RxAnswers(std::vector<port::AnswerSender*> ports, AnswerRing* log) : ports_(std::move(ports)), log_(log) {}

    /// Whether the answers to a burst find room; always where they need not wait for any. A packet may have an
    /// acknowledgement and a congestion notification to answer it.
    [[nodiscard]] bool has_room(std::uint32_t burst) const noexcept {
        return log_ == nullptr || log_->has_room(std::uint64_t{4} * burst);
    }
    /// Makes the answer from the packet's own headers, which must still be there.
    void send(const port::Packet& packet, const wire::Datagram& datagram, const wire::RoceAnswer& answer,
              roce::AnswerCounter counter) noexcept;
    /// Once per poll: what a device has not taken is offered again, and what could not be sent is counted.
    void flush() noexcept;

    [[nodiscard]] const roce::AnswerTally& tally() const noexcept { return tally_; }

private:
    std::vector<port::AnswerSender*> ports_;
    AnswerRing* log_;
    roce::AnswerTally tally_;
    bool unsent_ = false;
};

}  // namespace weir::stages
