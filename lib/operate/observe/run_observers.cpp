#include "observe/run_observers.hpp"

namespace weir::observe {

void RunObservers::add(RunObserver* observer) {
    if (observer != nullptr) observers_.push_back(observer);
}

store::LatestEvent* RunObservers::watch_events(const nlohmann::json& start) {
    store::LatestEvent* latest = nullptr;
    for (RunObserver* observer : observers_)
        if (store::LatestEvent* const its = observer->watch_events(start); its != nullptr) latest = its;
    return latest;
}

void RunObservers::starting(const RunMoment& moment) {
    for (RunObserver* observer : observers_) observer->starting(moment);
}

void RunObservers::begin(const RunFacts& facts, const RunMoment& moment) {
    for (RunObserver* observer : observers_) observer->begin(facts, moment);
}

void RunObservers::look(const RunMoment& moment) {
    for (RunObserver* observer : observers_) observer->look(moment);
}

void RunObservers::check(const RunMoment& moment) {
    for (RunObserver* observer : observers_) observer->check(moment);
}

std::string_view RunObservers::take_record_request() noexcept {
    for (RunObserver* observer : observers_)
        if (const std::string_view by = observer->take_record_request(); !by.empty()) return by;
    return {};
}

void RunObservers::ended(const RunMoment& moment) {
    for (RunObserver* observer : observers_) observer->ended(moment);
}

void RunObservers::counted(const RunMoment& moment, const Ledger& ledger, const Verdict& verdict) {
    for (RunObserver* observer : observers_) observer->counted(moment, ledger, verdict);
}

void RunObservers::closed(const RunMoment& moment, const Ledger& ledger, const Verdict& verdict,
                          const std::vector<pipeline::Finding>& findings) {
    for (RunObserver* observer : observers_) observer->closed(moment, ledger, verdict, findings);
}

void RunObservers::begin_managing(const RunFacts& facts) {
    for (RunObserver* observer : observers_) observer->begin_managing(facts);
}

void RunObservers::look_at_cluster(double seconds) {
    for (RunObserver* observer : observers_) observer->look_at_cluster(seconds);
}

void RunObservers::finish_managing(double seconds) {
    for (RunObserver* observer : observers_) observer->finish_managing(seconds);
}

}  // namespace weir::observe
