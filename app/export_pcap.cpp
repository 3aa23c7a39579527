// `weir export --to pcap` and `--to pcapng`: the packets of a run again, from its payload, the detector headers that
// are kept with it, and its configuration. pcapng says of each event what became of it, and of each port what it lost.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "export_target.hpp"
#include "output_file.hpp"
#include "packet_maker.hpp"
#include "run_text.hpp"
#include "store/capture/writer.hpp"
#include "store/json_members.hpp"
#include "store/payload_info.hpp"
#include "store/pcapng_file.hpp"
#include "store/run_path.hpp"

namespace weir::app {

namespace {

/// A capture that is being made; its name is hidden until close().
class FrameFile {
public:
    virtual ~FrameFile() = default;
    virtual void put(std::span<const std::byte> frame, core::TimeNs time_ns, std::size_t port,
                     const std::string& comment) = 0;
    virtual void close() = 0;
};

class PcapFrames final : public FrameFile {
public:
    explicit PcapFrames(const std::filesystem::path& path)
        : path_(path), hidden_(store::hidden_path(path)), writer_(hidden_.string()) {}
    void put(std::span<const std::byte> frame, core::TimeNs time_ns, std::size_t, const std::string&) override {
        writer_.write(frame, time_ns);
    }
    void close() override {
        writer_.close();
        store::rename_new(hidden_, path_);
    }

private:
    std::filesystem::path path_;
    std::filesystem::path hidden_;
    store::CaptureWriter writer_;
};

class PcapngFrames final : public FrameFile {
public:
    PcapngFrames(const std::filesystem::path& path, const store::RunReader& run)
        : manifest_(run.manifest()),
          file_(path, section_of(run), interfaces_of(run)),
          ports_(interfaces_of(run).size()) {}
    void put(std::span<const std::byte> frame, core::TimeNs time_ns, std::size_t port,
             const std::string& comment) override {
        store::PcapngPacket packet;
        packet.bytes = frame;
        packet.time_ns = last_ns_ = time_ns;
        packet.wire_bytes = static_cast<std::uint32_t>(frame.size());
        packet.interface = static_cast<std::uint32_t>(std::min(port, ports_.size() - 1));
        if (!comment.empty()) packet.comments = {&comment, 1};
        file_.put(packet);
        ++ports_[packet.interface];
    }
    void close() override {
        for (std::uint32_t i = 0; i < ports_.size(); ++i) file_.put(statistics_of(i));
        file_.close();
    }

private:
    static store::PcapngSection section_of(const store::RunReader& run) {
        store::PcapngSection section;
        section.application = "weir export";
        section.comments = {"packets made again from the events of " + run.path().filename().string()};
        return section;
    }
    static std::vector<store::PcapngInterface> interfaces_of(const store::RunReader& run) {
        std::vector<store::PcapngInterface> interfaces;
        const nlohmann::json config = config_of(run);
        const nlohmann::json& ports = store::at_or_null(config, "port");
        for (const nlohmann::json& port : ports) {
            store::PcapngInterface interface;
            interface.name = store::text_at(port, "name");
            interface.description = store::text_at(port, "device");
            interfaces.push_back(interface);
        }
        if (interfaces.empty()) interfaces.emplace_back();
        return interfaces;
    }
    /// As far as the run's account knows it for each port.
    [[nodiscard]] store::PcapngStatistics statistics_of(std::uint32_t port) const {
        store::PcapngStatistics statistics;
        statistics.interface = port;
        statistics.time_ns = last_ns_;
        statistics.delivered = ports_[port];
        const nlohmann::json& ledger = store::at_or_null(manifest_, "ledger");
        const nlohmann::json& devices = store::at_or_null(ledger, "devices");
        if (devices.is_array() && port < devices.size()) {
            const auto received = store::number_at(devices[port], "received");
            const auto missed = store::number_at(devices[port], "missed");
            const auto no_buffer = store::number_at(devices[port], "no_buffer");
            if (missed || no_buffer) statistics.device_dropped = missed.value_or(0) + no_buffer.value_or(0);
            if (received) statistics.received = *received + statistics.device_dropped.value_or(0);
        } else if (ports_.size() == 1) {
            statistics.received = store::number_at(store::at_or_null(ledger, "packets"), "received");
        }
        return statistics;
    }

    const nlohmann::json& manifest_;
    store::PcapngFile file_;
    std::vector<std::uint64_t> ports_;  ///< packets of each
    core::TimeNs last_ns_ = 0;
};

/// "event 17 complete", "event 2:17 incomplete: timeout, source 3 misses 8192 bytes".
std::string comment_of(const store::EventInfo& event) {
    std::string text = fmt::format("event {}{} {}", event.epoch > 0 ? fmt::format("{}:", event.epoch) : "", event.id,
                                   event.complete ? "complete" : "incomplete");
    if (event.cause != store::Cause::complete) text += ": " + cause_text(event);
    for (const store::SourceInfo& source : event.sources) {
        std::uint64_t bytes = 0;
        for (const store::MissingRange& gap : source.missing) bytes += gap.bytes;
        if (source.state == store::SourceState::absent || source.state == store::SourceState::absent_unknown)
            text += fmt::format(", source {} misses everything", source.id);
        else if (bytes > 0)
            text += fmt::format(", source {} misses {} bytes", source.id, bytes);
        else if (!source.size_known())
            text += fmt::format(", source {} is not whole", source.id);
    }
    return text;
}

class PcapTarget final : public ExportTarget {
public:
    PcapTarget(const store::RunReader& run, const ExportOptions& options, bool pcapng)
        : options_(options), maker_(config_of(run), options.packet_bytes) {
        refuse_existing(options.out);
        if (pcapng)
            capture_ = std::make_unique<PcapngFrames>(options.out, run);
        else
            capture_ = std::make_unique<PcapFrames>(options.out);
    }

    ~PcapTarget() override {
        std::error_code error;
        capture_.reset();
        if (!finished_) std::filesystem::remove(store::hidden_path(options_.out), error);
    }

    void put(const ExportEvent& event) override {
        if (event.info->reduced()) refuse(event.info->content);
        for (const store::SourceInfo& source : event.info->sources) {
            const std::string problem =
                too_large_text(maker_.whole_bytes(source), source.received_bytes, options_.event_bytes_max);
            if (!problem.empty())
                throw EventRefused(fmt::format("source {}: {}; --max-event raises that", source.id, problem));
        }
        comment_ = comment_of(*event.info);
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
                capture_->put(frames_[k], now_, maker_.port_of(source.id), comment_);
                comment_.clear();  // it goes with the first packet of the event
                ++packets_;
            }
        }
    }

    std::string finish() override {
        capture_->close();
        finished_ = true;
        return fmt::format("{} to {}", count_text(packets_, "packet"), options_.out.string());
    }

    [[nodiscard]] std::string shortfall() const override { return maker_.shortfall(); }

    static std::unique_ptr<ExportTarget> make(const store::RunReader& run, const ExportOptions& options, bool pcapng) {
        const store::Content content = store::payload_of(run).content;
        if (content != store::Content::received) refuse(content);
        return std::make_unique<PcapTarget>(run, options, pcapng);
    }
    [[noreturn]] static void refuse(store::Content content) {
        throw core::RunError(
            fmt::format("no packets: the payload of the run's events is {}, not what was received; "
                        "use --to npy or raw",
                        store::content_names[static_cast<std::size_t>(content)]));
    }

private:
    const ExportOptions& options_;
    PacketMaker maker_;
    std::unique_ptr<FrameFile> capture_;
    std::string comment_;
    std::uint64_t packets_ = 0;
    std::vector<std::vector<std::byte>> frames_;
    core::TimeNs now_ = 0;
    bool finished_ = false;
};

}  // namespace

std::unique_ptr<ExportTarget> make_pcap_target(const store::RunReader& run, const ExportOptions& options,
                                               const std::vector<store::IndexEntry>& /*entries*/) {
    return PcapTarget::make(run, options, false);
}

std::unique_ptr<ExportTarget> make_pcapng_target(const store::RunReader& run, const ExportOptions& options,
                                                 const std::vector<store::IndexEntry>& /*entries*/) {
    return PcapTarget::make(run, options, true);
}

}  // namespace weir::app
