// What `weir --help` says.
#pragma once

namespace weir::app {

[[nodiscard]] const char* help_text() noexcept;

}  // namespace weir::app
