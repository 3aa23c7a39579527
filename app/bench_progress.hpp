// How far a benchmark is, on standard error: a line that changes on a terminal, a line for each result elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "bench/measurement.hpp"

namespace weir::app {

class BenchProgress {
public:
    /// `all`: measurements there will be.
    BenchProgress(std::size_t all, bool quiet);
    ~BenchProgress();
    BenchProgress(const BenchProgress&) = delete;
    BenchProgress& operator=(const BenchProgress&) = delete;

    void show(const bench::Progress& progress);
    /// A measurement is over.
    void next(const bench::Point& point);

private:
    void line(const std::string& text);
    [[nodiscard]] std::string time_left(double fraction) const;

    std::size_t all_;
    std::size_t done_ = 0;
    bool quiet_;
    bool terminal_;
    bool written_ = false;  // there is a line that is to be overwritten
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace weir::app
