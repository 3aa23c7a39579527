#include "command.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>

#include "bench/control_listener.hpp"
#include "bench/loopback.hpp"
#include "bench/measurement.hpp"
#include "bench/report_html.hpp"
#include "bench/report_text.hpp"
#include "bench/server.hpp"
#include "bench_compare.hpp"
#include "bench_options.hpp"
#include "bench_progress.hpp"
#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "port/eal.hpp"
#include "run/run_signals.hpp"
#include "terminal.hpp"
#include "version.hpp"

namespace weir::app {
namespace {

std::string now_text() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string random_token() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
}

/// Set by SIGINT and SIGTERM, for threads that look at an atomic.
class StopWatch {
public:
    StopWatch() : thread_([this] { look(); }) {}
    ~StopWatch() {
        ended_.store(true);
        thread_.join();
    }
    StopWatch(const StopWatch&) = delete;
    StopWatch& operator=(const StopWatch&) = delete;
    [[nodiscard]] const std::atomic<bool>& stopped() const noexcept { return stopped_; }

private:
    void look() {
        while (!ended_.load()) {
            if (run::stop_signal() != 0) stopped_.store(true);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }
    std::atomic<bool> stopped_{false};
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

/// A process for each client, and so for each receiver that is measured: DPDK starts once in a process, and nothing of
/// one receiver is left for the next.
void serve_in_a_process(bench::ControlListener& listener, bench::FileDescriptor socket, bench::Server& server) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) throw core::RunError(fmt::format("another process: {}", std::strerror(errno)));
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) std::_Exit(1);
        listener.close();
        bench::ControlConnection client(std::move(socket));
        server.serve(client);
        std::exit(0);  // what DPDK has in files is taken away
    }
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
        if (run::stop_signal() != 0) ::kill(child, SIGKILL);
        if (bench::is_open(socket)) listener.turn_away_others("the server is busy with another client");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (run::stop_signal() != 0)
        bench::say_left(socket, "the server was stopped");
    else if (WIFSIGNALED(status))
        bench::say_left(socket, fmt::format("the server's process was ended by signal {} ({})", WTERMSIG(status),
                                            ::strsignal(WTERMSIG(status))));
}

/// One client after the other, until it is stopped.
void serve(bench::ControlListener& listener, const bench::Server::Config& config, bool quiet) {
    bench::Server server(config, [quiet](const std::string& line) {
        if (!quiet) core::print_stderr("{}\n", line);
    });
    while (run::stop_signal() == 0)
        if (bench::FileDescriptor socket = listener.accept(0.2))
            serve_in_a_process(listener, std::move(socket), server);
}

int run_server(const BenchOptions& options) {
    run::catch_signals();
    bench::Server::Config config{.token = options.token,
                                 .weir_version = version_text(),
                                 .device = options.device,
                                 .receiving = options.receiving};
    if (config.token.empty()) config.token = random_token();
    bench::ControlListener listener(options.host, options.port);
    core::print_stderr("weir bench: waiting at {}:{}. On the other host:\n  weir bench --client HOST:{} --token {}\n",
                       options.host, listener.port(), listener.port(), config.token);
    serve(listener, config, options.quiet);
    return 0;
}

/// Where the server is.
struct ServerAt {
    std::string host;
    std::uint16_t port = 0;
    std::string token;
};

bench::Point measure_one(const bench::Measurement& measurement, const ServerAt& at, bench::Results& results,
                         const std::function<void(const bench::Progress&)>& progress, const std::atomic<bool>& stop) {
    bench::Client client(bench::ControlConnection::connect(at.host, at.port, 2), at.token, version_text());
    if (results.link.empty()) results.link = fmt::format("{} to {}", client.own_address(), client.server_address());
    bench::Point point = client.run(measurement, progress, stop);
    // Which interface packets go through is known once something has been measured.
    if (results.hosts.empty() || point.not_available.empty()) results.hosts = {client.own_host(), client.server_host()};
    return point;
}

/// All that was asked for, one after the other. What was found up to a failure is kept.
std::string measure(const BenchOptions& options, const ServerAt& at, bench::Results& results) {
    const StopWatch watch;
    BenchProgress progress(options.measurements.size() * options.repeats, options.quiet);
    try {
        for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat)
            for (const bench::Measurement& measurement : options.measurements) {
                bench::Point point = measure_one(
                    measurement, at, results, [&progress](const bench::Progress& one) { progress.show(one); },
                    watch.stopped());
                point.repeat = repeat;
                progress.next(point);
                results.points.push_back(std::move(point));
            }
    } catch (const core::RunError& error) {
        return error.what();
    }
    return {};
}

/// A file that is written at the end, and opened before: an hour of measuring must not end with a path that is wrong.
class LateFile {
public:
    explicit LateFile(std::string path) : path_(std::move(path)) {
        if (path_.empty()) return;
        std::error_code unknown;
        if (std::filesystem::is_regular_file(path_, unknown))
            throw core::RunError(fmt::format("{} exists already; choose another name, or move it away", path_));
        file_.open(path_);
        check();
    }
    [[nodiscard]] bool wanted() const noexcept { return !path_.empty(); }
    void write(const std::string& text) {
        file_ << text;
        file_.close();
        check();
    }

private:
    void check() const {
        if (!file_) throw core::RunError(fmt::format("{}: {}", path_, std::strerror(errno)));
    }

    std::string path_;
    std::ofstream file_;
};

int run_client(const BenchOptions& options, const ServerAt& at, const std::string& link) {
    bench::Results results{.title = "weir bench",
                           .started = now_text(),
                           .command = options.command,
                           .link = link,
                           .hosts = {},
                           .points = {}};
    LateFile json(options.json);
    LateFile html(options.html);
    const std::string failure = measure(options, at, results);
    // The table first: it is what is left if the files cannot be written.
    if (!options.quiet) std::cout << bench::report_text(results, columns_of(STDOUT_FILENO)) << std::flush;
    if (json.wanted()) json.write(to_json(results).dump(1) + "\n");
    if (html.wanted()) html.write(bench::report_html(results));
    if (!failure.empty()) throw core::RunError(failure);
    return 0;
}

/// Leaves this CPU to others, as far as there is another one.
void keep_off(std::uint32_t taken) {
    cpu_set_t others;
    CPU_ZERO(&others);
    for (const std::uint32_t cpu : port::usable_cpus())
        if (cpu != taken) CPU_SET(cpu, &others);
    if (CPU_COUNT(&others) > 0) ::sched_setaffinity(0, sizeof others, &others);
}

/// No address is asked for, and no MTU: the link has none but these two.
int run_over_memif(BenchOptions options) {
    if (!options.why_memif.empty())
        core::print_stderr(
            "weir bench: no network namespaces here ({}): measuring over shared memory (--over memif), and only "
            "what goes by DPDK\n",
            options.why_memif);
    bench::MemifLoopback loopback;
    for (bench::Measurement& one : options.measurements) one.device = loopback.client_device();
    const std::string token = random_token();
    const bench::Server::Config config{.token = token,
                                       .weir_version = version_text(),
                                       .device = loopback.server_device(),
                                       .address = bench::MemifLoopback::server_address,
                                       .receiving = options.receiving};
    bench::ControlListener listener(bench::MemifLoopback::control_address, 0);
    loopback.start([&] { serve(listener, config, true); });
    const ServerAt at{bench::MemifLoopback::control_address, listener.port(), token};
    listener.close();
    keep_off(*options.receiving.cpu);
    return run_client(options, at, "two processes of one machine that share memory (memif)");
}

int run_loopback(BenchOptions options) {
    constexpr std::uint32_t usual_mtu = 1500;
    constexpr std::uint32_t headers_max = 68;  // of IP, UDP and RoCE
    run::catch_signals();
    if (!options.receiving.cpu) options.receiving.cpu = port::usable_cpus().back();
    if (options.over_memif) return run_over_memif(std::move(options));
    std::uint32_t mtu = usual_mtu;
    for (bench::Measurement& one : options.measurements) {
        one.address = bench::Loopback::server_address;
        mtu = std::max(mtu, one.bytes + headers_max);
    }
    const std::string token = random_token();
    const bench::Server::Config config{
        .token = token, .weir_version = version_text(), .device = options.device, .receiving = options.receiving};
    const bench::Loopback loopback(mtu, [&] {
        bench::ControlListener listener(bench::Loopback::control_address, bench::control_port);
        serve(listener, config, true);
    });
    keep_off(*options.receiving.cpu);  // after the receiver's side has begun, which has all CPUs
    return run_client(options, {bench::Loopback::control_address, bench::control_port, token},
                      "two network namespaces of one machine, joined by veth");
}

int bench_command(const std::vector<std::string>& args) {
    if (!args.empty() && args[0] == "compare") return bench_compare_command({args.begin() + 1, args.end()});
    const std::optional<BenchOptions> options = bench_options(args);
    if (!options) return 0;  // --help, --list
    switch (options->role) {
        case BenchOptions::Role::server:
            return run_server(*options);
        case BenchOptions::Role::loopback:
            return run_loopback(*options);
        case BenchOptions::Role::client:
            break;
    }
    run::catch_signals();
    return run_client(*options, {options->host, options->port, options->token}, "");
}

}  // namespace

Command bench_entry() {
    return {"bench", "the highest rate without loss, for each way to receive", bench_command};
}

}  // namespace weir::app
