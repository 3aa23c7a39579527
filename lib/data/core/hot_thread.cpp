#include "core/hot_thread.hpp"

namespace weir::core {
namespace {
// Constant initialisation: reading it never allocates, even before main.
constinit thread_local bool hot = false;
}  // namespace

void hot_thread(bool value) noexcept {
    hot = value;
}

bool is_hot_thread() noexcept {
    return hot;
}

}  // namespace weir::core

extern "C" bool weir_thread_is_hot() noexcept {
    return weir::core::is_hot_thread();
}
