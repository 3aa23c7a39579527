// The other end of a stream: connects to a sender, writes what comes as runs, and draws up an account of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stream/seen_numbers.hpp"
#include "stream/series_run.hpp"
#include "stream/zmq.hpp"

namespace weir::stream {

/// What is known of one series.
struct SeriesAccount {
    std::uint64_t id = 0;
    std::string unique_id;
    std::string path;              ///< of its run
    std::uint64_t received = 0;    ///< events that are in the run
    std::uint64_t incomplete = 0;  ///< of them
    std::uint64_t missing = 0;     ///< numbers of images that never came
    std::uint64_t refused = 0;     ///< messages that were no event, or came twice
    std::uint64_t conflicts = 0;   ///< messages of which the number says one event and the image id another
    std::uint64_t unwritten = 0;   ///< events that came and could not be written
    std::string unwritten_cause;
    bool started = false;                    ///< its start came
    bool ended = false;                      ///< its end came
    std::optional<std::uint64_t> announced;  ///< events, by its sender: none other than those came
    std::optional<std::uint64_t> dropped;    ///< of them, those that the sender left out

    /// "yes", "no", or "unknown" with the reason in `why`; for "no" too.
    [[nodiscard]] std::string_view lossless(std::string& why) const;
};

struct ReceiveAccount {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t malformed = 0;        ///< messages that could not be understood
    std::uint64_t unknown = 0;          ///< messages of a type that nobody knows, passed over
    std::vector<std::string> problems;  ///< the first of what was wrong with them
    std::vector<SeriesAccount> series;  ///< in the order in which they came
    std::string failed;                 ///< why nothing more was written; empty: nothing failed
    [[nodiscard]] std::uint64_t events() const noexcept;
    /// "yes", "no" or "unknown", over all, with reasons.
    [[nodiscard]] std::string_view lossless(std::vector<std::string>& why) const;
};

/// For one thread. A series becomes a run of its own in `folder`; it ends with its end, with the start of another one,
/// or with finish().
class Receiver {
public:
    /// Connects; a sender that is not there yet is waited for by ZeroMQ. `folder` is made if it is not there. Throws
    /// core::RunError, and core::UsageError for an address that is none.
    Receiver(const std::string& address, const std::filesystem::path& folder);
    ~Receiver();

    /// Waits for a message up to `patience` and takes it. False: none came. Throws core::RunError if the disk fails.
    [[nodiscard]] bool receive(std::chrono::milliseconds patience);
    /// The same with a message that came in another way.
    void take(std::span<const std::byte> message);
    /// Closes the run that is open.
    void finish();
    /// Nothing more can be written, which is why one of the others threw: the run ends with what is on the disk, or
    /// stays under its hidden name if not even its end finds room.
    void fail(const std::string& why);

    [[nodiscard]] const ReceiveAccount& account() const noexcept { return account_; }

private:
    void take_start(const StreamMessage& message);
    void take_event(const StreamMessage& message);
    void take_end(const StreamMessage& message);
    void begin(const StreamMessage& message);
    void complain(const std::string& what);
    [[nodiscard]] std::string contradiction(const StreamMessage& message,
                                            const std::optional<store::EventInfo>& event) const;
    [[nodiscard]] bool is_open(const StreamMessage& message) const;
    [[nodiscard]] std::filesystem::path free_path(const StreamMessage& message) const;

    std::string address_;
    std::filesystem::path folder_;
    ZmqContext context_;
    ZmqSocket socket_;
    ReceiveAccount account_;
    std::unique_ptr<SeriesRun> run_;  ///< of the last series of the account; null: it is closed
    std::uint64_t next_image_ = 0;
    SeenNumbers ids_;          ///< of images of this series
    SeenNumbers numbers_;      ///< of its events, where a weir sends them
    std::uint64_t taken_ = 0;  ///< events that went to the run
    bool in_hand_ = false;     ///< there is one that has not gone there yet
};

/// The account, for programs.
[[nodiscard]] nlohmann::json receive_json(const ReceiveAccount& account);

}  // namespace weir::stream
