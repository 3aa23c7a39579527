#include "bench/faulty_sender.hpp"

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "core/clock_ns.hpp"

namespace weir::bench {
namespace {

// Packets that are held back find room in this time, or the trial is over without them.
constexpr core::TimeNs finish_ns = 200 * core::ns_per_ms;

/// Takes every packet at once; what the sender has no room for waits here, and nothing more is taken.
class FaultySender : public Sender {
public:
    FaultySender(std::unique_ptr<Sender> sender, const SenderFaults& faults)
        : sender_(std::move(sender)), faults_(faults) {}

    void prepare(const PacketPlan& plan) override {
        sender_->prepare(plan);
        random_.seed(faults_.seed);
        late_ = {};
        ready_.clear();
    }

    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        if (!pass_on()) return 0;
        for (std::uint64_t packet = first; packet < first + count; ++packet) {
            draw(packet);
            release_until(packet);
        }
        (void)pass_on();
        return count;
    }

    void finish() override {
        release_until(UINT64_MAX);
        const core::TimeNs give_up = core::monotonic_ns() + finish_ns;
        while (!pass_on() && core::monotonic_ns() < give_up) {
        }
        sender_->finish();
    }

    [[nodiscard]] std::optional<std::uint64_t> on_wire() override { return sender_->on_wire(); }
    [[nodiscard]] bool joins_packets() const noexcept override { return sender_->joins_packets(); }
    [[nodiscard]] std::uint64_t kept_back() const noexcept override { return kept_back_; }
    [[nodiscard]] std::uint32_t burst() const noexcept override { return sender_->burst(); }

private:
    using Late = std::pair<std::uint64_t, std::uint64_t>;  // the packet that it goes after, and itself

    [[nodiscard]] double chance() { return std::uniform_real_distribution<double>()(random_); }

    void draw(std::uint64_t packet) {
        if (faults_.drop > 0 && chance() < faults_.drop) {
            ++kept_back_;
            return;
        }
        const int copies = faults_.duplicate > 0 && chance() < faults_.duplicate ? 2 : 1;
        for (int i = 0; i < copies; ++i) {
            const std::uint64_t places =
                faults_.reorder == 0 ? 0 : std::uniform_int_distribution<std::uint64_t>(0, faults_.reorder)(random_);
            late_.emplace(packet + places, packet);
        }
    }
    void release_until(std::uint64_t packet) {
        for (; !late_.empty() && late_.top().first <= packet; late_.pop()) ready_.push_back(late_.top().second);
    }
    /// Packets that follow each other go together. False: there is no room for all of them now.
    bool pass_on() {
        while (!ready_.empty()) {
            const std::uint64_t first = ready_.front();
            std::uint32_t count = 1;
            while (count < ready_.size() && count < sender_->burst() && ready_[count] == first + count) ++count;
            const std::uint32_t taken = sender_->send(first, count);
            ready_.erase(ready_.begin(), ready_.begin() + taken);
            if (taken < count) return false;
        }
        return true;
    }

    std::unique_ptr<Sender> sender_;
    SenderFaults faults_;
    std::mt19937_64 random_;
    std::priority_queue<Late, std::vector<Late>, std::greater<>> late_;
    std::deque<std::uint64_t> ready_;
    std::uint64_t kept_back_ = 0;
};

}  // namespace

std::string faults_text(const SenderFaults& faults) {
    std::string text = "on purpose: ";
    if (faults.drop > 0) text += fmt::format("drop {:g}, ", faults.drop);
    if (faults.duplicate > 0) text += fmt::format("duplicate {:g}, ", faults.duplicate);
    if (faults.reorder > 0) text += fmt::format("reorder {}, ", faults.reorder);
    return text + fmt::format("seed {}", faults.seed);
}

std::unique_ptr<Sender> with_faults(std::unique_ptr<Sender> sender, const SenderFaults& faults) {
    if (!faults.any()) return sender;
    return std::make_unique<FaultySender>(std::move(sender), faults);
}

}  // namespace weir::bench
