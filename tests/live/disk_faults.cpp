// Preloaded into weir by the tests: calls on the files of runs (whose directory is hidden, `.NAME.part`) fail as
// $WEIR_FAULTS says, and what was synced is logged to $WEIR_SYNC_LOG, outside of what weir knows.
//
// WEIR_FAULTS: rules separated by ';', each "CALL[/PART]:FROM-TO:WHAT". CALL is write, sync, fsync, open, truncate,
// close or rename; PART must be in the path; FROM and TO count the calls that match, from 1 (TO 0: for ever); WHAT is
// an error's number, "short", or "delay=MS".
// WEIR_SYNC_LOG gets "SYNC BYTES PATH", "NAMES PATH" (a directory was synced) and "RENAME FROM TO" after each success.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Rule {
    std::string call;
    std::string part;
    unsigned long from = 1;
    unsigned long to = 1;
    int error_number = 0;
    bool is_short = false;
    long delay_ms = 0;
    unsigned long seen = 0;
};

std::vector<Rule> parse_rules() {
    std::vector<Rule> rules;
    const char* text = std::getenv("WEIR_FAULTS");
    std::string rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
        const std::size_t end = rest.find(';');
        const std::string one = rest.substr(0, end);
        rest = end == std::string::npos ? "" : rest.substr(end + 1);
        const std::size_t first = one.find(':');
        const std::size_t second = one.find(':', first + 1);
        Rule rule;
        rule.call = one.substr(0, first);
        if (const std::size_t slash = rule.call.find('/'); slash != std::string::npos) {
            rule.part = rule.call.substr(slash + 1);
            rule.call.resize(slash);
        }
        const std::string range = one.substr(first + 1, second - first - 1);
        rule.from = std::stoul(range);
        rule.to = std::stoul(range.substr(range.find('-') + 1));
        const std::string what = one.substr(second + 1);
        rule.is_short = what == "short";
        if (what.rfind("delay=", 0) == 0)
            rule.delay_ms = std::stol(what.substr(6));
        else if (!rule.is_short)
            rule.error_number = std::stoi(what);
        rules.push_back(rule);
    }
    return rules;
}

/// 0 or the error number of this call.
int fault(const char* call, const std::string& path, bool* is_short = nullptr) {
    if (path.find(".part") == std::string::npos) return 0;
    static std::mutex lock;
    static std::vector<Rule> rules = parse_rules();
    int error_number = 0;
    long delay_ms = 0;
    {
        const std::lock_guard guard(lock);
        for (Rule& rule : rules) {
            if (rule.call != call || path.find(rule.part) == std::string::npos) continue;
            ++rule.seen;
            if (rule.seen < rule.from || (rule.to != 0 && rule.seen > rule.to)) continue;
            if (rule.error_number != 0) error_number = rule.error_number;
            if (is_short != nullptr && rule.is_short) *is_short = true;
            delay_ms += rule.delay_ms;
        }
    }
    const timespec pause{delay_ms / 1000, delay_ms % 1000 * 1'000'000};
    if (delay_ms > 0) ::nanosleep(&pause, nullptr);
    return error_number;
}

std::string path_of(int file) {
    char link[64];
    char path[4096];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t bytes = ::readlink(link, path, sizeof path);
    return bytes < 0 ? std::string() : std::string(path, static_cast<std::size_t>(bytes));
}

void log_line(const std::string& line) {
    const char* path = std::getenv("WEIR_SYNC_LOG");
    if (path == nullptr) return;
    static const int file =
        static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT, 0644));
    ::syscall(SYS_write, file, line.data(), line.size());  // one call: a kill leaves whole lines
}

bool fails(int error_number) {
    errno = error_number;
    return error_number != 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
    mode_t mode = 0;
    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    if ((flags & O_CREAT) != 0 && fails(fault("open", path))) return -1;
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
    bool is_short = false;
    if (fails(fault("write", path_of(file), &is_short))) return -1;
    return ::syscall(SYS_pwrite64, file, bytes, is_short ? (count + 1) / 2 : count, offset);
}

int fdatasync(int file) {
    const std::string path = path_of(file);
    struct stat status {};
    ::fstat(file, &status);  // before: what comes while it syncs may not be in it
    if (fails(fault("sync", path))) return -1;
    const int result = static_cast<int>(::syscall(SYS_fdatasync, file));
    if (result == 0) log_line("SYNC " + std::to_string(status.st_size) + " " + path + "\n");
    return result;
}

int fsync(int file) {
    const std::string path = path_of(file);
    if (fails(fault("fsync", path))) return -1;
    const int result = static_cast<int>(::syscall(SYS_fsync, file));
    if (result == 0) log_line("NAMES " + path + "\n");
    return result;
}

int ftruncate(int file, off_t bytes) noexcept {
    if (fails(fault("truncate", path_of(file)))) return -1;
    return static_cast<int>(::syscall(SYS_ftruncate, file, bytes));
}

int close(int file) {
    const int error_number = fault("close", path_of(file));
    const int result = static_cast<int>(::syscall(SYS_close, file));
    return fails(error_number) ? -1 : result;
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) noexcept {
    if (fails(fault("rename", from))) return -1;
    const int result = static_cast<int>(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
    if (result == 0) log_line(std::string("RENAME ") + from + " " + to + "\n");
    return result;
}
}
