// A ledger as a test wants it.
#pragma once

#include "observe/ledger.hpp"

namespace weir::observe {

inline void set(Ledger& ledger, wire::PacketCounter counter, std::uint64_t value) {
    ledger.packets[static_cast<std::size_t>(counter)] = value;
}
inline void set(Ledger& ledger, assemble::EventCounter counter, std::uint64_t value) {
    ledger.events[static_cast<std::size_t>(counter)] = value;
}

}  // namespace weir::observe
