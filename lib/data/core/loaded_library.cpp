#include "core/loaded_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/error.hpp"

namespace weir::core {

namespace {

[[noreturn]] void throw_not_loaded(const char* name, const char* what, const char* package) {
    const char* const why = ::dlerror();
    throw RunError(fmt::format("{} {}: apt-get install {} ({})", name, what, package,
                               why == nullptr ? "no reason is known" : why));
}

}  // namespace

LoadedLibrary::LoadedLibrary(const char* name, const char* file, const char* package)
    : name_(name), package_(package), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw_not_loaded(name, "cannot be loaded", package);
}

void* LoadedLibrary::address_of(const char* symbol) const {
    void* const address = ::dlsym(handle_, symbol);
    if (address == nullptr) throw_not_loaded(name_, "is too old or too new", package_);
    return address;
}

}  // namespace weir::core
