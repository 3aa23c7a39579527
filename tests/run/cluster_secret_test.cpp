#include "run/cluster_secret.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/error.hpp"
#include "temporary_directory.hpp"

namespace weir::run {
namespace {

std::string why_refused(const std::string& file) {
    try {
        static_cast<void>(read_cluster_secret(file));
    } catch (const core::RunError& error) {
        return error.what();
    }
    return "";
}

TEST(ClusterSecret, IsWhatIsInTheFile) {
    const test::TemporaryDirectory folder;
    const std::string file = (folder / "secret").string();
    const auto write = [&file](const std::string& text, ::mode_t mode = 0640) {
        std::ofstream(file, std::ios::binary) << text;
        ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    };
    EXPECT_EQ(read_cluster_secret(""), "");
    EXPECT_NE(why_refused(file).find("No such file"), std::string::npos);
    write(" \r\nopen sesame\t\n\n");
    EXPECT_EQ(read_cluster_secret(file), "open sesame");
    write(std::string(4096, 's'));
    EXPECT_EQ(read_cluster_secret(file), std::string(4096, 's'));
    write(std::string(4097, 's'));
    EXPECT_NE(why_refused(file).find("larger than 4 KiB"), std::string::npos);
    for (const std::string nothing : {"", " \n"}) {
        write(nothing);
        EXPECT_NE(why_refused(file).find("it is empty"), std::string::npos);
    }
    for (const ::mode_t mode : {0644U, 0642U}) {
        write("x", mode);
        EXPECT_NE(why_refused(file).find("chmod o-rw"), std::string::npos);
    }
    EXPECT_NE(why_refused(folder.path().string()).find("it is no file"), std::string::npos);
    const std::string pipe = (folder / "pipe").string();
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_NE(why_refused(pipe).find("it is no file"), std::string::npos);
}

}  // namespace
}  // namespace weir::run
