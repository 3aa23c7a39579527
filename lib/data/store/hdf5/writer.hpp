// The HDF5 sink: writes the events of a run as a set of HDF5 files in NeXus layout (docs/reference/HDF5.md). For one
// ordinary thread; may block. Hidden until it is complete, as the event file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "store/event_scanner.hpp"
#include "store/event_sink.hpp"
#include "store/hdf5/data_file.hpp"
#include "store/hdf5/image.hpp"
#include "store/hdf5/layout.hpp"
#include "store/hdf5/master_file.hpp"
#include "store/run_directory.hpp"

namespace weir::store::hdf5 {

class Writer final : public EventSink {
public:
    struct Config {
        std::filesystem::path path;     ///< of the folder that will have the files; refused if it exists
        std::string name;               ///< of the run, for people
        std::string start_json = "{}";  ///< {"config": …, "machine": …, "payload": …}
        std::uint64_t segment_bytes = std::uint64_t{4} << 30;  ///< a new data file begins after this …
        std::uint64_t events_per_file = 0;                     ///< … or so many events; 0: not by number
        std::uint64_t sync_bytes = std::uint64_t{256} << 20;   ///< flush and fdatasync after so many bytes …
        core::TimeNs sync_interval_ns = core::ns_per_s;        ///< … or so long after the last time
        std::optional<Codec> codec;                            ///< else as the chain compresses
        Nexus nexus;
        std::optional<std::size_t> modules;  ///< of an image, if not one for each source of the run
    };

    /// Creates the hidden folder and a master file in it. Throws core::RunError.
    explicit Writer(const Config& config);
    ~Writer() override;

    void append(std::span<std::byte> blocks) override;
    void sync_if_due() override;
    void finish_data() override;
    void close(const nlohmann::json& manifest_extra) override;
    [[nodiscard]] const Stats& stats() const noexcept override { return stats_; }
    [[nodiscard]] bool failed() const noexcept override { return failed_; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept override { return directory_.path(); }
    [[nodiscard]] std::optional<std::uint64_t> free_bytes() const noexcept override {
        return directory_.directory().free_bytes();
    }

    /// For who has events rather than blocks, and not both: an event, its decoded payload in order, its end. Errors as
    /// append().
    void begin_event(const EventInfo& event);
    void put_payload(std::span<const std::byte> decoded);
    void end_event();

    /// The events are images, as NXmx has them.
    [[nodiscard]] bool has_images() const noexcept { return description_.element && description_.columns != 0; }
    /// Keys without which the files will be no NXmx; empty if they will, or if the data is no image.
    [[nodiscard]] std::vector<std::string> missing_for_nxmx() const;

private:
    void take_block(const BlockHeader& header, std::span<const std::byte> body);
    void take_event(const BlockHeader& header, std::span<const std::byte> body);
    void take_sources(std::span<const std::byte> body);
    void take_payload(BlockHeader header, std::span<const std::byte> body);
    void begin();
    void put(std::span<const std::byte> decoded);
    void end();
    void open_file();
    void close_file();
    void sync();
    void write_live_master();
    void write_master_file(const MasterContent& content);
    [[nodiscard]] MasterContent master_content() const;
    void count() noexcept;
    void count_synced() noexcept;
    template <class Action>
    void guarded(Action action);
    [[noreturn]] void fail(const std::string& what);

    Config config_;
    RunDirectory directory_;
    File lock_;
    RunText text_;
    Description description_;
    std::optional<Layout> layout_;
    std::optional<DataFile> file_;
    std::optional<ImageAssembler> image_;
    std::vector<DataSpan> closed_files_;
    PayloadDecoder decoder_;
    Stats stats_;
    std::uint64_t closed_bytes_ = 0;
    std::uint64_t payload_bytes_ = 0;  ///< of whole events
    std::uint64_t synced_payload_bytes_ = 0;
    core::TimeNs last_sync_ns_ = 0;
    core::TimeNs last_event_ns_ = 0;
    EventInfo event_;
    std::uint64_t event_stream_offset_ = 0;
    std::uint64_t payload_left_ = 0;
    std::uint32_t sources_left_ = 0;
    bool event_open_ = false;
    bool failed_ = false;
    bool broken_ = false;  ///< the current file could not be brought into order after an error
    bool data_finished_ = false;
    bool closed_ = false;
    std::string failure_;
};

}  // namespace weir::store::hdf5
