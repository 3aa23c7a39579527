#include "web/listener.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../temporary_directory.hpp"
#include "core/error.hpp"

namespace weir::web::test {
namespace {

TEST(Listener, TheKernelGivesAPort) {
    const Listener listener = Listener::open("127.0.0.1:0");
    EXPECT_NE(listener.port(), 0);
    EXPECT_TRUE(listener.loopback());
    EXPECT_FALSE(listener.is_unix());
    EXPECT_EQ(listener.url(), "http://127.0.0.1:" + std::to_string(listener.port()));
    EXPECT_THROW(static_cast<void>(Listener::open("127.0.0.1:" + std::to_string(listener.port()))), core::RunError);
    EXPECT_FALSE(Listener::open("0.0.0.0:0").loopback());
}

TEST(Listener, WhatIsNoAddressIsRefused) {
    for (const char* text :
         {"", "localhost", "9321", ":9321", "127.0.0.1:x", "127.0.0.1:65536", "http://localhost:1", "[::1", "unix:"})
        EXPECT_THROW(static_cast<void>(Listener::open(text)), core::UsageError) << text;
    EXPECT_THROW(static_cast<void>(Listener::open("no-such-host.invalid:1")), core::RunError);
    EXPECT_THROW(static_cast<void>(Listener::open("192.0.2.1:0")), core::RunError) << "not an address of this host";
    EXPECT_THROW(static_cast<void>(Listener::open_unix(std::string(200, 'x'))), core::UsageError);
}

TEST(Listener, AUnixSocketIsForOwnerAndGroupAndGoesInTheEnd) {
    const weir::test::TemporaryDirectory folder;
    const std::string path = folder / "made/x.sock";
    const mode_t before = umask(0077);
    {
        const Listener listener = Listener::open("unix:" + path);
        struct stat status {};
        ASSERT_EQ(lstat(path.c_str(), &status), 0);
        EXPECT_EQ(status.st_mode, static_cast<mode_t>(S_IFSOCK | 0660));
        EXPECT_EQ(listener.url(), "unix:" + path);
    }
    umask(before);
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Listener, AStaleSocketIsReplacedAndOneInUseIsNot) {
    const weir::test::TemporaryDirectory folder;
    const std::string path = folder / "x.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, path.size());
    const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(dead);
    const Listener listener = Listener::open_unix(path);
    EXPECT_THROW(static_cast<void>(Listener::open_unix(path)), core::RunError);
    EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(Listener, AFileOfAnotherKindStays) {
    const weir::test::TemporaryDirectory folder;
    const std::string path = folder / "x.sock";
    std::ofstream(path) << "precious";
    EXPECT_THROW(static_cast<void>(Listener::open_unix(path)), core::RunError);
    EXPECT_EQ(std::filesystem::file_size(path), 8U);
    EXPECT_THROW(static_cast<void>(Listener::open_unix(folder / "no/such/folder.sock")), core::RunError);
}

TEST(Listener, TheSocketOfASuccessorIsLeftAlone) {
    const weir::test::TemporaryDirectory folder;
    const std::string path = folder / "x.sock";
    {
        const Listener first = Listener::open_unix(path);
        std::filesystem::rename(path, path + ".old");
        std::ofstream(path) << "of the next one";
    }
    EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace weir::web::test
