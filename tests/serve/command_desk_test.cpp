#include "serve/command_desk.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

namespace weir::serve {
namespace {

nlohmann::json document_of(const CommandDesk& desk) {
    nlohmann::json document = nlohmann::json::object();
    desk.describe(document);
    return document;
}

TEST(CommandDesk, TakesWhatTheStateAllows) {
    CommandDesk desk(false);
    EXPECT_EQ(desk.execute("stop").status, 409);
    EXPECT_EQ(desk.execute("nonsense").status, 404);
    EXPECT_FALSE(desk.take().has_value());
    EXPECT_EQ(desk.execute("start").status, 202);
    EXPECT_EQ(desk.take(), Command::start);
    EXPECT_FALSE(desk.take().has_value()) << "once";
}

TEST(CommandDesk, OneAtATime) {
    CommandDesk desk(false);
    ASSERT_EQ(desk.execute("start").status, 202);
    const auto second = desk.execute("start");
    EXPECT_EQ(second.status, 409);
    EXPECT_NE(second.message.find("start is under way"), std::string::npos) << second.message;
    ASSERT_EQ(desk.take(), Command::start);
    desk.move_to(State::arming);
    EXPECT_EQ(desk.execute("start").status, 409) << "taken, and not done";
    desk.move_to(State::running);
    EXPECT_EQ(desk.execute("stop").status, 409) << "start is not done";
    desk.done(Command::start, "run 1");
    EXPECT_EQ(desk.execute("stop").status, 202);
}

TEST(CommandDesk, AbortGoesPastWhatIsUnderWay) {
    CommandDesk desk(false);
    ASSERT_EQ(desk.execute("start").status, 202);
    ASSERT_EQ(desk.take(), Command::start);
    desk.move_to(State::arming);
    EXPECT_FALSE(desk.wants_abort());
    EXPECT_EQ(desk.execute("abort").status, 202);
    EXPECT_TRUE(desk.wants_abort()) << "seen before anybody takes it";
    EXPECT_EQ(desk.execute("abort").status, 409) << "once is enough";
    desk.done(Command::start, "", "given up");
    desk.done(Command::abort, "given up");
    desk.move_to(State::idle);
    EXPECT_FALSE(desk.wants_abort());
}

TEST(CommandDesk, SaysWhatHasBecomeOfACommand) {
    CommandDesk desk(true);
    ASSERT_EQ(desk.execute("start").status, 202);
    nlohmann::json command = document_of(desk)["command"];
    EXPECT_EQ(command["execute"], "start");
    EXPECT_EQ(command["last"]["done"], false);
    EXPECT_EQ(command["start"]["execute"], true);
    EXPECT_TRUE(command["allowed"].empty()) << command;
    ASSERT_TRUE(desk.take().has_value());
    desk.done(Command::start, "", "no disk");
    command = document_of(desk)["command"];
    EXPECT_EQ(command["execute"], "");
    EXPECT_EQ(command["last"]["done"], true);
    EXPECT_EQ(command["last"]["error"], "no disk");
    EXPECT_EQ(command["allowed"], nlohmann::json({"start"}));
}

TEST(CommandDesk, AStartThatIsAcceptedHasNoErrorOfTheOneBefore) {
    CommandDesk desk(false);
    desk.set_error("no space left");
    EXPECT_EQ(desk.execute("stop").status, 409);
    EXPECT_EQ(document_of(desk)["status"]["error"], "no space left") << "nothing has begun since";
    ASSERT_EQ(desk.execute("start").status, 202);
    EXPECT_EQ(document_of(desk)["status"]["state"], "idle") << "it is not taken yet";
    EXPECT_EQ(document_of(desk)["status"]["error"], "");
}

TEST(CommandDesk, ALaterCommandIsNotDoneByAnEarlierOne) {
    CommandDesk desk(false);
    desk.move_to(State::running);
    ASSERT_EQ(desk.execute("stop").status, 202);
    ASSERT_TRUE(desk.take().has_value());
    desk.move_to(State::stopping);
    ASSERT_EQ(desk.execute("abort").status, 202);
    desk.done(Command::stop, "run 1 ended");
    EXPECT_EQ(document_of(desk)["command"]["last"]["done"], false) << "that was the other one";
    desk.done(Command::abort, "run 1 ended");
    EXPECT_EQ(document_of(desk)["command"]["last"]["done"], true);
}

TEST(CommandDesk, WhatIsSetIsForTheNextRun) {
    CommandDesk desk(false);
    EXPECT_EQ(desk.set("config/duration_s", 2.5).status, 200);
    EXPECT_EQ(desk.set("config/events", 1000U).status, 200);
    EXPECT_EQ(desk.set("config/comment", "lysozyme 3").status, 200);
    EXPECT_EQ(desk.next_run().duration_s, 2.5);
    EXPECT_EQ(desk.next_run().events, 1000U);
    EXPECT_EQ(desk.next_run().comment, "lysozyme 3");
    EXPECT_EQ(document_of(desk)["config"]["events"], 1000);
    EXPECT_EQ(desk.set("config/events", nullptr).status, 200);
    EXPECT_FALSE(desk.next_run().events.has_value());
    EXPECT_EQ(document_of(desk)["config"]["events"], 0) << "a number also where there is none";
    EXPECT_EQ(desk.set("config/duration_s", 0).status, 200);
    EXPECT_FALSE(desk.next_run().duration_s.has_value());
}

TEST(CommandDesk, NodesAreLeftOutOfOneRun) {
    CommandDesk desk(false);
    EXPECT_EQ(desk.set("config/without", 7).status, 400);
    ASSERT_EQ(desk.set("config/without", "bu1 ru0").status, 200);
    EXPECT_EQ(document_of(desk)["config"]["without"], "bu1 ru0");
    EXPECT_EQ(desk.take_next_run().without, "bu1 ru0");
    EXPECT_EQ(desk.take_next_run().without, "") << "that was for the one before";
    EXPECT_EQ(document_of(desk)["config"]["without"], "");
}

TEST(CommandDesk, NonsenseIsRefusedAndChangesNothing) {
    CommandDesk desk(false);
    ASSERT_EQ(desk.set("config/events", 7U).status, 200);
    for (const nlohmann::json& value : {nlohmann::json(-1), nlohmann::json(1.5), nlohmann::json("7"),
                                        nlohmann::json::array(), nlohmann::json::object(), nlohmann::json(true)})
        EXPECT_EQ(desk.set("config/events", value).status, 400) << value;
    for (const nlohmann::json& value :
         {nlohmann::json(-2.0), nlohmann::json(1e12), nlohmann::json("1"), nlohmann::json(false)})
        EXPECT_EQ(desk.set("config/duration_s", value).status, 400) << value;
    EXPECT_EQ(desk.set("config/comment", std::string(5000, 'x')).status, 400);
    EXPECT_EQ(desk.set("config/name", "other").status, 404);
    EXPECT_EQ(desk.set("status/state", "running").status, 404);
    EXPECT_EQ(desk.next_run().events, 7U);
}

TEST(CommandDesk, ARequestIsDoneWholeOrNotAtAll) {
    CommandDesk desk(false);
    ASSERT_EQ(desk.set("config/duration_s", 10).status, 200);
    using Value = web::Controls::Value;
    const std::array wrong{Value{"config/duration_s", 5}, Value{"config/events", -1}};
    EXPECT_EQ(desk.apply(wrong, {}).status, 400);
    EXPECT_EQ(desk.apply(wrong, "start").status, 400);
    const std::array right{Value{"config/duration_s", 5}, Value{"config/events", 7U}};
    EXPECT_EQ(desk.apply(right, "stop").status, 409) << "nothing runs";
    EXPECT_EQ(desk.apply(right, "nonsense").status, 404);
    EXPECT_EQ(desk.next_run().duration_s, 10);
    EXPECT_FALSE(desk.next_run().events.has_value());
    EXPECT_FALSE(desk.take().has_value());
    EXPECT_EQ(desk.apply(right, "start").status, 202);
    EXPECT_EQ(desk.next_run().duration_s, 5);
    EXPECT_EQ(desk.next_run().events, 7U);
    EXPECT_EQ(desk.take(), Command::start);
}

TEST(CommandDesk, OfManyAtOnceExactlyOneStarts) {
    CommandDesk desk(false);
    std::atomic<int> taken{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            for (int k = 0; k < 100; ++k)
                if (desk.execute("start").status == 202) ++taken;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace weir::serve
