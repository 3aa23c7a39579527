#include "reduce/mfp/multi_event.hpp"

#include <algorithm>
#include <cstring>

namespace weir::reduce {

namespace {

constexpr std::uint64_t block_head_bytes = 16;
constexpr std::uint64_t sources_head_bytes = 16;
constexpr std::uint64_t events_head_bytes = 32;
constexpr std::uint64_t sources_align = 4;
constexpr std::uint64_t events_align = 8;

template <class T>
void put(std::span<std::byte>& out, T value) noexcept {
    std::memcpy(out.data(), &value, sizeof value);
    out = out.subspan(sizeof value);
}

bool put_filling(std::span<std::byte>& out, std::uint64_t bytes) noexcept {
    if (out.size() < bytes) return false;
    std::fill_n(out.begin(), bytes, std::byte{0});
    out = out.subspan(bytes);
    return true;
}

/// Entries of a table from `index` on, as many as fit, and after the last one zeros. True when the table is whole.
template <class T, class Entry>
bool put_table(std::span<std::byte>& out, std::uint64_t& index, std::uint64_t count, std::uint64_t align,
               Entry entry) noexcept {
    for (; index < count; ++index) {
        if (out.size() < sizeof(T)) return false;
        put(out, static_cast<T>(entry(index)));
    }
    return put_filling(out, aligned(count * sizeof(T), align) - count * sizeof(T));
}

/// The same where the table is there already.
bool copy_table(std::span<std::byte>& out, std::uint64_t& index, std::span<const std::byte> table,
                std::uint64_t align) noexcept {
    const std::size_t bytes = std::min<std::size_t>(table.size() - index, out.size());
    std::memcpy(out.data(), table.data() + index, bytes);
    out = out.subspan(bytes);
    index += bytes;
    return index == table.size() && put_filling(out, aligned(table.size(), align) - table.size());
}

std::uint64_t block_bytes(const MfpBlock& block) noexcept {
    return block_head_bytes + aligned(block.fragments(), sources_align) +
           aligned(std::uint64_t{2} * block.fragments(), sources_align) + block.bytes();
}

}  // namespace

MepWriter::MepWriter(const Config& config) : config_(config), refs_(config.refs_max) {
    sources_.reserve(config.sources.size());
    for (std::uint32_t i = 0; i < config.sources.size(); ++i) sources_.emplace_back(config, i, refs_);
    listed_.reserve(sources_.size());
}

/// A packet whose head is damaged by a gap counts as not there; one that contradicts itself or the others ends it all.
MfpProblem MepWriter::read_blocks(std::span<const assemble::Message* const> messages) noexcept {
    bool any = false;
    refs_.clear();
    for (Source* source : listed_) {
        const assemble::Message* message = messages[source->number];
        source->block.make_missing(0, 0);
        if (message == nullptr) continue;
        source->refs.assign(*message);
        const MfpProblem problem =
            message->complete
                ? source->block.read_whole(config_.layout, source->refs, message->total)
                : source->block.read(config_.layout, source->refs, message->total_known ? message->total : 0);
        source->reader = RefReader(source->refs);
        if (problem == MfpProblem::head_missing) continue;
        if (problem != MfpProblem::none) return problem;
        if (any && (source->block.first_event() != first_event_ || source->block.fragments() != fragments_))
            return MfpProblem::mismatch;
        any = true;
        first_event_ = source->block.first_event();
        fragments_ = source->block.fragments();
    }
    return any ? MfpProblem::none : MfpProblem::head_missing;
}

MepWriter::Result MepWriter::begin(std::span<const assemble::Message* const> messages,
                                   std::span<const std::uint32_t> listed) noexcept {
    Result result;
    listed_.clear();
    for (const std::uint32_t source : listed) listed_.push_back(&sources_[source]);
    part_ = Part::end;
    result.problem = read_blocks(messages);
    if (result.problem != MfpProblem::none) return result;
    for (Source* source : listed_) {
        if (source->block.fragments() == 0) source->block.make_missing(first_event_, fragments_);
        result.missing += source->block.missing();
    }
    result.events = fragments_;
    result.bytes = total_bytes();
    source_ = 0;
    next(Part::head);
    return result;
}

std::uint64_t MepWriter::head_bytes() const noexcept {
    const std::uint64_t names = listed_.size() * 2;
    if (config_.order == MepOrder::sources)
        return sources_head_bytes + 2 * aligned(names, sources_align) + listed_.size() * 4;
    const std::uint64_t entries = listed_.size() * fragments_;
    return events_head_bytes + 2 * aligned(names, events_align) + std::uint64_t{8} * fragments_ +
           aligned(entries, events_align) + aligned(2 * entries, events_align);
}

std::uint64_t MepWriter::total_bytes() const noexcept {
    std::uint64_t bytes = head_bytes();
    for (const Source* source : listed_)
        bytes += config_.order == MepOrder::sources ? block_bytes(source->block) : source->block.bytes();
    return bytes;
}

/// The tables of what the sources are called: ids, then versions.
bool MepWriter::step_names(std::span<std::byte>& out, std::uint64_t align) noexcept {
    const bool ids = part_ == Part::ids;
    const auto name = [&](std::uint64_t i) {
        const MepSource& source = config_.sources[listed_[i]->number];
        return ids ? source.id : source.version;
    };
    if (!put_table<std::uint16_t>(out, index_, listed_.size(), align, name)) return false;
    next(ids ? Part::versions : Part::offsets);
    return true;
}

/// Some of a fragment. What read_blocks found to be there is there; zeros are for the day on which it is not.
std::size_t MepWriter::copy_part(Source& source, std::uint32_t offset, std::uint64_t bytes,
                                 std::span<std::byte>& out) noexcept {
    const std::span<std::byte> target = out.first(std::min<std::uint64_t>(bytes, out.size()));
    if (!source.reader.copy(offset, target)) std::ranges::fill(target, std::byte{0});
    out = out.subspan(target.size());
    return target.size();
}

/// Fragments that follow each other in the message are copied in one go.
bool MepWriter::step_source_data(std::span<std::byte>& out) noexcept {
    Source& source = *listed_[source_];
    const MfpBlock& block = source.block;
    while (index_ < fragments_ && !out.empty()) {
        const auto first = static_cast<std::uint32_t>(index_);
        if (block.size(first) == done_) {
            ++index_;
            done_ = 0;
            continue;
        }
        std::uint64_t run = block.size(first) - done_;
        const std::uint32_t from = block.offset(first) + static_cast<std::uint32_t>(done_);
        for (std::uint32_t i = first + 1; i < fragments_ && block.offset(i) == from + run && run < out.size(); ++i)
            run += block.size(i);
        std::uint64_t copied = copy_part(source, from, run, out) + done_;
        while (index_ < fragments_ && copied >= block.size(static_cast<std::uint32_t>(index_)) && copied > 0)
            copied -= block.size(static_cast<std::uint32_t>(index_++));
        done_ = copied;
    }
    return index_ == fragments_;
}

bool MepWriter::step_sources(std::span<std::byte>& out) noexcept {
    const auto count = static_cast<std::uint64_t>(listed_.size());
    const auto block = [this]() -> const MfpBlock& { return listed_[source_]->block; };
    switch (part_) {
        case Part::head:
            if (out.size() < sources_head_bytes) return false;
            put(out, static_cast<std::uint16_t>(count));
            put(out, static_cast<std::uint16_t>(fragments_));
            put(out, std::uint32_t{0});
            put(out, total_bytes() - head_bytes());
            next(Part::ids);
            return true;
        case Part::ids:
        case Part::versions:
            return step_names(out, sources_align);
        case Part::offsets:
            for (; index_ < count; ++index_) {
                if (out.size() < 4) return false;
                put(out, static_cast<std::uint32_t>(done_));
                done_ += block_bytes(listed_[index_]->block);
            }
            next(count > 0 ? Part::block_head : Part::end);
            return true;
        case Part::block_head:
            if (out.size() < block_head_bytes) return false;
            put(out, first_event_);
            put(out, static_cast<std::uint16_t>(fragments_));
            put(out, std::uint16_t{0});
            put(out, static_cast<std::uint32_t>(block().bytes()));
            next(Part::types);
            return true;
        case Part::types:
            if (!copy_table(out, index_, std::as_bytes(block().types()), sources_align)) return false;
            next(Part::sizes);
            return true;
        case Part::sizes:
            if (!copy_table(out, index_, std::as_bytes(block().sizes()), sources_align)) return false;
            next(Part::data);
            return true;
        case Part::data:
            if (!step_source_data(out)) return false;
            next(++source_ < listed_.size() ? Part::block_head : Part::end);
            return true;
        case Part::end:
            break;
    }
    return false;
}

bool MepWriter::step_event_data(std::span<std::byte>& out) noexcept {
    const std::uint64_t count = listed_.size();
    for (; index_ < count * fragments_; ++index_, done_ = 0) {
        Source& source = *listed_[index_ % count];
        const auto event = static_cast<std::uint32_t>(index_ / count);
        const std::uint64_t size = source.block.size(event);
        done_ += copy_part(source, source.block.offset(event) + static_cast<std::uint32_t>(done_), size - done_, out);
        if (done_ < size) return false;
    }
    return true;
}

bool MepWriter::step_events(std::span<std::byte>& out) noexcept {
    const auto count = static_cast<std::uint64_t>(listed_.size());
    const auto block = [&](std::uint64_t i) -> const MfpBlock& { return listed_[i % count]->block; };
    switch (part_) {
        case Part::head:
            if (out.size() < events_head_bytes) return false;
            put(out, mep_events_magic);
            put(out, std::uint16_t{1});
            put(out, static_cast<std::uint16_t>(count));
            put(out, fragments_);
            put(out, std::uint32_t{0});
            put(out, first_event_);
            put(out, total_bytes() - head_bytes());
            next(Part::ids);
            return true;
        case Part::ids:
        case Part::versions:
            return step_names(out, events_align);
        case Part::offsets:
            for (; index_ < fragments_; ++index_) {
                if (out.size() < 8) return false;
                put(out, done_);
                for (const Source* source : listed_) done_ += source->block.size(static_cast<std::uint32_t>(index_));
            }
            next(Part::types);
            return true;
        case Part::types:
            if (!put_table<std::uint8_t>(out, index_, count * fragments_, events_align, [&](std::uint64_t i) {
                    return block(i).type(static_cast<std::uint32_t>(i / count));
                }))
                return false;
            next(Part::sizes);
            return true;
        case Part::sizes:
            if (!put_table<std::uint16_t>(out, index_, count * fragments_, events_align, [&](std::uint64_t i) {
                    return block(i).size(static_cast<std::uint32_t>(i / count));
                }))
                return false;
            next(Part::data);
            return true;
        case Part::data:
            if (!step_event_data(out)) return false;
            next(Part::end);
            return true;
        case Part::block_head:
        case Part::end:
            break;
    }
    return false;
}

std::size_t MepWriter::fill(std::span<std::byte> out) noexcept {
    const std::size_t room = out.size();
    while (part_ != Part::end && (config_.order == MepOrder::sources ? step_sources(out) : step_events(out))) {
    }
    return room - out.size();
}

}  // namespace weir::reduce
