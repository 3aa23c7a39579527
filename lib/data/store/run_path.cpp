// Path templates and run numbers. See run_path.hpp.
#include "store/run_path.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>

#include "core/error.hpp"
#include "store/file.hpp"

namespace weir::store {

namespace {

constexpr std::string_view counter_name = ".weir-run-number";
constexpr std::size_t counter_bytes = 11;  // ten digits and a newline: always the same length, written in one call

std::string placeholder_value(std::string_view placeholder, const PathValues& values) {
    if (placeholder == "name") return values.name;
    if (placeholder == "date") return values.date;
    if (placeholder == "node") {
        if (values.node.empty())
            throw core::UsageError("{node} in a path is the name of a node of a cluster, and this run is of none");
        return values.node;
    }
    if (placeholder == "run") return std::to_string(values.run);
    if (placeholder.size() == 6 && placeholder.starts_with("run:0") && placeholder[5] >= '1' && placeholder[5] <= '9')
        return fmt::format("{:0{}}", values.run, placeholder[5] - '0');
    throw core::UsageError(fmt::format(
        "unknown placeholder {{{}}} in a path; known are {{name}}, {{run}}, {{run:06}}, {{date}} and {{node}}",
        placeholder));
}

bool has_placeholder(std::string_view text, std::string_view start) {
    return text.find(start) != std::string_view::npos;
}

std::uint32_t parse_counter(std::string_view text, const std::filesystem::path& path) {
    std::uint32_t number = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool good = result.ec == std::errc{} && (result.ptr == text.data() + text.size() || *result.ptr == '\n');
    if (!good || number == UINT32_MAX - 1)
        throw core::RunError(
            fmt::format("{} does not hold a run number; write the last number used into it", path.string()));
    return number;
}

std::string utc_date(core::TimeNs now_ns) {
    const std::time_t seconds = static_cast<std::time_t>(now_ns / core::ns_per_s);
    std::tm fields{};
    ::gmtime_r(&seconds, &fields);
    return fmt::format("{:04}-{:02}-{:02}", fields.tm_year + 1900, fields.tm_mon + 1, fields.tm_mday);
}

/// The file with the last number that was used in a directory, locked for as long as this lives.
class RunCounter {
public:
    explicit RunCounter(const std::filesystem::path& parent)
        : path_(parent / counter_name), file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
        if (!file_.is_open()) fail("cannot open the run number");
        while (::flock(file_.get(), LOCK_EX) != 0)
            if (errno != EINTR) fail("cannot lock the run number");
    }

    /// 0: none was used.
    [[nodiscard]] std::uint32_t last() const {
        std::array<char, 64> text{};
        const ssize_t length = ::pread(file_.get(), text.data(), text.size(), 0);
        if (length < 0) fail("cannot read the run number");
        // A power cut can leave a file that was created and never written: empty, or with zeros.
        const bool written = length > 0 && text[0] != '\0';
        return written ? parse_counter({text.data(), static_cast<std::size_t>(length)}, path_) : 0;
    }

    void set(std::uint32_t number) const {
        const std::string text = fmt::format("{:010}\n", number);
        const bool done = ::pwrite(file_.get(), text.data(), counter_bytes, 0) == static_cast<ssize_t>(counter_bytes) &&
                          ::ftruncate(file_.get(), counter_bytes) == 0 && ::fsync(file_.get()) == 0;
        if (!done) fail("cannot write the run number");
    }

private:
    [[noreturn]] void fail(const char* what) const { throw core::RunError(write_error_text(what, path_, errno)); }

    std::filesystem::path path_;
    Descriptor file_;
};

/// Taken are also the names of runs whose number was lost, with the file or with a copied disk. Sets values.run.
bool is_run_there(const std::filesystem::path& parent, const std::string& part, PathValues& values,
                  std::uint32_t number) {
    values.run = number;
    const std::filesystem::path taken = parent / expand_path_template(part, values);
    return is_there(taken) || is_there(hidden_path(taken));
}

std::filesystem::path here_if_empty(const std::filesystem::path& path) {
    return path.empty() ? "." : path;
}

}  // namespace

std::filesystem::path hidden_path(const std::filesystem::path& final_path) {
    // "out/" names the same directory as "out".
    const std::filesystem::path path = final_path.has_filename() ? final_path : final_path.parent_path();
    return path.parent_path() / fmt::format(".{}.part", path.filename().string());
}

std::uint32_t next_run_number(const std::filesystem::path& parent, const std::function<bool(std::uint32_t)>& is_taken) {
    const RunCounter counter(parent);
    std::uint32_t number = counter.last() + 1;
    while (is_taken && number < UINT32_MAX - 1 && is_taken(number)) ++number;
    counter.set(number);
    return number;
}

void note_run_number(const std::filesystem::path& parent, std::uint32_t number) {
    const RunCounter counter(parent);
    if (number > counter.last()) counter.set(number);
}

void require_mount_point(const std::filesystem::path& directory) {
    struct statx status {};
    if (::statx(AT_FDCWD, directory.c_str(), 0, STATX_TYPE, &status) != 0)
        throw core::RunError(write_error_text("cannot examine", directory, errno));
    bool mounted = (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    if ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0) {  // a kernel before 5.8
        struct stat here {};
        struct stat above {};
        mounted = ::stat(directory.c_str(), &here) == 0 && ::stat((directory / "..").c_str(), &above) == 0 &&
                  (here.st_dev != above.st_dev || here.st_ino == above.st_ino);
    }
    if (!mounted)
        throw core::RunError(
            fmt::format("no file system is mounted at {}: mount it, or take require_mount out of the configuration",
                        directory.string()));
}

std::string expand_path_template(std::string_view path_template, const PathValues& values) {
    for (const std::string* value : {&values.name, &values.date, &values.node})
        if (value->find('/') != std::string::npos)
            throw core::UsageError(fmt::format("\"{}\" cannot be part of a path: it contains a '/'", *value));
    std::string result;
    while (!path_template.empty()) {
        const std::size_t brace = path_template.find_first_of("{}");
        result += path_template.substr(0, brace);
        if (brace == std::string_view::npos) break;
        const std::size_t end = path_template.find('}', brace);
        if (path_template[brace] == '}' || end == std::string_view::npos)
            throw core::UsageError(fmt::format("unbalanced braces in the path at \"{}\"", path_template.substr(brace)));
        result += placeholder_value(path_template.substr(brace + 1, end - brace - 1), values);
        path_template.remove_prefix(end + 1);
    }
    return result;
}

RunPath make_run_path(const std::string& path_template, const std::string& name, core::TimeNs now_ns,
                      std::optional<std::uint32_t> run, const std::string& node) {
    PathValues values{name, 0, utc_date(now_ns), node};
    expand_path_template(path_template, values);  // refuses a bad template before anything is created
    RunPath result;
    const std::filesystem::path parts(path_template);
    for (auto part = parts.begin(); part != parts.end(); ++part) {
        if (!result.run && has_placeholder(part->string(), "{run")) {
            const auto is_taken = [&](std::uint32_t number) {
                return is_run_there(result.path, part->string(), values, number);
            };
            if (run)
                note_run_number(here_if_empty(result.path), *run);
            else
                run = next_run_number(here_if_empty(result.path), is_taken);
            result.run = values.run = *run;
        }
        result.path /= expand_path_template(part->string(), values);
        const auto ends = [&](auto next) { return next == parts.end() || next->empty(); };
        if (ends(std::next(part))) continue;
        // What the template makes up is created, and the folder of the runs; not a whole tree below a misspelt name.
        if (!has_placeholder(part->string(), "{") && !ends(std::next(part, 2))) continue;
        std::error_code error;
        std::filesystem::create_directory(result.path, error);
        if (error) throw core::RunError(write_error_text("cannot create directory", result.path, error.value()));
    }
    return result;
}

std::filesystem::path free_path(const std::filesystem::path& path) {
    std::filesystem::path free = path;
    for (int i = 2; is_there(free) || is_there(hidden_path(free)); ++i) free = fmt::format("{}.{}", path.string(), i);
    return free;
}

std::optional<std::uint32_t> coming_run_number(const std::string& path_template, const std::string& name,
                                               core::TimeNs now_ns, const std::string& node) {
    PathValues values{name, 0, utc_date(now_ns), node};
    std::filesystem::path parent;
    for (const std::filesystem::path& part : std::filesystem::path(path_template)) {
        if (!has_placeholder(part.string(), "{run")) {
            parent /= expand_path_template(part.string(), values);
            continue;
        }
        std::uint32_t number =
            is_there(here_if_empty(parent) / counter_name) ? RunCounter(here_if_empty(parent)).last() + 1 : 1;
        while (number < UINT32_MAX - 1 && is_run_there(parent, part.string(), values, number)) ++number;
        return number;
    }
    return std::nullopt;
}

}  // namespace weir::store
