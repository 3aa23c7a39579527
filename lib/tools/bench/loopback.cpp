#include "bench/loopback.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "bench/file_descriptor.hpp"
#include "core/error.hpp"
#include "core/print_stderr.hpp"

namespace weir::bench {
namespace {

[[noreturn]] void fail(const std::string& what) {
    throw core::RunError(fmt::format("--loopback: {}: {}", what, std::strerror(errno)));
}

struct Pipe {
    FileDescriptor read;
    FileDescriptor write;
    Pipe() {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("a pipe");
        read = FileDescriptor(ends[0]);
        write = FileDescriptor(ends[1]);
    }
};

void write_file(const std::string& path, const std::string& text) {
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) fail(path);
}

/// Without root: root in a user namespace of our own, which is enough for networks that nobody else sees.
void leave_network() {
    const uid_t uid = ::geteuid();
    const gid_t gid = ::getegid();
    if (uid == 0) {
        if (::unshare(CLONE_NEWNET) != 0) fail("a network namespace");
        return;
    }
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) fail("a user namespace (run as root, or allow them)");
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", fmt::format("0 {} 1", uid));
    write_file("/proc/self/gid_map", fmt::format("0 {} 1", gid));
}

/// The words of one `ip` command, separated by spaces.
void ip(const std::string& command) {
    std::istringstream words("ip " + command);
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_t pid = 0;
    errno = ::posix_spawnp(&pid, "ip", nullptr, nullptr, pointers.data(), environ);
    if (errno != 0) fail("the program `ip` (package iproute2)");
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw core::RunError(fmt::format("--loopback: `ip {}` failed", command));
}

/// This namespace's end of both links. `host` ends the addresses.
void set_up(int host) {
    ip("link set lo up");
    for (int link = 0; link < 2; ++link) {
        ip(fmt::format("addr add 10.99.{}.{}/24 dev bench{}", link, host, link));
        ip(fmt::format("link set bench{} up", link));
    }
}

}  // namespace

std::string namespaces_problem() {
    const pid_t child = ::fork();
    if (child < 0) return std::strerror(errno);
    if (child == 0) {
        const int flags = ::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
        std::_Exit(::unshare(flags) == 0 ? 0 : errno);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status)) return "not to be found out";
    return WEXITSTATUS(status) == 0 ? "" : std::strerror(WEXITSTATUS(status));
}

void ServingChild::start(const std::function<void()>& serve) {
    const pid_t parent = ::getpid();
    id_ = ::fork();
    if (id_ < 0) fail("another process");
    if (id_ != 0) return;
    int status = 1;
    try {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) std::_Exit(1);
        serve();
        status = 0;
    } catch (const std::exception& error) {
        core::print_stderr("weir: {}\n", error.what());
    }
    std::_Exit(status);
}

void ServingChild::end() noexcept {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
}

Loopback::Loopback(unsigned mtu, const std::function<void()>& serve) {
    leave_network();
    Pipe left;    // the child is in its own namespace
    Pipe joined;  // and has its ends of the links
    Pipe ready;   // and they are up
    char byte = 0;
    child_.start([&] {
        joined.write.reset();
        if (::unshare(CLONE_NEWNET) != 0) fail("a network namespace");
        if (::write(left.write.get(), &byte, 1) != 1 || ::read(joined.read.get(), &byte, 1) != 1) std::_Exit(1);
        set_up(2);
        if (::write(ready.write.get(), &byte, 1) != 1) std::_Exit(1);
        serve();
    });
    left.write.reset();
    ready.write.reset();
    if (::read(left.read.get(), &byte, 1) != 1) throw core::RunError("--loopback: the server's side did not start");
    join_namespaces(mtu);
    if (::write(joined.write.get(), &byte, 1) != 1 || ::read(ready.read.get(), &byte, 1) != 1)
        throw core::RunError("--loopback: the server's side did not get its network");
}

void Loopback::join_namespaces(unsigned mtu) const {
    for (int link = 0; link < 2; ++link)
        ip(fmt::format("link add bench{0} mtu {1} type veth peer name bench{0} mtu {1} netns {2}", link, mtu,
                       child_.id()));
    set_up(1);
}

std::string MemifLoopback::device(const char* role) const {
    // Larger than a jumbo frame: longer ones would be spoilt. 2048 places each way.
    return fmt::format("net_memif0,role={},id=0,socket={},socket-abstract=no,bsize=10240,rsize=11", role,
                       folder_.file("link.sock"));
}

}  // namespace weir::bench
