#include "store/run_check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "store/index_reader.hpp"
#include "store/json_members.hpp"
#include "store/manifest.hpp"

namespace weir::store {

namespace {

using nlohmann::json;

constexpr std::size_t problems_max = 100;

bool same(const IndexEntry& a, const IndexEntry& b) {
    return a.event == b.event && a.epoch == b.epoch && a.segment == b.segment && a.offset == b.offset &&
           a.bytes == b.bytes;
}

/// The entries of an index in the order in which events lie in the segments. In version 2 segments may have been
/// written side by side, and their entries are in whatever order that gave: they are sorted first, in memory.
class OrderedIndex {
public:
    OrderedIndex(const std::filesystem::path& path, std::uint64_t run_tag, std::optional<std::uint16_t> version)
        : reader_(path, run_tag, version), sorts_(version.value_or(format_version) >= format_version_reduced) {}

    std::optional<IndexEntry> next() {
        if (!sorts_) return reader_.next();
        if (!read_) read_all();
        if (next_ == entries_.size()) return {};
        return entries_[next_++];
    }
    [[nodiscard]] const IndexReader& reader() const noexcept { return reader_; }

private:
    void read_all() {
        read_ = true;
        while (const auto entry = reader_.next()) entries_.push_back(*entry);
        const auto place = [](const IndexEntry& entry) {
            return std::pair(std::uint32_t{entry.segment}, std::uint64_t{entry.offset});
        };
        std::ranges::stable_sort(entries_, {}, place);
    }

    IndexReader reader_;
    bool sorts_;
    bool read_ = false;
    std::vector<IndexEntry> entries_;
    std::size_t next_ = 0;
};

/// One reading of everything: the caller's hooks, the index beside the events, the totals, the problems.
class RunCheck {
public:
    RunCheck(const RunContents& run, const ScanHooks& hooks) : run_(run), hooks_(hooks) {}

    /// Reads everything.
    Verification everything() {
        if (!run_.manifest_problem.empty()) problem(run_.manifest_problem);
        open_index();
        read_segments();
        return finish();
    }

    /// Reads what describes the payload, but not the payload; of the events the first `heads_max`.
    Verification description(std::uint64_t heads_max) {
        open_index();
        heads_left_ = heads_max;
        result_.payload_read = false;
        look_at_segments();
        // An index that is not good says nothing of how many there are, and that it is not good is said already.
        if (!index_good()) result_.events = number_at(run_.manifest, "events").value_or(0);
        result_.payload_bytes = number_at(run_.manifest, "payload_bytes").value_or(0);
        return finish();
    }

private:
    Verification finish() {
        for (const std::string& name : run_.unlisted) problem(fmt::format("{} is not part of the run", name));
        if (run_.closed) {
            check_index_end();
            check_manifest();
        }
        result_.verified = result_.problem_count == 0;
        return std::move(result_);
    }

    void problem(const std::string& text) {
        ++result_.problem_count;
        if (result_.problems.size() < problems_max) result_.problems.push_back(text);
        if (hooks_.problem) hooks_.problem(text);
    }

    [[nodiscard]] bool index_good() const {
        return index_ != nullptr && !index_differs_ && index_->reader().problem().empty();
    }

    void open_index() {
        if (!run_.closed || !run_.run_tag) return;  // an unfinished run's index ends anywhere; it can be made again
        try {
            index_ = std::make_unique<OrderedIndex>(run_.path / index_name, *run_.run_tag, run_.version);
        } catch (const core::RunError& error) {
            problem(error.what());
        }
    }

    void read_segments() {
        ScanHooks hooks = hooks_;
        hooks.end = [this](const EventInfo& event) { end_of_event(event); };
        hooks.problem = [this](const std::string& text) { problem(text); };
        EventScanner scanner(std::move(hooks));
        run_.identify(scanner);
        scanner.expect_sequence(0);
        for (std::uint32_t i = 0; i < run_.segments.size(); ++i) {
            const std::string& name = run_.segments[i];
            if (name != segment_name(i)) problem(fmt::format("{} should be here, not {}", segment_name(i), name));
            try {
                const FileSource file(run_.path / name);
                const EventScanner::SegmentResult segment = scanner.scan(file, i, name);
                result_.stored_bytes += segment.bytes;
                ++result_.segments;
                check_segment(i, segment);
            } catch (const core::RunError& error) {
                problem(error.what());
            }
        }
        result_.encodings = scanner.encodings();
    }

    void end_of_event(const EventInfo& event) {
        ++result_.events;
        ++result_.heads;
        result_.complete += event.complete ? 1 : 0;
        result_.payload_bytes += event.payload_bytes;
        if (index_ != nullptr && !index_differs_) {
            const std::optional<IndexEntry> entry = index_->next();
            index_differs_ = !entry || !same(*entry, event.entry());
        }
        if (hooks_.end) hooks_.end(event);
    }

    void check_segment(std::uint32_t number, const EventScanner::SegmentResult& segment) {
        const std::string& name = run_.segments[number];
        if (!segment.head) problem(fmt::format("{} has no first block", name));
        if (segment.head && segment.head->run != run_.run.value_or(SegmentBody::no_run))
            problem(fmt::format("{} belongs to another run number", name));
        if (!run_.closed) return;
        const json& listed = run_.manifest["segments"][number];
        const bool agrees = text_at(listed, "file") == name && number_at(listed, "bytes") == segment.bytes &&
                            number_at(listed, "blocks") == segment.blocks &&
                            number_at(listed, "events") == segment.events &&
                            text_at(listed, "headers_crc32c") == fmt::format("{:08x}", segment.headers_crc);
        if (!agrees) problem(fmt::format("{} is not as the manifest describes it", name));
    }

    /// Segments as the index and the manifest describe them: each a first block, then events without gaps.
    void look_at_segments() {
        std::optional<IndexEntry> entry;
        if (index_ != nullptr) entry = index_->next();
        for (std::uint32_t i = 0; i < run_.segments.size(); ++i) {
            try {
                look_at_segment(i, entry);
            } catch (const core::RunError& error) {
                problem(error.what());
            }
        }
        // What is left points nowhere; check_index_end() says so.
        for (; entry; entry = index_->next()) index_differs_ = true;
    }

    void look_at_segment(std::uint32_t number, std::optional<IndexEntry>& entry) {
        const std::string& name = run_.segments[number];
        const json& listed = run_.manifest["segments"][number];
        const FileSource file(run_.path / name);
        BlockReader reader(file, run_.run_tag, BlockReader::window_bytes_heads);
        reader.expect_version(run_.version);
        EventScanner heads(head_hooks());
        run_.identify(heads);
        Block block;
        SegmentBody body;
        const bool begins = reader.next(block) == BlockReader::Result::block &&
                            block.header.type == BlockType::segment && block.header.stored_bytes >= sizeof body;
        if (begins) std::memcpy(&body, block.body.data(), sizeof body);
        if (!begins || body.segment != number || body.run != run_.run.value_or(SegmentBody::no_run))
            problem(fmt::format("{} does not begin as segment {} of this run", name, number));
        result_.stored_bytes += file.size();
        ++result_.segments;

        std::uint64_t end = begins ? block.bytes() : 0;
        std::uint64_t events = 0;
        for (; entry && entry->segment == number; entry = index_->next(), ++events) {
            if (!only_padding(reader, end, entry->offset) || entry->bytes > UINT64_MAX - end) index_differs_ = true;
            end = entry->offset + entry->bytes;
            ++result_.events;
            if (heads_left_ == 0) continue;
            --heads_left_;
            look_at_event(heads, reader, *entry);
        }
        if (text_at(listed, "file") != name || number_at(listed, "bytes") != file.size() ||
            (index_good() && (number_at(listed, "events") != events || !only_padding(reader, end, file.size()))))
            problem(fmt::format("{} is not as the manifest and the index describe it", name));
    }

    /// Between two events, and after the last one.
    [[nodiscard]] bool only_padding(BlockReader& reader, std::uint64_t from, std::uint64_t to) const {
        if (from == to) return true;
        if (from > to || from % block_align != 0) return false;
        reader.seek(from);
        Block block;
        while (reader.offset() < to)
            if (reader.next(block) != BlockReader::Result::block || block.header.type != BlockType::padding)
                return false;
        return reader.offset() == to;
    }

    ScanHooks head_hooks() {
        ScanHooks hooks;
        hooks.problem = [this](const std::string& text) { problem(text); };
        hooks.begin = [this](const EventInfo& event) { head_ = event; };
        return hooks;
    }

    void look_at_event(EventScanner& heads, BlockReader& reader, const IndexEntry& entry) {
        if (!heads.read_head(reader, entry.segment, entry.offset, run_.segments[entry.segment])) return;
        head_.stored_bytes = entry.bytes;
        if (!same(head_.entry(), entry)) {
            problem(fmt::format("{} points to another event than {}:{}", index_name, entry.epoch, entry.event));
            return;
        }
        ++result_.heads;
        result_.complete += head_.complete ? 1 : 0;
        if (hooks_.end) hooks_.end(head_);
    }

    void check_index_end() {
        if (index_ == nullptr) return;
        const bool more = !index_differs_ && index_->next().has_value();
        const IndexReader& index = index_->reader();
        if (!index.problem().empty()) {
            problem(fmt::format("{} {}; the events can be read without it", index_name, index.problem()));
            return;
        }
        if (index_differs_ || more) {
            problem(fmt::format("{} does not agree with the segments", index_name));
            return;
        }
        const json& listed = at_or_null(run_.manifest, "index");
        if (text_at(listed, "file") != index_name || number_at(listed, "bytes") != index.bytes() ||
            number_at(listed, "blocks") != index.blocks() ||
            text_at(listed, "headers_crc32c") != fmt::format("{:08x}", index.headers_crc()))
            problem(fmt::format("{} is not as the manifest describes it", index_name));
    }

    void check_manifest() {
        if (number_at(run_.manifest, "events") != result_.events)
            problem(fmt::format("the manifest says {} events, {} are there", at_or_null(run_.manifest, "events").dump(),
                                result_.events));
        if (result_.payload_read && number_at(run_.manifest, "payload_bytes") != result_.payload_bytes)
            problem("the manifest says another number of payload bytes");
        const json& run = at_or_null(run_.manifest, "run");
        if (run_.run ? run != *run_.run : !run.is_null()) problem("the manifest says another run number");
        const json& written = at_or_null(at_or_null(at_or_null(run_.manifest, "ledger"), "events"), "written");
        if (written.is_number() && written != result_.events)
            problem(fmt::format("the ledger says that {} events were written, {} are there", written.dump(),
                                result_.events));
    }

    const RunContents& run_;
    const ScanHooks& hooks_;
    Verification result_;
    std::unique_ptr<OrderedIndex> index_;
    bool index_differs_ = false;
    std::uint64_t heads_left_ = 0;
    EventInfo head_;
};

}  // namespace

void Verification::add(const Verification& run, const std::string& name) {
    events += run.events;
    complete += run.complete;
    payload_bytes += run.payload_bytes;
    stored_bytes += run.stored_bytes;
    segments += run.segments;
    heads += run.heads;
    problem_count += run.problem_count;
    payload_read &= run.payload_read;
    verified &= run.verified;
    for (const std::string& problem : run.problems)
        if (problems.size() < problems_max) problems.push_back(fmt::format("{}: {}", name, problem));
    for (const auto& [encoding, totals] : run.encodings) encodings[encoding] += totals;
}

Verification check_run(const RunContents& run, const ScanHooks& hooks) {
    return RunCheck(run, hooks).everything();
}

Verification check_run_description(const RunContents& run, const ScanHooks& hooks, std::uint64_t heads_max) {
    return RunCheck(run, hooks).description(heads_max);
}

}  // namespace weir::store
