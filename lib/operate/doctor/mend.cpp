#include "doctor/mend.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "doctor/root_files.hpp"

extern char** environ;

namespace weir::doctor {

namespace {

/// In one write, because files of the kernel take each as a whole. The file has to be there.
std::string write_text(const std::filesystem::path& file, const std::string& text) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (descriptor < 0) return fmt::format("{}: {}", file.string(), std::strerror(errno));
    const std::string line = text + "\n";
    const ssize_t wrote = ::write(descriptor, line.data(), line.size());
    const int error = errno;
    ::close(descriptor);
    return wrote == static_cast<ssize_t>(line.size()) ? "" : fmt::format("{}: {}", file.string(), std::strerror(error));
}

std::string run_and_wait(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t child = 0;
    if (const int error = ::posix_spawnp(&child, arguments.front(), nullptr, nullptr, arguments.data(), environ);
        error != 0)
        return fmt::format("{}: {}", words.front(), std::strerror(error));
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return fmt::format("{} ended with {}", words.front(),
                       WIFEXITED(status) ? fmt::format("status {}", WEXITSTATUS(status)) : "a signal");
}

}  // namespace

std::string carry_out(const Step& step, const std::filesystem::path& root) {
    if (!step.file.empty()) return write_text(RootFiles(root).at(step.file), step.text);
    if (root != "/") return fmt::format("{} is a recorded machine, where no program can be run", root.string());
    return run_and_wait(step.program);
}

}  // namespace weir::doctor
