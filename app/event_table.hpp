// The table of events that `weir inspect` prints: a row for each, in the order of epoch and number.
#pragma once

#include <cstdint>
#include <functional>

#include "event_order.hpp"
#include "multi_event_text.hpp"
#include "run_text.hpp"
#include "store/run_reader.hpp"

namespace weir::app {

struct TableOptions {
    bool all = false;         ///< every event, not only the first ones
    bool incomplete = false;  ///< only events that are not complete
    bool quick = false;       ///< the payload is not read
};

class EventTable {
public:
    /// Prints the heading to standard output, where rows follow.
    EventTable(const store::RunReader& run, const TableOptions& options, Progress& progress);

    /// For the scan of the run. `also` sees each event as well.
    [[nodiscard]] store::ScanHooks hooks(std::function<void(const store::EventInfo&)> also);
    /// Of how many events the table needs more than the index says.
    [[nodiscard]] std::uint64_t heads_max() const noexcept;
    /// What has not been printed, how much has been left out, and what the scan could not know of packets.
    void finish(store::Verification& result);
    [[nodiscard]] const MultiEventReader& packets() const noexcept { return packets_; }

private:
    void say(const std::string& row, bool complete);

    TableOptions options_;
    Progress& progress_;
    EventOrder order_;
    MultiEventReader packets_;
    std::uint64_t rows_ = 0;
    std::uint64_t incomplete_hidden_ = 0;
};

}  // namespace weir::app
