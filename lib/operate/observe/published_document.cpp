#include "observe/published_document.hpp"

#include <utility>

namespace weir::observe {

std::shared_ptr<const PublishedDocument::Shown> PublishedDocument::latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
}

std::shared_ptr<const PublishedDocument::Shown> PublishedDocument::wait_for_newer(
    std::uint64_t generation, std::chrono::milliseconds patience) const {
    std::unique_lock lock(mutex_);
    published_.wait_for(lock, patience, [&] { return latest_->generation > generation; });
    return latest_;
}

void PublishedDocument::publish(nlohmann::json document, const Add& add) {
    const std::lock_guard one(publishing_);
    if (add) add(document);
    replace(std::move(document));
}

void PublishedDocument::amend(const Add& add) {
    const std::lock_guard one(publishing_);
    nlohmann::json document = latest()->document;
    add(document);
    replace(std::move(document));
}

void PublishedDocument::replace(nlohmann::json document) {
    std::shared_ptr<const Shown> old;  // its memory goes after the lock
    {
        const std::lock_guard lock(mutex_);
        const std::uint64_t generation = latest_->generation + 1;
        document["generation"] = generation;
        old = std::exchange(latest_, std::make_shared<const Shown>(Shown{generation, std::move(document)}));
    }
    published_.notify_all();
}

}  // namespace weir::observe
