#include "web/event_feed.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::web {

namespace {

/// A line of data for each of its lines, as the format has it.
std::string update_text(std::string_view event, std::uint64_t number, std::string_view data) {
    std::string out = fmt::format("event: {}\nid: {}\ndata: ", event, number);
    out.reserve(out.size() + data.size() + 2);
    for (const char c : data) {
        if (c == '\r') continue;
        out.push_back(c);
        if (c == '\n') out += "data: ";
    }
    return out + "\n\n";
}

}  // namespace

EventFeed::EventFeed(std::string event, Limits limits)
    : event_(std::move(event)), limits_(limits), pacing_([this] { pace(); }) {}

EventFeed::~EventFeed() {
    close();
    pacing_.join();
}

void EventFeed::publish(std::string data) {
    {
        const std::lock_guard lock(mutex_);
        published_ = std::make_shared<const std::string>(std::move(data));
    }
    changed_.notify_all();
}

void EventFeed::close() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        wake_all();
    }
    changed_.notify_all();
}

std::size_t EventFeed::viewers() const {
    const std::lock_guard lock(mutex_);
    return viewers_.size();
}

/// Under the lock.
void EventFeed::wake_all() {
    for (Viewer* viewer : viewers_) {
        if (!viewer->suspended_) continue;
        viewer->suspended_ = false;
        viewer->resume_();
    }
}

/// The thread: at most so many updates per second, and a heartbeat.
void EventFeed::pace() {
    const auto pause = std::chrono::nanoseconds(1'000'000'000 / std::max(1U, limits_.updates_per_s));
    Clock::time_point beat = Clock::now() + limits_.heartbeat;
    std::unique_lock lock(mutex_);
    while (!closed_) {
        changed_.wait_until(lock, beat, [&] { return closed_ || published_; });
        if (closed_) return;
        if (Clock::now() >= beat) {
            beat = Clock::now() + limits_.heartbeat;
            ++beats_;
        }
        if (published_) {
            current_ = std::make_shared<const std::string>(update_text(event_, ++number_, *published_));
            published_.reset();
        }
        wake_all();
        changed_.wait_for(lock, pause, [&] { return closed_; });
    }
}

EventFeed::Viewer::Viewer(EventFeed& feed, std::function<void()> suspend, std::function<void()> resume)
    : feed_(feed), suspend_(std::move(suspend)), resume_(std::move(resume)) {
    const std::lock_guard lock(feed_.mutex_);
    beats_ = feed_.beats_;
    feed_.viewers_.push_back(this);
}

EventFeed::Viewer::~Viewer() {
    const std::lock_guard lock(feed_.mutex_);
    std::erase(feed_.viewers_, this);
}

EventFeed::Viewer::Piece EventFeed::Viewer::next() {
    static const auto heartbeat = std::make_shared<const std::string>(": \n\n");
    const std::lock_guard lock(feed_.mutex_);
    if (feed_.closed_) return {nullptr, true};
    if (number_ != feed_.number_) {
        number_ = feed_.number_;
        beats_ = feed_.beats_;
        return {feed_.current_, false};
    }
    if (beats_ != feed_.beats_) {
        beats_ = feed_.beats_;
        return {heartbeat, false};
    }
    suspended_ = true;
    suspend_();
    return {};
}

}  // namespace weir::web
