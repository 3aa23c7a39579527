#include "reduce/mfp/mep_view.hpp"

#include <algorithm>
#include <cstring>

#include "reduce/mfp/layout.hpp"

namespace weir::reduce {

namespace {

/// Takes values off the front of bytes, as long as there are any.
class Taker {
public:
    Taker(std::span<const std::byte> bytes, std::size_t align) : bytes_(bytes), align_(align) {}

    template <class T>
    T number() {
        T value{};
        const std::span<const std::byte> taken = take(sizeof value);
        if (!taken.empty()) std::memcpy(&value, taken.data(), sizeof value);
        return value;
    }
    /// A table of `count` numbers, with what fills it up.
    template <class T>
    std::vector<T> table(std::size_t count) {
        const std::span<const std::byte> taken = take(aligned(count * sizeof(T), align_));
        std::vector<T> values(failed_ ? 0 : count);
        if (!values.empty()) std::memcpy(values.data(), taken.data(), count * sizeof(T));
        return values;
    }
    std::span<const std::byte> take(std::size_t bytes) {
        if (failed_ || bytes > bytes_.size()) {
            failed_ = true;
            return {};
        }
        const std::span<const std::byte> taken = bytes_.first(bytes);
        bytes_ = bytes_.subspan(bytes);
        return taken;
    }
    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] std::span<const std::byte> rest() const { return bytes_; }

private:
    std::span<const std::byte> bytes_;
    std::size_t align_;
    bool failed_ = false;
};

std::vector<MepSource> sources_of(const std::vector<std::uint16_t>& ids, const std::vector<std::uint16_t>& versions) {
    std::vector<MepSource> sources;
    for (std::size_t i = 0; i < ids.size(); ++i) sources.push_back({ids[i], versions[i]});
    return sources;
}

}  // namespace

std::optional<MepView> MepView::parse(std::span<const std::byte> bytes, std::string& problem) {
    MepView view;
    // In the other order these bytes are the numbers of sources and events: 17751 and 21590 of them are not believed.
    const auto magic = Taker(bytes, 1).number<std::uint32_t>();
    const bool good =
        magic == mep_events_magic ? view.parse_events(bytes, problem) : view.parse_sources(bytes, problem);
    if (!good) return {};
    return view;
}

bool MepView::parse_sources(std::span<const std::byte> bytes, std::string& problem) {
    order_ = MepOrder::sources;
    Taker head(bytes, 4);
    const auto count = head.number<std::uint16_t>();
    events_ = head.number<std::uint16_t>();
    head.number<std::uint32_t>();
    const auto size = head.number<std::uint64_t>();
    const auto ids = head.table<std::uint16_t>(count);
    const auto versions = head.table<std::uint16_t>(count);
    const auto offsets = head.table<std::uint32_t>(count);
    if (head.failed() || head.rest().size() != size) {
        problem = "the packet's length is not what its header says";
        return false;
    }
    sources_ = sources_of(ids, versions);
    std::size_t end = 0;  // of the block before: one that is named often would take memory as often
    for (std::size_t source = 0; source < count; ++source) {
        if (offsets[source] < end || offsets[source] > size) {
            problem = "a block lies in another, or after the end of the packet";
            return false;
        }
        Taker block(head.rest().subspan(offsets[source]), 4);
        const auto first = block.number<std::uint64_t>();
        const auto fragments = block.number<std::uint16_t>();
        block.number<std::uint16_t>();
        const auto block_bytes = block.number<std::uint32_t>();
        if (source == 0) first_event_ = first;
        if (block.failed() || fragments != events_ || first != first_event_) {
            problem = "its blocks are not of the same events";
            return false;
        }
        const auto types = block.table<std::uint8_t>(fragments);
        const auto sizes = block.table<std::uint16_t>(fragments);
        std::uint64_t sum = 0;
        for (const std::uint16_t fragment : sizes) {
            sum += fragment;
            data_.push_back(block.take(fragment));
        }
        if (block.failed() || sum != block_bytes) {
            problem = "a block's sizes do not add up";
            return false;
        }
        types_.insert(types_.end(), types.begin(), types.end());
        end = head.rest().size() - block.rest().size();
    }
    return true;
}

bool MepView::parse_events(std::span<const std::byte> bytes, std::string& problem) {
    order_ = MepOrder::events;
    Taker head(bytes, 8);
    head.number<std::uint32_t>();
    const auto version = head.number<std::uint16_t>();
    const auto count = head.number<std::uint16_t>();
    events_ = head.number<std::uint32_t>();
    head.number<std::uint32_t>();
    first_event_ = head.number<std::uint64_t>();
    const auto data_bytes = head.number<std::uint64_t>();
    if (head.failed() || version != 1 || events_ > bytes.size() / 8) {  // before memory is taken for them
        problem = "not a packet of version 1";
        return false;
    }
    const auto ids = head.table<std::uint16_t>(count);
    const auto versions = head.table<std::uint16_t>(count);
    const auto offsets = head.table<std::uint64_t>(events_);
    const std::size_t entries = std::size_t{events_} * count;
    const auto types = head.table<std::uint8_t>(entries);
    const auto sizes = head.table<std::uint16_t>(entries);
    if (head.failed() || head.rest().size() != data_bytes) {
        problem = "the packet's length is not what its header says";
        return false;
    }
    sources_ = sources_of(ids, versions);
    types_.resize(entries);
    data_.resize(entries);
    Taker data(head.rest(), 1);
    for (std::size_t event = 0; event < events_; ++event) {
        if (offsets[event] != data_bytes - data.rest().size()) {
            problem = "its offsets and sizes do not agree";
            return false;
        }
        for (std::size_t source = 0; source < count; ++source) {
            const std::size_t from = event * count + source;
            types_[source * events_ + event] = types[from];
            data_[source * events_ + event] = data.take(sizes[from]);
        }
        if (data.failed()) break;
    }
    if (data.failed() || !data.rest().empty()) {
        problem = "its sizes do not add up";
        return false;
    }
    return true;
}

MepFragment MepView::fragment(std::uint32_t event, std::size_t source) const {
    const std::size_t at = source * events_ + event;
    return {sources_[source], types_[at], data_[at]};
}

}  // namespace weir::reduce
