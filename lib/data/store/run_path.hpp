// Where a run goes: path templates, run numbers that survive restarts, and the hidden name of an unfinished run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace weir::store {

/// `PARENT/NAME` → `PARENT/.NAME.part`, the name of a run that is not complete.
std::filesystem::path hidden_path(const std::filesystem::path& final_path);

/// The next run number of a directory, from 1. Kept in `.weir-run-number` there, under a file lock, so that programs
/// that start at the same time get different numbers. Numbers for which `is_taken` says yes are passed over. Throws
/// core::RunError (no such directory, no permission, damaged file).
std::uint32_t next_run_number(const std::filesystem::path& parent,
                              const std::function<bool(std::uint32_t)>& is_taken = {});

/// Later calls of next_run_number give numbers after this one. Throws as that does.
void note_run_number(const std::filesystem::path& parent, std::uint32_t number);

/// Throws core::RunError unless a file system is mounted exactly here: without it a run would silently go to the disk
/// that the empty directory is on.
void require_mount_point(const std::filesystem::path& directory);

struct PathValues {
    std::string name;
    std::uint32_t run = 0;
    std::string date;
    std::string node = {};  ///< of a cluster; empty: the run is of none
};

/// Replaces {name}, {run}, {run:06} (any width from 1 to 9, zero-padded), {date} and {node}. Throws
/// core::UsageError for an unknown or unfinished placeholder, for {node} where there is none, and for a value with a
/// '/' in it.
std::string expand_path_template(std::string_view path_template, const PathValues& values);

struct RunPath {
    std::filesystem::path path;
    std::optional<std::uint32_t> run;  ///< set if the template has {run}
};

/// The path of the run that starts now: takes a run number from the directory that the component with {run} lies in,
/// and creates directories whose names come from placeholders (a new {date} every day), and the one that the run lies
/// in; others must exist. `now_ns` is UNIX time; {date} is its UTC day, 2026-10-03. `run`: the number that the run has
/// already, at another place; no other is taken then, and the directory's count goes on after it. `node`: see
/// PathValues. Throws core::UsageError or core::RunError.
RunPath make_run_path(const std::string& path_template, const std::string& name, core::TimeNs now_ns,
                      std::optional<std::uint32_t> run = {}, const std::string& node = {});

/// The path, or where there is a run of that name, one that is being written included, the first of PATH.2, PATH.3 and
/// so on that is free: for who comes back into a run that has its number already.
std::filesystem::path free_path(const std::filesystem::path& path);

/// The number that make_run_path() would take, without taking it. Nothing: the template has no {run}. Throws as that
/// does.
std::optional<std::uint32_t> coming_run_number(const std::string& path_template, const std::string& name,
                                               core::TimeNs now_ns, const std::string& node = {});

}  // namespace weir::store
