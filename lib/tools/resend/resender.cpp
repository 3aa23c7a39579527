#include "resend/resender.hpp"

#include <chrono>
#include <numeric>
#include <thread>

namespace weir::resend {

namespace {

std::uint32_t mtu_of(const Resender::Config& config) {
    return config.to.is_socket() ? 0 : config.mtu.value_or(usual_mtu(config.to.device));
}

ReadAhead::Config reading_of(const Resender::Config& config, std::uint32_t mtu) {
    return {config.source, config.loop, config.rewrite, config.to.is_socket(), mtu, config.to.port};
}

std::unique_ptr<WireTarget> open_target(const Destination& to, std::uint32_t mtu) {
    return to.is_socket() ? open_socket_target(to.host) : open_device_target(to.device, mtu);
}

}  // namespace

std::uint64_t Resender::Account::not_sent_in_all() const noexcept {
    return std::accumulate(not_sent.begin(), not_sent.end(), std::uint64_t{0});
}

Resender::Resender(const Config& config, const std::atomic<bool>& stop)
    : stop_(stop),
      mtu_(mtu_of(config)),
      reader_(reading_of(config, mtu_), ring_, abandon_),
      target_(open_target(config.to, mtu_)),
      sender_(ring_, *target_, config.speed, stop) {}

Resender::~Resender() {
    end_reading();
}

/// As much as the ring holds has been read, and the link is up; or it is not worth waiting for any longer.
void Resender::wait_for_start() {
    constexpr auto file_patience = std::chrono::milliseconds(200);  // a pipe may be slow for good
    constexpr auto link_patience = std::chrono::seconds(5);
    const auto begin = std::chrono::steady_clock::now();
    const auto waits = [&](auto patience) {
        return !stop_.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() - begin < patience;
    };
    while (!ring_.is_full_or_ended() && waits(file_patience)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    while (!target_->is_ready() && waits(link_patience)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Resender::end_reading() {
    abandon_.store(true, std::memory_order_relaxed);
    reader_.join();
}

void Resender::run() {
    reader_.start();
    wait_for_start();
    sender_.send();
    end_reading();
    std::uint64_t left = 0;
    for (; ring_.front() != nullptr; ++left) ring_.pop();
    target_->finish();

    account_.read = reader_.packets();
    account_.read_bytes = reader_.bytes();
    account_.skipped = reader_.source().skipped();
    account_.sent = sender_.packets();
    account_.sent_bytes = sender_.bytes();
    account_.lost_by_target = target_->lost();
    for (std::size_t i = 0; i < account_.not_sent.size(); ++i) {
        const auto reason = static_cast<NotSent>(i);
        account_.not_sent[i] = reader_.not_sent().get(reason) + sender_.not_sent().get(reason);
    }
    account_.not_sent[static_cast<std::size_t>(NotSent::unsent)] += left;
}

}  // namespace weir::resend
