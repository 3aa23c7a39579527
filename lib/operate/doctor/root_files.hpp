// Small text files below a root that can be another one: a recorded machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "doctor/host_facts.hpp"

namespace weir::doctor {

class RootFiles {
public:
    explicit RootFiles(std::filesystem::path root) : root_(std::move(root)) {}

    /// Paths are as on the machine: "/sys/...".
    [[nodiscard]] std::filesystem::path at(const std::string& path) const;
    [[nodiscard]] bool exists(const std::string& path) const;
    /// The first line, without what surrounds it.
    [[nodiscard]] Known<std::string> line(const std::string& path) const;
    [[nodiscard]] Known<std::vector<std::string>> lines(const std::string& path) const;
    [[nodiscard]] Known<std::uint64_t> number(const std::string& path) const;
    /// All of it, as bytes.
    [[nodiscard]] Known<std::string> bytes(const std::string& path) const;
    /// The last part of what a link points to; empty: it is none.
    [[nodiscard]] std::string link_name(const std::string& path) const;
    /// Names in a folder, ascending; of numbers by their value.
    [[nodiscard]] std::vector<std::string> names(const std::string& folder) const;

private:
    std::filesystem::path root_;
};

/// Nothing unless the whole text is a decimal number.
[[nodiscard]] std::optional<std::uint64_t> whole_number(const std::string& text);

}  // namespace weir::doctor
