#include "port/stale_hugepages.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>

namespace weir::port {

namespace {

/// Whoever uses one has it locked.
bool remove_if_unused(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return false;
    const bool removed = ::flock(file, LOCK_EX | LOCK_NB) == 0 && ::unlink(path.c_str()) == 0;
    ::close(file);
    return removed;
}

}  // namespace

std::size_t remove_stale_hugepages(const std::filesystem::path& mounts) {
    const std::regex dpdks(".+map_\\d+");  // any --file-prefix, as DPDK does it
    std::size_t removed = 0;
    std::ifstream table(mounts);
    for (std::string line; std::getline(table, line);) {
        std::istringstream words(line);
        std::string device;
        std::string point;
        std::string type;
        words >> device >> point >> type;
        if (type != "hugetlbfs") continue;
        std::error_code error;
        for (std::filesystem::directory_iterator entry(point, error), end; !error && entry != end;
             entry.increment(error))
            if (std::regex_match(entry->path().filename().string(), dpdks) && remove_if_unused(entry->path()))
                ++removed;
    }
    return removed;
}

}  // namespace weir::port
