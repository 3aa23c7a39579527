// `weir export --to mdf`: the events inside multi-event packets, as LHCb's file of raw banks.
#include <fmt/core.h>

#include "core/error.hpp"
#include "export_target.hpp"
#include "output_file.hpp"
#include "reduce/mfp/mep_view.hpp"
#include "run_text.hpp"
#include "store/mdf_record.hpp"
#include "store/payload_info.hpp"

namespace weir::app {

namespace {

using reduce::MepFragment;
using reduce::MepView;

/// Throws core::RunError if the run's payload does not consist of banks.
void check_payload(const store::RunReader& run) {
    const store::PayloadInfo payload = store::payload_of(run);
    if (payload.content != store::Content::mep)
        throw core::RunError(
            fmt::format("{} has no multi-event packets: MDF files are made of what the reducer \"mfp\" puts together",
                        run.path().string()));
    if (!payload.fragment_types)
        throw core::RunError(
            "the layout of the run's multi-fragment packets has no table of types (type_bytes = 0): "
            "without a type a fragment is no raw bank");
}

class MdfTarget final : public ExportTarget {
public:
    MdfTarget(const store::RunReader& run, const ExportOptions& options)
        : record_(run.run().value_or(0)), file_(options.out) {}

    void put(const ExportEvent& event) override {
        if (event.info->content != store::Content::mep)
            throw EventRefused("it was kept as received, because no multi-event packet could be made of it");
        std::string problem;
        const std::optional<MepView> view = MepView::parse(packet_of(event), problem);
        if (!view) throw EventRefused("its multi-event packet cannot be read: " + problem);
        check_banks(*view);
        for (std::uint32_t i = 0; i < view->events(); ++i) {
            record_.begin();
            for (std::size_t source = 0; source < view->sources().size(); ++source)
                put_bank(*view, view->fragment(i, source));
            file_.append(record_.finish());
        }
        events_ += view->events();
        banks_ += std::uint64_t{view->events()} * view->sources().size();
    }

    std::string finish() override {
        file_.finish();
        return fmt::format("{} with {}, {}, to {}", count_text(events_, "MDF event"), count_text(banks_, "bank"),
                           bytes_text(file_.bytes()), file_.path().string());
    }

private:
    /// A packet is of all sources; its bytes count as one source's.
    std::span<const std::byte> packet_of(const ExportEvent& event) {
        packet_.clear();
        for (const ExportEvent::Message& message : event.messages)
            packet_.insert(packet_.end(), message.bytes.begin(), message.bytes.end());
        return packet_;
    }

    /// Before anything of the block is written: a block is in the file as a whole, or not at all.
    static void check_banks(const MepView& view) {
        for (const reduce::MepSource& source : view.sources())
            if (source.version > UINT8_MAX)
                throw EventRefused(fmt::format("version {} of source {:#x} does not fit a raw bank: at most {}",
                                               source.version, source.id, UINT8_MAX));
        for (std::uint32_t i = 0; i < view.events(); ++i)
            for (std::size_t source = 0; source < view.sources().size(); ++source)
                if (const auto bytes = view.fragment(i, source).bytes.size(); bytes > store::mdf_bank_bytes_max)
                    throw EventRefused(fmt::format("a fragment of source {:#x} has {} bytes, a raw bank at most {}",
                                                   view.sources()[source].id, bytes, store::mdf_bank_bytes_max));
    }

    void put_bank(const MepView& view, const MepFragment& fragment) {
        const store::MdfBank bank{fragment.type, static_cast<std::uint8_t>(fragment.source.version),
                                  fragment.source.id};
        if (!record_.add(bank, fragment.bytes))
            throw core::RunError(fmt::format(
                "an event of the block from {} on does not fit an MDF record: at most 4 GiB", view.first_event()));
    }

    store::MdfRecord record_;
    OutputFile file_;
    std::vector<std::byte> packet_;
    std::uint64_t events_ = 0;
    std::uint64_t banks_ = 0;
};

}  // namespace

std::unique_ptr<ExportTarget> make_mdf_target(const store::RunReader& run, const ExportOptions& options,
                                              const std::vector<store::IndexEntry>& /*entries*/) {
    check_payload(run);
    return std::make_unique<MdfTarget>(run, options);
}

}  // namespace weir::app
