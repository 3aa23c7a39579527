// `weir export --to hdf5`: the files that the hdf5 sink would have written (docs/HDF5.md).
#include <fmt/core.h>

#include "core/error.hpp"
#include "export_target.hpp"
#include "run_text.hpp"
#include "store/hdf5/writer.hpp"
#include "store/json_members.hpp"

namespace weir::app {

namespace {

using store::EventInfo;
using store::SourceInfo;

std::optional<store::hdf5::Codec> codec_of(const ExportOptions& options) {
    if (options.codec.empty()) return {};
    const auto codec = store::hdf5::codec_named(options.codec);
    if (!codec)
        throw core::UsageError(fmt::format(
            "export: --codec: found \"{}\"; accepted: raw, zstd, lz4, bitshuffle-lz4, bitshuffle-zstd", options.codec));
    return codec;
}

/// What was known when the run started; from the manifest where the segments do not say.
std::string start_of(const store::RunReader& run) {
    const nlohmann::json& start = store::at_or_null(run.start(), "start");
    return dump(start.is_object() ? start : run.manifest());
}

class Hdf5Target final : public ExportTarget {
public:
    Hdf5Target(const store::RunReader& run, const ExportOptions& options) : run_(run), options_(options) {
        store::hdf5::Writer::Config config;
        config.path = options.out;
        config.name = store::text_at(run.start(), "name");
        config.start_json = start_of(run);
        config.codec = codec_of(options);
        writer_.emplace(config);
    }

    ~Hdf5Target() override {
        if (finished_) return;
        const std::filesystem::path hidden = writer_->path();
        writer_.reset();
        std::error_code error;
        std::filesystem::remove_all(hidden, error);
    }

    void put(const ExportEvent& event) override {
        EventInfo info = *event.info;
        info.sources.clear();
        info.payload_bytes = info.reduced_bytes = 0;
        std::vector<std::size_t> chosen;
        for (std::size_t i = 0; i < event.info->sources.size(); ++i) {
            const SourceInfo& source = event.info->sources[i];
            if (options_.source && *options_.source != source.id) continue;
            chosen.push_back(i);
            info.sources.push_back(source);
            info.payload_bytes += source.received_bytes;
            info.reduced_bytes += source.reduced_bytes;
        }
        if (chosen.empty()) throw core::RunError("the events have no such source");
        writer_->begin_event(info);
        for (std::size_t i = 0; i < chosen.size(); ++i)
            put_message(info, info.sources[i], event.messages[chosen[i]].bytes);
        writer_->end_event();
    }

    std::string finish() override {
        nlohmann::json members = nlohmann::json::object();
        for (const char* name : {"ledger", "config", "machine", "payload"})
            if (const nlohmann::json& member = store::at_or_null(run_.manifest(), name); !member.is_null())
                members[name] = member;
        writer_->close(members);
        finished_ = true;
        return fmt::format("HDF5 files in {}, to be opened by {}", options_.out.string(),
                           (options_.out / store::hdf5::master_name).string());
    }

private:
    /// What came of it, without the gaps.
    void put_message(const EventInfo& info, const SourceInfo& source, std::span<const std::byte> bytes) {
        if (info.reduced()) {
            writer_->put_payload(bytes);
            return;
        }
        std::uint64_t left = source.received_bytes;
        std::uint64_t at = 0;
        for (const store::MissingRange& range : source.missing) {
            const auto count = std::min<std::uint64_t>(left, range.offset - at);
            writer_->put_payload(bytes.subspan(at, count));
            left -= count;
            at = std::uint64_t{range.offset} + range.bytes;
        }
        if (left > 0) writer_->put_payload(bytes.subspan(at, left));
    }

    const store::RunReader& run_;
    const ExportOptions& options_;
    std::optional<store::hdf5::Writer> writer_;
    bool finished_ = false;
};

}  // namespace

std::unique_ptr<ExportTarget> make_hdf5_target(const store::RunReader& run, const ExportOptions& options,
                                               const std::vector<store::IndexEntry>&) {
    return std::make_unique<Hdf5Target>(run, options);
}

}  // namespace weir::app
