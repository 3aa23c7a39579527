// The disk of each sink: how fast it writes, how long it lasts.
#include <fmt/format.h>

#include "doctor/check.hpp"

namespace weir::doctor {

namespace {

/// What reducers leave of the rate is not known in advance.
bool reduces(const CheckInput& subject) {
    return subject.run != nullptr && !subject.run->config->reduce.empty();
}

/// Several sinks each get everything.
double expected_bytes_per_s(const CheckInput& subject) {
    return subject.load.bytes_per_s();
}

std::vector<Finding> check_disk_rate(const CheckInput& subject) {
    std::vector<Finding> findings;
    for (const DiskFacts& disk : subject.host.disks) {
        if (!disk.exists) continue;
        Finding finding{.about = fmt::format("{}, {}", disk.sink, disk.folder),
                        .wanted = "more than the detector's rate (--rate)",
                        .why = "what the disk does not take waits in memory, and is lost once that is full"};
        if (!disk.bytes_per_s) {
            finding.status = Status::unknown;
            finding.why = disk.bytes_per_s.why;
            findings.push_back(std::move(finding));
            continue;
        }
        finding.found = fmt::format("{} {} on {}", byte_rate_text(*disk.bytes_per_s), disk.how, disk.file_system);
        const double expected = expected_bytes_per_s(subject);
        if (expected > 0)
            finding.wanted = fmt::format("{}{}", byte_rate_text(expected), reduces(subject) ? " before reduction" : "");
        constexpr double reserve = 0.8;
        if (expected > *disk.bytes_per_s && !reduces(subject)) {
            finding.status = Status::error;
            finding.why = "the disk is slower than the detector: what it does not take is lost once memory is full";
        } else if (expected > reserve * *disk.bytes_per_s) {
            finding.status = Status::warning;
            finding.sure = reduces(subject) ? Sure::possible : Sure::likely;
            finding.why = "little or nothing is left for the disk's own pauses";
        }
        if (finding.status != Status::ok)
            finding.mend = "a faster disk, a reducer, or less of the detector; docs/guides/DISKS.md";
        findings.push_back(std::move(finding));
    }
    return findings;
}

std::string lasting_text(double seconds) {
    constexpr double hour = 3600;
    if (seconds < 2 * hour) return fmt::format("{:.0f} minutes", seconds / 60);
    if (seconds < 48 * hour) return fmt::format("{:.1f} hours", seconds / hour);
    return fmt::format("{:.0f} days", seconds / (24 * hour));
}

std::vector<Finding> check_disk_space(const CheckInput& subject) {
    constexpr double shift_s = 8 * 3600;
    std::vector<Finding> findings;
    for (const DiskFacts& disk : subject.host.disks) {
        Finding finding{.about = fmt::format("{}, {}", disk.sink, disk.folder),
                        .wanted = "room for a shift of eight hours",
                        .why = "the run ends when the disk is full"};
        if (!disk.exists) {
            finding.status = Status::error;
            finding.found = "there is no such folder";
            finding.why = "the run does not start";
            finding = with_fix(std::move(finding), {execute({"mkdir", "-p", disk.folder})}, "");
            findings.push_back(std::move(finding));
            continue;
        }
        if (!disk.free_bytes) {
            finding.status = Status::unknown;
            finding.why = disk.free_bytes.why;
            findings.push_back(std::move(finding));
            continue;
        }
        finding.found = bytes_text(static_cast<double>(*disk.free_bytes)) + " free";
        const double expected = expected_bytes_per_s(subject);
        constexpr std::uint64_t least = std::uint64_t{1} << 30U;
        if (expected > 0) {
            const double seconds = static_cast<double>(*disk.free_bytes) / expected;
            finding.found += fmt::format(": {} at {}{}", lasting_text(seconds), byte_rate_text(expected),
                                         reduces(subject) ? " before reduction" : "");
            if (seconds < shift_s) finding.status = Status::warning;
        } else if (*disk.free_bytes < least) {
            finding.status = Status::warning;
        }
        if (finding.status == Status::warning) {
            finding.sure = reduces(subject) ? Sure::possible : Sure::certain;
            finding.mend = "remove what is not needed, or another `path` in [[sink]]";
        }
        findings.push_back(std::move(finding));
    }
    return findings;
}

}  // namespace

std::vector<Check> disk_checks() {
    return {
        {"disk_rate", "disk", "a timed write to each sink's disk, against the expected rate", false, check_disk_rate,
         Needs::disk},
        {"disk_space", "disk", "whether each sink's folder is there, and for how long its disk lasts", false,
         check_disk_space},
    };
}

}  // namespace weir::doctor
