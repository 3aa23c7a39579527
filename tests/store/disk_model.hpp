// A disk that fails when told to and remembers what it would keep after a power cut. The test program's own definitions
// of open, pwrite, fdatasync, ... stand before those of the C library; outside of a DiskModel they do what those do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>

namespace weir::store::test {

enum class Call : std::uint8_t { open, write, sync, sync_directory, truncate, rename, mkdir, close };

/// What happens at one call.
struct Fault {
    enum class Kind : std::uint8_t {
        error,        ///< it fails
        short_write,  ///< a write takes half of the bytes; other calls are interrupted once
        interrupted,  ///< EINTR, once
    };
    Kind kind = Kind::error;
    int error_number = 0;
    bool for_good = false;  ///< every call of that kind and all writes from then on fail too
};

/// While it lives, it sees all calls for what lies below `folder`. Nothing is really synced, which makes it fast.
class DiskModel {
public:
    explicit DiskModel(std::filesystem::path folder);
    ~DiskModel();
    DiskModel(const DiskModel&) = delete;
    DiskModel& operator=(const DiskModel&) = delete;

    /// The call number `at` (from 0) gets this fault.
    void fail_at(std::size_t at, const Fault& fault);
    [[nodiscard]] std::size_t calls() const { return calls_; }
    /// Which call the fault met, once it has.
    [[nodiscard]] bool met() const { return met_; }
    [[nodiscard]] Call met_call() const { return met_call_; }
    /// Called before every call: the moment of a power cut.
    std::function<void()> before_call;

    /// Copies what is in the folder to `to` as a power cut could leave it: what was synced is there, of what was not a
    /// part may be, or zeros, or garbage.
    void power_cut(const std::filesystem::path& to, std::mt19937_64& random) const;

    // For the C library's functions.
    [[nodiscard]] bool concerns(const std::string& path) const;
    /// 0: go on; otherwise the error number. `half` says that only half of a write shall be taken.
    int enter(Call call, bool& half);
    void opened(int fd, const std::string& path, bool created);
    void closed(int fd) {
        paths_.erase(fd);
        files_.erase(fd);
    }
    [[nodiscard]] const std::string* path_of(int fd) const;
    [[nodiscard]] bool was_created(int fd) const { return files_.count(fd) > 0; }
    void synced(int fd);
    void directory_synced(int fd);
    void renamed(const std::string& from, const std::string& to);

private:
    struct Durable {
        std::uint64_t bytes = 0;  ///< synced
        bool name = false;        ///< its directory was synced since it got this name
        std::string older_name;   ///< under which it may come back
    };
    std::filesystem::path folder_;
    std::map<int, std::string> paths_;
    std::set<int> files_;  ///< of these descriptors, those of files that were created
    std::map<std::string, Durable> durable_;
    std::size_t calls_ = 0;
    std::size_t fault_at_ = ~std::size_t{0};
    Fault fault_;
    bool met_ = false;
    Call met_call_ = Call::open;
    bool inside_ = false;
};

}  // namespace weir::store::test
