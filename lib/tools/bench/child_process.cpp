#include "bench/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/error.hpp"

namespace weir::bench {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, std::string says_to)
    : says_to_(std::move(says_to)) {
    std::vector<std::string> words{"weir"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw core::RunError(fmt::format("another process: {}", std::strerror(errno)));
    if (pid_ > 0) return;
    const int file = ::open(says_to_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0) {
        ::dup2(file, STDOUT_FILENO);
        ::dup2(file, STDERR_FILENO);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) ::execv("/proc/self/exe", pointers.data());
    ::_exit(127);
}

ChildProcess::~ChildProcess() {
    if (status_) return;
    signal(SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

std::optional<int> ChildProcess::status() {
    if (status_) return status_;
    int status = 0;
    rusage used{};
    if (::wait4(pid_, &status, WNOHANG, &used) != pid_) return std::nullopt;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    cpu_s_ = seconds(used.ru_utime) + seconds(used.ru_stime);
    return status_;
}

std::optional<int> ChildProcess::wait(double patience_s) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_s);
    while (!status() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return status_;
}

void ChildProcess::signal(int number) const noexcept {
    if (!status_) ::kill(pid_, number);
}

std::string ChildProcess::said() const {
    std::ifstream file(says_to_);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

double ChildProcess::cpu_s() const {
    if (status_) return cpu_s_;
    // The first number of schedstat: ns on a CPU (Documentation/scheduler/sched-stats.rst of Linux).
    double ns = 0;
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid_), error)) {
        double of_task = 0;
        if (std::ifstream(task.path() / "schedstat") >> of_task) ns += of_task;
    }
    return ns * 1e-9;
}

}  // namespace weir::bench
