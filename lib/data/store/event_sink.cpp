#include "store/event_sink.hpp"

#include <nlohmann/json.hpp>

namespace weir::store {

nlohmann::json EventSink::how() const {
    return nlohmann::json::object();
}

}  // namespace weir::store
