#include "observe/board.hpp"

#include <utility>

namespace weir::observe {

std::shared_ptr<const Board::Shown> Board::latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
}

std::shared_ptr<const Board::Shown> Board::wait_for_newer(std::uint64_t generation,
                                                          std::chrono::milliseconds patience) const {
    std::unique_lock lock(mutex_);
    published_.wait_for(lock, patience, [&] { return latest_->generation > generation; });
    return latest_;
}

void Board::publish(nlohmann::json document) {
    std::shared_ptr<const Shown> old;  // its memory goes after the lock
    {
        const std::lock_guard lock(mutex_);
        old = std::exchange(latest_,
                            std::make_shared<const Shown>(Shown{latest_->generation + 1, std::move(document)}));
    }
    published_.notify_all();
}

}  // namespace weir::observe
