#include "serve/life.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "web/openapi.hpp"

namespace weir::serve {
namespace {

constexpr std::array all_states{State::idle, State::arming, State::running, State::stopping};
constexpr std::array all_events{RunEvent::armed, RunEvent::failed, RunEvent::ending, RunEvent::closed};

TEST(Life, CommandsAreAllowedWhereTheyMeanSomething) {
    using enum Command;
    const auto allowed = [](State state, bool records) {
        std::set<Command> found;
        for (const Command command : commands())
            if (is_allowed(state, command, records)) found.insert(command);
        return found;
    };
    EXPECT_EQ(allowed(State::idle, true), (std::set{start}));
    EXPECT_EQ(allowed(State::arming, true), (std::set{abort}));
    EXPECT_EQ(allowed(State::running, true), (std::set{stop, new_run, snapshot, flight_record, abort}));
    EXPECT_EQ(allowed(State::running, false), (std::set{stop, new_run, snapshot, abort}));
    EXPECT_EQ(allowed(State::stopping, true), (std::set{abort}));
}

TEST(Life, CommandsLeadWhereTheTableSays) {
    EXPECT_EQ(after(State::idle, Command::start), State::arming);
    EXPECT_EQ(after(State::running, Command::stop), State::stopping);
    EXPECT_EQ(after(State::running, Command::new_run), State::stopping);
    EXPECT_EQ(after(State::running, Command::abort), State::stopping);
    EXPECT_EQ(after(State::arming, Command::abort), State::arming);
    EXPECT_EQ(after(State::stopping, Command::abort), State::stopping);
    EXPECT_EQ(after(State::running, Command::snapshot), State::running);
    EXPECT_EQ(after(State::running, Command::flight_record), State::running);
}

TEST(Life, WhatHappensLeadsWhereTheTableSaysAndNowhereElse) {
    const auto expected = [](State state, RunEvent event) -> std::optional<State> {
        if (state == State::arming && event == RunEvent::armed) return State::running;
        if (state == State::arming && event == RunEvent::failed) return State::idle;
        if (state == State::running && event == RunEvent::ending) return State::stopping;
        if (state == State::stopping && event == RunEvent::ending) return State::stopping;
        if (state == State::stopping && event == RunEvent::closed) return State::idle;
        return std::nullopt;
    };
    for (const State state : all_states)
        for (const RunEvent event : all_events)
            EXPECT_EQ(after(state, event), expected(state, event)) << name_of(state) << " " << static_cast<int>(event);
}

TEST(Life, EveryStateIsLeftInTheEnd) {
    // From each state idle is reached, whatever is asked for: nothing has to be killed.
    for (State state : all_states) {
        for (const RunEvent event : {RunEvent::armed, RunEvent::ending, RunEvent::closed})
            state = after(state, event).value_or(state);
        EXPECT_EQ(state, State::idle);
    }
}

TEST(Life, NamesReadBack) {
    for (const Command command : commands()) EXPECT_EQ(command_of(name_of(command)), command);
    EXPECT_FALSE(command_of("").has_value());
    EXPECT_FALSE(command_of("Start").has_value());
}

TEST(Life, TheApiDescribesTheseCommands) {
    nlohmann::json names = nlohmann::json::array();
    for (const Command command : commands()) {
        names.push_back(name_of(command));
        EXPECT_FALSE(sentence_of(command).empty()) << name_of(command);
    }
    EXPECT_EQ(web::openapi_document()["components"]["schemas"]["Command"]["enum"], names);
}

}  // namespace
}  // namespace weir::serve
