// The other side: what `weir ctl` and `weir top` ask a running weir with, by libcurl.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace weir::web {

/// One thread.
class Client {
public:
    struct Options {
        std::string socket{};                        ///< path of a UNIX socket; empty: `url` is asked
        std::string url{};                           ///< "http://HOST:PORT"
        std::string token{};                         ///< for changes over TCP
        std::chrono::milliseconds patience{10'000};  ///< for an answer
    };
    struct Answer {
        int status = 0;
        nlohmann::json body;  ///< null if it was no JSON
        std::string text;

        [[nodiscard]] bool good() const { return status >= 200 && status < 300; }
        /// What the server said was wrong, or that it has said nothing.
        [[nodiscard]] std::string error() const;
    };

    explicit Client(Options options);
    ~Client();
    Client(Client&&) noexcept;
    Client& operator=(Client&&) = delete;

    /// `path` below /api/0.1/weir, "status/state"; one that begins with '/' is taken as it is. Throws core::RunError if
    /// nobody answers.
    [[nodiscard]] Answer get(std::string_view path);
    [[nodiscard]] Answer put(std::string_view path, const nlohmann::json& value);
    /// Whom it asks, for people.
    [[nodiscard]] const std::string& place() const;

private:
    struct Curl;
    std::unique_ptr<Curl> curl_;
};

/// Where the weir of this name has its socket if its configuration does not say it: /run/weir/NAME.sock for root,
/// $XDG_RUNTIME_DIR/weir/NAME.sock for others; where that is not set, /tmp/weir-UID/NAME.sock.
[[nodiscard]] std::string default_socket(std::string_view name);
/// The sockets in the folder of default_socket, by name: paths.
[[nodiscard]] std::vector<std::string> sockets_there();

/// The first line of the file, which nobody but its owner and group may read. Throws core::UsageError.
[[nodiscard]] std::string token_in(const std::string& file);

}  // namespace weir::web
