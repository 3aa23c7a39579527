#include "web/event_feed.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace weir::web::test {
namespace {

using namespace std::chrono_literals;

/// A viewer whose thread is the test's.
struct Watching {
    explicit Watching(EventFeed& feed)
        : viewer(
              feed, [this] { ++suspended; }, [this] { ++resumed; }) {}

    /// The next piece, once there is one; "end" at the end, "" if none comes within a minute.
    std::string next() {
        for (int i = 0; i < 60'000; ++i) {
            const EventFeed::Viewer::Piece piece = viewer.next();
            if (piece.end) return "end";
            if (piece.bytes) return *piece.bytes;
            for (; resumed < suspended && i < 60'000; ++i) std::this_thread::sleep_for(1ms);
        }
        return {};
    }

    std::atomic<int> suspended = 0;
    std::atomic<int> resumed = 0;
    EventFeed::Viewer viewer;
};

EventFeed::Limits quick() {
    return {.updates_per_s = 1000, .heartbeat = 1h};
}

TEST(EventFeed, AViewerGetsUpdatesInOrder) {
    EventFeed feed("state", quick());
    Watching watching(feed);
    feed.publish("{\"a\":1}");
    EXPECT_EQ(watching.next(), "event: state\nid: 1\ndata: {\"a\":1}\n\n");
    feed.publish("two\nlines\r\n");
    EXPECT_EQ(watching.next(), "event: state\nid: 2\ndata: two\ndata: lines\ndata: \n\n");
}

TEST(EventFeed, WhoComesLaterGetsTheLatestAtOnce) {
    EventFeed feed("state", quick());
    Watching first(feed);
    feed.publish("x");
    EXPECT_NE(first.next(), "");
    Watching second(feed);
    const auto piece = second.viewer.next();
    ASSERT_NE(piece.bytes, nullptr);
    EXPECT_EQ(*piece.bytes, "event: state\nid: 1\ndata: x\n\n");
}

TEST(EventFeed, ASlowViewerGetsTheNewestAndNothingIsKeptForIt) {
    EventFeed feed("state", quick());
    Watching slow(feed);
    Watching fast(feed);
    for (int i = 1; i <= 20; ++i) {
        feed.publish(std::to_string(i));
        ASSERT_EQ(fast.next(), "event: state\nid: " + std::to_string(i) + "\ndata: " + std::to_string(i) + "\n\n");
    }
    EXPECT_EQ(slow.next(), "event: state\nid: 20\ndata: 20\n\n");
    EXPECT_EQ(slow.viewer.next().bytes, nullptr);
}

TEST(EventFeed, AllViewersShareOneText) {
    EventFeed feed("state", quick());
    feed.publish("x");
    Watching a(feed);
    EXPECT_NE(a.next(), "");
    Watching b(feed);
    Watching c(feed);
    EXPECT_EQ(feed.viewers(), 3U);
    EXPECT_EQ(b.viewer.next().bytes.get(), c.viewer.next().bytes.get());
}

TEST(EventFeed, UpdatesBetweenTwoTurnsAreOne) {
    EventFeed feed("state", {.updates_per_s = 10, .heartbeat = 1h});
    Watching watching(feed);
    feed.publish("first");
    EXPECT_NE(watching.next(), "");
    for (int i = 0; i < 1000; ++i) feed.publish(std::to_string(i));
    int updates = 0;  // one, unless the machine stood still
    for (std::string next; next.find("\ndata: 999\n") == std::string::npos; ++updates) {
        next = watching.next();
        ASSERT_NE(next, "");
    }
    EXPECT_LT(updates, 500);
    EXPECT_EQ(watching.viewer.next().bytes, nullptr);
}

TEST(EventFeed, AQuietFeedSendsAHeartbeat) {
    EventFeed feed("state", {.updates_per_s = 1000, .heartbeat = 5ms});
    Watching watching(feed);
    EXPECT_EQ(watching.next(), ": \n\n");
    EXPECT_EQ(watching.next(), ": \n\n");
}

TEST(EventFeed, CloseEndsAllStreamsAndLaterOnes) {
    EventFeed feed("state", quick());
    Watching watching(feed);
    EXPECT_EQ(watching.viewer.next().bytes, nullptr);
    feed.close();
    EXPECT_EQ(watching.resumed, 1);
    EXPECT_EQ(watching.next(), "end");
    Watching late(feed);
    EXPECT_EQ(late.next(), "end");
    feed.publish("x");
    EXPECT_EQ(late.next(), "end");
}

TEST(EventFeed, AViewerThatHasLeftIsNotWoken) {
    EventFeed feed("state", quick());
    {
        Watching gone(feed);
        EXPECT_EQ(gone.viewer.next().bytes, nullptr);
    }
    EXPECT_EQ(feed.viewers(), 0U);
    feed.publish("x");
    Watching watching(feed);
    EXPECT_NE(watching.next(), "");
}

}  // namespace
}  // namespace weir::web::test
