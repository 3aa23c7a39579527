// Another `weir`, started by this one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace weir::bench {

/// Ended with its owner, at the latest with this process.
class ChildProcess {
public:
    /// `weir` with these arguments. What it says goes to a file. Throws core::RunError.
    ChildProcess(const std::vector<std::string>& arguments, std::string says_to);
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    /// Exit status, or 128 and the signal; nothing while it runs.
    [[nodiscard]] std::optional<int> status();
    /// Waits until it has ended; nothing if it has not within `patience_s`.
    [[nodiscard]] std::optional<int> wait(double patience_s);
    void signal(int number) const noexcept;
    /// What it has said up to now.
    [[nodiscard]] std::string said() const;
    /// Seconds that it has spent on CPUs; after its end, all of them.
    [[nodiscard]] double cpu_s() const;

private:
    std::string says_to_;
    pid_t pid_ = -1;
    std::optional<int> status_;
    double cpu_s_ = 0;
};

}  // namespace weir::bench
