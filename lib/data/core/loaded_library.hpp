// Other people's libraries that few commands need, loaded by the first who does: each library that the program is
// linked with, and each that this one needs in turn, costs every start of it.
//
// A library is a struct whose first member is named `library` and whose others are what is used of it:
//
//     struct ZmqLibrary {
//         core::LoadedLibrary library{"ZeroMQ", "libzmq.so.5", "libzmq5"};
//         WEIR_LIBRARY_FUNCTION(zmq_send);
//     };
//
// A const object of it, static in a function, is the library. tests/checks/loaded_libraries_test.py reads these lines.
#pragma once

namespace weir::core {

class LoadedLibrary {
public:
    /// `name` for people; `file` by its SONAME, which stands for its ABI; `package` of Debian. Throws core::RunError if
    /// it cannot be loaded. It stays loaded: most libraries cannot be taken out again.
    LoadedLibrary(const char* name, const char* file, const char* package);

    /// Of a function or a variable. Throws core::RunError if there is none of this name.
    [[nodiscard]] void* address_of(const char* symbol) const;

private:
    const char* name_;
    const char* package_;
    void* handle_;
};

}  // namespace weir::core

/// Members that have the name and the type of what the library's header declares; the arguments are names.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define WEIR_LIBRARY_FUNCTION(function) \
    decltype(&::function) function = reinterpret_cast<decltype(&::function)>(library.address_of(#function))
#define WEIR_LIBRARY_VARIABLE(variable) \
    const decltype(::variable)& variable = *static_cast<const decltype(::variable)*>(library.address_of(#variable))
// NOLINTEND(bugprone-macro-parentheses)
