// `weir export --to raw`: the bytes of events as `weir inspect --export` gives them, and an index of them as JSON.
#include <fmt/core.h>

#include "core/error.hpp"
#include "export_target.hpp"
#include "output_file.hpp"
#include "output_folder.hpp"
#include "run_text.hpp"

namespace weir::app {

namespace {

using nlohmann::json;

class RawTarget final : public ExportTarget {
public:
    RawTarget(const store::RunReader& run, const ExportOptions& options) : options_(options) {
        if (options.concatenate) {
            all_.emplace(options.out);
            index_.emplace(std::filesystem::path(options.out.string() + ".json"));
        } else {
            folder_.emplace(options.out);
            index_.emplace(folder_->hidden() / "index.json");
        }
        index_->append(fmt::format("{{\"run\": {}, \"events\": [", dump(json(run.path().string()))));
    }

    void put(const ExportEvent& event) override {
        const store::EventInfo& info = *event.info;
        check_source(info);
        bool sizes_known = true;
        for (std::size_t i = 0; i < info.sources.size(); ++i)
            if (!info.reduced() && (!options_.source || *options_.source == info.sources[i].id))
                sizes_known = sizes_known && info.sources[i].size_known();
        if (sizes_known) refuse_too_large(info, options_);
        json entry = event_json(info);
        const std::string name = fmt::format("event-{}-{}.bin", info.epoch, info.id);
        std::optional<OutputFile> own;
        if (!options_.concatenate) own.emplace(folder_->hidden() / name);
        OutputFile& file = own ? *own : *all_;
        const std::uint64_t start = file.bytes();
        for (std::size_t i = 0; i < event.messages.size(); ++i) {
            if (options_.source && *options_.source != info.sources[i].id) continue;
            if (sizes_known && !info.reduced())
                put_filled(info.sources[i], event.messages[i].bytes, file);
            else
                file.append(event.messages[i].bytes);  // as `inspect --export`: what came without the gaps
        }
        const std::uint64_t bytes = file.bytes() - start;
        if (own) {
            own->finish();
            entry["file"] = name;
        } else {
            entry["offset"] = start;
        }
        entry["exported_bytes"] = bytes;
        entry["gaps_filled"] = sizes_known;
        total_ += bytes;
        index_->append((first_ ? "\n " : ",\n ") + dump(entry));
        first_ = false;
    }

    std::string finish() override {
        index_->append("\n]}\n");
        if (all_) all_->finish();
        index_->finish();
        if (folder_) folder_->finish();
        const std::filesystem::path index = folder_ ? options_.out / index_->path().filename() : index_->path();
        return fmt::format("{} to {}, their places in {}", bytes_text(total_), options_.out.string(), index.string());
    }

private:
    void check_source(const store::EventInfo& info) const {
        if (!options_.source) return;
        for (const store::SourceInfo& source : info.sources)
            if (source.id == *options_.source) return;
        throw core::RunError(fmt::format("event {}:{} has no source {}", info.epoch, info.id, *options_.source));
    }

    /// Zeros where bytes are missing.
    static void put_filled(const store::SourceInfo& source, std::span<const std::byte> bytes, OutputFile& file) {
        std::uint64_t at = 0;
        for_each_piece(source, bytes, [&](std::uint64_t offset, std::span<const std::byte> piece) {
            file.append_zeros(offset - at);
            file.append(piece);
            at = offset + piece.size();
        });
        file.append_zeros(source.declared_bytes - at);
    }

    const ExportOptions& options_;
    std::optional<OutputFolder> folder_;  ///< outlives the files in it
    std::optional<OutputFile> all_;
    std::optional<OutputFile> index_;
    std::uint64_t total_ = 0;
    bool first_ = true;
};

}  // namespace

std::unique_ptr<ExportTarget> make_raw_target(const store::RunReader& run, const ExportOptions& options,
                                              const std::vector<store::IndexEntry>& /*entries*/) {
    return std::make_unique<RawTarget>(run, options);
}

}  // namespace weir::app
