#include "serve/command_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

namespace weir::serve {
namespace {

nlohmann::json document_of(const CommandQueue& commands) {
    nlohmann::json document = nlohmann::json::object();
    commands.describe(document);
    return document;
}

TEST(CommandQueue, TakesWhatTheStateAllows) {
    CommandQueue commands(false);
    EXPECT_EQ(commands.execute("stop").status, 409);
    EXPECT_EQ(commands.execute("nonsense").status, 404);
    EXPECT_FALSE(commands.take().has_value());
    EXPECT_EQ(commands.execute("start").status, 202);
    EXPECT_EQ(commands.take(), Command::start);
    EXPECT_FALSE(commands.take().has_value()) << "once";
}

TEST(CommandQueue, OneAtATime) {
    CommandQueue commands(false);
    ASSERT_EQ(commands.execute("start").status, 202);
    const auto second = commands.execute("start");
    EXPECT_EQ(second.status, 409);
    EXPECT_NE(second.message.find("start is under way"), std::string::npos) << second.message;
    ASSERT_EQ(commands.take(), Command::start);
    commands.move_to(State::arming);
    EXPECT_EQ(commands.execute("start").status, 409) << "taken, and not done";
    commands.move_to(State::running);
    EXPECT_EQ(commands.execute("stop").status, 409) << "start is not done";
    commands.done(Command::start, "run 1");
    EXPECT_EQ(commands.execute("stop").status, 202);
}

TEST(CommandQueue, AbortGoesPastWhatIsUnderWay) {
    CommandQueue commands(false);
    ASSERT_EQ(commands.execute("start").status, 202);
    ASSERT_EQ(commands.take(), Command::start);
    commands.move_to(State::arming);
    EXPECT_FALSE(commands.wants_abort());
    EXPECT_EQ(commands.execute("abort").status, 202);
    EXPECT_TRUE(commands.wants_abort()) << "seen before anybody takes it";
    EXPECT_EQ(commands.execute("abort").status, 409) << "once is enough";
    commands.done(Command::start, "", "given up");
    commands.done(Command::abort, "given up");
    commands.move_to(State::idle);
    EXPECT_FALSE(commands.wants_abort());
}

TEST(CommandQueue, SaysWhatHasBecomeOfACommand) {
    CommandQueue commands(true);
    ASSERT_EQ(commands.execute("start").status, 202);
    nlohmann::json command = document_of(commands)["command"];
    EXPECT_EQ(command["execute"], "start");
    EXPECT_EQ(command["last"]["done"], false);
    EXPECT_EQ(command["start"]["execute"], true);
    EXPECT_TRUE(command["allowed"].empty()) << command;
    ASSERT_TRUE(commands.take().has_value());
    commands.done(Command::start, "", "no disk");
    command = document_of(commands)["command"];
    EXPECT_EQ(command["execute"], "");
    EXPECT_EQ(command["last"]["done"], true);
    EXPECT_EQ(command["last"]["error"], "no disk");
    EXPECT_EQ(command["allowed"], nlohmann::json({"start"}));
}

TEST(CommandQueue, AStartThatIsAcceptedHasNoErrorOfTheOneBefore) {
    CommandQueue commands(false);
    commands.set_error("no space left");
    EXPECT_EQ(commands.execute("stop").status, 409);
    EXPECT_EQ(document_of(commands)["status"]["error"], "no space left") << "nothing has begun since";
    ASSERT_EQ(commands.execute("start").status, 202);
    EXPECT_EQ(document_of(commands)["status"]["state"], "idle") << "it is not taken yet";
    EXPECT_EQ(document_of(commands)["status"]["error"], "");
}

TEST(CommandQueue, ALaterCommandIsNotDoneByAnEarlierOne) {
    CommandQueue commands(false);
    commands.move_to(State::running);
    ASSERT_EQ(commands.execute("stop").status, 202);
    ASSERT_TRUE(commands.take().has_value());
    commands.move_to(State::stopping);
    ASSERT_EQ(commands.execute("abort").status, 202);
    commands.done(Command::stop, "run 1 ended");
    EXPECT_EQ(document_of(commands)["command"]["last"]["done"], false) << "that was the other one";
    commands.done(Command::abort, "run 1 ended");
    EXPECT_EQ(document_of(commands)["command"]["last"]["done"], true);
}

TEST(CommandQueue, WhatIsSetIsForTheNextRun) {
    CommandQueue commands(false);
    EXPECT_EQ(commands.set("config/duration_s", 2.5).status, 200);
    EXPECT_EQ(commands.set("config/events", 1000U).status, 200);
    EXPECT_EQ(commands.set("config/comment", "lysozyme 3").status, 200);
    EXPECT_EQ(commands.next_run().duration_s, 2.5);
    EXPECT_EQ(commands.next_run().events, 1000U);
    EXPECT_EQ(commands.next_run().comment, "lysozyme 3");
    EXPECT_EQ(document_of(commands)["config"]["events"], 1000);
    EXPECT_EQ(commands.set("config/events", nullptr).status, 200);
    EXPECT_FALSE(commands.next_run().events.has_value());
    EXPECT_EQ(document_of(commands)["config"]["events"], 0) << "a number also where there is none";
    EXPECT_EQ(commands.set("config/duration_s", 0).status, 200);
    EXPECT_FALSE(commands.next_run().duration_s.has_value());
}

TEST(CommandQueue, NodesAreLeftOutOfOneRun) {
    CommandQueue commands(false);
    EXPECT_EQ(commands.set("config/without", 7).status, 400);
    ASSERT_EQ(commands.set("config/without", "bu1 ru0").status, 200);
    EXPECT_EQ(document_of(commands)["config"]["without"], "bu1 ru0");
    EXPECT_EQ(commands.take_next_run().without, "bu1 ru0");
    EXPECT_EQ(commands.take_next_run().without, "") << "that was for the one before";
    EXPECT_EQ(document_of(commands)["config"]["without"], "");
}

TEST(CommandQueue, NonsenseIsRefusedAndChangesNothing) {
    CommandQueue commands(false);
    ASSERT_EQ(commands.set("config/events", 7U).status, 200);
    for (const nlohmann::json& value : {nlohmann::json(-1), nlohmann::json(1.5), nlohmann::json("7"),
                                        nlohmann::json::array(), nlohmann::json::object(), nlohmann::json(true)})
        EXPECT_EQ(commands.set("config/events", value).status, 400) << value;
    for (const nlohmann::json& value :
         {nlohmann::json(-2.0), nlohmann::json(1e12), nlohmann::json("1"), nlohmann::json(false)})
        EXPECT_EQ(commands.set("config/duration_s", value).status, 400) << value;
    EXPECT_EQ(commands.set("config/comment", std::string(5000, 'x')).status, 400);
    EXPECT_EQ(commands.set("config/name", "other").status, 404);
    EXPECT_EQ(commands.set("status/state", "running").status, 404);
    EXPECT_EQ(commands.next_run().events, 7U);
}

TEST(CommandQueue, ARequestIsDoneWholeOrNotAtAll) {
    CommandQueue commands(false);
    ASSERT_EQ(commands.set("config/duration_s", 10).status, 200);
    using Value = web::Controls::Value;
    const std::array wrong{Value{"config/duration_s", 5}, Value{"config/events", -1}};
    EXPECT_EQ(commands.apply(wrong, {}).status, 400);
    EXPECT_EQ(commands.apply(wrong, "start").status, 400);
    const std::array right{Value{"config/duration_s", 5}, Value{"config/events", 7U}};
    EXPECT_EQ(commands.apply(right, "stop").status, 409) << "nothing runs";
    EXPECT_EQ(commands.apply(right, "nonsense").status, 404);
    EXPECT_EQ(commands.next_run().duration_s, 10);
    EXPECT_FALSE(commands.next_run().events.has_value());
    EXPECT_FALSE(commands.take().has_value());
    EXPECT_EQ(commands.apply(right, "start").status, 202);
    EXPECT_EQ(commands.next_run().duration_s, 5);
    EXPECT_EQ(commands.next_run().events, 7U);
    EXPECT_EQ(commands.take(), Command::start);
}

TEST(CommandQueue, OfManyAtOnceExactlyOneStarts) {
    CommandQueue commands(false);
    std::atomic<int> taken{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            for (int k = 0; k < 100; ++k)
                if (commands.execute("start").status == 202) ++taken;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace weir::serve
