// What a check says of the host: one finding for each thing that it looked at, with what mends it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace weir::doctor {

/// In the order in which findings are printed.
enum class Status : std::uint8_t {
    error,    ///< a run does not start, or surely loses data
    warning,  ///< it may lose data, or is slower than it has to be
    unknown,  ///< it could not be found out
    ok,
};
[[nodiscard]] std::string_view name_of(Status status) noexcept;

/// How sure a warning is. Errors are certain.
enum class Sure : std::uint8_t {
    certain,   ///< it is read off, and means what `why` says
    likely,    ///< most machines with it lose packets at rate
    possible,  ///< it costs some of them packets
};
[[nodiscard]] std::string_view name_of(Sure sure) noexcept;

/// One command of a mend: a text that is written to a file, or a program with its arguments.
struct Step {
    std::string file{};  ///< absolute, as on the machine itself
    std::string text{};
    std::vector<std::string> program{};

    /// As one would type it.
    [[nodiscard]] std::string shell() const;
    friend bool operator==(const Step&, const Step&) = default;
};
[[nodiscard]] Step write_to(std::string file, std::string text);
[[nodiscard]] Step execute(std::vector<std::string> program);

struct Finding {
    std::string check{};  ///< of the table of checks
    Status status = Status::ok;
    Sure sure = Sure::certain;
    std::string about{};  ///< "port det0", "lcore 3"; empty: the machine
    std::string found{};
    std::string wanted{};
    std::string why{};        ///< what it costs; of an unknown one, why it is not known
    std::string mend{};       ///< commands, or in words what to do; empty: nothing is to be done
    std::vector<Step> fix{};  ///< the same as steps, where they are safe to be done unseen (`--fix`)
    std::string undone_by{};  ///< what takes the fix back: "the next boot"; empty: nothing
};

/// With `mend` from the steps.
[[nodiscard]] Finding with_fix(Finding finding, std::vector<Step> steps, std::string undone_by);
/// The steps as one line of shell.
[[nodiscard]] std::string shell_text(const std::vector<Step>& steps);

/// Errors first; the order of the table of checks is kept within a status.
void sort_by_status(std::vector<Finding>& findings);
[[nodiscard]] bool any_error(const std::vector<Finding>& findings) noexcept;

/// {"findings": [{"check", "status", "found", "wanted", "why", "mend", "about", "sure", "fix"}]}; `fix`: --fix would do
/// it.
[[nodiscard]] nlohmann::json findings_json(const std::vector<Finding>& findings);

}  // namespace weir::doctor
