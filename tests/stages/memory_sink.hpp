// A sink that keeps blocks in memory, and what is found in them when they are read back as a file is.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "made_packets.hpp"
#include "store/event_scanner.hpp"
#include "store/event_sink.hpp"
#include "store/memory_sources.hpp"

namespace weir::stages::test {

struct SourceFound {
    std::uint32_t packets = 0;
    store::SourceState state = store::SourceState::complete;
    Bytes bytes;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> missing;  ///< offset, bytes
    bool operator==(const SourceFound&) const = default;
};
struct EventFound {
    store::Cause cause = store::Cause::complete;
    TimeNs first_ns = 0;
    TimeNs last_ns = 0;
    std::map<std::uint32_t, SourceFound> sources;
    bool operator==(const EventFound&) const = default;
};
/// By epoch and number.
using EventsFound = std::map<std::pair<std::uint32_t, std::uint64_t>, EventFound>;

/// Gives headers what the run writer gives them, so that what is kept is a segment of an event file.
class MemorySink : public store::EventSink {
public:
    MemorySink() {
        store::BlockHeader header;
        header.stored_bytes = header.raw_bytes = sizeof(store::SegmentBody);
        const store::SegmentBody body;
        std::array<std::byte, sizeof header + sizeof body> block{};
        header.body_crc = core::crc32c({reinterpret_cast<const std::byte*>(&body), sizeof body});
        std::memcpy(block.data(), &header, sizeof header);
        std::memcpy(block.data() + sizeof header, &body, sizeof body);
        take(block);
        stats_ = {};
    }

    void append(std::span<std::byte> blocks) override {
        if (failed_) throw core::RunError("append after a failure");
        take(blocks);
    }
    void sync_if_due() override {}
    void finish_data() override {}
    void close(const nlohmann::json&) override {}
    [[nodiscard]] const Stats& stats() const noexcept override { return stats_; }
    [[nodiscard]] bool failed() const noexcept override { return failed_; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept override { return path_; }
    [[nodiscard]] std::optional<std::uint64_t> free_bytes() const noexcept override { return {}; }

    /// Nothing may be wrong with any block.
    [[nodiscard]] EventsFound events() const {
        EventsFound found;
        Bytes payload;
        store::ScanHooks hooks;
        hooks.begin = [&](const store::EventInfo&) { payload.clear(); };
        hooks.payload = [&](std::span<const std::byte> some) {
            payload.insert(payload.end(), some.begin(), some.end());
        };
        hooks.end = [&](const store::EventInfo& info) {
            const bool fresh = found.emplace(std::pair(info.epoch, info.id), found_in(info, payload)).second;
            EXPECT_TRUE(fresh) << "event " << info.epoch << ':' << info.id << " is there twice";
        };
        hooks.problem = [](const std::string& what) { ADD_FAILURE() << what; };
        const store::test::MemorySource source(kept_);
        const auto result = store::EventScanner(std::move(hooks)).scan(source, 0, "kept");
        EXPECT_EQ(result.events, found.size());
        EXPECT_FALSE(result.torn_event);
        return found;
    }

protected:
    /// From now on nothing is taken, as after an error of the disk.
    [[noreturn]] void fail() {
        failed_ = true;
        throw core::RunError("the disk is on fire");
    }

private:
    void take(std::span<std::byte> blocks) {
        while (!blocks.empty()) {
            store::BlockHeader header;
            std::memcpy(&header, blocks.data(), sizeof header);
            header.sequence = sequence_++;
            header.run_tag = 77;
            header.header_crc = core::crc32c({reinterpret_cast<const std::byte*>(&header), store::header_crc_bytes});
            std::memcpy(blocks.data(), &header, sizeof header);
            const std::size_t bytes = sizeof header + (header.stored_bytes + store::block_align - 1) /
                                                          store::block_align * store::block_align;
            kept_.insert(kept_.end(), blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(bytes));
            stats_.bytes += bytes;
            ++stats_.blocks;
            stats_.events += header.flags & store::BlockHeader::end_of_event;
            blocks = blocks.subspan(bytes);
        }
    }

    static EventFound found_in(const store::EventInfo& info, std::span<const std::byte> payload) {
        EventFound event{info.cause, info.first_ns, info.last_ns, {}};
        for (const store::SourceInfo& source : info.sources) {
            SourceFound& found = event.sources[source.id];
            found.packets = source.packets;
            found.state = source.state;
            for (const store::MissingRange& range : source.missing)
                found.missing.emplace_back(range.offset, range.bytes);
            const auto bytes = std::min<std::size_t>(payload.size(), source.received_bytes);
            found.bytes.assign(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(bytes));
            payload = payload.subspan(bytes);
        }
        EXPECT_TRUE(payload.empty()) << "event " << info.id << " has more payload than its sources";
        return event;
    }

    Bytes kept_;
    std::uint64_t sequence_ = 0;
    Stats stats_;
    bool failed_ = false;
    std::filesystem::path path_ = "memory";
};

/// Where the two differ first, in words; empty: they do not.
[[nodiscard]] inline std::string difference(const EventsFound& left, const EventsFound& right) {
    for (const auto& [key, event] : left) {
        const std::string name = "event " + std::to_string(key.second);
        const auto other = right.find(key);
        if (other == right.end()) return name + " is only in the first";
        if (event.cause != other->second.cause)
            return name + ": " + std::string(store::cause_names[static_cast<std::size_t>(event.cause)]) + " against " +
                   std::string(store::cause_names[static_cast<std::size_t>(other->second.cause)]);
        if (event.first_ns != other->second.first_ns || event.last_ns != other->second.last_ns)
            return name + ": its times differ";
        for (const auto& [source, found] : event.sources) {
            const SourceFound& there = other->second.sources.at(source);
            if (found == there) continue;
            return name + ", source " + std::to_string(source) + ": " + std::to_string(found.packets) + " packets, " +
                   std::to_string(found.bytes.size()) + " bytes against " + std::to_string(there.packets) + ", " +
                   std::to_string(there.bytes.size());
        }
    }
    return left.size() == right.size() ? "" : "the second has more";
}

/// What is wrong with the bytes of these events; empty: they are those that were sent.
[[nodiscard]] inline std::string wrong_bytes(const EventsFound& events) {
    for (const auto& [key, event] : events) {
        for (const auto& [source, found] : event.sources) {
            std::size_t gap = 0;
            std::uint32_t offset = 0;
            for (const std::byte byte : found.bytes) {
                while (gap < found.missing.size() && offset == found.missing[gap].first)
                    offset += found.missing[gap++].second;
                if (byte != byte_of(source, key.second, offset))
                    return "event " + std::to_string(key.second) + ", source " + std::to_string(source) + ", byte " +
                           std::to_string(offset);
                ++offset;
            }
        }
    }
    return {};
}

}  // namespace weir::stages::test
