#include "stages/answer_log.hpp"

#include <chrono>

#include "core/error.hpp"

namespace weir::stages {

AnswerLog::AnswerLog(const std::string& path, std::size_t rings) : writer_(path), rings_(rings) {}

AnswerLog::~AnswerLog() {
    finish();
}

void AnswerLog::start() {
    thread_ = std::thread([this] { work(); });
}

bool AnswerLog::drain() {
    bool any = false;
    for (AnswerRing& ring : rings_)
        while (const AnswerRecord* record = ring.front()) {
            any = true;
            // After a failure the rings are emptied all the same: an lcore may wait for room in them.
            try {
                if (error_.empty()) writer_.write({record->frame.data(), record->bytes}, record->time_ns);
            } catch (const core::RunError& error) {
                error_ = error.what();
            }
            ring.pop();
        }
    return any;
}

void AnswerLog::work() {
    while (!stop_.load(std::memory_order_acquire))
        if (!drain()) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

void AnswerLog::finish() {
    if (stop_.exchange(true)) return;
    if (thread_.joinable()) thread_.join();
    static_cast<void>(drain());
    try {
        writer_.close();
    } catch (const core::RunError& error) {
        if (error_.empty()) error_ = error.what();
    }
}

}  // namespace weir::stages
