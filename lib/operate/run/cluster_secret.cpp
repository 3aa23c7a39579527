#include "run/cluster_secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "store/file.hpp"

namespace weir::run {

namespace {

constexpr std::size_t secret_bytes_max = 4096;

}  // namespace

std::string read_cluster_secret(const std::string& file) {
    if (file.empty()) return {};
    const auto refuse = [&file](std::string_view why) {
        return core::RunError(fmt::format("cluster.secret_file: {}: {}", file, why));
    };
    // It may be anything: a pipe must not hold up who opens it.
    const store::Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (!in.is_open() || ::fstat(in.get(), &status) != 0) throw refuse(std::strerror(errno));
    if (!S_ISREG(status.st_mode)) throw refuse("it is no file");
    if ((status.st_mode & (S_IROTH | S_IWOTH)) != 0)
        throw refuse("everybody may read or write it; chmod o-rw mends it");
    std::array<char, secret_bytes_max + 1> bytes{};
    const ssize_t size = ::read(in.get(), bytes.data(), bytes.size());
    if (size < 0) throw refuse(std::strerror(errno));
    if (static_cast<std::size_t>(size) > secret_bytes_max) throw refuse("it is larger than 4 KiB");
    std::string secret(bytes.data(), static_cast<std::size_t>(size));
    constexpr const char* spaces = " \t\r\n";
    secret.erase(secret.find_last_not_of(spaces) + 1);
    secret.erase(0, secret.find_first_not_of(spaces));
    if (secret.empty()) throw refuse("it is empty");
    return secret;
}

}  // namespace weir::run
