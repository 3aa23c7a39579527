// What keeps a run from starting: only what is certain.
#include <gtest/gtest.h>

#include <set>

#include "recorded_machine.hpp"

namespace weir::doctor::test {
namespace {

std::vector<std::string> reasons(const RecordedMachine& machine, const config::RunConfig& config) {
    ExamineOptions options;
    options.root = machine.root();
    Examination examination(&config, options);
    static_cast<void>(examination.look());
    std::vector<std::string> names;
    for (const Finding& finding : judge_start({examination.host(), &examination.run(), {}}))
        names.push_back(finding.check);
    return names;
}

config::RunConfig on_af_packet(const std::string& arguments, const std::string& events,
                               const std::string& ports = "[50001]") {
    return config::parse_config("[[port]]\nname = \"det0\"\ndevice = \"net_af_packet0,iface=ens3f0" + arguments +
                                    "\"\nmtu = 1500\n" +
                                    "[[stream]]\nport = \"det0\"\ntransport = \"udp\"\nudp_dst = " + ports +
                                    "\nformat = \"jungfrau\"\n"
                                    "[events]\nsources = 1\n" +
                                    events + "[[sink]]\nkind = \"null\"\n",
                                "det.toml");
}

TEST(ReasonsNotToStart, AreNoneOnAGoodMachine) {
    const RecordedMachine machine;
    write_good_xeon(machine);
    EXPECT_EQ(reasons(machine, good_config()), std::vector<std::string>{});
}

TEST(ReasonsNotToStart, AreNotWhatMayGoWellAllTheSame) {
    // A machine that says nothing, and one that is badly set up and needs no hugepages.
    const RecordedMachine silent;
    EXPECT_EQ(reasons(silent, on_af_packet("", "")), std::vector<std::string>{});
    const RecordedMachine bad;
    write_bad_xeon(bad);
    EXPECT_EQ(reasons(bad, on_af_packet("", "")), std::vector<std::string>{});
}

TEST(ReasonsNotToStart, AreFramesThatAreCut) {
    const RecordedMachine machine;
    write_good_xeon(machine);
    EXPECT_EQ(reasons(machine, on_af_packet(",framesz=2048,blocksz=65536", "")),
              std::vector<std::string>{"frame_room"});
    EXPECT_EQ(reasons(machine, on_af_packet(",framesz=16384,blocksz=65536", "")), std::vector<std::string>{});
}

TEST(ReasonsNotToStart, AreEventsWithoutRoom) {
    const RecordedMachine machine;
    write_good_xeon(machine);
    EXPECT_EQ(reasons(machine, on_af_packet("", "memory = \"1MiB\"\n", "[50001, 50002, 50003]")),
              std::vector<std::string>{"event_memory"});
    EXPECT_EQ(reasons(machine, on_af_packet("", "memory = \"8MiB\"\n", "[50001, 50002, 50003]")),
              std::vector<std::string>{});
}

TEST(ReasonsNotToStart, AreHugepagesThatACardLacks) {
    const RecordedMachine machine;
    write_bad_xeon(machine);
    const std::vector<std::string> found = reasons(machine, good_config());
    EXPECT_EQ(std::set<std::string>(found.begin(), found.end()), (std::set<std::string>{"hugepages", "hugetlbfs"}));
}

}  // namespace
}  // namespace weir::doctor::test
