#include "cluster/message.hpp"

#include <array>

namespace weir::cluster {

std::string_view name_of(Kind kind) noexcept {
    static constexpr std::array<std::string_view, 13> names{"claim",   "report",  "hello",    "ready",     "assign",
                                                            "request", "part",    "finished", "committed", "done",
                                                            "release", "settled", "expelled"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Part part) noexcept {
    static constexpr std::array<std::string_view, 4> names{"whole", "not_held", "node_down", "late"};
    return names[static_cast<std::size_t>(part)];
}

std::string_view name_of(LossCause cause) noexcept {
    static constexpr std::array<std::string_view, 2> names{"builder_down", "nothing_held"};
    return names[static_cast<std::size_t>(cause)];
}

}  // namespace weir::cluster
