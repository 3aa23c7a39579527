#include "bench/receiving.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "bench/message_assembly.hpp"
#include "bench/reception.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"

namespace weir::bench {
namespace {

constexpr std::array<std::string_view, 3> depths{"receive", "assemble", "full"};
// So long after the last packet none is on its way any more: longer than a scheduler's slice.
constexpr auto quiet = std::chrono::milliseconds(60);
// A receiver that is made slow makes up for so long: a scheduler's doing is not its own.
constexpr double credit_s = 0.005;
constexpr auto look_every = std::chrono::milliseconds(5);

/// Lets a receiver be slower, forgetful or absent.
class Faults {
public:
    Faults(const ReceiverFaults& faults, core::TimeNs now) : faults_(faults), begun_(now), pause_at_(now) {
        if (faults.pause_s > 0) pause_at_ += seconds(faults.pause_every_s);
    }

    /// Packets that may be taken now.
    std::uint32_t allowed(core::TimeNs now) noexcept {
        if (faults_.pause_s > 0 && now >= pause_at_) {
            pause_at_ += seconds(faults_.pause_every_s);
            const timespec time{0, static_cast<long>(faults_.pause_s * 1e9)};
            ::nanosleep(&time, nullptr);
        }
        if (faults_.packets_per_s <= 0) return Receiver::burst;
        // What was not taken in a while is not made up for: a slow receiver is slow all the time.
        const double all = static_cast<double>(now - begun_) * 1e-9 * faults_.packets_per_s;
        const double credit_max = std::clamp(faults_.packets_per_s * credit_s, 1.0, double{Receiver::burst});
        if (all - static_cast<double>(taken_) > credit_max) taken_ = static_cast<std::uint64_t>(all - credit_max);
        return static_cast<std::uint32_t>(std::max(0.0, all - static_cast<double>(taken_)));
    }
    void took(std::uint32_t packets) noexcept { taken_ += packets; }
    [[nodiscard]] bool forgets() noexcept {
        if (faults_.loss_ratio <= 0) return false;
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return static_cast<double>(state_ >> 11) * 0x1p-53 < faults_.loss_ratio;
    }

private:
    static core::TimeNs seconds(double s) noexcept { return static_cast<core::TimeNs>(s * 1e9); }

    ReceiverFaults faults_;
    core::TimeNs begun_;
    core::TimeNs pause_at_;
    std::uint64_t taken_ = 0;
    std::uint64_t state_ = 1;
};

std::optional<std::uint64_t> since(std::optional<std::uint64_t> before, std::optional<std::uint64_t> now) {
    if (!before || !now) return std::nullopt;
    return *now - *before;
}

}  // namespace

std::string_view name_of(Depth depth) noexcept {
    return depths[static_cast<std::size_t>(depth)];
}

Depth depth_named(std::string_view name) {
    for (std::size_t i = 0; i < depths.size(); ++i)
        if (depths[i] == name) return static_cast<Depth>(i);
    throw core::UsageError(fmt::format("there is no depth \"{}\": receive, assemble, full", name));
}

Receiving::Receiving(Receiver& receiver, std::string interface, const TrialSpec& spec, const Settings& settings)
    : receiver_(receiver),
      interface_(std::move(interface)),
      spec_(spec),
      settings_(settings),
      reception_(std::make_unique<Reception>(spec.plan, spec.packets, spec.ramp)),
      before_(interface_counters(interface_)),
      drops_before_(receiver.drops()),
      arrived_before_(receiver.arrived()),
      refused_before_(receiver.refused()),
      thread_([this] { run(); }) {}

Receiving::~Receiving() {
    stop_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
}

std::uint64_t Receiving::seen() const noexcept {
    return reception_->seen();
}

Receiving::Outcome Receiving::end(std::uint64_t sent, double patience_s) {
    using Clock = std::chrono::steady_clock;
    const auto give_up =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience_s));
    std::uint64_t seen = reception_->seen();
    auto last = Clock::now();
    bool settled = false;
    while (Clock::now() < give_up && !settled) {
        std::this_thread::sleep_for(look_every);
        if (const std::uint64_t now = reception_->seen(); now != seen) {
            seen = now;
            last = Clock::now();
        }
        // Even when all are here: a copy may still come.
        settled = Clock::now() - last > (seen >= sent ? quiet / 6 : quiet);
    }
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
    if (!failure_.empty()) throw core::RunError(failure_);

    Outcome outcome{reception_->counts(), reception_->latency(), remarks_};
    ReceiverCounts& counts = outcome.counts;
    counts.settled = settled;
    counts.cpu_s = cpu_s_;
    if (spec_.depth != Depth::receive) counts.assembled = assembled_;
    counts.messages = messages_;
    const Receiver::Refused refused = receiver_.refused();
    counts.taken += refused.damaged - refused_before_.damaged;
    counts.damaged += refused.damaged - refused_before_.damaged;
    counts.others += refused.others - refused_before_.others;
    const Receiver::Drops drops = receiver_.drops();
    counts.kernel_dropped = since(drops_before_.kernel, drops.kernel);
    counts.device_dropped = since(drops_before_.device, drops.device);
    counts.arrived = since(arrived_before_, receiver_.arrived());
    const std::optional<InterfaceCounters> interface = spec_.joined ? std::nullopt : interface_counters(interface_);
    if (!counts.arrived && before_ && interface) counts.arrived = interface->received - before_->received;
    // The ramp's are in no count of the sender either.
    if (counts.arrived) *counts.arrived -= std::min(*counts.arrived, counts.ramp);
    if (!counts.device_dropped && before_ && interface)
        counts.device_dropped = interface->receive_dropped - before_->receive_dropped;
    return outcome;
}

std::string Receiving::prepare_thread() const {
    std::string remarks;
    const auto note = [&remarks](std::string_view what, int error) {
        remarks += fmt::format("{}{}: {}", remarks.empty() ? "" : "; ", what, std::strerror(error));
    };
    if (settings_.cpu) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(*settings_.cpu, &cpus);
        if (const int error = ::pthread_setaffinity_np(::pthread_self(), sizeof cpus, &cpus); error != 0)
            note(fmt::format("not pinned to CPU {}", *settings_.cpu), error);
    }
    if (settings_.real_time) {
        const sched_param priority{.sched_priority = 10};
        if (const int error = ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &priority); error != 0)
            note("no SCHED_FIFO", error);
    }
    return remarks;
}

void Receiving::run() noexcept {
    try {
        remarks_ = prepare_thread();
        work();
    } catch (const std::exception& error) {
        failure_ = error.what();
    }
}

void Receiving::work() {
    std::array<ReceivedPacket, Receiver::burst> packets;
    core::TimeNs cpu_before = core::clock_ns(CLOCK_THREAD_CPUTIME_ID);
    bool counts = spec_.ramp == 0;
    std::optional<MessageAssembly> assembly;
    if (spec_.depth == Depth::assemble)
        assembly.emplace(spec_.plan, spec_.packets_per_s, receiver_.release(), receiver_.lends());
    Faults faults(settings_.faults, core::monotonic_ns());
    while (!stop_.load(std::memory_order_relaxed)) {
        const std::uint32_t allowed = std::min(faults.allowed(core::monotonic_ns()), Receiver::burst);
        if (allowed == 0) {
            constexpr timespec a_little{.tv_sec = 0, .tv_nsec = 50'000};
            ::nanosleep(&a_little, nullptr);
            continue;
        }
        const std::uint32_t count = receiver_.receive(std::span(packets).first(allowed));
        const core::TimeNs now = core::monotonic_ns();
        faults.took(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            ReceivedPacket& packet = packets[i];
            bool is_new = false;
            if (faults.forgets())
                reception_->forget();
            else
                is_new = reception_->add({packet.payload, packet.bytes}, now);
            if (assembly && is_new)
                assembly->add(packet, now);
            else
                receiver_.release()(&packet.buffer, 1);
        }
        if (assembly) assembly->end_burst(now);
        if (!counts && reception_->counts_now()) {
            counts = true;
            cpu_before = core::clock_ns(CLOCK_THREAD_CPUTIME_ID);
        }
    }
    if (assembly) {
        assembly->finish(core::monotonic_ns());
        messages_ = assembly->events();
        assembled_ = assembly->packets();
    }
    cpu_s_ = static_cast<double>(core::clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before) * 1e-9;
}

}  // namespace weir::bench
