// Events as a worker lcore formats them, and the parts that a readout node makes of them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cluster/outlet.hpp"
#include "fabric/part_cutter.hpp"
#include "store/block_writer.hpp"

namespace weir::fabric::made {

struct SourceData {
    std::uint32_t source = 0;
    std::vector<std::byte> payload;  ///< what came of it, without gaps
    std::uint32_t declared = 0;      ///< 0: not known
    std::vector<assemble::ByteRange> missing{};
    std::uint32_t packets = 1;
};

inline std::vector<std::byte> counting_bytes(std::size_t count, std::uint8_t first) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(first + i);
    return bytes;
}

inline SourceData whole(std::uint32_t source, std::size_t bytes, std::uint8_t first = 1) {
    return {source, counting_bytes(bytes, first), static_cast<std::uint32_t>(bytes)};
}

/// Formats events one after the other into one buffer of 1 MiB.
class EventMaker {
public:
    EventMaker() : memory_(static_cast<std::byte*>(std::aligned_alloc(64, size)), &std::free) {
        writer_.reset({memory_.get(), size});
    }
    EventMaker& add(std::uint64_t number, const std::vector<SourceData>& sources, core::TimeNs first_ns = 1000,
                    store::Cause cause = store::Cause::complete, std::uint32_t epoch = 0) {
        store::EventRecord record;
        record.id = number;
        record.epoch = epoch;
        record.sources = static_cast<std::uint32_t>(sources.size());
        record.complete = cause == store::Cause::complete;
        record.cause = cause;
        record.first_ns = first_ns;
        record.last_ns = first_ns + 1;
        for (const SourceData& source : sources) {
            record.payload_bytes += source.payload.size();
            record.packets += source.packets;
        }
        static_cast<void>(writer_.put_event(record));
        for (const SourceData& source : sources) put_source(source, first_ns);
        put_payload(sources);
        return *this;
    }
    [[nodiscard]] std::span<std::byte> blocks() const { return writer_.blocks(); }

private:
    void put_source(const SourceData& from, core::TimeNs first_ns) {
        store::SourceRecord record;
        record.source = from.source;
        record.declared_bytes = from.declared;
        record.received_bytes = from.payload.size();
        record.packets = from.packets;
        record.first_ns = first_ns;
        record.last_ns = first_ns + 1;
        if (from.packets == 0)
            record.state = store::SourceState::absent;
        else if (from.declared == 0 && !from.payload.empty())
            record.state = store::SourceState::size_unknown;
        else if (from.payload.size() < from.declared)
            record.state = store::SourceState::partial;
        static_cast<void>(writer_.put_source(record, from.missing));
    }
    void put_payload(const std::vector<SourceData>& sources) {
        std::vector<std::byte> all;
        for (const SourceData& source : sources) all.insert(all.end(), source.payload.begin(), source.payload.end());
        // In two blocks, as at the end of a buffer.
        const std::size_t first = all.size() / 2;
        for (const auto& [from, to] : {std::pair(std::size_t{0}, first), std::pair(first, all.size())}) {
            const std::span<std::byte> room = writer_.open_payload();
            if (to > from) std::memcpy(room.data(), all.data() + from, to - from);
            const auto count = static_cast<std::uint32_t>(to - from);
            writer_.close_payload(count, count, store::Encoding::raw, to == all.size());
            if (to == all.size()) break;
        }
    }

    static constexpr std::size_t size = std::size_t{1} << 20U;
    std::unique_ptr<std::byte, decltype(&std::free)> memory_;
    store::BlockWriter writer_;
};

/// Keeps the parts that leave; their memory is the test's.
class Parts final : public PartOutlet {
public:
    explicit Parts(PartMemory& memory) : memory_(memory) {}
    ~Parts() override {
        for (const auto& [rest, part] : all) memory_.give_back(part);
    }
    void offer(cluster::Block rest, std::byte* part) override { all.emplace_back(rest, part); }
    [[nodiscard]] const PartHead& head(std::size_t place) const {
        return *reinterpret_cast<const PartHead*>(all[place].second);
    }
    [[nodiscard]] std::vector<cluster::Block> blocks() const {
        std::vector<cluster::Block> numbers;
        for (std::size_t place = 0; place < all.size(); ++place) numbers.push_back(head(place).block);
        return numbers;
    }
    /// As it would come to a builder.
    [[nodiscard]] cluster::BuiltPart built(std::size_t place) const {
        return {cluster::Part::whole, {head(place).bytes, reinterpret_cast<std::uint64_t>(all[place].second)}};
    }

    std::vector<std::pair<cluster::Block, std::byte*>> all;

private:
    PartMemory& memory_;
};

}  // namespace weir::fabric::made
