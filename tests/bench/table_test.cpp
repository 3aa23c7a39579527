#include "bench/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/html_text.hpp"
#include "bench/some_results.hpp"

namespace weir::bench {
namespace {

using testing::HasSubstr;

Table some_table() {
    return {{{"way", "", false, Narrow::above},
             {"bytes", "", true, Narrow::stays},
             {"rate", "Gb/s", true, Narrow::stays},
             {"where", "", false, Narrow::below}},
            {{{"socket", "2048", "7.5", "kernel"}, {}},
             {{"socket", "8240", "9.8", ""}, {"a note"}},
             {{"dpdk", "8240", "98.1", "device"}, {}}}};
}

TEST(Table, AsOneWhereThereIsRoom) {
    EXPECT_EQ(table_text(some_table()),
              "way     bytes    rate  where\n"
              "               [Gb/s]\n"
              "socket   2048     7.5  kernel\n"
              "socket   8240     9.8\n"
              "    a note\n"
              "dpdk     8240    98.1  device\n");
}

TEST(Table, ColumnsGoAboveAndBelowWhereThereIsNone) {
    EXPECT_EQ(table_text(some_table(), 14),
              "way socket\n"
              "bytes   rate\n"
              "      [Gb/s]\n"
              " 2048    7.5\n"
              "    where:\n"
              "    kernel\n"
              " 8240    9.8\n"
              "    a note\n"
              "\n"
              "way dpdk\n"
              "bytes   rate\n"
              "      [Gb/s]\n"
              " 8240   98.1\n"
              "    where:\n"
              "    device\n");
}

TEST(Table, EveryWidthIsKeptDownToThatOfTheColumnsThatStay) {
    for (std::size_t width = 12; width < 60; ++width) EXPECT_LE(longest_line(table_text(some_table(), width)), width);
}

TEST(Table, ColumnsThatSayNothingAreDropped) {
    Table table = some_table();
    for (Row& row : table.rows) row.cells[3].clear();
    table.drop_empty_columns();
    EXPECT_EQ(table.columns.size(), 3U);
    EXPECT_EQ(table.rows[0].cells.size(), 3U);
    EXPECT_EQ(table_text(Table{some_table().columns, {}}), "");
}

TEST(Table, AsHtmlIsEscaped) {
    Table table = some_table();
    table.rows[0].cells[0] = "<b>\"a\" & 'b'";
    table.rows[1].notes[0] = "1 < 2\x1b";
    const std::string html = html_table(table);
    EXPECT_THAT(html, HasSubstr("way &lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;"));
    EXPECT_THAT(html, HasSubstr("1 &lt; 2?"));
}

}  // namespace
}  // namespace weir::bench
