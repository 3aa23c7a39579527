#include "doctor/disk_trial.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "doctor/root_files.hpp"

namespace weir::doctor {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t block_bytes = std::size_t{1} << 20U;
constexpr std::size_t block_alignment = 4096;
constexpr unsigned writers = 4;

/// A file without a name in a folder.
class NamelessFile {
public:
    explicit NamelessFile(const fs::path& folder) {
        // Where the file system takes no O_DIRECT, every write is synced.
        for (const int how : {O_DIRECT, O_DSYNC}) {
            descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | how, 0600);
            if (descriptor_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) descriptor_ = open_and_unlink(folder, how);
            direct_ = how == O_DIRECT;
            error_ = errno;
            if (descriptor_ >= 0) return;
        }
    }
    ~NamelessFile() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    NamelessFile(const NamelessFile&) = delete;
    NamelessFile& operator=(const NamelessFile&) = delete;

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    [[nodiscard]] bool direct() const noexcept { return direct_; }
    [[nodiscard]] int error() const noexcept { return error_; }

private:
    static int open_and_unlink(const fs::path& folder, int how) {
        std::string name = (folder / ".weir-doctor-XXXXXX").string();
        const int descriptor = ::mkostemp(name.data(), O_CLOEXEC | how);
        if (descriptor >= 0) ::unlink(name.c_str());
        return descriptor;
    }
    int descriptor_ = -1;
    int error_ = 0;
    bool direct_ = false;
};

struct FreeBlock {
    void operator()(void* block) const noexcept { ::free(block); }
};

/// Blocks in turn, until `bytes` are given out or it has been long enough.
struct SharedWork {
    int descriptor = -1;
    std::uint64_t bytes = 0;
    std::chrono::steady_clock::time_point end;
    std::atomic<std::uint64_t> next{0};
    std::atomic<std::uint64_t> written{0};
    std::atomic<int> error{0};
};

void write_blocks(SharedWork& work) {
    const std::unique_ptr<void, FreeBlock> block(::aligned_alloc(block_alignment, block_bytes));
    if (block == nullptr) {
        work.error = ENOMEM;
        return;
    }
    std::memset(block.get(), 0x5a, block_bytes);
    while (work.error == 0 && std::chrono::steady_clock::now() < work.end) {
        const std::uint64_t at = work.next.fetch_add(block_bytes);
        if (at + block_bytes > work.bytes) return;
        // Not the same bytes everywhere, for disks that notice.
        std::memcpy(block.get(), &at, sizeof at);
        const ssize_t wrote = ::pwrite(work.descriptor, block.get(), block_bytes, static_cast<off_t>(at));
        if (wrote != static_cast<ssize_t>(block_bytes)) {
            work.error = wrote < 0 ? errno : ENOSPC;
            return;
        }
        work.written += block_bytes;
    }
}

std::uint64_t free_bytes_of(const fs::path& folder) {
    struct statvfs stat {};
    return ::statvfs(folder.c_str(), &stat) == 0 ? stat.f_bavail * stat.f_frsize : 0;
}

std::string file_system_of(const HostFacts& host, const fs::path& folder) {
    std::string type = "a file system";
    std::size_t longest = 0;
    if (!host.mounts) return type;
    for (const Mount& mount : *host.mounts) {
        const std::string with = mount.where.ends_with('/') ? mount.where : mount.where + "/";
        if ((folder.string() + "/").starts_with(with) && with.size() >= longest) {
            longest = with.size();
            type = mount.type;
        }
    }
    return type;
}

/// Without the run's own name, and whatever a pattern makes of a folder.
fs::path folder_of_runs(const std::string& path) {
    fs::path folder = fs::absolute(path).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    do folder = folder.parent_path();
    while (folder.string().find('{') != std::string::npos && folder.has_relative_path());
    return folder;
}

}  // namespace

DiskTrialResult time_writes(const fs::path& folder, const DiskTrialLimits& limits) {
    const NamelessFile file(folder);
    DiskTrialResult result;
    const auto fail = [&](int error) {
        result.bytes_per_s = Known<double>::no(fmt::format("{}: {}", folder.string(), std::strerror(error)));
        return result;
    };
    if (file.descriptor() < 0) return fail(file.error());
    result.how = file.direct() ? "past the page cache" : "with every write synced (no O_DIRECT there)";
    SharedWork work;
    work.descriptor = file.descriptor();
    work.bytes = std::min(limits.bytes_max, free_bytes_of(folder) / 4);
    if (work.bytes < writers * block_bytes) return fail(ENOSPC);
    // The space is set aside as the events sink does it, so that the file system's own work is not timed twice.
    (void)::posix_fallocate(file.descriptor(), 0, static_cast<off_t>(work.bytes));
    const auto start = std::chrono::steady_clock::now();
    work.end = start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           std::chrono::duration<double>(limits.seconds_max));
    {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < writers; ++i) threads.emplace_back([&work] { write_blocks(work); });
    }
    if (work.error != 0) return fail(work.error);
    if (::fdatasync(file.descriptor()) != 0) return fail(errno);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.bytes_per_s = static_cast<double>(work.written) / std::max(seconds, 1e-9);
    return result;
}

std::vector<DiskFacts> look_at_disks(const config::RunConfig& config, const HostFacts& host,
                                     const DiskTrialLimits* limits) {
    const bool live = host.root == "/";
    const std::string recorded = fmt::format("{} is a recorded machine", host.root.string());
    std::vector<DiskFacts> disks;
    for (const config::SinkConfig& sink : config.sinks) {
        if (!sink.has_path()) continue;
        DiskFacts facts;
        const fs::path folder = folder_of_runs(sink.path);
        facts.sink = fmt::format("sink {}", sink.kind());
        facts.folder = folder;
        facts.exists = RootFiles(host.root).exists(folder);
        facts.file_system = file_system_of(host, folder);
        facts.free_bytes = live ? Known<std::uint64_t>(free_bytes_of(folder)) : Known<std::uint64_t>::no(recorded);
        if (!live || !facts.exists) {
            facts.bytes_per_s = Known<double>::no(live ? "there is no such folder" : recorded);
        } else if (limits == nullptr) {
            facts.bytes_per_s = Known<double>::no("--passive: nothing was written");
        } else {
            DiskTrialResult trial = time_writes(folder, *limits);
            facts.bytes_per_s = trial.bytes_per_s;
            facts.how = trial.how;
        }
        disks.push_back(std::move(facts));
    }
    return disks;
}

}  // namespace weir::doctor
