#include "fabric/ucx_library.hpp"

#include <signal.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace weir::fabric {

namespace {

/// What UCX would do to a program by itself. Who sets one of these for a run gets what they ask for.
constexpr std::array<std::pair<const char*, const char*>, 9> ucx_defaults{{
    {"UCX_HANDLE_ERRORS", "none"},       // no handlers of SIGSEGV and the like,
    {"UCX_DEBUG_SIGNO", "0"},            // nor of SIGHUP
    {"UCX_LOG_LEVEL", "fatal"},          // that a peer has gone is told in our words
    {"UCX_WARN_UNUSED_ENV_VARS", "n"},   // its variables are for other programs as well
    {"UCX_VFS_ENABLE", "n"},             // no thread for a file system that shows its insides
    {"UCX_MEM_EVENTS", "no"},            // mmap, munmap and malloc stay as they are
    {"UCX_MEM_MMAP_HOOK_MODE", "none"},  //
    {"UCX_MEM_MALLOC_HOOKS", "no"},      //
    {"UCX_MEM_MALLOC_RELOC", "no"},      //
}};

/// Puts back in its destructor what signals do, and on which stack.
class SignalActions {
public:
    SignalActions() {
        for (std::size_t i = 1; i < actions_.size(); ++i) ::sigaction(static_cast<int>(i), nullptr, &actions_[i]);
        ::sigaltstack(nullptr, &stack_);
    }
    ~SignalActions() {
        for (std::size_t i = 1; i < actions_.size(); ++i) put_back(static_cast<int>(i), actions_[i]);
        stack_t now{};
        ::sigaltstack(nullptr, &now);
        if (now.ss_sp != stack_.ss_sp || now.ss_flags != stack_.ss_flags) ::sigaltstack(&stack_, nullptr);
    }
    SignalActions(const SignalActions&) = delete;
    SignalActions& operator=(const SignalActions&) = delete;

private:
    static void put_back(int signal, const struct sigaction& action) noexcept {
        struct sigaction now {};
        if (::sigaction(signal, nullptr, &now) != 0) return;  // those that the C library keeps for itself
        const bool same = (action.sa_flags & SA_SIGINFO) != 0 ? now.sa_sigaction == action.sa_sigaction
                                                              : now.sa_handler == action.sa_handler;
        if (!same || now.sa_flags != action.sa_flags) ::sigaction(signal, &action, nullptr);
    }
    std::array<struct sigaction, NSIG> actions_{};
    stack_t stack_{};
};

UcxLibrary load_ucx() {
    for (const auto& [name, value] : ucx_defaults) ::setenv(name, value, 0);
    const SignalActions kept;
    return {};
}

}  // namespace

const UcxLibrary& ucx() {
    static const UcxLibrary library = load_ucx();
    return library;
}

}  // namespace weir::fabric
