// What a run's reducers share, made from the configuration: which pixels each source sends, the calibration, what the
// payload is; and an encoder for each worker.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "config/reduce_memory.hpp"
#include "config/reducers/jungfrau.hpp"
#include "config/reducers/mfp.hpp"
#include "config/reducers/sparse.hpp"
#include "config/run_config.hpp"
#include "reduce/chain/fragment_converter.hpp"
#include "reduce/chain/pixel_chain.hpp"
#include "stages/event_encoder.hpp"
#include "stages/pedestal_setup.hpp"

namespace weir::stages {

class ReduceSetup {
public:
    /// Reads nothing yet. Throws core::UsageError where a stream cannot be what the reducers need.
    explicit ReduceSetup(const config::RunConfig& config);

    /// Reads the files that reducers need. Throws core::UsageError naming the reducer and the file.
    void load();

    /// Anything but what version 1 of the event file can hold.
    [[nodiscard]] bool needs_version_2() const noexcept;
    /// What the payload is, for the run's start JSON and the manifest: docs/reference/EVENT_FILE.md. Null where it is
    /// as received and version 1 has it.
    [[nodiscard]] nlohmann::json payload_json() const;
    /// Which pixels each source sends; empty where the payload is no pixels.
    [[nodiscard]] const std::vector<reduce::PixelSource>& sources() const noexcept { return sources_; }
    /// Bytes of an output buffer, so that the pieces of an event, or a whole event, find room.
    [[nodiscard]] std::uint32_t output_buffer_bytes() const;

    /// What `workers` and the thread behind them hold; exact after load().
    [[nodiscard]] config::ReduceMemory memory(std::uint32_t workers) const;

    struct EncoderConfig {
        std::uint32_t refs_max = 4096;        ///< references that one message can have
        std::uint32_t event_refs_max = 4096;  ///< … and all messages of an event together
        bool reads_payload = true;
        const reduce::PedestalView* pedestals = nullptr;  ///< live ones, of the worker's event in hand
    };
    /// What live pedestals begin with; null where there are none. Reads files. After load().
    [[nodiscard]] std::shared_ptr<PedestalSetup> make_pedestals(const config::RunConfig& config) const;
    /// What converts packets on an rx lcore; null where nothing does. After load().
    [[nodiscard]] std::unique_ptr<reduce::FragmentConverter> make_converter() const;
    /// After load().
    [[nodiscard]] std::unique_ptr<EventEncoder> make_encoder(const EncoderConfig& config) const;

private:
    void check_source_names() const;
    void check_stream(const config::ReduceConfig& reducer, const config::StreamConfig& stream) const;
    void load_calibration();
    void load_noise(const config::SparseOptions& sparse);
    [[nodiscard]] std::unique_ptr<reduce::PieceCodec> make_codec() const;
    [[nodiscard]] reduce::PixelChain::Config chain_config() const;
    [[nodiscard]] reduce::MepWriter::Config mep_config(std::uint32_t event_refs_max) const;

    std::vector<config::ReduceConfig> chain_;
    const config::JungfrauOptions* jungfrau_ = nullptr;
    const config::MfpOptions* mfp_ = nullptr;
    std::size_t source_count_ = 0;
    bool pixels_ = false;
    std::uint32_t modules_ = 1;
    std::uint32_t sources_per_module_ = 1;
    std::vector<reduce::PixelSource> sources_;
    std::shared_ptr<const reduce::Calibration> calibration_;
    std::shared_ptr<const reduce::NoiseThresholds> noise_;  ///< of a file
};

}  // namespace weir::stages
