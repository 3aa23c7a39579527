// Writes a set of HDF5 files as a run's sink does, from events whose every byte follows from the arguments, so that
// tests/store/hdf5_test.py can say what has to be in them. What it is told and what comes out are lines of text.
#include <fmt/core.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "reduce/pack/packer.hpp"
#include "reduce/sparse/sparse_piece.hpp"
#include "store/block_writer.hpp"
#include "store/hdf5/nexus.hpp"
#include "store/hdf5/recovery.hpp"
#include "store/hdf5/virtual_master.hpp"
#include "store/hdf5/writer.hpp"

namespace weir::store::test {
namespace {

using reduce::pack::Codec;

constexpr Encoding with_sparse(Encoding codec) {
    return static_cast<Encoding>(static_cast<std::uint8_t>(codec) | static_cast<std::uint8_t>(Encoding::sparse));
}

struct Task {
    std::string path;
    std::string content = "received";  ///< or a type of pixels, or "bytes"
    Codec pieces = Codec::raw;
    std::uint64_t events = 4;
    std::uint32_t sources = 2;
    std::uint32_t rows = 256;
    std::uint32_t columns = 1024;
    std::uint64_t missing_every = 0;
    std::uint64_t cut_event = ~std::uint64_t{0};  ///< its last blocks do not come
    std::uint32_t pause_ms = 0;
    std::uint64_t file_limit = 0;
    bool hang = false;
    bool in_step = false;  ///< a character from standard input for each event, until its end
    bool nexus = false;
    bool nexus_gapless = false;  ///< without the gap between modules
    bool sparse = false;         ///< f32: only values above 899.5 are kept, as CSR pieces
    // Of a cluster: builder `builder` of so many, bu0 …, which take blocks of events in turn.
    std::uint64_t builders = 0;
    std::uint64_t builder = 0;
    std::uint64_t block = 16;
    std::uint64_t workers = 1;  ///< each is three events behind the one before
    bool recover = false;       ///< closes what a killed run has left
    std::string join;           ///< this folder's runs become one file at `path`
    hdf5::Writer::Config config;
};

std::uint32_t value_of(std::uint64_t event, std::uint64_t index) {
    return static_cast<std::uint32_t>((index * 7 + event * 13 + index / 1024) % 1000);
}

template <class T>
void put(std::vector<std::byte>& out, T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    out.insert(out.end(), bytes, bytes + sizeof value);
}

/// The payload of source `source` as if all of it had come.
std::vector<std::byte> message(const Task& task, std::uint64_t event, std::uint32_t source) {
    std::vector<std::byte> out;
    const std::uint64_t pixels = std::uint64_t{task.rows} * task.columns;
    if (task.content == "bytes") {
        const std::uint64_t bytes = (event * 7919 + source * 104'729) % 100'000;
        for (std::uint64_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value_of(event + source, i)));
        return out;
    }
    for (std::uint64_t i = source * pixels; i < (source + 1) * pixels; ++i) {
        const std::uint32_t value = value_of(event, i);
        if (task.content == "f32")
            put(out, static_cast<float>(value));
        else if (task.content == "i16")
            put(out, static_cast<std::int16_t>(value) - 500 < 0 ? static_cast<std::int16_t>(value - 500)
                                                                : static_cast<std::int16_t>(value));
        else
            put(out, static_cast<std::uint16_t>(value));
    }
    return out;
}

/// Ranges of a message that do not come in some events: whole packets, and an odd number of bytes.
std::vector<assemble::ByteRange> missing_of(const Task& task, std::uint64_t event, std::uint32_t source,
                                            std::uint32_t bytes) {
    if (task.missing_every == 0 || event % task.missing_every != task.missing_every - 1) return {};
    if (task.content == "bytes") return {};
    if (source == 0) return {{8192, 24576}, {bytes - 4001, bytes - 1000}};
    if (event % (2 * task.missing_every) == task.missing_every - 1) return {{0, bytes}};
    return {{1, 3}, {100'001, 100'002}};
}

class Worker {
public:
    Worker(const Task& task, EventSink& sink)
        : task_(task),
          sink_(sink),
          element_bytes_(task.content == "f32"     ? 4U
                         : task.content == "bytes" ? 1U
                                                   : 2U),
          packer_({task.pieces, reduce::pack::levels(task.pieces) ? reduce::pack::levels(task.pieces)->usual : 0,
                   element_bytes_, false},
                  piece_bytes),
          memory_(buffer_bytes + block_align) {
        void* at = memory_.data();
        std::size_t space = memory_.size();
        buffer_ = {static_cast<std::byte*>(std::align(block_align, buffer_bytes, at, space)), buffer_bytes};
        writer_.reset(buffer_);
    }

    void put(std::uint64_t number) {
        std::vector<std::vector<std::byte>> payloads;
        std::vector<std::vector<assemble::ByteRange>> missing;
        EventRecord event;
        for (std::uint32_t source = 0; source < task_.sources; ++source) {
            payloads.push_back(message(task_, number, source));
            missing.push_back(missing_of(task_, number, source, declared(payloads.back())));
            if (!missing.back().empty()) event.cause = Cause::timeout;
            event.payload_bytes += declared(payloads.back()) - bytes_of(missing.back());
        }
        event.id = 1000 + number;
        event.epoch = static_cast<std::uint32_t>(number / 1000);
        event.sources = task_.sources;
        event.complete = event.cause == Cause::complete;
        event.packets = number + 1;
        event.first_ns = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(number) * 1000;
        event.last_ns = event.first_ns + 999;
        if (reduced()) {
            event.content = Content::pixels;
            for (const auto& payload : payloads) event.reduced_bytes += payload.size();
        }
        if (!writer_.put_event(event)) flush(), static_cast<void>(writer_.put_event(event));
        for (std::uint32_t source = 0; source < task_.sources; ++source)
            put_source(number, source, payloads[source], missing[source]);
        put_payload(payloads, missing, number == task_.cut_event);
    }

    void flush() {
        if (!writer_.empty()) sink_.append(writer_.blocks());
        writer_.reset(buffer_);
    }

private:
    static constexpr std::size_t piece_bytes = std::size_t{256} << 10;
    static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

    [[nodiscard]] bool reduced() const { return task_.content != "received" && task_.content != "bytes"; }
    static std::uint64_t bytes_of(const std::vector<assemble::ByteRange>& ranges) {
        std::uint64_t bytes = 0;
        for (const assemble::ByteRange& range : ranges) bytes += range.end - range.begin;
        return bytes;
    }

    /// Size of the message as received: energies come from 16-bit pixels.
    [[nodiscard]] std::uint32_t declared(const std::vector<std::byte>& payload) const {
        return static_cast<std::uint32_t>(reduced() ? payload.size() / element_bytes_ * 2 : payload.size());
    }

    void put_source(std::uint64_t number, std::uint32_t source, const std::vector<std::byte>& payload,
                    const std::vector<assemble::ByteRange>& missing) {
        SourceRecord record;
        record.source = source;
        record.declared_bytes = declared(payload);
        record.received_bytes = record.declared_bytes - bytes_of(missing);
        record.state = missing.empty()             ? SourceState::complete
                       : record.received_bytes > 0 ? SourceState::partial
                                                   : SourceState::absent;
        record.packets = record.received_bytes > 0 ? 7 : 0;
        record.reduced_bytes = reduced() ? payload.size() : 0;
        std::array<std::byte, 40> meta{};
        std::memcpy(meta.data(), &number, sizeof number);
        record.meta = meta;
        if (!writer_.put_source(record, missing)) flush(), static_cast<void>(writer_.put_source(record, missing));
    }

    void put_payload(const std::vector<std::vector<std::byte>>& payloads,
                     const std::vector<std::vector<assemble::ByteRange>>& missing, bool cut) {
        std::vector<std::span<const std::byte>> pieces;
        std::vector<std::vector<std::byte>> compact;
        for (std::size_t i = 0; i < payloads.size(); ++i) {
            compact.push_back(payloads[i]);
            if (!reduced())
                for (auto range = missing[i].rbegin(); range != missing[i].rend(); ++range)
                    compact.back().erase(compact.back().begin() + range->begin, compact.back().begin() + range->end);
        }
        for (const std::vector<std::byte>& bytes : compact)
            for (std::size_t at = 0; at < bytes.size(); at += piece_bytes)
                pieces.push_back(
                    std::span<const std::byte>(bytes).subspan(at, std::min(piece_bytes, bytes.size() - at)));
        if (pieces.empty()) pieces.emplace_back();
        if (cut) pieces.resize(pieces.size() / 2);
        for (std::size_t i = 0; i < pieces.size(); ++i) put_piece(pieces[i], !cut && i + 1 == pieces.size());
    }

    /// As a sparse reducer stores it; `piece` is whole rows of f32.
    void put_sparse(std::span<const std::byte> piece, bool last) {
        std::vector<float> values(piece.size() / sizeof(float));
        std::memcpy(values.data(), piece.data(), piece.size());
        sparse_.begin();
        sparse_.append(values, 899.5F);
        std::vector<std::byte> csr(sparse_.sparse_bytes());
        sparse_.write_sparse(csr.data());
        if (writer_.payload_room() < packer_.bound(piece_bytes) + piece_bytes) flush();
        const std::span<std::byte> room = writer_.open_payload();
        const std::size_t packed = task_.pieces == Codec::raw ? 0 : packer_.pack(csr, room);
        if (packed == 0) std::copy(csr.begin(), csr.end(), room.begin());
        const auto codec = packed == 0 ? Encoding::raw : static_cast<Encoding>(task_.pieces);
        writer_.close_payload(static_cast<std::uint32_t>(packed == 0 ? csr.size() : packed),
                              static_cast<std::uint32_t>(piece.size()), with_sparse(codec), last,
                              has_elements(codec) ? static_cast<std::uint8_t>(element_bytes_) : 0);
    }

    void put_piece(std::span<const std::byte> piece, bool last) {
        if (task_.sparse) {
            put_sparse(piece, last);
            return;
        }
        if (writer_.payload_room() < packer_.bound(piece.size()) + piece.size()) flush();
        const std::span<std::byte> room = writer_.open_payload();
        const std::size_t packed = task_.pieces == Codec::raw ? 0 : packer_.pack(piece, room);
        if (packed == 0) std::copy(piece.begin(), piece.end(), room.begin());
        const auto encoding = packed == 0 ? Encoding::raw : static_cast<Encoding>(task_.pieces);
        writer_.close_payload(static_cast<std::uint32_t>(packed == 0 ? piece.size() : packed),
                              static_cast<std::uint32_t>(piece.size()), encoding, last,
                              has_elements(encoding) ? static_cast<std::uint8_t>(element_bytes_) : 0);
    }

    const Task& task_;
    EventSink& sink_;
    std::uint32_t element_bytes_;
    reduce::pack::Packer packer_;
    reduce::SparsePiece sparse_{reduce::PixelType::f32, 1024, piece_bytes / 4096};
    std::vector<std::byte> memory_;
    std::span<std::byte> buffer_;
    BlockWriter writer_;
};

bool* flag_of(Task& task, std::string_view key) {
    return key == "hang"            ? &task.hang
           : key == "in_step"       ? &task.in_step
           : key == "nexus"         ? &task.nexus
           : key == "nexus_gapless" ? &task.nexus_gapless
           : key == "sparse"        ? &task.sparse
           : key == "recover"       ? &task.recover
                                    : nullptr;
}

std::uint64_t* number_of(Task& task, std::string_view key) {
    return key == "builders"  ? &task.builders
           : key == "builder" ? &task.builder
           : key == "block"   ? &task.block
           : key == "workers" ? &task.workers
                              : nullptr;
}

nlohmann::json nodes_of(const Task& task) {
    nlohmann::json nodes{{{"name", "ru0"}, {"role", "readout"}}};
    for (std::uint64_t i = 0; i < task.builders; ++i)
        nodes.push_back({{"name", fmt::format("bu{}", i)}, {"role", "builder"}});
    return nodes;
}

/// What the builder says of its cluster when it closes.
nlohmann::json account_of(const Task& task) {
    return {{"node", fmt::format("bu{}", task.builder)},
            {"role", "builder"},
            {"block", task.block},
            {"lives", 1},
            {"nodes", nodes_of(task)}};
}

/// Whose a block is: in turn, but for some.
std::uint64_t builder_of(const Task& task, std::uint64_t event) {
    const std::uint64_t block = event / task.block;
    return (block + block / 5 + block / 7) % task.builders;
}

/// The events of the run, in the order in which they are written.
std::vector<std::uint64_t> events_of(const Task& task) {
    std::vector<std::uint64_t> events;
    for (std::uint64_t number = 0; number < task.events; ++number)
        if (task.builders == 0 || builder_of(task, number) == task.builder) events.push_back(number);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> written;
    for (std::uint64_t i = 0; i < events.size(); ++i) written.emplace_back(i + 3 * (i % task.workers), events[i]);
    std::ranges::stable_sort(written, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
    std::ranges::transform(written, events.begin(), &std::pair<std::uint64_t, std::uint64_t>::second);
    return events;
}

/// Configuration and payload, as a run says of itself when it starts.
nlohmann::json start_of(const Task& task) {
    nlohmann::json start{{"config", {{"stream", {{{"format", task.content == "bytes" ? "ejfat" : "jungfrau"}}}}}}};
    if (task.content != "received" && task.content != "bytes")
        start["payload"] = {{"content", "pixels"},
                            {"type", task.content},
                            {"unit", "photon"},
                            {"columns", task.columns},
                            {"photon_kev", 12.4}};
    if (task.builders > 0) {
        start["config"]["cluster"] = {{"block", task.block}};
        start["config"]["node"] = nodes_of(task);
    }
    if (task.sparse) start["config"]["reduce"][0]["kind"] = "sparse";
    return start;
}

Task task_of(const std::vector<std::string>& args) {
    Task task;
    task.config.sync_interval_ns = 50 * core::ns_per_ms;
    for (const std::string& arg : args) {
        const std::size_t equals = arg.find('=');
        const std::string key = arg.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : arg.substr(equals + 1);
        const auto number = [&] { return std::stoull(value); };
        if (key == "path")
            task.config.path = value;
        else if (key == "content")
            task.content = value;
        else if (key == "pieces")
            task.pieces = hdf5::codec_named(value).value();
        else if (key == "codec")
            task.config.codec = hdf5::codec_named(value).value();
        else if (key == "events")
            task.events = number();
        else if (key == "sources")
            task.sources = static_cast<std::uint32_t>(number());
        else if (key == "rows")
            task.rows = static_cast<std::uint32_t>(number());
        else if (key == "missing_every")
            task.missing_every = number();
        else if (key == "events_per_file")
            task.config.events_per_file = number();
        else if (key == "segment_bytes")
            task.config.segment_bytes = number();
        else if (key == "pause_ms")
            task.pause_ms = static_cast<std::uint32_t>(number());
        else if (key == "file_limit")
            task.file_limit = number();
        else if (key == "cut_event")
            task.cut_event = number();
        else if (std::uint64_t* const count = number_of(task, key); count != nullptr)
            *count = number();
        else if (key == "join")
            task.join = value;
        else if (bool* const flag = flag_of(task, key); flag != nullptr)
            *flag = true;
        else
            throw core::UsageError("what is " + arg + "?");
    }
    task.config.start_json = start_of(task).dump();
    task.config.name = "fed";
    if (task.nexus)
        task.config.nexus = {"a title",
                             "beamline",
                             "ring",
                             "lysozyme",
                             "",
                             "Si",
                             320.0,
                             {},
                             {},
                             1e12,
                             150.0,
                             std::array{512.0, 256.0},
                             std::array{-1.0, 0.0, 0.0},
                             std::array{0.0, -1.0, 0.0},
                             {36.0}};
    if (task.nexus_gapless) task.config.nexus.module_gap.clear();
    return task;
}

void say(const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

/// The builders' runs in a folder as one file.
int join(const Task& task) {
    const hdf5::BuilderFiles found = hdf5::find_builder_files(task.join);
    const hdf5::MergedEvents events = hdf5::merge_events(found);
    hdf5::write_virtual_master(task.config.path, task.config.path, found, events);
    for (const std::string& note : found.notes) say(note);
    for (const std::string& builder : found.without_run) say(fmt::format("no run of {}", builder));
    say(fmt::format("joined {} copies {}", events.places.size(), events.copies));
    return 0;
}

int run(const Task& task) {
    if (!task.join.empty()) return join(task);
    if (task.recover) {
        const std::optional<Recovered> recovered = hdf5::recover_run(task.config.path, {});
        say(recovered ? "recovered" : "not recovered");
        return 0;
    }
    if (task.file_limit > 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{task.file_limit, task.file_limit};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    hdf5::Writer sink(task.config);
    try {
        Worker worker(task, sink);
        for (const std::uint64_t number : events_of(task)) {
            worker.put(number);
            if (task.pause_ms > 0) {
                worker.flush();
                ::usleep(task.pause_ms * 1000);
                sink.sync_if_due();
                say(fmt::format("written {} synced {}", sink.stats().events, sink.stats().synced_events));
                if (task.in_step) std::getchar();
            }
        }
        worker.flush();
        if (task.hang) {
            ::usleep(100'000);
            sink.sync_if_due();
            say(fmt::format("written {} synced {}", sink.stats().events, sink.stats().synced_events));
            ::pause();
        }
    } catch (const core::RunError& error) {
        say(fmt::format("error: {}", error.what()));
    }
    try {
        sink.finish_data();
    } catch (const core::RunError& error) {
        say(fmt::format("error: {}", error.what()));
    }
    const EventSink::Stats& stats = sink.stats();
    say(fmt::format("events {} synced {} bytes {} segments {}", stats.events, stats.synced_events, stats.bytes,
                    stats.segments));
    try {
        nlohmann::json members{{"ledger", {{"events", {{"written", stats.events}}}}}};
        if (task.builders > 0) members["cluster"] = account_of(task);
        sink.close(members);
        say(fmt::format("closed {}", sink.path().string()));
    } catch (const core::RunError& error) {
        say(fmt::format("not closed: {}", error.what()));
    }
    return 0;
}

}  // namespace
}  // namespace weir::store::test

int main(int argc, char** argv) {
    try {
        return weir::store::test::run(weir::store::test::task_of({argv + 1, argv + argc}));
    } catch (const std::exception& error) {
        fmt::print("refused: {}\n", error.what());
        return 1;
    }
}
