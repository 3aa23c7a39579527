// A sender whose packets do not all arrive as they were sent: what the network between would do, drawn from a seed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/sender.hpp"

namespace weir::bench {

struct SenderFaults {
    double drop = 0;            ///< probability that a packet is not passed on; it counts as lost on the wire
    double duplicate = 0;       ///< probability that it is sent twice
    std::uint32_t reorder = 0;  ///< places that a packet may come later; 0: none does
    std::uint64_t seed = 1;
    [[nodiscard]] bool any() const noexcept { return drop > 0 || duplicate > 0 || reorder > 0; }
    friend bool operator==(const SenderFaults&, const SenderFaults&) = default;
};

/// "on purpose: drop 0.001, seed 7".
[[nodiscard]] std::string faults_text(const SenderFaults& faults);

/// The packets of a trial meet the same faults each time.
[[nodiscard]] std::unique_ptr<Sender> with_faults(std::unique_ptr<Sender> sender, const SenderFaults& faults);

}  // namespace weir::bench
