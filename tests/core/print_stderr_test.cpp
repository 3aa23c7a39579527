#include "core/print_stderr.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>

namespace weir::core {
namespace {

/// Another file in the place of standard error, while it lives.
class StandardError {
public:
    explicit StandardError(int descriptor) : kept_(::dup(STDERR_FILENO)) { ::dup2(descriptor, STDERR_FILENO); }
    ~StandardError() {
        ::dup2(kept_, STDERR_FILENO);
        ::close(kept_);
    }
    StandardError(const StandardError&) = delete;
    StandardError& operator=(const StandardError&) = delete;

private:
    int kept_;
};

TEST(PrintStderr, WritesWhatItIsGiven) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    {
        const StandardError error(ends[1]);
        print_stderr("{} of {}\n", 3, "four");
        say_text("end");
    }
    std::array<char, 64> text{};
    const auto count = ::read(ends[0], text.data(), text.size());
    EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(count)), "3 of four\nend");
    for (const int end : ends) ::close(end);
}

TEST(PrintStderr, GoesOnWhenNobodyTakesIt) {
    const auto handler = ::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ::close(ends[0]);
    const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    for (const int descriptor : {ends[1], full}) {
        const StandardError error(descriptor);
        EXPECT_NO_THROW(print_stderr("{}\n", 1));
    }
    ::close(ends[1]);
    ::close(full);
    ::signal(SIGPIPE, handler);
}

}  // namespace
}  // namespace weir::core
