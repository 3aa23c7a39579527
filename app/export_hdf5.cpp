// `weir export --to hdf5`: the files that the hdf5 sink would have written (docs/reference/HDF5.md).
#include <fmt/format.h>

#include "config/sinks/nexus.hpp"
#include "core/error.hpp"
#include "core/print_stderr.hpp"
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
    if (*codec == store::hdf5::Codec::zstd || *codec == store::hdf5::Codec::bitshuffle_zstd)
        core::print_stderr(
            "weir: warning: --codec {}: the HDF5 plug-ins of Debian 12 cannot read it, those of PyPI's hdf5plugin can; "
            "bitshuffle-lz4 is read by both\n",
            options.codec);
    return codec;
}

/// What was known when the run started; from the manifest where the segments do not say.
std::string start_of(const store::RunReader& run) {
    const nlohmann::json& start = store::at_or_null(run.start(), "start");
    return dump(start.is_object() ? start : run.manifest());
}

/// The `nexus` table of the run's own hdf5 sink, if it had one.
nlohmann::json recorded_nexus(const nlohmann::json& start) {
    const nlohmann::json& sinks = store::at_or_null(store::at_or_null(start, "config"), "sink");
    if (sinks.is_array())
        for (const nlohmann::json& sink : sinks)
            if (const nlohmann::json& nexus = store::at_or_null(sink, "nexus"); nexus.is_object() && !nexus.empty())
                return nexus;
    return {};
}

class Hdf5Target final : public ExportTarget {
public:
    Hdf5Target(const store::RunReader& run, const ExportOptions& options) : run_(run), options_(options) {
        store::hdf5::Writer::Config config;
        config.path = options.out;
        config.name = store::text_at(run.start(), "name");
        config.start_json = start_of(run);
        config.codec = codec_of(options);
        config.nexus = config::nexus_of(recorded_nexus(nlohmann::json::parse(config.start_json)), options.nexus);
        if (options.source) config.modules = 1;
        writer_.emplace(config);
        try {
            check_definition(!(config.nexus == store::hdf5::Nexus{}));
        } catch (const core::UsageError&) {
            discard();
            throw;
        }
    }

    ~Hdf5Target() override {
        if (!finished_) discard();
    }

    void put(const ExportEvent& event) override {
        if (writer_->has_images()) refuse_too_large(*event.info, options_);
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
        for (const std::size_t i : chosen) writer_->put_payload(event.messages[i].bytes);
        writer_->end_event();
    }

    std::string finish() override {
        nlohmann::json members = nlohmann::json::object();
        for (const char* name : {"ledger", "config", "machine", "payload", "image"})
            if (const nlohmann::json& member = store::at_or_null(run_.manifest(), name); !member.is_null())
                members[name] = member;
        writer_->close(members);
        finished_ = true;
        return fmt::format("HDF5 files in {}, to be opened by {}{}", options_.out.string(),
                           (options_.out / store::hdf5::master_name).string(), no_nxmx_);
    }

private:
    /// `begun`: somebody has written down what NXmx asks for, or a part of it.
    void check_definition(bool begun) {
        if (!options_.require_nxmx && !begun) return;
        if (!writer_->has_images()) {
            if (options_.require_nxmx)
                throw core::UsageError(
                    "export: --definition: NXmx is for images, and this run's payload is none; leave it out");
            return;
        }
        const std::vector<std::string> missing = writer_->missing_for_nxmx();
        if (missing.empty()) return;
        if (options_.require_nxmx)
            throw core::UsageError(fmt::format(
                "export: --definition: no NXmx without {}; say --nexus KEY=VALUE for each (docs/reference/HDF5.md)",
                fmt::join(missing, ", ")));
        no_nxmx_ = fmt::format("; no NXmx without {} (--nexus)", fmt::join(missing, ", "));
    }

    void discard() noexcept {
        const std::filesystem::path hidden = writer_->path();
        writer_.reset();
        std::error_code error;
        std::filesystem::remove_all(hidden, error);
    }

    const store::RunReader& run_;
    const ExportOptions& options_;
    std::optional<store::hdf5::Writer> writer_;
    std::string no_nxmx_;
    bool finished_ = false;
};

}  // namespace

std::unique_ptr<ExportTarget> make_hdf5_target(const store::RunReader& run, const ExportOptions& options,
                                               const std::vector<store::IndexEntry>&) {
    return std::make_unique<Hdf5Target>(run, options);
}

}  // namespace weir::app
