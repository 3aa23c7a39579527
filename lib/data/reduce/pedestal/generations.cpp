#include "reduce/pedestal/generations.hpp"

namespace weir::reduce {

Generations::Generations(std::size_t pixels, std::uint32_t readers) : readers_(readers) {
    for (Copy& copy : copies_) {
        copy.mean.resize(pixels);
        copy.rms.resize(pixels);
    }
}

Generations::Choice Generations::choose(IntervalPlace needed) const noexcept {
    Choice best{none, interval_none, false};
    Choice oldest{0, being_written, true};
    for (std::uint32_t i = 0; i < copies; ++i) {
        const IntervalPlace made_of = copies_[i].made_of.load(std::memory_order_acquire);
        if (made_of == being_written) continue;
        if (made_of <= needed && (best.copy == none || made_of > best.made_of)) best = {i, made_of, false};
        if (made_of < oldest.made_of) oldest = {i, made_of, true};
    }
    return best.copy != none ? best : oldest;
}

Generations::View Generations::view(const Choice& choice) const noexcept {
    const Copy& copy = copies_[choice.copy];
    return {copy.mean.data(), copy.rms.data(), copy.generation.load(std::memory_order_relaxed), choice.late};
}

Generations::View Generations::acquire(std::uint32_t reader, IntervalPlace needed) noexcept {
    std::atomic<std::uint32_t>& hold = readers_[reader].copy;
    for (;;) {
        const Choice choice = choose(needed);
        // Either the writer sees that it is held, or this sees that it is being written: both are in one order.
        hold.store(choice.copy, std::memory_order_seq_cst);
        if (copies_[choice.copy].made_of.load(std::memory_order_seq_cst) == choice.made_of) return view(choice);
    }
}

void Generations::release(std::uint32_t reader) noexcept {
    readers_[reader].copy.store(none, std::memory_order_release);
}

void Generations::begin() noexcept {
    writing_ = 0;
    IntervalPlace oldest = being_written;
    for (std::uint32_t i = 0; i < copies; ++i) {
        const IntervalPlace made_of = copies_[i].made_of.load(std::memory_order_relaxed);
        if (made_of == being_written) {
            writing_ = i;
            return;
        }
        if (made_of < oldest) {
            oldest = made_of;
            writing_ = i;
        }
    }
    copies_[writing_].made_of.store(being_written, std::memory_order_seq_cst);
}

bool Generations::in_use() const noexcept {
    for (const Reader& reader : readers_)
        if (reader.copy.load(std::memory_order_seq_cst) == writing_) return true;
    return false;
}

Generations::Planes Generations::planes() noexcept {
    return {copies_[writing_].mean, copies_[writing_].rms};
}

void Generations::publish(std::uint32_t generation, IntervalPlace made_of) noexcept {
    copies_[writing_].generation.store(generation, std::memory_order_relaxed);
    copies_[writing_].made_of.store(made_of, std::memory_order_release);
}

void Generations::rebase() noexcept {
    const Choice newest = choose(being_written - 1);
    for (std::uint32_t i = 0; i < copies; ++i)
        if (i != newest.copy) copies_[i].made_of.store(being_written, std::memory_order_seq_cst);
    copies_[newest.copy].made_of.store(interval_none, std::memory_order_seq_cst);
}

Generations::View Generations::find(IntervalPlace needed) const noexcept {
    return view(choose(needed));
}

}  // namespace weir::reduce
