#include "run/privileges.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <rte_eal.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <exception>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>

#include "config/device_facts.hpp"

namespace weir::run {

namespace {

constexpr std::array named_capabilities{
    std::pair{CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
    std::pair{CAP_NET_ADMIN, "CAP_NET_ADMIN"},
    std::pair{CAP_NET_RAW, "CAP_NET_RAW"},
    std::pair{CAP_IPC_LOCK, "CAP_IPC_LOCK"},
    std::pair{CAP_SYS_RAWIO, "CAP_SYS_RAWIO"},
    std::pair{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
    std::pair{CAP_BPF, "CAP_BPF"},
};

struct DeviceNeed {
    std::string_view driver;
    int capability;
    std::string_view why;
};

/// What drivers do between the start and the end of a run that the kernel asks a capability for. Of PCI devices only
/// those of NVIDIA stay with a kernel driver, which looks again at every rule; the others are weir's own by vfio-pci.
constexpr std::array device_needs{
    DeviceNeed{"net_tap", CAP_NET_ADMIN, "rules are changed while it runs, and its interface is taken away at the end"},
    DeviceNeed{"net_virtio_user", CAP_NET_ADMIN, "its interface is taken away at the end"},
    DeviceNeed{"net_af_xdp", CAP_NET_ADMIN, "its program is taken off the interface at the end"},
    DeviceNeed{"net_af_xdp", CAP_BPF, "its program is taken off the interface at the end"},
    DeviceNeed{"mlx", CAP_NET_ADMIN, "the kernel's driver asks for it with every change"},
    DeviceNeed{"mlx", CAP_NET_RAW, "the kernel's driver asks for it with every flow rule"},
};

/// "mlx" for a device that its kernel driver shares with DPDK.
std::string privileged_driver(const config::PortConfig& port) {
    std::string driver = config::driver_of(port.device);
    if (driver != "pci") return driver;
    std::error_code error;
    const auto address = port.device.substr(0, port.device.find(','));
    const auto link = std::filesystem::read_symlink("/sys/bus/pci/devices/" + address + "/driver", error);
    return link.filename().string().starts_with("mlx") ? "mlx" : driver;
}

constexpr std::uint64_t bit(int capability) {
    return std::uint64_t{1} << static_cast<unsigned>(capability);
}

using Sets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

/// Of this thread; async-signal-safe, as all that follows up to on_request().
bool get_capabilities(Sets& sets) noexcept {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    return ::syscall(SYS_capget, &header, sets.data()) == 0;
}
bool set_capabilities(const Sets& sets) noexcept {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    return ::syscall(SYS_capset, &header, sets.data()) == 0;
}

void limit_to(std::uint64_t keep) noexcept {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    // The bounding set can only be changed by who has CAP_SETPCAP; without new privileges it means nothing either way.
    for (int capability = 0; capability <= CAP_LAST_CAP; ++capability)
        if ((keep & bit(capability)) == 0) ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    Sets sets{};
    if (!get_capabilities(sets)) return;
    for (std::size_t half = 0; half < sets.size(); ++half) {
        const auto mask = static_cast<std::uint32_t>(keep >> (32 * half));
        sets[half].permitted &= mask;
        sets[half].effective = sets[half].permitted;
        sets[half].inheritable = 0;
    }
    set_capabilities(sets);
}

std::atomic<std::uint64_t> signal_keep{0};

void on_request(int) {
    const int saved = errno;
    limit_to(signal_keep.load(std::memory_order_relaxed));
    errno = saved;
}

std::uint64_t permitted(const Sets& sets) {
    return std::uint64_t{sets[0].permitted} | (std::uint64_t{sets[1].permitted} << 32U);
}

std::vector<int> threads() {
    std::vector<int> ids;
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/proc/self/task", error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        int id = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), id).ec == std::errc{}) ids.push_back(id);
    }
    return ids;
}

/// The line of a thread's status file, without its key; empty if the thread has ended.
std::string status_of(int thread, std::string_view key) {
    std::ifstream file(fmt::format("/proc/self/task/{}/status", thread));
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(key)) {
            const std::size_t begin = line.find_first_not_of(" \t", key.size());
            return begin == std::string::npos ? "" : line.substr(begin);
        }
    return {};
}

/// It has more than `keep`. The kernel's own workers for io_uring run none of our code, and act with the rights of
/// whoever asks them.
bool has_more(int thread, std::uint64_t keep) {
    const std::string text = status_of(thread, "CapPrm:");
    std::uint64_t has = 0;
    std::from_chars(text.data(), text.data() + text.size(), has, 16);
    return (has & ~keep) != 0 && !status_of(thread, "Name:").starts_with("iou-");
}

/// Those that have more than `keep` after a moment in which they could have given it up.
std::vector<int> unchanged_threads(std::uint64_t keep) {
    constexpr int tries = 200;
    constexpr timespec moment{0, 5'000'000};
    std::vector<int> left;
    for (int i = 0; i < tries; ++i) {
        left.clear();
        for (const int thread : threads())
            if (has_more(thread, keep)) left.push_back(thread);
        if (left.empty()) break;
        // Again for those that were started meanwhile by one that had not been asked yet.
        if (i % 20 == 0)
            for (const int thread : left) ::syscall(SYS_tgkill, ::getpid(), thread, SIGRTMIN);
        ::nanosleep(&moment, nullptr);
    }
    return left;
}

/// Whether a folder could not be written to without CAP_DAC_OVERRIDE, which is put aside for the question.
bool needs_override(std::span<const std::filesystem::path> folders) {
    Sets sets{};
    if (!get_capabilities(sets)) return false;
    const Sets before = sets;
    sets[0].effective &= ~static_cast<std::uint32_t>(bit(CAP_DAC_OVERRIDE));
    if (!set_capabilities(sets)) return false;
    const bool refused = std::ranges::any_of(folders, [](const std::filesystem::path& folder) {
        return ::faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0 &&
               errno == EACCES;
    });
    set_capabilities(before);
    return refused;
}

}  // namespace

std::string capability_name(int capability) {
    for (const auto& [number, name] : named_capabilities)
        if (number == capability) return name;
    return fmt::format("capability {}", capability);
}

std::vector<KeptPrivilege> kept_for_devices(const config::RunConfig& config) {
    std::vector<KeptPrivilege> kept;
    for (const config::PortConfig& port : config.ports) {
        const std::string driver = privileged_driver(port);
        for (const DeviceNeed& need : device_needs)
            if (need.driver == driver)
                kept.push_back({need.capability, fmt::format("port '{}' ({}): {}", port.name, driver, need.why)});
    }
    return kept;
}

std::vector<KeptPrivilege> kept_for_process(bool has_pci, std::span<const std::filesystem::path> folders) {
    std::vector<KeptPrivilege> kept;
    if (has_pci && ::rte_eal_iova_mode() == RTE_IOVA_PA) {
        kept.push_back({CAP_SYS_ADMIN, "without an IOMMU, DPDK asks for physical addresses while it runs"});
        kept.push_back({CAP_SYS_RAWIO, "without an IOMMU, drivers use ports of the CPU"});
    }
    rlimit limit{};
    if (has_pci && ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        kept.push_back({CAP_IPC_LOCK, "memory for devices is pinned while it runs, and `ulimit -l` is not unlimited"});
    if (needs_override(folders))
        kept.push_back({CAP_DAC_OVERRIDE, "what it writes goes to a folder that belongs to somebody else"});
    return kept;
}

std::string PrivilegesLeft::text() const {
    if (!had_any) return {};
    std::string text = "privileges: given up";
    for (std::size_t i = 0; i < kept.size(); ++i)
        text += fmt::format("{}{} for {}", i == 0 ? ", but " : "; ", capability_name(kept[i].capability), kept[i].why);
    text += '\n';
    for (const std::string& failure : failures) text += "warning: " + failure + '\n';
    return text;
}

void run_without_privileges(const std::function<void()>& action) {
    std::exception_ptr error;
    std::thread([&] {
        limit_to(0);
        try {
            action();
        } catch (...) {
            error = std::current_exception();
        }
    }).join();
    if (error != nullptr) std::rethrow_exception(error);
}

PrivilegesLeft give_up_privileges(std::span<const KeptPrivilege> keep) {
    PrivilegesLeft result;
    Sets sets{};
    if (!get_capabilities(sets)) return result;
    const std::uint64_t had = permitted(sets);
    result.had_any = had != 0;
    std::uint64_t mask = 0;
    for (const KeptPrivilege& privilege : keep) {
        mask |= bit(privilege.capability);
        if ((had & bit(privilege.capability)) != 0) result.kept.push_back(privilege);
    }
    result.given_up = had & ~mask;
    if (!result.had_any) return result;
    limit_to(mask);
    signal_keep.store(mask);
    // It stays: a signal that is still on its way when all is done would end the process without it.
    struct sigaction action {};
    action.sa_handler = on_request;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGRTMIN, &action, nullptr);
    for (const int thread : unchanged_threads(mask))
        result.failures.push_back(
            fmt::format("thread {} ({}) keeps its capabilities", thread, status_of(thread, "Name:")));
    return result;
}

}  // namespace weir::run
