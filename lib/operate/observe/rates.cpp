#include "observe/rates.hpp"

namespace weir::observe {

using assemble::EventCounter;

Rates rates_over(const Ledger& ledger, double seconds) {
    const double s = seconds > 0 ? seconds : 1;
    const auto events = static_cast<double>(ledger.get(EventCounter::complete) + ledger.incomplete());
    return {static_cast<double>(ledger.received) / s, static_cast<double>(ledger.received_bytes) * 8e-9 / s, events / s,
            static_cast<double>(ledger.stored_bytes) * 1e-6 / s, seconds};
}

}  // namespace weir::observe
