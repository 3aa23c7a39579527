#include "fabric/part_cutter.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace weir::fabric {

PartCutter::PartCutter(Config config, PartMemory& memory, PartOutlet& outlet)
    : config_(std::move(config)), grid_(config_.block), memory_(memory), outlet_(outlet) {}

PartCutter::~PartCutter() {
    for (const auto& [block, open] : open_) memory_.give_back(open.piece);
}

void PartCutter::append(std::span<const std::byte> blocks, core::TimeNs now) {
    appended_ns_ = now;
    while (!blocks.empty()) {
        const store::BlockHeader header = blocks_.next(blocks, store::format_version_newest);
        const std::span<const std::byte> body = blocks.subspan(sizeof header, header.stored_bytes);
        if (header.type == store::BlockType::event) begin_event(header, body.data());
        if (current_ != nullptr && header.type == store::BlockType::source) add_sources(body);
        if (current_ != nullptr && header.type == store::BlockType::payload) add_payload(header, body);
        if (blocks_.take(header, body.data(), 0, 0)) end_event();
        blocks = blocks.subspan(sizeof header + store::padded(header.stored_bytes));
    }
    look(now, false, wanted_before_);
}

/// Room for so many bytes more in the part of the event in hand.
std::byte* PartCutter::extend(std::uint64_t bytes) {
    Open& open = *current_;
    if (open.used + bytes > open.piece.capacity) {
        const PartMemory::Piece larger = memory_.take(std::max(open.used + bytes, 2 * open.piece.capacity));
        if (open.used > 0) {
            std::memcpy(larger.data, open.piece.data, open.used);
            memory_.give_back(open.piece);
        }
        open_bytes_ += larger.capacity - open.piece.capacity;
        open.piece = larger;
    }
    std::byte* const place = open.piece.data + open.used;
    open.used += bytes;
    return place;
}

PartEvent& PartCutter::event() noexcept {
    return *reinterpret_cast<PartEvent*>(current_->piece.data + event_at_);
}

void PartCutter::begin_event(const store::BlockHeader& header, const std::byte* body) {
    current_ = nullptr;
    const bool is_late = header.event < next_ || header.event >= cluster::BlockGrid::last;
    if (header.epoch > 0) ++stats_.restarted;
    if (header.epoch == 0 && is_late) ++stats_.stragglers;
    if (header.epoch > 0 || is_late) return;
    const std::uint64_t block = grid_.index_of(header.event);
    store::EventBody told;
    std::memcpy(&told, body, sizeof told);
    witness_.saw(block);
    current_ = &open_[block];
    if (current_->used == 0) {
        std::construct_at(reinterpret_cast<PartHead*>(extend(sizeof(PartHead))));
        current_->since_ns = appended_ns_;
    }
    current_->rest = std::max(current_->rest, header.event + 1);
    event_at_ = current_->used;
    auto* const head = std::construct_at(reinterpret_cast<PartEvent*>(extend(sizeof(PartEvent))));
    head->number = header.event;
    head->payload_bytes = told.payload_bytes;
    head->cause = told.cause;
    current_->payload_bytes += told.payload_bytes;
    current_->newest_ns = std::max(current_->newest_ns, told.first_ns);
    current_->leave_ns = core::never;
    newest_ns_ = std::max(newest_ns_, told.first_ns);
}

/// As they are, but for their ids. Of sources of which nothing came nothing is sent.
void PartCutter::add_sources(std::span<const std::byte> body) {
    while (body.size() >= sizeof(store::SourceBody)) {
        store::SourceBody source;
        std::memcpy(&source, body.data(), sizeof source);
        const std::uint64_t missing_bytes = std::uint64_t{source.missing_count} * sizeof(store::MissingRange);
        const std::uint64_t bytes = sizeof source + store::padded(missing_bytes);
        if (bytes > body.size() || source.source >= config_.sources.size())
            throw core::RunError("internal error: a source record that is none came to the cluster");
        if (source.state < store::SourceState::absent) {
            std::byte* const place = extend(bytes);
            std::memcpy(place, body.data(), bytes);
            source.source = config_.sources[source.source];
            std::memcpy(place, &source, sizeof source);
            ++event().sources;
        }
        body = body.subspan(bytes);
    }
}

void PartCutter::add_payload(const store::BlockHeader& header, std::span<const std::byte> body) {
    if (header.encoding != store::Encoding::raw)
        throw core::RunError("internal error: payload that is packed came to the cluster");
    std::memcpy(extend(body.size()), body.data(), body.size());
}

void PartCutter::end_event() {
    if (current_ == nullptr) return;
    Open& open = *current_;
    const std::uint64_t pad = store::padded(open.used) - open.used;
    std::memset(extend(pad), 0, pad);
    event().bytes = open.used - event_at_;
    if (event().sources > 1) witness_.believe(grid_.index_of(event().number));
    ++open.events;
    current_ = nullptr;
}

/// Of a block of which a part has left already: where that ended.
cluster::Block PartCutter::begin_of(const Parts::value_type& part) const noexcept {
    return std::max(grid_.begin_of(part.second.rest - 1), next_);
}

cluster::Block PartCutter::end_of(const Parts::value_type& part) const noexcept {
    return grid_.end_of(part.second.rest - 1);
}

/// Whether none of its events can still be on its way.
bool PartCutter::has_passed(Parts::value_type& part, core::TimeNs now) const {
    Open& open = part.second;
    if (open.events == end_of(part) - begin_of(part)) return true;
    if (newest_ns_ - open.newest_ns < config_.wait_ns) return false;
    if (open.leave_ns == core::never) open.leave_ns = now + config_.linger_ns;
    return now >= open.leave_ns;
}

/// Whether what is there of it need not wait for the rest, and nothing in between can still be on its way.
bool PartCutter::has_waited(const Parts::value_type& part, core::TimeNs now, bool is_idle) const {
    const Open& open = part.second;
    if (now - open.since_ns < config_.hold_ns) return false;
    const bool is_dense = open.events == open.rest - begin_of(part);
    return is_dense || (is_idle && now - appended_ns_ >= config_.idle_ns);
}

/// The first part is wanted, and has been for so long that what the other nodes had would have come here as well.
bool PartCutter::is_missed(core::TimeNs now) {
    if (begin_of(*open_.begin()) >= wanted_before_) {
        wanted_ns_ = 0;
        return false;
    }
    if (wanted_ns_ == 0) wanted_ns_ = now;
    return now - std::max(wanted_ns_, appended_ns_) >= config_.idle_ns;
}

void PartCutter::look(core::TimeNs now, bool is_idle, cluster::Block wanted_before) {
    wanted_before_ = wanted_before;
    const bool may_be_missed = is_idle && config_.idle_ns != core::never;
    while (may_send_first()) {
        auto& first = *open_.begin();
        if (has_passed(first, now))
            send_first(end_of(first));
        else if (may_be_missed && is_missed(now))
            send_first(std::min(end_of(first), std::max(end_of_piece(first), wanted_before)));
        else if (config_.hold_ns != core::never && has_waited(first, now, is_idle))
            send_first(end_of_piece(first));
        else
            return;
    }
}

/// Where it has to leave before all of its block is there.
cluster::Block PartCutter::end_of_piece(const Parts::value_type& part) const noexcept {
    return config_.hold_ns != core::never ? part.second.rest : end_of(part);
}

bool PartCutter::send_oldest() {
    const bool may = may_send_first();
    if (may) send_first(end_of_piece(*open_.begin()));
    return may;
}

bool PartCutter::may_send_first() const {
    return !open_.empty() && witness_.believes(open_.begin()->first) &&
           !(is_in_event() && current_ == &open_.begin()->second);
}

void PartCutter::finish() {
    if (is_in_event()) throw core::RunError("internal error: the cluster was given half an event");
    while (!open_.empty()) send_first(end_of(*open_.begin()));
}

/// As all that there is of numbers before `end`.
void PartCutter::send_first(cluster::Block end) {
    const auto first = open_.begin();
    const cluster::Block block = begin_of(*first);
    const Open open = first->second;
    open_.erase(first);
    open_bytes_ -= open.piece.capacity;
    next_ = end;
    auto& head = *reinterpret_cast<PartHead*>(open.piece.data);
    head.events = open.events;
    head.block = block;
    head.end = end;
    head.bytes = open.used;
    stats_.events += open.events;
    stats_.payload_bytes += open.payload_bytes;
    ++stats_.parts;
    outlet_.offer(open.rest, open.piece.data);
}

}  // namespace weir::fabric
