#include "serve/cluster_order.hpp"

#include <gtest/gtest.h>

#include <map>

#include "core/error.hpp"

namespace weir::serve {
namespace {

using config::NodeRole;
using nlohmann::json;

/// A cluster without processes: each node does at the next question what it was told at the one before.
class FakeColleagues final : public Colleagues {
public:
    struct Service {
        std::string state = "idle";
        std::string error;
        std::uint32_t next_run = 1;
        std::uint32_t run = 0;
        bool is_there = true;
        std::string refuses;       ///< what it says against every command
        std::string cannot_begin;  ///< the error of its next start
        std::string lossless = "yes";
        int takes_long = 0;  ///< so many questions until what it was told is done
        bool ends_alone = true;
        int builder_down = 0;  ///< blocks that it knows to be lost with a builder
        std::string dies_of;   ///< the command that is its end
        std::string told;      ///< not done yet
        std::string without;
    };

    FakeColleagues()
        : Colleagues({{"ma", NodeRole::manager, "h:1"},
                      {"ru0", NodeRole::readout, "h:2"},
                      {"ru1", NodeRole::readout, "h:3"},
                      {"bu0", NodeRole::builder, "h:4"},
                      {"bu1", NodeRole::builder, "h:5"},
                      {"sp0", NodeRole::builder, "h:6", true}}),
          services(nodes().size()) {
        at("sp0").is_there = false;
    }

    Service& at(const std::string& name) {
        for (std::size_t i = 0; i < nodes().size(); ++i)
            if (nodes()[i].name == name) return services[i];
        throw std::logic_error("no node " + name);
    }

    std::vector<Answer> ask() override {
        std::vector<Answer> answers;
        const auto ended = [](const Service& service) { return service.state == "idle" || !service.is_there; };
        const bool readouts_ended = ended(services[1]) && ended(services[2]);
        for (std::size_t i = 0; i < services.size(); ++i) {
            Service& service = services[i];
            if (service.state == "running" && readouts_ended && service.ends_alone &&
                nodes()[i].role != NodeRole::readout)
                service.state = "idle";
            if (!service.is_there) {
                answers.push_back({nullptr, "h does not answer"});
                continue;
            }
            answers.push_back({summary_of(service), ""});
            go_on(service);
        }
        return answers;
    }

    web::Controls::Outcome tell(std::size_t node, std::span<const web::Controls::Value> values,
                                std::string_view command) override {
        Service& service = services[node];
        said.push_back(nodes()[node].name + " " + std::string(command));
        if (!service.is_there) return {503, "h does not answer"};
        if (!service.refuses.empty()) return {409, service.refuses};
        for (const auto& [path, value] : values)
            if (path == "config/run_number")
                service.run = value.get<std::uint32_t>();
            else if (path == "config/without")
                service.without = value.get<std::string>();
        service.told = command;
        if (service.dies_of == command) service.is_there = false;
        return {202, ""};
    }

    std::vector<Service> services;
    std::vector<std::string> said;

private:
    static json summary_of(const Service& service) {
        json summary = {
            {"state", service.state},           {"mode", "serve"},
            {"error", service.error},           {"next_run", service.next_run},
            {"run", {{"number", service.run}}}, {"last_run", {{"lossless", service.lossless}, {"error", ""}}}};
        summary["cluster"]["lost_blocks"] = {{"builder_down", service.builder_down}, {"late", 0}};
        summary["cluster"]["may_be_absent"] = json::array({"sp0"});
        if (!service.without.empty()) summary["cluster"]["may_be_absent"].push_back(service.without);
        return summary;
    }

    static void go_on(Service& service) {
        if (service.told.empty() || service.takes_long-- > 0) return;
        const std::string told = std::exchange(service.told, "");
        if (told != "start") {
            service.state = "idle";
            service.next_run = service.run + 1;
        } else if (service.cannot_begin.empty()) {
            service.state = "running";
        } else {
            service.error = std::exchange(service.cannot_begin, "");
        }
    }
};

struct ClusterOrdersTest : testing::Test {
    FakeColleagues cluster;
    bool given_up = false;

    std::string order(Command command, std::vector<std::string> without = {}) {
        using std::chrono::milliseconds;
        const ClusterOrders::Options options{
            .pause = milliseconds(0), .start_wait = milliseconds(200), .end_wait = milliseconds(20)};
        return ClusterOrders(cluster, options, [this] { return given_up; })
            .carry_out({.command = command, .without = std::move(without)});
    }

    std::string refusal(Command command, std::vector<std::string> without = {}) {
        try {
            return "done: " + order(command, std::move(without));
        } catch (const core::RunError& error) {
            return error.what();
        }
    }

    [[nodiscard]] int times_said(const std::string& what) const {
        return static_cast<int>(std::ranges::count(cluster.said, what));
    }
};

TEST_F(ClusterOrdersTest, AllGetTheHighestNumberThatOneOfThemComesTo) {
    cluster.at("bu1").next_run = 12;
    cluster.at("ru0").takes_long = 3;
    EXPECT_EQ(order(Command::start), "run 12, started on 5 nodes");
    for (const FakeColleagues::Service& service : cluster.services) {
        if (!service.is_there) continue;
        EXPECT_EQ(service.run, 12);
        EXPECT_EQ(service.state, "running");
    }
}

TEST_F(ClusterOrdersTest, WithoutANodeNothingIsStarted) {
    cluster.at("bu1").is_there = false;
    EXPECT_EQ(refusal(Command::start), "nothing was started: bu1 is not reached (h does not answer)");
    EXPECT_TRUE(cluster.said.empty());
    cluster.at("ru1").state = "stopping";
    EXPECT_EQ(refusal(Command::start), "nothing was started: ru1 is stopping; bu1 is not reached (h does not answer)");
    cluster.at("ru1").state = "idle";
    EXPECT_EQ(order(Command::start, {"bu1"}), "run 1, started on 4 nodes");
    EXPECT_EQ(cluster.at("ru0").without, "bu1") << "it need not wait for it";
    EXPECT_EQ(times_said("bu1 start"), 0);
}

TEST_F(ClusterOrdersTest, WhoIsIdleJoinsTheRunOfTheOthers) {
    cluster.at("bu0").next_run = 7;
    ASSERT_EQ(order(Command::start), "run 7, started on 5 nodes");
    EXPECT_EQ(refusal(Command::start), "nothing was started: all nodes are in run 7");
    cluster.at("bu1").state = "idle";
    cluster.at("bu1").next_run = 9;
    EXPECT_EQ(order(Command::start), "run 7 goes on, now with bu1");
    EXPECT_EQ(cluster.at("bu1").run, 7);
    cluster.at("bu1").state = "idle";
    cluster.at("bu1").cannot_begin = "no space";
    EXPECT_EQ(refusal(Command::start), "run 7 was not started on all nodes: bu1: no space");
    EXPECT_EQ(times_said("bu0 abort"), 0) << "the others go on";
    cluster.at("ru1").run = 8;
    EXPECT_EQ(refusal(Command::start), "nothing was started: ru1 is running in run 8");
}

TEST_F(ClusterOrdersTest, ASpareTakesPartIfItIsThere) {
    cluster.at("sp0").is_there = true;
    EXPECT_EQ(order(Command::start), "run 1, started on 6 nodes");
    cluster.at("sp0").is_there = false;
    EXPECT_EQ(order(Command::stop), "run 1 ended: all lossless");
}

TEST_F(ClusterOrdersTest, ARunNeedsReadoutNodesAndBuilders) {
    EXPECT_EQ(refusal(Command::start, {"bu0", "bu1", "sp0"}), "nothing was started: there would be no builder");
    EXPECT_EQ(refusal(Command::start, {"ru0", "ru1"}), "nothing was started: there would be no readout node");
    EXPECT_EQ(refusal(Command::start, {"bu2"}), "there is no node bu2");
    EXPECT_TRUE(cluster.said.empty());
}

TEST_F(ClusterOrdersTest, WhereOneCannotBeginTheOthersAreStoppedAgain) {
    cluster.at("bu0").cannot_begin = "no space left on /data";
    EXPECT_EQ(refusal(Command::start), "run 1 was not started: bu0: no space left on /data");
    EXPECT_EQ(times_said("ru0 abort"), 1);
    EXPECT_EQ(times_said("bu1 abort"), 1);
}

TEST_F(ClusterOrdersTest, WhereOneRefusesTheOthersAreStoppedAgain) {
    cluster.at("bu0").refuses = "stop is under way";
    EXPECT_EQ(refusal(Command::start), "run 1 was not started: bu0: stop is under way");
    EXPECT_EQ(times_said("ru1 abort"), 1);
    EXPECT_EQ(times_said("bu0 abort"), 0);
}

TEST_F(ClusterOrdersTest, WhoDoesNotGetGoingIsNamed) {
    cluster.at("ru1").takes_long = 1'000'000'000;
    EXPECT_EQ(refusal(Command::start), "run 1 was not started: after 0 s these do not run: ru1");
}

TEST_F(ClusterOrdersTest, ReadoutNodesAreStoppedAndTheOthersEndByThemselves) {
    ASSERT_EQ(order(Command::start), "run 1, started on 5 nodes");
    cluster.said.clear();
    EXPECT_EQ(order(Command::stop), "run 1 ended: all lossless");
    EXPECT_EQ(cluster.said, (std::vector<std::string>{"ru0 stop", "ru1 stop"}));
    EXPECT_EQ(refusal(Command::stop), "no node is in a run");
}

TEST_F(ClusterOrdersTest, WhoDoesNotEndByItselfIsTold) {
    ASSERT_EQ(order(Command::start), "run 1, started on 5 nodes");
    cluster.at("bu0").ends_alone = false;
    EXPECT_EQ(order(Command::stop), "run 1 ended: all lossless");
    EXPECT_EQ(times_said("bu0 stop"), 1);
    EXPECT_EQ(times_said("bu1 stop"), 0);
}

TEST_F(ClusterOrdersTest, AStopSaysWhatWasLostAndWhoIsNotThere) {
    ASSERT_EQ(order(Command::start), "run 1, started on 5 nodes");
    cluster.at("bu1").lossless = "no";
    cluster.at("ma").lossless = "";  // it has no account
    EXPECT_EQ(order(Command::stop), "run 1 ended: bu1 lossless no");
    cluster.at("bu1").lossless = "yes";
    ASSERT_EQ(order(Command::start), "run 2, started on 5 nodes");
    cluster.at("bu0").is_there = false;
    EXPECT_EQ(refusal(Command::stop), "run 2 ended: all lossless; bu0 is not reached (h does not answer)");
}

TEST_F(ClusterOrdersTest, WhoARunWasStartedWithoutIsNotMissedAtItsEnd) {
    cluster.at("bu1").is_there = false;
    for (const Command end : {Command::stop, Command::abort}) {
        ASSERT_EQ(refusal(Command::start), "nothing was started: bu1 is not reached (h does not answer)");
        ASSERT_TRUE(order(Command::start, {"bu1"}).ends_with("started on 4 nodes"));
        EXPECT_EQ(order(end), end == Command::stop ? "run 1 ended: all lossless" : "given up on 4 nodes");
    }
    ASSERT_TRUE(order(Command::start, {"bu1"}).ends_with("started on 4 nodes"));
    cluster.at("bu0").is_there = false;
    EXPECT_EQ(refusal(Command::stop), "run 3 ended: all lossless; bu0 is not reached (h does not answer)");
}

TEST_F(ClusterOrdersTest, WhoOnlySomeBeganWithoutIsMissed) {
    ASSERT_EQ(order(Command::start), "run 1, started on 5 nodes");
    cluster.at("ru1").without = "bu1";  // as a node that still is in an earlier run
    cluster.at("bu1").is_there = false;
    EXPECT_EQ(refusal(Command::stop), "run 1 ended: all lossless; bu1 is not reached (h does not answer)");
}

TEST_F(ClusterOrdersTest, BlocksThatWereLostWithABuilderAreInNobodysAccountOfEvents) {
    ASSERT_EQ(order(Command::start), "run 1, started on 5 nodes");
    cluster.at("ma").builder_down = 4;
    cluster.at("bu1").builder_down = 3;
    EXPECT_EQ(order(Command::stop), "run 1 ended: 4 blocks of events were lost whole");
}

TEST_F(ClusterOrdersTest, WhoDiesMeanwhileIsNotWaitedFor) {
    ASSERT_EQ(order(Command::start), "run 1, started on 5 nodes");
    cluster.at("bu0").ends_alone = false;
    cluster.at("ru0").dies_of = "stop";
    EXPECT_EQ(refusal(Command::stop), "run 1 ended: all lossless; ru0 went away meanwhile (h does not answer)");
    EXPECT_EQ(times_said("ru0 stop"), 1);
}

TEST_F(ClusterOrdersTest, ANewRunIsAStopAndAStart) {
    ASSERT_EQ(order(Command::start), "run 1, started on 5 nodes");
    EXPECT_EQ(order(Command::new_run), "run 1 ended: all lossless; run 2, started on 5 nodes");
    EXPECT_EQ(cluster.at("bu0").run, 2);
}

TEST_F(ClusterOrdersTest, AbortGoesToAllThatAreInARun) {
    EXPECT_EQ(order(Command::abort), "no node was in a run");
    ASSERT_EQ(order(Command::start, {"bu1"}), "run 1, started on 4 nodes");
    EXPECT_EQ(order(Command::abort), "given up on 4 nodes");
    EXPECT_EQ(times_said("bu1 abort"), 0);
}

TEST_F(ClusterOrdersTest, AStartThatIsGivenUpIsTakenBack) {
    cluster.at("ru1").takes_long = 1'000'000'000;
    given_up = true;
    EXPECT_EQ(refusal(Command::start), "run 1 was not started: given up, because somebody asked for something else");
    EXPECT_EQ(times_said("bu0 abort"), 1);
}

}  // namespace
}  // namespace weir::serve
