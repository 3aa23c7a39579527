#include "core/printable.hpp"

#include <gtest/gtest.h>

namespace weir::core {
namespace {

TEST(Printable, NothingSteersATerminal) {
    EXPECT_EQ(printable("plain, with \xc3\xa4 and \xe2\x80\x93"), "plain, with \xc3\xa4 and \xe2\x80\x93");
    EXPECT_EQ(printable("one\ntwo\tthree\r"), "one two three?");
    EXPECT_EQ(printable("\x1b[31mred\x1b]0;title\x07\x7f"), "?[31mred?]0;title??");
    EXPECT_EQ(printable("\xc2\x9b"
                        "31m \xc2\x80\xc2\x9f\xc2\xa0\xc2"),
              "?31m ??\xc2\xa0\xc2");
    EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
    EXPECT_EQ(printable(""), "");
}

}  // namespace
}  // namespace weir::core
