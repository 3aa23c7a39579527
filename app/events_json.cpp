#include "events_json.hpp"

#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "run_text.hpp"

namespace weir::app {

EventsJson::EventsJson(const store::RunReader& run, const Options& options)
    : options_(options), order_(run, true, [this](const std::string& text, bool) {
          std::cout << (first_ ? "" : ",") << "\n  " << text;
          first_ = false;
      }) {
    if (options.digest) digest_.emplace();
    std::cout << "\"events\": [";
}

store::ScanHooks EventsJson::hooks(std::function<void(const store::EventInfo&)> also) {
    store::ScanHooks hooks;
    hooks.begin = [this](const store::EventInfo& event) {
        if (digest_) digest_->reset();
        packets_.begin(event);
    };
    hooks.payload = [this](std::span<const std::byte> bytes) {
        if (digest_) digest_->update(bytes);
        packets_.payload(bytes);
    };
    hooks.end = [this, also = std::move(also)](const store::EventInfo& event) {
        if (also) also(event);
        put(event);
    };
    return hooks;
}

void EventsJson::put(const store::EventInfo& event) {
    const std::optional<MultiEventSummary> packet = packets_.end(event);
    if (options_.incomplete && event.complete) return order_.put(event, {});
    nlohmann::json object = event_json(event);
    if (packet) object["multi_event"] = multi_event_json(*packet);
    if (digest_) object["sha256"] = digest_->hex();
    order_.put(event, dump(object));
}

void EventsJson::finish(store::Verification& result) {
    order_.finish();
    packets_.add_problems(result);
    std::cout << "]";
}

}  // namespace weir::app
