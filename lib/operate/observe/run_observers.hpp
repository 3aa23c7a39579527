// All who watch one run, as one of them.
#pragma once

#include <vector>

#include "observe/run_observer.hpp"

namespace weir::observe {

/// Tells each, in the order in which they were added.
class RunObservers final : public RunObserver {
public:
    /// `observer` outlives the last call; null: there is none to add.
    void add(RunObserver* observer);

    /// The picture of the last one that has one.
    [[nodiscard]] store::LatestEvent* watch_events(const nlohmann::json& start) override;
    void starting(const RunMoment& moment) override;
    void begin(const RunFacts& facts, const RunMoment& moment) override;
    void look(const RunMoment& moment) override;
    void check(const RunMoment& moment) override;
    /// Takes that of the first one that has one; the others keep theirs for the next call.
    [[nodiscard]] std::string_view take_record_request() noexcept override;
    void ended(const RunMoment& moment) override;
    void counted(const RunMoment& moment, const Ledger& ledger, const Verdict& verdict) override;
    void closed(const RunMoment& moment, const Ledger& ledger, const Verdict& verdict,
                const std::vector<pipeline::Finding>& findings) override;
    void begin_managing(const RunFacts& facts) override;
    void look_at_cluster(double seconds) override;
    void finish_managing(double seconds) override;

private:
    std::vector<RunObserver*> observers_;
};

}  // namespace weir::observe
