#include "stages/rx/rx_answers.hpp"

namespace weir::stages {

using roce::AnswerCounter;

void RxAnswers::send(const port::Packet& packet, const wire::Datagram& datagram, const wire::RoceAnswer& answer,
                     AnswerCounter counter) noexcept {
    const auto* const frame = rte_pktmbuf_mtod(packet.mbuf, const std::byte*);
    tally_.add(counter);
    if (!ports_.empty()) {
        port::AnswerSender* sender = ports_[packet.port];
        unsent_ = true;  // or failed: flush counts it
        const std::span<std::byte> room = sender->begin();
        if (!room.empty()) sender->commit(wire::write_roce_answer(frame, datagram, answer, room));
    } else if (log_ != nullptr) {
        AnswerRecord* record = log_->begin();
        const std::size_t bytes =
            record != nullptr ? wire::write_roce_answer(frame, datagram, answer, record->frame) : 0;
        if (bytes == 0) return tally_.add(AnswerCounter::not_sent);
        record->time_ns = packet.time_ns;
        record->bytes = static_cast<std::uint32_t>(bytes);
        log_->commit();
    }
}

void RxAnswers::flush() noexcept {
    if (!unsent_) return;
    unsent_ = false;
    for (port::AnswerSender* sender : ports_) {
        if (sender == nullptr) continue;
        sender->flush();
        unsent_ = unsent_ || !sender->empty();
        if (const std::uint32_t failures = sender->take_failures(); failures > 0)
            tally_.add(AnswerCounter::not_sent, failures);
    }
}

}  // namespace weir::stages
