// What programs and people see of a run: one JSON document, made by the control thread a few times a second and read by
// any thread. docs/reference/WATCH_API.md says what is in it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

namespace weir::observe {

class PublishedDocument {
public:
    struct Shown {
        std::uint64_t generation = 0;  ///< grows by one with each document
        nlohmann::json document;
    };

    /// The newest; an empty object of generation 0 before the first. Any thread; never waits for the control thread's
    /// work.
    [[nodiscard]] std::shared_ptr<const Shown> latest() const;
    /// Returns once there is one newer than `generation`, or nothing has come for `patience`.
    [[nodiscard]] std::shared_ptr<const Shown> wait_for_newer(std::uint64_t generation,
                                                              std::chrono::milliseconds patience) const;
    /// Adds what is not the publisher's own. While it does, nothing else is published: what it looks at cannot be
    /// older than in the document before.
    using Add = std::function<void(nlohmann::json& document)>;
    /// Control thread.
    void publish(nlohmann::json document, const Add& add = {});
    /// The newest once more, with what `add` has changed in it. Any thread.
    void amend(const Add& add);

private:
    void replace(nlohmann::json document);

    std::mutex publishing_;
    mutable std::mutex mutex_;
    mutable std::condition_variable published_;
    std::shared_ptr<const Shown> latest_ = std::make_shared<const Shown>(Shown{0, nlohmann::json::object()});
};

}  // namespace weir::observe
