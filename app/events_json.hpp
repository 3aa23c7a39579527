// The events of a run as `weir inspect --json` lists them: one object each, in the order of epoch and number.
#pragma once

#include <functional>
#include <optional>

#include "core/sha256.hpp"
#include "event_order.hpp"
#include "multi_event_text.hpp"
#include "store/run_reader.hpp"

namespace weir::app {

/// Prints `"events": […]` to standard output. Events are printed as soon as none that comes before them is to be read
/// (see EventOrder): one run can have more of them than memory.
class EventsJson {
public:
    struct Options {
        bool digest = false;      ///< the SHA-256 of every payload
        bool incomplete = false;  ///< only events that are not complete
    };
    EventsJson(const store::RunReader& run, const Options& options);

    /// For the scan of the run. `also` sees each event as well; it may be empty.
    [[nodiscard]] store::ScanHooks hooks(std::function<void(const store::EventInfo&)> also = {});
    /// Ends the list, and adds what the scan could not know of packets.
    void finish(store::Verification& result);
    [[nodiscard]] const MultiEventReader& packets() const noexcept { return packets_; }

private:
    void put(const store::EventInfo& event);

    Options options_;
    EventOrder order_;
    std::optional<core::Sha256> digest_;
    MultiEventReader packets_;
    bool first_ = true;
};

}  // namespace weir::app
