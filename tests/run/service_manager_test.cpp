// What the service manager is told, on a socket of the test's own, and when the watchdog is not fed.
#include "run/service_manager.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "run/lcore_progress.hpp"
#include "temporary_directory.hpp"

namespace weir::run {
namespace {

using Lcore = pipeline::Usage::Lcore;

Lcore lcore(std::uint32_t id, std::uint64_t busy, std::uint64_t idle = 0, std::uint64_t blocked = 0) {
    Lcore made;
    made.id = id;
    made.turns.busy = busy;
    made.turns.idle = idle;
    made.turns.blocked[1] = blocked;
    return made;
}

TEST(LcoreProgress, AnyPollIsProgressAndEachLcoreIsLookedAt) {
    LcoreProgress progress;
    EXPECT_FALSE(progress.stuck(100, 1).has_value()) << "there are none";
    for (int i = 0; i <= 4; ++i) {
        const auto count = static_cast<std::uint64_t>(i);
        const std::array lcores{lcore(2, count), lcore(3, 5, count), lcore(5, 5, 5, count)};
        progress.look(lcores, i);
        EXPECT_FALSE(progress.stuck(i, 0.5).has_value());
    }
    const std::array lcores{lcore(2, 5), lcore(3, 5, 4), lcore(5, 5, 5, 5)};
    progress.look(lcores, 5);
    EXPECT_FALSE(progress.stuck(5, 1).has_value()) << "for exactly a second";
    EXPECT_EQ(progress.stuck(5.1, 1), 3U);
    progress.look(std::array{lcore(3, 6, 4)}, 5.1);
    EXPECT_FALSE(progress.stuck(5.1, 1).has_value());
}

/// The service manager's side.
class Listener {
public:
    explicit Listener(const char* watchdog_us) {
        socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string path = directory_ / "notify";
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            throw core::RunError("no socket for the test");
        ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
        ::unsetenv("WATCHDOG_PID");
        if (watchdog_us != nullptr)
            ::setenv("WATCHDOG_USEC", watchdog_us, 1);
        else
            ::unsetenv("WATCHDOG_USEC");
    }
    ~Listener() {
        ::close(socket_);
        ::unsetenv("NOTIFY_SOCKET");
        ::unsetenv("WATCHDOG_USEC");
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    /// The messages since the last call, each followed by "|".
    [[nodiscard]] std::string heard() const {
        std::string all;
        std::array<char, 4096> buffer{};
        for (ssize_t n = 0; (n = ::recv(socket_, buffer.data(), buffer.size(), 0)) >= 0;)
            all += std::string(buffer.data(), static_cast<std::size_t>(n)) + "|";
        return all;
    }

private:
    test::TemporaryDirectory directory_;
    int socket_ = -1;
};

/// An lcore that can be held.
struct Machine {
    std::uint64_t turns = 0;
    bool held = false;
    std::vector<Lcore> operator()() {
        if (!held) ++turns;
        return {lcore(1, turns), lcore(4, 2 * turns)};
    }
};

TEST(ServiceManager, SaysNothingWhereNobodyListens) {
    ::unsetenv("NOTIFY_SOCKET");
    ::setenv("WATCHDOG_USEC", "1000000", 1);
    ServiceManager manager;
    manager.ready(0);
    const auto fail = [] {
        ADD_FAILURE() << "asked for nobody";
        return std::string();
    };
    const auto lcores = [] {
        ADD_FAILURE() << "asked for nobody";
        return std::vector<Lcore>();
    };
    for (int i = 0; i < 50; ++i) EXPECT_EQ(manager.look(i, lcores, fail), "");
    manager.stopping("SIGTERM");
    ::unsetenv("WATCHDOG_USEC");
}

TEST(ServiceManager, TellsReadyStatusAndStopping) {
    const Listener listener(nullptr);
    ServiceManager manager;
    Machine machine;
    int asked = 0;
    const auto status = [&] { return "line " + std::to_string(++asked) + "\nof text"; };
    EXPECT_EQ(manager.look(5, std::ref(machine), status), "");
    EXPECT_EQ(listener.heard(), "") << "it is not ready";
    manager.ready(10);
    EXPECT_EQ(listener.heard(), "READY=1\nSTATUS=running|");
    for (int i = 0; i < 300; ++i) EXPECT_EQ(manager.look(10 + 0.01 * i, std::ref(machine), status), "");
    EXPECT_EQ(listener.heard(), "STATUS=line 1 of text|STATUS=line 2 of text|") << "once a second";
    EXPECT_EQ(machine.turns, 0U) << "without a watchdog nobody asks";
    manager.stopping("SIGTERM");
    const std::string last = listener.heard();
    EXPECT_TRUE(last.starts_with("STOPPING=1\nWATCHDOG_USEC=3600000000\nSTATUS=SIGTERM: ")) << last;
    manager.stopping("again");
    EXPECT_EQ(manager.look(20, std::ref(machine), status), "");
    EXPECT_EQ(listener.heard(), "");
}

TEST(ServiceManager, FeedsTheWatchdogOnlyWhileAllLcoresPoll) {
    const Listener listener("4000000");
    ServiceManager manager;
    Machine machine;
    const auto status = [] { return std::string(); };
    manager.ready(0);
    static_cast<void>(listener.heard());
    double fed = 0;
    int feeds = 0;
    std::string said;
    const auto run_until = [&](double from, double to) {
        for (double now = from; now < to; now += 0.002) {
            said += manager.look(now, std::ref(machine), status);
            if (listener.heard().find("WATCHDOG=1") == std::string::npos) continue;
            EXPECT_LE(now - fed, 2.0) << "half of the interval";
            fed = now;
            ++feeds;
        }
    };
    run_until(0, 10);
    EXPECT_GE(feeds, 8);
    EXPECT_LE(feeds, 10);
    EXPECT_EQ(said, "");

    machine.held = true;
    run_until(10, 30);
    EXPECT_LE(fed, 12.01) << "held for half of the interval";
    EXPECT_NE(said.find("lcore 1 has not polled"), std::string::npos) << said;
    EXPECT_EQ(said.find("lcore 1", said.find("lcore 1") + 1), std::string::npos) << "once: " << said;

    machine.held = false;
    said.clear();
    fed = 30;
    run_until(30, 34);
    EXPECT_GT(fed, 30);
    EXPECT_EQ(said, "all lcores poll again");
}

}  // namespace
}  // namespace weir::run
