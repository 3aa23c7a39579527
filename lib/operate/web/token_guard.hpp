// Who may change something over TCP: who shows what is in a file.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "web/request.hpp"

namespace weir::web {

/// Any thread.
class TokenGuard {
public:
    using Clock = std::chrono::steady_clock;

    struct Limits {
        int wrong_max = 5;  ///< tokens from one address within `window`; then it waits for `pause`
        std::chrono::seconds window{10};
        std::chrono::seconds pause{30};
        std::size_t addresses_max = 1024;  ///< that are remembered; then the one that was wrong longest ago is not
    };

    /// Whoever shows what is in `file`, without spaces around it, may pass. It is read again when it changes. Empty:
    /// there is no such file, and nobody passes.
    explicit TokenGuard(std::string file) : TokenGuard(std::move(file), Limits{}) {}
    TokenGuard(std::string file, Limits limits) : file_(std::move(file)), limits_(limits) {}

    /// Nothing if the request may pass: `Authorization: Bearer TOKEN` or `X-Weir-Token: TOKEN`. Otherwise 401, 403 (no
    /// token would do, and why), or 429 (too many were wrong).
    [[nodiscard]] std::optional<Response> refusal(const Request& request, Clock::time_point now);
    /// Why no token would do at the moment, for people on this host; empty if one would.
    [[nodiscard]] std::string trouble();

private:
    using Digest = std::array<std::byte, 32>;

    /// What is known of the file without reading it.
    struct Stamp {
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
        std::int64_t size = 0;
        std::int64_t changed_ns = 0;
        std::uint32_t mode = 0;
        bool operator==(const Stamp&) const = default;
    };
    struct Wrong {
        int count = 0;
        Clock::time_point first;
        Clock::time_point latest;
        Clock::time_point until;  ///< nothing passes before
    };

    void look_at_file();
    [[nodiscard]] static Digest digest_of(std::string_view token);
    void note_wrong(const std::string& address, Clock::time_point now);

    std::string file_;
    Limits limits_;
    std::mutex mutex_;
    std::optional<Stamp> stamp_;
    std::optional<Digest> digest_;
    std::string trouble_;
    std::map<std::string, Wrong, std::less<>> wrong_;
};

}  // namespace weir::web
