#include "port/device_clock.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <time.h>

#include "core/clock_ns.hpp"
#include "core/error.hpp"

namespace weir::port {

namespace {

std::optional<std::uint64_t> counter_of(std::uint16_t port_id) {
    std::uint64_t ticks = 0;
    if (::rte_eth_read_clock(port_id, &ticks) != 0) return std::nullopt;
    return ticks;
}

std::optional<std::uint64_t> ptp_time_of(std::uint16_t port_id) {
    timespec time{};
    if (::rte_eth_timesync_read_time(port_id, &time) != 0) return std::nullopt;
    return static_cast<std::uint64_t>(time.tv_sec) * core::ns_per_s + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

std::unique_ptr<DeviceClock> DeviceClock::open(std::uint16_t port_id, std::string& why_not) {
    const int field = ::rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, nullptr);
    const int bit = ::rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, nullptr);
    if (field < 0 || bit < 0) {
        why_not = "the driver has not made the field for it";
        return nullptr;
    }
    // mlx5 and cnxk let their counter be read; Intel's drivers stamp with the clock of PTP.
    std::string name = "the device's counter (rte_eth_read_clock)";
    Reader reader = [port_id] { return counter_of(port_id); };
    if (!reader()) {
        const int rc = ::rte_eth_timesync_enable(port_id);
        name = "the device's PTP clock (rte_eth_timesync_read_time)";
        reader = [port_id] { return ptp_time_of(port_id); };
        if (rc != 0 || !reader()) {
            why_not = fmt::format("its clock cannot be read ({})",
                                  rc == 0 ? "rte_eth_read_clock and timesync fail" : rte_strerror(-rc));
            return nullptr;
        }
    }
    try {
        return std::make_unique<DeviceClock>(std::move(name), std::move(reader), field, RTE_BIT64(bit));
    } catch (const core::RunError& error) {
        why_not = error.what();
        return nullptr;
    }
}

DeviceClock::DeviceClock(std::string name, Reader reader, int field, std::uint64_t flag, std::string source)
    : name_(std::move(name)), source_(std::move(source)), reader_(std::move(reader)), field_(field), flag_(flag) {
    const auto first = read();
    const timespec nap{0, core::DisciplinedClock::learn_ns};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
    const auto second = read();
    if (!first || !second || second->ticks <= first->ticks)
        throw core::RunError(name_ + " stands still, or cannot be read");
    clock_ = std::make_unique<core::DisciplinedClock>(*first, *second);
    looked_ns_ = second->raw_ns;
}

std::optional<core::ClockReading> DeviceClock::read() const noexcept {
    std::optional<core::ClockReading> best;
    constexpr int tries = 3;  // across PCIe, a microsecond each
    for (int i = 0; i < tries; ++i) {
        const core::TimeNs real = core::clock_ns(CLOCK_REALTIME);
        const core::TimeNs before = core::clock_ns(CLOCK_MONOTONIC_RAW);
        const auto ticks = reader_();
        const core::TimeNs took = core::clock_ns(CLOCK_MONOTONIC_RAW) - before;
        if (!ticks || (best && took >= best->uncertain_ns)) continue;
        best = {*ticks, real + took / 2, before + took / 2, took};
    }
    return best;
}

void DeviceClock::look() noexcept {
    if (core::clock_ns(CLOCK_MONOTONIC_RAW) - looked_ns_ < core::DisciplinedClock::read_every_ns) return;
    const auto reading = read();
    if (!reading) return;  // the error that is stated grows with the next one
    looked_ns_ = reading->raw_ns;
    clock_->correct(*reading);
}

}  // namespace weir::port
