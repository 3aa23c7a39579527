// Updates for whoever watches: each viewer gets the newest, and never waits for another one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weir::web {

/// Server-sent events. What is published between two updates, or while a viewer takes its last one, that viewer never
/// sees: an update has to say everything. Each is made once, for all.
class EventFeed {
public:
    class Viewer;

    struct Limits {
        std::uint32_t updates_per_s = 5;
        std::chrono::milliseconds heartbeat{15'000};  ///< a comment to viewers that have got nothing for so long
    };

    /// `event` is the name of the updates.
    explicit EventFeed(std::string event = "state") : EventFeed(std::move(event), Limits{}) {}
    EventFeed(std::string event, Limits limits);
    ~EventFeed();
    EventFeed(const EventFeed&) = delete;
    EventFeed& operator=(const EventFeed&) = delete;

    /// Any thread; returns at once.
    void publish(std::string data);
    /// Ends the streams of all viewers, and at once those that are begun later.
    void close();
    [[nodiscard]] std::size_t viewers() const;

private:
    using Clock = std::chrono::steady_clock;

    void pace();
    void wake_all();

    const std::string event_;
    const Limits limits_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::shared_ptr<const std::string> published_;
    std::shared_ptr<const std::string> current_;  ///< what viewers get: the pacing thread takes it of `published_`
    std::uint64_t number_ = 0;                    ///< of `current_`
    std::uint64_t beats_ = 0;
    bool closed_ = false;
    std::vector<Viewer*> viewers_;
    std::thread pacing_;
};

/// One stream. Its functions are called by the thread that sends it.
class EventFeed::Viewer {
public:
    struct Piece {
        std::shared_ptr<const std::string> bytes;  ///< null: nothing yet, and `suspend` has been called
        bool end = false;
    };

    /// `suspend` is called in next(), `resume` later by any thread, once for each. Neither may call the feed.
    Viewer(EventFeed& feed, std::function<void()> suspend, std::function<void()> resume);
    ~Viewer();
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;

    /// What is sent next.
    [[nodiscard]] Piece next();

private:
    friend class EventFeed;

    EventFeed& feed_;
    std::function<void()> suspend_;
    std::function<void()> resume_;
    bool suspended_ = false;
    std::uint64_t number_ = 0;
    std::uint64_t beats_ = 0;
};

}  // namespace weir::web
