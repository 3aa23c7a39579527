// Executes what the end-to-end tests would start the program for, one run after the other in one process: EAL, which
// takes most of the time of a short run, starts once. Its only argument is the number of a socket. For each line of
// JSON that comes, {"args": [...], "cwd": "..."}, one goes back: {"status": 0, "left": 0}, where what is left is EAL's
// memory that the run did not give back. Standard output and standard error are the runs' own.
#include <signal.h>
#include <unistd.h>
#include <ext/stdio_filebuf.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "port/eal.hpp"
#include "process.hpp"
#include "program.hpp"

namespace {

/// As much as any of the tests' runs needs. A page of it is taken when it is first used.
weir::port::EalConfig eal_config() {
    constexpr std::uint64_t memory_bytes = std::uint64_t{1} << 30U;
    constexpr std::size_t lcores = 127;  // all but the main lcore
    weir::port::EalConfig config;
    config.lcores.resize(lcores);
    std::iota(config.lcores.begin(), config.lcores.end(), 0U);
    config.memory_bytes = memory_bytes;
    config.drivers = {"net_null"};
    config.pin = false;
    return config;
}

/// What a run may leave in a process, and a process has not when it starts.
void forget_run() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::signal(number, SIG_DFL);
    std::cout.exceptions(std::ios::goodbit);
    std::cout.clear();
    std::clearerr(stdout);
}

nlohmann::json execute(const nlohmann::json& asked) {
    std::filesystem::current_path(asked.at("cwd").get<std::string>());
    const std::uint64_t free = weir::port::StandingEal::free_bytes();
    const int status = weir::app::run_program(asked.at("args").get<std::vector<std::string>>());
    std::filesystem::current_path("/");
    forget_run();
    return {{"status", status}, {"left", free - weir::port::StandingEal::free_bytes()}};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    weir::app::open_standard_descriptors();
    weir::app::let_writes_fail();
    __gnu_cxx::stdio_filebuf<char> requests(std::atoi(argv[1]), std::ios::in);
    __gnu_cxx::stdio_filebuf<char> answers(::dup(std::atoi(argv[1])), std::ios::out);
    std::istream in(&requests);
    std::ostream out(&answers);
    const weir::port::StandingEal eal(eal_config());
    for (std::string line; std::getline(in, line);) out << execute(nlohmann::json::parse(line)) << std::endl;
}
