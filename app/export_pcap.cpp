// `weir export --to pcap`: the packets of a run again, from its payload, the detector headers that are kept with it,
// and its configuration.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "export_target.hpp"
#include "packet_maker.hpp"
#include "port/capture_writer.hpp"
#include "run_text.hpp"
#include "store/run_path.hpp"

namespace weir::app {

namespace {

class PcapTarget final : public ExportTarget {
public:
    PcapTarget(const store::RunReader& run, const ExportOptions& options)
        : options_(options), hidden_(store::hidden_path(options.out)), maker_(config_of(run), options.packet_bytes) {
        refuse_existing(options.out);
        capture_.emplace(hidden_.string());
    }

    ~PcapTarget() override {
        std::error_code error;
        if (!finished_) std::filesystem::remove(hidden_, error);
    }

    void put(const ExportEvent& event) override {
        for (std::size_t i = 0; i < event.messages.size(); ++i) {
            const store::SourceInfo& source = event.info->sources[i];
            frames_.clear();
            maker_.make(*event.info, source, event.messages[i].bytes, frames_);
            const std::uint64_t count = frames_.size();
            // The packets of a message are spread evenly; only its first and its last time are kept.
            const auto first = static_cast<std::uint64_t>(source.first_ns);
            const std::uint64_t span =
                source.last_ns > source.first_ns ? static_cast<std::uint64_t>(source.last_ns) - first : 0;
            for (std::uint64_t k = 0; k < count; ++k) {
                const auto time = static_cast<core::TimeNs>(count < 2 ? first : first + span / (count - 1) * k);
                now_ = std::max(now_, time);
                capture_->write(frames_[k], now_);
            }
        }
    }

    std::string finish() override {
        const std::uint64_t records = capture_->records();
        capture_->close();
        store::rename_new(hidden_, options_.out);
        finished_ = true;
        return fmt::format("{} to {}", count_text(records, "packet"), options_.out.string());
    }

    [[nodiscard]] std::string shortfall() const override { return maker_.shortfall(); }

private:
    const ExportOptions& options_;
    std::filesystem::path hidden_;
    PacketMaker maker_;
    std::optional<port::CaptureWriter> capture_;
    std::vector<std::vector<std::byte>> frames_;
    core::TimeNs now_ = 0;
    bool finished_ = false;
};

}  // namespace

std::unique_ptr<ExportTarget> make_pcap_target(const store::RunReader& run, const ExportOptions& options) {
    return std::make_unique<PcapTarget>(run, options);
}

}  // namespace weir::app
