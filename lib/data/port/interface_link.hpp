// What the kernel says of an interface's link: several drivers on top of interfaces call theirs up whatever happens.
#pragma once

#include <optional>
#include <string>

namespace weir::port {

/// Up and running (there is a carrier); nothing where there is no such interface.
[[nodiscard]] std::optional<bool> interface_running(const std::string& interface) noexcept;

/// The kernel made it, and no card is behind it: a veth or a TAP. False where that is not known.
[[nodiscard]] bool interface_is_made_up(const std::string& interface) noexcept;

/// The kernel interface that a device sits on, by its driver and arguments; empty where there is none.
[[nodiscard]] std::string interface_of(const std::string& driver, const std::string& args);

}  // namespace weir::port
