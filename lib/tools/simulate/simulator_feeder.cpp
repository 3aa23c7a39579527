#include "simulate/simulator_feeder.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/tsan.hpp"

namespace weir::simulate {

namespace {

double number_of(const std::string& key, const std::string& text) {
    std::size_t used = 0;
    double value = -1;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used != text.size() || text.empty() || value < 0 || !std::isfinite(value))
        throw core::UsageError(fmt::format("sim device: {}: found '{}'; accepted: a number from 0", key, text));
    return value;
}

void set_format(SimulatorConfig& simulator, const std::string& text, std::span<const wire::DeclaredSpec> formats) {
    std::string names;
    // Over UDP, events without numbers of their own could only be counted.
    for (const std::string_view name : simulated_names()) {
        if (!wire::find_format(name)->numbers_events) continue;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
        if (text == name && choose_format(simulator, name, {})) return;
    }
    for (const wire::DeclaredSpec& spec : formats) names += ", " + spec.name;
    if (!wire::is_built_in(text) && choose_format(simulator, text, formats)) return;
    throw core::UsageError(fmt::format("sim device: format: found '{}'; accepted: {}", text, names));
}

void set_option(SimulatorFeeder::Config& config, const std::string& key, const std::string& text,
                std::span<const wire::DeclaredSpec> formats) {
    SimulatorConfig& simulator = config.simulator;
    if (key == "format") {
        set_format(simulator, text, formats);
        return;
    }
    if (key == "tengiga") {
        if (text != "true" && text != "false")
            throw core::UsageError(fmt::format("sim device: tengiga: found '{}'; accepted: true, false", text));
        simulator.tengiga = text == "true";
        return;
    }
    const double value = number_of(key, text);
    if (key == "events")
        simulator.events = static_cast<std::uint64_t>(value);
    else if (key == "rate")
        config.events_per_s = value;
    else if (key == "seed")
        simulator.seed = static_cast<std::uint64_t>(value);
    else if (key == "drop")
        simulator.drop = value;
    else if (key == "duplicate")
        simulator.duplicate = value;
    else if (key == "truncate")
        simulator.truncate = value;
    else if (key == "reorder")
        simulator.reorder = static_cast<std::uint32_t>(value);
    else if (key == "interfaces")
        simulator.interfaces = static_cast<std::uint32_t>(value);
    else if (key == "rows")
        simulator.rows = static_cast<std::uint32_t>(value);
    else if (key == "bit_depth")
        simulator.bit_depth = static_cast<std::uint32_t>(value);
    else if (key == "source_id")
        simulator.source_id = static_cast<std::uint32_t>(value);
    else if (key == "one_port")
        simulator.one_port = value != 0;
    else if (key == "bytes")
        simulator.bytes_max = static_cast<std::uint32_t>(value);
    else if (key == "port")
        simulator.port = static_cast<std::uint32_t>(value);
    else
        throw core::UsageError(fmt::format(
            "sim device: unknown key '{}'; accepted: format, events, rate, seed, drop, duplicate, truncate, reorder, "
            "interfaces, rows, bit_depth, tengiga, source_id, one_port, bytes, port",
            key));
}

}  // namespace

SimulatorFeeder::Config SimulatorFeeder::parse_device(const std::string& device, std::uint32_t sources,
                                                      std::span<const wire::DeclaredSpec> formats) {
    Config config;
    config.simulator.sources = sources;
    std::size_t at = device.find(',');
    while (at != std::string::npos) {
        const std::size_t next = device.find(',', at + 1);
        const std::string item = device.substr(at + 1, next == std::string::npos ? std::string::npos : next - at - 1);
        const std::size_t equal = item.find('=');
        if (equal == std::string::npos)
            throw core::UsageError(fmt::format("sim device: found '{}'; accepted: key=value, comma separated", item));
        set_option(config, item.substr(0, equal), item.substr(equal + 1), formats);
        at = next;
    }
    return config;
}

SimulatorFeeder::SimulatorFeeder(const Config& config, const std::string& name, port::BufferPool& pool)
    : config_(config), simulator_(std::in_place, config.simulator), pool_(pool) {
    if (simulator_->frame_bytes_max() > pool.room_bytes())
        throw core::UsageError(
            fmt::format("port '{}': the simulated detector sends frames of {} bytes; "
                        "raise mtu (a buffer now holds {})",
                        name, simulator_->frame_bytes_max(), pool.room_bytes()));
    ring_ = ::rte_ring_create(("sim_" + name).c_str(), config.queue_entries, SOCKET_ID_ANY,
                              RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
    if (ring_ == nullptr) throw core::RunError(fmt::format("no memory for the queue of port '{}'", name));
    // The device also wants a transmit ring; nothing is ever sent to a simulated detector.
    const int port = ::rte_eth_from_rings(("sim_" + name).c_str(), &ring_, 1, &ring_, 1, SOCKET_ID_ANY);
    std::array<char, RTE_ETH_NAME_MAX_LEN> text{};
    if (port < 0 || ::rte_eth_dev_get_name_by_port(static_cast<std::uint16_t>(port), text.data()) != 0)
        throw core::RunError(fmt::format("port '{}': no ring device: {}", name, rte_strerror(rte_errno)));
    device_ = text.data();
}

SimulatorFeeder::~SimulatorFeeder() {
    join();
}

void SimulatorFeeder::start(const stages::RunSignals& signals) {
    if (std::exchange(started_, true)) simulator_.emplace(config_.simulator);
    emitted_.store(0, std::memory_order_relaxed);
    missed_.store(0, std::memory_order_relaxed);
    sent_all_.store(false, std::memory_order_release);
    thread_ = std::thread([this, &signals] { run(signals); });
}

void SimulatorFeeder::join() {
    if (thread_.joinable()) thread_.join();
}

bool SimulatorFeeder::drained() const noexcept {
    return sent_all_.load(std::memory_order_acquire) && ::rte_ring_empty(ring_) != 0;
}

void SimulatorFeeder::run(const stages::RunSignals& signals) {
    using clock = std::chrono::steady_clock;
    const bool registered = ::rte_thread_register() == 0;
    const auto start = clock::now();
    const auto stopped = [&] { return signals.stop_input.load(std::memory_order_relaxed); };
    const auto rest = [] { std::this_thread::sleep_for(std::chrono::microseconds(20)); };
    std::uint64_t count = 0;
    while (!stopped()) {
        port::OwnedMbuf mbuf(pool_.allocate());
        if (mbuf == nullptr) {
            rest();
            continue;
        }
        Simulator::Frame frame;
        if (!simulator_->next({rte_pktmbuf_mtod(mbuf.get(), std::byte*), pool_.room_bytes()}, frame)) {
            sent_all_.store(true, std::memory_order_release);
            break;
        }
        mbuf->data_len = static_cast<std::uint16_t>(frame.bytes);
        mbuf->pkt_len = frame.bytes;
        if (config_.events_per_s > 0) {
            const auto due = start + std::chrono::nanoseconds(
                                         static_cast<std::int64_t>(1e9 * frame.due_events / config_.events_per_s));
            while (clock::now() < due && !stopped())
                std::this_thread::sleep_until(std::min(due, clock::now() + std::chrono::milliseconds(20)));
        }
        core::tsan_release(mbuf.get());
        bool sent = ::rte_ring_sp_enqueue(ring_, mbuf.get()) == 0;
        while (!sent && config_.events_per_s == 0 && !stopped()) {
            rest();
            sent = ::rte_ring_sp_enqueue(ring_, mbuf.get()) == 0;
        }
        if (sent) {
            static_cast<void>(mbuf.release());  // the device's
            emitted_.store(++count, std::memory_order_relaxed);
        } else {
            missed_.fetch_add(1, std::memory_order_relaxed);
        }
    }
    if (registered) ::rte_thread_unregister();
}

std::unique_ptr<stages::BuiltInDevice> make_simulator(const stages::BuiltInDeviceConfig& config,
                                                      port::BufferPool& pool) {
    SimulatorFeeder::Config feeder = SimulatorFeeder::parse_device(config.text, config.sources, config.formats);
    feeder.queue_entries = config.queue_entries;
    return std::make_unique<SimulatorFeeder>(feeder, config.port, pool);
}

}  // namespace weir::simulate
