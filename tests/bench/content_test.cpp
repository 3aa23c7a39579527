#include "bench/content.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace {

using weir::bench::Content;
using weir::bench::content_bytes_max;
using weir::bench::content_messages;
using weir::bench::ContentReader;
using weir::bench::read_content;

class ContentFile : public testing::Test {
protected:
    ~ContentFile() override { std::filesystem::remove(path_); }
    Content write(std::size_t bytes) {
        std::ofstream file(path_, std::ios::binary);
        for (std::size_t i = 0; i < bytes; ++i) file.put(static_cast<char>(i * 31 >> 3));
        file.close();
        return read_content(path_);
    }
    const std::string path_ = testing::TempDir() + "content_of_" + std::to_string(::getpid());
};

TEST_F(ContentFile, ComesWholeToTheOtherSide) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{700'000}, content_bytes_max + 5}) {
        const Content content = write(bytes);
        ASSERT_EQ(content->size(), std::min(bytes, content_bytes_max));
        ContentReader reader;
        for (int again = 0; again < 2; ++again) {
            for (const nlohmann::json& message : content_messages(content)) {
                EXPECT_LT(message.dump().size(), 1U << 20);
                reader.add(message);
            }
            ASSERT_NE(reader.content(), nullptr);
            EXPECT_EQ(*reader.content(), *content);
        }
    }
}

TEST_F(ContentFile, WhatCannotBeReadIsSaid) {
    EXPECT_THROW((void)read_content(path_ + ".none"), weir::core::RunError);
    EXPECT_THROW((void)read_content("/"), weir::core::RunError);
}

TEST(Content, MessagesThatAreNoneAreRefused) {
    ContentReader reader;
    EXPECT_THROW(reader.add({{"hex", "0g"}, {"last", true}}), weir::core::RunError);
    EXPECT_THROW(reader.add({{"hex", "012"}, {"last", true}}), weir::core::RunError);
    EXPECT_THROW(reader.add({{"last", true}}), nlohmann::json::exception);
    const std::string megabyte(2U << 20, '0');
    EXPECT_THROW(
        {
            for (int i = 0; i < 9; ++i) reader.add({{"hex", megabyte}, {"last", false}});
        },
        weir::core::RunError);
    EXPECT_EQ(reader.content(), nullptr);
}

}  // namespace
