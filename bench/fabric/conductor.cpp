#include "conductor.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

#include "core/clock_ns.hpp"
#include "station.hpp"
#include "store/file.hpp"

namespace weir::fabric::bench {

using cluster::Block;
using cluster::NodeId;

namespace {

constexpr core::TimeNs patience_ns = 60 * core::ns_per_s;

void sleep_s(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Ports that are free; nobody else takes them soon.
std::vector<std::string> free_addresses(NodeId nodes) {
    std::vector<store::Descriptor> sockets;
    std::vector<std::string> addresses;
    for (NodeId node = 0; node < nodes; ++node) {
        sockets.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in place{};
        place.sin_family = AF_INET;
        place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof place;
        if (::bind(sockets.back().get(), reinterpret_cast<sockaddr*>(&place), bytes) != 0 ||
            ::getsockname(sockets.back().get(), reinterpret_cast<sockaddr*>(&place), &bytes) != 0)
            throw std::runtime_error("no free ports");
        addresses.push_back(fmt::format("127.0.0.1:{}", ntohs(place.sin_port)));
    }
    return addresses;
}

std::vector<UcxNetwork::Config> configs(NodeId nodes, const std::string& transports) {
    UcxNetwork::Config config;
    config.addresses = free_addresses(nodes);
    for (NodeId node = 0; node < nodes; ++node) config.names.push_back(fmt::format("node{}", node));
    config.transports = transports;
    config.silence_ns = 10 * core::ns_per_s;  // more processes than CPUs
    config.reconnect_ns = 20 * core::ns_per_ms;
    std::vector<UcxNetwork::Config> all;
    for (config.self = 0; config.self < nodes; ++config.self) all.push_back(config);
    return all;
}

[[noreturn]] void be_node(const Options& options, const UcxNetwork::Config& config, Board& board) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        Station(options, config, board).run();
        ::_exit(0);
    } catch (const std::exception& error) {
        char* const text = board.seats.at(config.self).error;
        std::strncpy(text, error.what(), sizeof Seat::error - 1);
    }
    ::_exit(1);
}

double cpu_seconds_of(pid_t process) {
    clockid_t clock{};
    if (::clock_getcpuclockid(process, &clock) != 0) return 0;
    return static_cast<double>(core::clock_ns(clock)) * 1e-9;
}

}  // namespace

Conductor::Conductor(const Options& options, const std::string& transports) : options_(options) {
    void* const shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw std::bad_alloc();
    board_.reset(new (shared) Board);
    start(transports);
    lead(Stage::connect);
}

/// This process loads no UCX: it would not survive a fork.
void Conductor::start(const std::string& transports) {
    for (const UcxNetwork::Config& config : configs(options_.nodes(), transports)) {
        const pid_t child = ::fork();
        if (child < 0) throw std::runtime_error("no process can be made");
        if (child == 0) be_node(options_, config, *board_);
        children_.push_back(child);
    }
}

Conductor::~Conductor() {
    board_->step.store(step_of(turn_, Stage::leave), std::memory_order_release);
    const core::TimeNs end = core::monotonic_ns() + 5 * core::ns_per_s;
    for (const pid_t child : children_) {
        if (child == 0) continue;
        while (::waitpid(child, nullptr, WNOHANG) == 0) {
            if (core::monotonic_ns() > end) ::kill(child, SIGKILL);
            sleep_s(0.001);
        }
    }
}

Measured Conductor::turn(Mode mode, std::uint64_t part_bytes) {
    board_->task = {.mode = mode, .part_bytes = part_bytes, .number = ++turn_};
    lead(Stage::prepare);
    lead(Stage::go);
    sleep_s(options_.warm_seconds);
    const Sample begin = sample();
    sleep_s(options_.seconds);
    const Sample end = sample();
    check_children();
    lead(Stage::pause);
    Block last = 0;
    for (NodeId node = 0; node < options_.nodes(); ++node)
        last = std::max(last, board_->seats[node].next.load(std::memory_order_relaxed));
    board_->last.store(last, std::memory_order_relaxed);
    lead(Stage::finish);
    return {.seconds = end.seconds - begin.seconds,
            .gigabytes = end.gigabytes - begin.gigabytes,
            .cpu_seconds = end.cpu_seconds - begin.cpu_seconds,
            .counts = counted()};
}

void Conductor::lead(Stage stage) {
    board_->step.store(step_of(turn_, stage), std::memory_order_release);
    wait_for_all();
}

void Conductor::wait_for_all() {
    const core::TimeNs end = core::monotonic_ns() + patience_ns;
    while (!have_all_reached()) {
        check_children();
        if (core::monotonic_ns() > end) throw std::runtime_error("nodes do not come to an end");
        sleep_s(0.001);
    }
}

bool Conductor::have_all_reached() const {
    const std::uint32_t step = board_->step.load(std::memory_order_relaxed);
    const auto* const begin = board_->seats.begin();
    return std::all_of(begin, begin + options_.nodes(),
                       [step](const Seat& seat) { return seat.reached.load(std::memory_order_acquire) == step; });
}

void Conductor::check_children() {
    for (NodeId node = 0; node < options_.nodes(); ++node) {
        if (children_[node] == 0 || ::waitpid(children_[node], nullptr, WNOHANG) == 0) continue;
        children_[node] = 0;
        throw std::runtime_error(fmt::format("node {} has ended: {}", node, board_->seats[node].error));
    }
}

Conductor::Sample Conductor::sample() const {
    Sample sample{.seconds = static_cast<double>(core::monotonic_ns()) * 1e-9};
    for (NodeId node = 0; node < options_.nodes(); ++node) {
        const Seat& seat = board_->seats[node];
        sample.gigabytes += static_cast<double>(seat.received_bytes.load(std::memory_order_relaxed)) * 1e-9;
        sample.cpu_seconds += cpu_seconds_of(children_[node]);
    }
    return sample;
}

Counts Conductor::counted() const {
    Counts counts;
    for (NodeId node = 0; node < options_.nodes(); ++node) counts += board_->seats[node].counts;
    const bool builds = board_->task.mode == Mode::building;
    const bool lacks_blocks = builds && counts.blocks * options_.pairs != counts.received;
    if (counts.received != counts.handed_over || counts.wrong != 0 || lacks_blocks)
        throw std::runtime_error(fmt::format("{} parts were handed over, {} came, in {} blocks; {} were wrong",
                                             counts.handed_over, counts.received, counts.blocks, counts.wrong));
    return counts;
}

}  // namespace weir::fabric::bench
