// All who watch a run are told everything, in order.
#include "observe/run_observers.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "observe/ledger.hpp"
#include "observe/verdict.hpp"
#include "observe/watch.hpp"
#include "pipeline/pipeline.hpp"
#include "store/latest_event.hpp"

namespace weir::observe {
namespace {

using Calls = std::vector<std::string>;

/// Writes down what it is told of.
class RecordingObserver final : public RunObserver {
public:
    RecordingObserver(std::string name, Calls& calls) : name_(std::move(name)), calls_(calls) {}

    store::LatestEvent* watch_events(const nlohmann::json& start) override {
        note("watch_events " + start.dump());
        return latest;
    }
    void starting(const RunMoment& moment) override { note("starting", moment); }
    void begin(const RunFacts& facts, const RunMoment& moment) override {
        note("begin run " + std::to_string(facts.number.value_or(0)), moment);
    }
    void look(const RunMoment& moment) override {
        note("look", moment);
        if (fails) throw std::runtime_error(name_);
    }
    void check(const RunMoment& moment) override { note("check", moment); }
    std::string_view take_record_request() noexcept override { return std::exchange(request, {}); }
    void ended(const RunMoment& moment) override { note("ended", moment); }
    void counted(const RunMoment& moment, const Ledger& ledger, const Verdict& verdict) override {
        note("counted " + std::to_string(ledger.received) + " " + std::string(name_of(verdict.lossless)), moment);
    }
    void closed(const RunMoment& moment, const Ledger& ledger, const Verdict& verdict,
                const std::vector<pipeline::Finding>& findings) override {
        note("closed " + std::to_string(ledger.received) + " " + std::string(name_of(verdict.lossless)) + " " +
                 std::to_string(findings.size()),
             moment);
    }
    void begin_managing(const RunFacts& facts) override {
        note("begin_managing run " + std::to_string(facts.number.value_or(0)));
    }
    void look_at_cluster(double seconds) override { note("look_at_cluster " + text_of(seconds)); }
    void finish_managing(double seconds) override { note("finish_managing " + text_of(seconds)); }

    store::LatestEvent* latest = nullptr;
    std::string_view request;
    bool fails = false;

private:
    static std::string text_of(double seconds) { return std::to_string(static_cast<int>(seconds)) + " s"; }
    void note(const std::string& what) { calls_.push_back(name_ + ": " + what); }
    void note(const std::string& what, const RunMoment& moment) { note(what + " " + text_of(moment.seconds)); }

    std::string name_;
    Calls& calls_;
};

/// The moments of a run. There is only the place of its pipeline, at which nobody looks.
class Moments {
public:
    [[nodiscard]] RunMoment at(double seconds) {
        return {*static_cast<const pipeline::Pipeline*>(static_cast<const void*>(place_)), watch_, seconds};
    }

private:
    alignas(pipeline::Pipeline) std::byte place_[sizeof(pipeline::Pipeline)]{};
    Watch watch_;
};

TEST(RunObservers, EachIsToldEverythingInOrder) {
    Calls calls;
    RecordingObserver first("first", calls);
    RecordingObserver second("second", calls);
    RunObservers observers;
    observers.add(&first);
    observers.add(nullptr);
    observers.add(&second);

    Moments moments;
    RunFacts facts;
    facts.number = 7;
    Ledger ledger;
    ledger.received = 12;
    Verdict verdict;
    verdict.lossless = Lossless::yes;
    EXPECT_EQ(observers.watch_events(nlohmann::json{{"a", 1}}), nullptr);
    observers.starting(moments.at(0));
    observers.begin(facts, moments.at(0));
    for (const double seconds : {1.0, 2.0}) {
        observers.look(moments.at(seconds));
        observers.check(moments.at(seconds));
    }
    observers.ended(moments.at(3));
    observers.counted(moments.at(3), ledger, verdict);
    observers.closed(moments.at(3), ledger, verdict, std::vector<pipeline::Finding>(2));

    Calls expected;
    for (const char* call : {"watch_events {\"a\":1}", "starting 0 s", "begin run 7 0 s", "look 1 s", "check 1 s",
                             "look 2 s", "check 2 s", "ended 3 s", "counted 12 yes 3 s", "closed 12 yes 2 3 s"})
        for (const char* name : {"first: ", "second: "}) expected.push_back(std::string(name) + call);
    EXPECT_EQ(calls, expected);
}

TEST(RunObservers, EachIsToldOfANodeThatOnlyManages) {
    Calls calls;
    RecordingObserver first("first", calls);
    RecordingObserver second("second", calls);
    RunObservers observers;
    observers.add(&first);
    observers.add(&second);
    RunFacts facts;
    facts.number = 3;
    observers.begin_managing(facts);
    observers.look_at_cluster(1);
    observers.finish_managing(2);
    EXPECT_EQ(calls,
              (Calls{"first: begin_managing run 3", "second: begin_managing run 3", "first: look_at_cluster 1 s",
                     "second: look_at_cluster 1 s", "first: finish_managing 2 s", "second: finish_managing 2 s"}));
}

TEST(RunObservers, ThePictureIsOfWhoeverHasOne) {
    Calls calls;
    RecordingObserver first("first", calls);
    RecordingObserver second("second", calls);
    alignas(store::LatestEvent) std::byte place[sizeof(store::LatestEvent)]{};  // nobody looks at it
    first.latest = static_cast<store::LatestEvent*>(static_cast<void*>(place));
    RunObservers observers;
    observers.add(&first);
    observers.add(&second);
    EXPECT_EQ(observers.watch_events({}), first.latest);
    EXPECT_EQ(calls.size(), 2U) << "the second is told, too";
}

TEST(RunObservers, ARequestIsTakenOnce) {
    Calls calls;
    RecordingObserver first("first", calls);
    RecordingObserver second("second", calls);
    RunObservers observers;
    observers.add(&first);
    observers.add(&second);
    EXPECT_EQ(observers.take_record_request(), "");
    first.request = "one";
    second.request = "two";
    EXPECT_EQ(observers.take_record_request(), "one");
    EXPECT_EQ(observers.take_record_request(), "two") << "it waits while another one is served";
    EXPECT_EQ(observers.take_record_request(), "");
}

TEST(RunObservers, AnExceptionIsTheRuns) {
    Calls calls;
    RecordingObserver first("first", calls);
    RecordingObserver second("second", calls);
    first.fails = true;
    RunObservers observers;
    observers.add(&first);
    observers.add(&second);
    Moments moments;
    EXPECT_THROW(observers.look(moments.at(1)), std::runtime_error);
    EXPECT_EQ(calls, Calls{"first: look 1 s"});
}

TEST(RunObservers, WhoeverWantsToKnowNothingNeedsNothing) {
    RunObserver indifferent;
    RunObservers observers;
    observers.add(&indifferent);
    Moments moments;
    EXPECT_EQ(observers.watch_events({}), nullptr);
    observers.look(moments.at(1));
    EXPECT_EQ(observers.take_record_request(), "");
}

}  // namespace
}  // namespace weir::observe
