// What a run tells the service manager that started it (systemd's protocol, sd_notify(3)): that it is ready, how it
// goes, that it ends, and, where a watchdog waits for it, that all lcores poll. Does nothing where there is none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/bottleneck.hpp"
#include "run/lcore_progress.hpp"

namespace weir::run {

/// For the control thread. Reports no errors: a run does not depend on being listened to.
class ServiceManager {
public:
    using Lcores = std::function<std::vector<pipeline::Usage::Lcore>()>;
    using Text = std::function<std::string()>;

    /// Looks for NOTIFY_SOCKET and WATCHDOG_USEC in the environment.
    ServiceManager();

    /// From here on the watchdog waits. `seconds` of the clock that look() gets too.
    void ready(double seconds);
    /// Many times a second: asks `status` once a second, and `lcores` as often as the watchdog needs it. The watchdog
    /// is fed four times in its interval while no lcore has been stuck for longer than half of it. What there is to
    /// say of that, once: an lcore is stuck, or polls again; empty otherwise.
    [[nodiscard]] std::string look(double seconds, const Lcores& lcores, const Text& status);
    /// The control thread is about to be busy for as long as disks and others take (`patient`), or is back: meanwhile
    /// the watchdog waits for an hour.
    void be_patient(bool patient);
    /// No more input is taken; how long the end may take is TimeoutStopSec's business and no longer the watchdog's.
    void stopping(const std::string& why);

private:
    [[nodiscard]] std::string look_at_lcores(double seconds, const Lcores& lcores);
    static void tell(const std::string& lines);

    bool listens_ = false;
    double watchdog_s_ = 0;  ///< 0: there is none
    bool ready_ = false;
    bool stopping_ = false;
    bool said_stuck_ = false;
    double looked_s_ = 0;
    double fed_s_ = 0;
    double told_s_ = 0;
    LcoreProgress progress_;
};

}  // namespace weir::run
