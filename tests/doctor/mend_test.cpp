// Steps that are carried out: files below another root, programs only on the machine itself.
#include "doctor/mend.hpp"

#include <gtest/gtest.h>

#include "recorded_machine.hpp"

namespace weir::doctor::test {
namespace {

TEST(Mend, WritesBelowTheRoot) {
    const RecordedMachine machine;
    machine.write("/proc/sys/net/core/rmem_max", "212992");
    EXPECT_EQ(carry_out(write_to("/proc/sys/net/core/rmem_max", "1000"), machine.root()), "");
    EXPECT_EQ(machine.read("/proc/sys/net/core/rmem_max"), "1000\n");
}

TEST(Mend, MakesNoFileThatTheKernelDoesNotHave) {
    const RecordedMachine machine;
    EXPECT_NE(carry_out(write_to("/sys/none", "1"), machine.root()).find("No such file"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(machine.root() / "sys/none"));
}

TEST(Mend, RunsProgramsAndSaysHowTheyEnded) {
    EXPECT_EQ(carry_out(execute({"true"}), "/"), "");
    EXPECT_NE(carry_out(execute({"false"}), "/").find("status 1"), std::string::npos);
    EXPECT_NE(carry_out(execute({"weir-no-such-program"}), "/"), "");
    const RecordedMachine machine;
    EXPECT_NE(carry_out(execute({"true"}), machine.root()).find("recorded machine"), std::string::npos);
}

TEST(Mend, OfARecordedMachineIsSeenWhenItIsLookedAtAgain) {
    const RecordedMachine machine;
    write_bad_xeon(machine);
    const config::RunConfig config = bad_config();
    for (const char* check : {"governor", "interrupts", "clock_source", "kernel_backlog"}) {
        for (const Finding& finding : judged(machine, &config, {}).of(check)) {
            EXPECT_EQ(finding.status, Status::warning) << check;
            for (const Step& step : finding.fix) {
                EXPECT_EQ(carry_out(step, machine.root()), "");
                // The kernel would show the new affinity in the other file.
                if (step.file == "/proc/irq/120/smp_affinity_list")
                    machine.write("/proc/irq/120/effective_affinity_list", step.text);
            }
        }
        EXPECT_EQ(judged(machine, &config, {}).only(check).status, Status::ok) << check;
    }
}

}  // namespace
}  // namespace weir::doctor::test
