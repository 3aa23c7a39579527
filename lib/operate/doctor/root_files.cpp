#include "doctor/root_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>

namespace weir::doctor {

namespace {

constexpr std::size_t bytes_max = std::size_t{16} << 20U;  ///< no file of the kernel's is longer

std::string trimmed(const std::string& text) {
    constexpr const char* blank = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(blank);
    if (begin == std::string::npos) return {};
    return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

}  // namespace

std::optional<std::uint64_t> whole_number(const std::string& text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    if (text.empty() || error != std::errc{} || at != end) return std::nullopt;
    return number;
}

std::filesystem::path RootFiles::at(const std::string& path) const {
    return root_ / std::filesystem::path(path).relative_path();
}

bool RootFiles::exists(const std::string& path) const {
    std::error_code error;
    return std::filesystem::exists(at(path), error);
}

Known<std::string> RootFiles::bytes(const std::string& path) const {
    const auto fail = [&] { return Known<std::string>::no(fmt::format("{}: {}", path, std::strerror(errno))); };
    const int descriptor = ::open(at(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return fail();
    std::string all;
    std::array<char, 4096> some;
    ssize_t got = 0;
    // The kernel refuses some files at the first read only, as the speed of an interface that is down.
    while ((got = ::read(descriptor, some.data(), some.size())) > 0 && all.size() < bytes_max)
        all.append(some.data(), static_cast<std::size_t>(got));
    Known<std::string> result = got < 0 ? fail() : Known<std::string>(std::move(all));
    ::close(descriptor);
    return result;
}

Known<std::vector<std::string>> RootFiles::lines(const std::string& path) const {
    const Known<std::string> all = bytes(path);
    if (!all) return Known<std::vector<std::string>>::no(all.why);
    std::vector<std::string> lines;
    std::istringstream in(*all);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

Known<std::string> RootFiles::line(const std::string& path) const {
    Known<std::string> all = bytes(path);
    if (!all) return all;
    const std::string first = trimmed(all->substr(0, all->find('\n')));
    if (first.empty()) return Known<std::string>::no(fmt::format("{} is empty", path));
    return first;
}

Known<std::uint64_t> RootFiles::number(const std::string& path) const {
    const Known<std::string> text = line(path);
    if (!text) return Known<std::uint64_t>::no(text.why);
    if (const auto number = whole_number(*text)) return *number;
    return Known<std::uint64_t>::no(fmt::format("{}: found '{}'", path, *text));
}

std::string RootFiles::link_name(const std::string& path) const {
    std::error_code error;
    return std::filesystem::read_symlink(at(path), error).filename();
}

std::vector<std::string> RootFiles::names(const std::string& folder) const {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(at(folder), error), end; !error && entry != end;
         entry.increment(error))
        names.push_back(entry->path().filename());
    std::ranges::sort(names, [](const std::string& a, const std::string& b) {
        const auto first = whole_number(a);
        const auto second = whole_number(b);
        return first && second ? *first < *second : a < b;
    });
    return names;
}

}  // namespace weir::doctor
