#include "web/listener.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "web/url.hpp"

namespace weir::web {

namespace {

constexpr int backlog = 128;
constexpr mode_t socket_mode = 0660;

[[noreturn]] void cannot_listen(std::string_view at, std::string_view why) {
    throw core::RunError(fmt::format("cannot listen at {}: {}", at, why));
}

sockaddr_un unix_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path)
        throw core::UsageError(
            fmt::format("a UNIX socket at \"{}\": its path may have 1 to {} bytes", path, sizeof address.sun_path - 1));
    path.copy(address.sun_path, path.size());
    return address;
}

bool somebody_listens(const sockaddr_un& address) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return true;
    const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int error = errno;
    close(fd);
    return result == 0 || error != ECONNREFUSED;  // EAGAIN: its queue is full
}

bool is_loopback(const sockaddr* address) {
    if (address->sa_family == AF_INET)
        return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24U) == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) != 0;
}

/// If only it is missing. Who owns the folder can put another socket in the place of ours, so it has to be root or we.
void make_folder(const std::filesystem::path& folder, std::string_view at) {
    if (folder.empty()) return;
    mkdir(folder.c_str(), 0755);
    struct stat status {};
    if (stat(folder.c_str(), &status) != 0) cannot_listen(at, std::strerror(errno));
    if (geteuid() != 0 && status.st_uid != 0 && status.st_uid != geteuid())
        cannot_listen(at, "its folder belongs to another user");
}

std::uint16_t port_of(const sockaddr* address) {
    return ntohs(address->sa_family == AF_INET ? reinterpret_cast<const sockaddr_in*>(address)->sin_port
                                               : reinterpret_cast<const sockaddr_in6*>(address)->sin6_port);
}

int listen_at(const addrinfo& address) {
    const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, backlog) == 0) return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

}  // namespace

Listener Listener::open(std::string_view text) {
    if (text.starts_with("unix:")) return open_unix(std::string(text.substr(5)));
    const auto place = parse_host_port(text);
    if (!place || !place->port)
        throw core::UsageError(fmt::format(
            "found \"{}\"; accepted: \"HOST:PORT\", \"[V6]:PORT\" or \"unix:/path\", to be listened at", text));
    addrinfo wanted{};
    wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = getaddrinfo(place->host.c_str(), std::to_string(*place->port).c_str(), &wanted, &found);
    if (error != 0) cannot_listen(text, gai_strerror(error));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
    for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
        Listener out(listen_at(*address));
        if (out.fd_ < 0) continue;
        sockaddr_storage bound{};
        socklen_t size = sizeof bound;
        getsockname(out.fd_, reinterpret_cast<sockaddr*>(&bound), &size);
        out.host_ = place->host;
        out.port_ = port_of(reinterpret_cast<const sockaddr*>(&bound));
        out.loopback_ = is_loopback(address->ai_addr);
        return out;
    }
    cannot_listen(text, std::strerror(errno));
}

Listener Listener::open_unix(const std::string& path) {
    const sockaddr_un address = unix_address(path);
    const auto* raw = reinterpret_cast<const sockaddr*>(&address);
    const std::string at = "unix:" + path;
    make_folder(std::filesystem::path(path).parent_path(), at);
    Listener out(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (out.fd_ < 0) cannot_listen(at, std::strerror(errno));
    fchmod(out.fd_, socket_mode);  // the file has it from the beginning, less the umask
    if (bind(out.fd_, raw, sizeof address) != 0) {
        if (errno != EADDRINUSE) cannot_listen(at, std::strerror(errno));
        struct stat status {};
        if (lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode))
            cannot_listen(at, "there is a file that is no socket");
        if (somebody_listens(address)) cannot_listen(at, "another process does");
        if (unlink(path.c_str()) != 0 || bind(out.fd_, raw, sizeof address) != 0)
            cannot_listen(at, std::strerror(errno));
    }
    struct stat made {};
    if (chmod(path.c_str(), socket_mode) != 0 || lstat(path.c_str(), &made) != 0 || listen(out.fd_, backlog) != 0) {
        const int error = errno;
        unlink(path.c_str());
        cannot_listen(at, std::strerror(error));
    }
    out.path_ = path;
    out.device_ = made.st_dev;
    out.inode_ = made.st_ino;
    return out;
}

Listener::Listener(Listener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_),
      host_(std::move(other.host_)),
      port_(other.port_),
      loopback_(other.loopback_) {}

Listener::~Listener() {
    if (fd_ >= 0) close(fd_);
    struct stat there {};
    if (!path_.empty() && lstat(path_.c_str(), &there) == 0 && there.st_dev == device_ && there.st_ino == inode_)
        unlink(path_.c_str());
}

int Listener::release() {
    return std::exchange(fd_, -1);
}

std::string Listener::url() const {
    if (is_unix()) return "unix:" + path_;
    const bool v6 = host_.find(':') != std::string::npos;
    return fmt::format("http://{}{}{}:{}", v6 ? "[" : "", host_, v6 ? "]" : "", port_);
}

}  // namespace weir::web
