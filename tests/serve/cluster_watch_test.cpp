#include "serve/cluster_watch.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "serve/node_summary.hpp"

namespace weir::serve {
namespace {

using config::NodeRole;
using nlohmann::json;
using std::chrono::milliseconds;

const std::vector<Colleagues::Node>& two_nodes() {
    static const std::vector<Colleagues::Node> nodes{{"ru0", NodeRole::readout, "h:1"},
                                                     {"bu0", NodeRole::builder, "h:2"}};
    return nodes;
}

json readout(double waited_s, const char* state = "running", int run = 7) {
    return {
        {"state", state},
        {"run", {{"number", run}}},
        {"cluster", {{"readout", {{"builders", {{{"node", "bu0"}, {"handed_over", 3}, {"waited_s", waited_s}}}}}}}}};
}

json builder(int late, int run = 7) {
    return {{"state", "running"},
            {"run", {{"number", run}}},
            {"cluster",
             {{"builder",
               {{"readouts",
                 {{{"node", "ru0"},
                   {"awaited_s", 0.0},
                   {"missing", {{"node_down", 0}, {"not_held", 0}, {"late", late}}}}}}}}}}};
}

TEST(ClusterDocument, SaysWhoWaitsForWhomLately) {
    const json before = cluster_document(two_nodes(), {{readout(1.0), ""}, {builder(0), ""}}, nullptr, 0);
    EXPECT_EQ(before["waits"][0]["share"], 0.0) << "there is no earlier answer";
    const json now = cluster_document(two_nodes(), {{readout(1.5), ""}, {builder(0), ""}}, before, 2);
    ASSERT_EQ(now["waits"].size(), 1);
    EXPECT_EQ(now["waits"][0]["node"], "ru0");
    EXPECT_EQ(now["waits"][0]["for"], "bu0");
    EXPECT_DOUBLE_EQ(now["waits"][0]["share"], 0.25);
    const json new_run = cluster_document(two_nodes(), {{readout(0.1), ""}, {builder(0), ""}}, now, 2);
    EXPECT_EQ(new_run["waits"][0]["share"], 0.0) << "it counts from 0 again";
}

TEST(ClusterDocument, SaysWhichPartsAreMissingByPair) {
    const json document = cluster_document(two_nodes(), {{readout(0), ""}, {builder(3), ""}}, nullptr, 0);
    EXPECT_EQ(document["losses"],
              (json{{{"builder", "bu0"}, {"readout", "ru0"}, {"node_down", 0}, {"not_held", 0}, {"late", 3}}}));
}

TEST(ClusterDocument, StateAndRunAreThoseThatAllHave) {
    json document = cluster_document(two_nodes(), {{readout(0), ""}, {builder(0), ""}}, nullptr, 0);
    EXPECT_EQ(document["state"], "running");
    EXPECT_EQ(document["run"], 7);
    document = cluster_document(two_nodes(), {{readout(0, "idle", 6), ""}, {builder(0), ""}}, nullptr, 0);
    EXPECT_EQ(document["state"], "mixed");
    EXPECT_TRUE(document["run"].is_null());
    document = cluster_document(two_nodes(), {{nullptr, "no route"}, {builder(0), ""}}, nullptr, 0);
    EXPECT_EQ(document["state"], "running");
    EXPECT_EQ(document["nodes"][0]["reached"], false);
    EXPECT_EQ(document["nodes"][0]["error"], "no route");
}

TEST(ClusterDocument, BelievesNoOthersJson) {
    for (const json& strange : {json(3), json::array(), json({{"cluster", "x"}, {"run", 4}, {"state", {1}}}),
                                json({{"cluster", {{"builder", {{"readouts", {{"a", 1}}}}}}}})})
        EXPECT_NO_THROW(static_cast<void>(cluster_document(two_nodes(), {{strange, ""}, {strange, ""}}, strange, 1)));
}

TEST(NodeSummary, TakesAnythingForADocument) {
    for (const json& strange :
         {json(), json(3), json::array({1}), json({{"losses", {1, "x"}}, {"cluster", {{"builder", 4}}}})})
        EXPECT_NO_THROW(static_cast<void>(node_summary(strange)));
    const json summary = node_summary({{"status", {{"state", "idle"}, {"next_run", 4}}},
                                       {"losses", {{{"cause", "late"}, {"packets", 5}}}},
                                       {"runs", {{{"number", 3}, {"lossless", "no"}, {"paths", {"/x"}}}}},
                                       {"sources", {1, 2, 3}}});
    EXPECT_EQ(summary["state"], "idle");
    EXPECT_EQ(summary["next_run"], 4);
    EXPECT_EQ(summary["lost"]["late"], 5);
    EXPECT_EQ(summary["last_run"], (json{{"number", 3}, {"lossless", "no"}}));
    EXPECT_FALSE(summary.contains("sources"));
}

/// Counts how often it is asked.
class CountedColleagues final : public Colleagues {
public:
    explicit CountedColleagues(std::atomic<int>& asked) : Colleagues(two_nodes()), asked_(asked) {}
    std::vector<Answer> ask() override {
        ++asked_;
        return {{{{"state", "idle"}, {"mode", "serve"}}, ""}, {{{"state", "idle"}, {"mode", "run"}}, ""}};
    }
    web::Controls::Outcome tell(std::size_t, std::span<const web::Controls::Value>, std::string_view) override {
        return {202, ""};
    }

private:
    std::atomic<int>& asked_;
};

struct ClusterWatchTest : testing::Test {
    std::atomic<int> asked{0};
    ClusterWatch watch{
        std::make_unique<CountedColleagues>(asked),
        {.name = "det", .controls = true, .interval = milliseconds(1), .interest = std::chrono::hours(1)}};

    json once_known() {
        json document = watch.document();
        while (document["age_s"].is_null()) {
            std::this_thread::sleep_for(milliseconds(1));
            document = watch.document();
        }
        return document;
    }
    json once_done() {
        json document = watch.document();
        while (document["command"]["done"] != true) {
            std::this_thread::sleep_for(milliseconds(1));
            document = watch.document();
        }
        return document;
    }
};

TEST_F(ClusterWatchTest, AsksOnceSomebodyWantsToKnow) {
    EXPECT_EQ(asked, 0);
    const json document = once_known();
    EXPECT_GT(asked, 0);
    EXPECT_EQ(document["name"], "det");
    EXPECT_EQ(document["nodes"].size(), 2);
    EXPECT_EQ(document["allowed"], (json{"start", "stop", "new_run", "abort"}));
}

TEST_F(ClusterWatchTest, SaysWhatBecameOfAnOrder) {
    EXPECT_EQ(watch.order({{"execute", "start"}}).status, 202);
    const json command = once_done()["command"];
    EXPECT_EQ(command["command"], "start");
    EXPECT_EQ(command["error"], "nothing was started: bu0 is not run by weir serve");
}

TEST_F(ClusterWatchTest, RefusesWhatIsNoOrder) {
    for (const json& body :
         {json(), json({{"execute", "fly"}}), json({{"execute", "snapshot"}}),
          json({{"execute", "start"}, {"without", "bu0"}}), json({{"execute", "start"}, {"without", {1}}}),
          json({{"execute", "start"}, {"comment", std::string(5000, 'x')}})})
        EXPECT_EQ(watch.order(body).status, 400) << body;
}

TEST(ClusterWatch, WhereNothingIsServedOrdersAreRefused) {
    std::atomic<int> asked{0};
    ClusterWatch watch(std::make_unique<CountedColleagues>(asked), {.name = "det", .controls = false});
    EXPECT_EQ(watch.order({{"execute", "start"}}).status, 403);
    EXPECT_TRUE(watch.document()["allowed"].empty());
}

}  // namespace
}  // namespace weir::serve
