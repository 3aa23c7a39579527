#include "bench_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "core/print_stderr.hpp"
#include "terminal.hpp"

namespace weir::app {
namespace {

// Before this much is done nobody can say how long the rest takes.
constexpr double enough_to_tell = 0.02;

}  // namespace

BenchProgress::BenchProgress(std::size_t all, bool quiet)
    : all_(all), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) != 0) {}

BenchProgress::~BenchProgress() {
    if (written_) core::say_text("\r\033[K");
}

void BenchProgress::line(const std::string& text) {
    if (!terminal_) return;
    core::print_stderr("\r\033[K{}", text.substr(0, columns_of(STDERR_FILENO) - 1));
    written_ = true;
}

std::string BenchProgress::time_left(double fraction) const {
    const double done = (static_cast<double>(done_) + fraction) / static_cast<double>(all_);
    if (done < enough_to_tell) return {};
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    const auto left = static_cast<unsigned>(passed * (1 - done) / done);
    return fmt::format(", about {}:{:02} left", left / 60, left % 60);
}

void BenchProgress::show(const bench::Progress& progress) {
    if (quiet_) return;
    const bench::Measurement& one = progress.measurement;
    std::string text = fmt::format("{}/{} {} {} B {}: {:.3g} Gb/s", done_ + 1, all_, one.transport, one.bytes,
                                   one.depth, progress.gbps);
    if (progress.trial != nullptr && !progress.trial->valid)
        text += ", invalid";
    else if (progress.trial != nullptr)
        text += progress.trial->loss_ratio > 0 ? fmt::format(", {:.2g} lost", progress.trial->loss_ratio) : ", no loss";
    line(text + time_left(progress.fraction));
}

void BenchProgress::next(const bench::Point& point) {
    ++done_;
    if (quiet_ || terminal_) return;
    const std::string found = !point.not_available.empty() ? "n.a.: " + point.not_available
                              : point.conditional_gbps     ? fmt::format("{:.3g} Gb/s", *point.conditional_gbps)
                                                           : std::string("measured");
    core::print_stderr("{}/{} {} {} B {}: {}\n", done_, all_, point.transport, point.bytes, point.depth, found);
}

}  // namespace weir::app
