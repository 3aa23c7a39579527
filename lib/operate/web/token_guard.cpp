#include "web/token_guard.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "core/sha256.hpp"

namespace weir::web {

namespace {

constexpr std::size_t token_bytes_max = 4096;
constexpr std::string_view token_spaces = " \t\r\n";

std::string_view without_spaces(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(token_spaces);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(token_spaces) - begin + 1);
}

std::string_view shown_token(const Request& request) {
    constexpr std::string_view scheme = "bearer ";
    const std::string_view given = request.header("authorization");
    if (given.size() > scheme.size() && strncasecmp(given.data(), scheme.data(), scheme.size()) == 0)
        return without_spaces(given.substr(scheme.size()));
    return without_spaces(request.header("x-weir-token"));
}

/// Of IPv6 the network: who has one address of it has all.
std::string address_key(const std::string& peer) {
    in6_addr address{};
    if (inet_pton(AF_INET6, peer.c_str(), &address) != 1 || IN6_IS_ADDR_V4MAPPED(&address)) return peer;
    std::memset(&address.s6_addr[8], 0, 8);
    char text[INET6_ADDRSTRLEN] = "";
    inet_ntop(AF_INET6, &address, text, sizeof text);
    return text;
}

/// Takes as long whatever is the same of them.
template <class Digest>
bool same(const Digest& left, const Digest& right) {
    std::byte different{};
    for (std::size_t i = 0; i < left.size(); ++i) different |= left[i] ^ right[i];
    return different == std::byte{};
}

struct FileDescriptor {
    int fd;
    ~FileDescriptor() {
        if (fd >= 0) close(fd);
    }
};

}  // namespace

TokenGuard::Digest TokenGuard::digest_of(std::string_view token) {
    core::Sha256 sha;
    sha.update(std::as_bytes(std::span(token)));
    return sha.digest();
}

void TokenGuard::look_at_file() {
    if (file_.empty()) {
        trouble_ = "there is no token_file in [serve]";
        return;
    }
    const auto refuse = [&](std::string why) {
        digest_.reset();
        trouble_ = std::move(why);
    };
    // It may be anything: a pipe must not hold up who opens it.
    const FileDescriptor in{open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    struct stat status {};
    if (in.fd < 0 || fstat(in.fd, &status) != 0) {
        stamp_.reset();
        return refuse(fmt::format("the token file cannot be read: {}", std::strerror(errno)));
    }
    const Stamp stamp{status.st_dev, status.st_ino, status.st_size,
                      status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_mode};
    if (stamp_ == stamp) return;
    stamp_ = stamp;
    if (!S_ISREG(status.st_mode)) return refuse("the token file is no file");
    if ((status.st_mode & S_IROTH) != 0) return refuse("the token file may be read by everybody; chmod o-r mends it");
    if ((status.st_mode & S_IWOTH) != 0)
        return refuse("the token file may be written by everybody; chmod o-w mends it");
    char bytes[token_bytes_max + 1];
    const ssize_t size = read(in.fd, bytes, sizeof bytes);
    if (size < 0) return refuse(fmt::format("the token file cannot be read: {}", std::strerror(errno)));
    if (static_cast<std::size_t>(size) > token_bytes_max) return refuse("the token file is larger than 4 KiB");
    const std::string_view token = without_spaces({bytes, static_cast<std::size_t>(size)});
    if (token.empty()) {
        stamp_.reset();  // somebody is about to write it, maybe within the file system's resolution of time
        return refuse("the token file is empty");
    }
    digest_ = digest_of(token);
    trouble_.clear();
    explicit_bzero(bytes, sizeof bytes);
}

void TokenGuard::note_wrong(const std::string& address, Clock::time_point now) {
    if (!wrong_.contains(address) && wrong_.size() >= limits_.addresses_max)
        wrong_.erase(std::ranges::min_element(wrong_, {}, [](const auto& entry) { return entry.second.latest; }));
    Wrong& wrong = wrong_[address];
    if (wrong.count == 0 || now - wrong.first > limits_.window) wrong = {0, now, now, {}};
    wrong.latest = now;
    if (++wrong.count >= limits_.wrong_max) wrong = {0, now, now, now + limits_.pause};
}

std::optional<Response> TokenGuard::refusal(const Request& request, Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    look_at_file();
    if (!digest_) return error_response(403, fmt::format("nothing can be changed over TCP: {}", trouble_));
    const std::string address = address_key(request.peer);
    if (const auto known = wrong_.find(address); known != wrong_.end() && now < known->second.until) {
        const auto left = std::chrono::ceil<std::chrono::seconds>(known->second.until - now);
        Response response = error_response(429, "too many wrong tokens; wait");
        response.headers.emplace_back("Retry-After", std::to_string(left.count()));
        return response;
    }
    const std::string_view token = shown_token(request);
    if (!token.empty()) {
        const Digest shown = digest_of(token);
        if (same(shown, *digest_)) {
            wrong_.erase(address);
            return {};
        }
        note_wrong(address, now);
    }
    Response response =
        error_response(401, token.empty() ? "a token is needed: X-Weir-Token: TOKEN, or Authorization: Bearer TOKEN"
                                          : "the token is wrong");
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
}

std::string TokenGuard::trouble() {
    const std::lock_guard lock(mutex_);
    look_at_file();
    if (trouble_.empty() || file_.empty()) return trouble_;
    return fmt::format("{}: {}", file_, trouble_);
}

}  // namespace weir::web
