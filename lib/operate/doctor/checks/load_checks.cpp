// The machine as a whole against the expected rate: lcores and memory bandwidth. Estimates, by the sums of sizing.hpp.
#include <fmt/format.h>

#include "doctor/check.hpp"

namespace weir::doctor {

namespace {

std::vector<Finding> check_cores(const CheckInput& subject) {
    if (!subject.load.known()) return {};
    const double timeout_ms = subject.run != nullptr ? subject.run->config->events.timeout_ms : 500;
    const Size size = size_for(subject.load, timeout_ms);
    const std::uint32_t cores = subject.host.topology.cores();
    constexpr std::uint32_t of_the_system = 1;
    Finding finding{.found = fmt::format("{} cores", cores),
                    .wanted = fmt::format("{} lcores (rx {}, build {}, work {}) and a core for the system",
                                          size.lcores(), size.rx, size.build, size.work),
                    .why = "an estimate from measured cycles per packet: weir doctor --sizing says how"};
    if (cores < size.lcores() + of_the_system) {
        finding.status = Status::warning;
        finding.sure = cores * 2 < size.lcores() ? Sure::likely : Sure::possible;
        finding.mend = "a machine with more cores, several machines, or fewer and larger packets";
        return {finding};
    }
    if (subject.run == nullptr) return {finding};
    const plan::Plan& plan = *subject.run->plan;
    finding.found +=
        fmt::format("; planned are rx {}, build {}, work {}", plan.rx.size(), plan.build.size(), plan.work.size());
    if (plan.rx.size() < size.rx || plan.work.size() < size.work) {
        finding.status = Status::warning;
        finding.sure = Sure::possible;
        finding.mend =
            fmt::format("`queues` of the ports at least {} in all, and [lcores] with rx {}, build {}, work {}", size.rx,
                        size.rx, size.build, size.work);
    }
    return {finding};
}

std::vector<Finding> check_memory_bandwidth(const CheckInput& subject) {
    if (!subject.load.known()) return {};
    constexpr double usable = 0.5;
    const Size size = size_for(subject.load);
    const auto& rated = subject.host.memory_bytes_per_s;
    Finding finding{.wanted = fmt::format("{}: each byte crosses the memory bus four times",
                                          byte_rate_text(size.memory_bytes_per_s)),
                    .why = "lcores, card and disk share the memory bus"};
    if (!rated) {
        finding.status = Status::unknown;
        finding.why = rated.why;
        return {finding};
    }
    finding.found = fmt::format("{} on paper, of which about half is to be had", byte_rate_text(*rated));
    if (size.memory_bytes_per_s <= usable * *rated) return {finding};
    finding.status = Status::warning;
    finding.sure = size.memory_bytes_per_s > *rated ? Sure::likely : Sure::possible;
    finding.mend = "a memory module in every channel; a second socket with its own card";
    return {finding};
}

}  // namespace

std::vector<Check> load_checks() {
    return {
        {"cores", "rate", "lcores that the expected rate takes, against cores and plan (--rate)", false, check_cores},
        {"memory_bandwidth", "rate",
         "bytes over the memory bus at the expected rate, against what the modules are rated for (--rate)", false,
         check_memory_bandwidth},
    };
}

}  // namespace weir::doctor
