// The pages about the doctor say what the program says.
#include "doctor/page.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "core/error.hpp"
#include "doctor/check.hpp"
#include "source_root.hpp"

namespace weir::doctor::test {
namespace {

TEST(DoctorPages, AreWhatTheProgramSays) {
    for (const char* name : {"docs/guides/DOCTOR.md", "docs/guides/SIZING.md"}) {
        std::ifstream in(weir::test::source_root() / name);
        const std::string page{std::istreambuf_iterator<char>(in), {}};
        EXPECT_TRUE(filled_page(page) == page) << name << " is stale: run `build/app/weir doctor --page " << name
                                               << " > new.md`, look at it, and commit it";
    }
}

TEST(DoctorPages, AreFilledBetweenTheirMarkers) {
    const std::string filled = filled_page("x\n<!-- doctor checks -->\nstale\n<!-- end -->\ny\n");
    EXPECT_EQ(filled.find("stale"), std::string::npos);
    EXPECT_NE(filled.find("| `hugepages` |"), std::string::npos);
    EXPECT_TRUE(filled.ends_with("<!-- end -->\ny\n"));
    for (const char* page : {"nothing", "<!-- doctor what -->\n<!-- end -->", "<!-- doctor checks -->\n"})
        EXPECT_THROW(static_cast<void>(filled_page(page)), core::UsageError) << page;
}

}  // namespace
}  // namespace weir::doctor::test
