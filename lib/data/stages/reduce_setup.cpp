#include "stages/reduce_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/reducers/pedestal.hpp"
#include "config/reducers/sparse.hpp"
#include "core/allocation_context.hpp"
#include "reduce/veto/veto.hpp"
#include "stages/bytes_encoder.hpp"
#include "stages/mep_encoder.hpp"
#include "stages/pedestal_keeper.hpp"
#include "stages/pixel_encoder.hpp"

namespace weir::stages {

namespace {

constexpr std::uint32_t plain_buffer_bytes = 1U << 20U;

/// The pixels of the sources of one stream; modules are numbered on from `module`.
void add_sources(const config::StreamConfig& stream, std::uint32_t& module, std::vector<reduce::PixelSource>& out) {
    const std::uint32_t rows = stream.own.sls.rows.value_or(reduce::jungfrau_rows);
    // Both interfaces of a module are one source where the module's id tells sources apart.
    const bool halves = stream.own.interfaces == 2 && stream.source_by != config::SourceBy::header;
    for (std::uint32_t i = 0; i < stream.source_count; ++i) {
        reduce::PixelSource source;
        source.module = module + (halves ? i / 2 : i);
        source.rows = halves ? rows / 2 : rows;
        source.first_row = (reduce::jungfrau_rows - rows) / 2;  // a partial readout lies around the middle
        source.interface_in_header = halves && stream.source_by == config::SourceBy::address;
        if (halves && !source.interface_in_header) source.first_row += i % 2 * source.rows;
        out.push_back(source);
    }
    module = out.back().module + 1;
}

[[noreturn]] void refuse(const config::ReduceConfig& reducer, const std::string& text) {
    throw core::UsageError(
        fmt::format("{}:{}: [[reduce]] {}: {}", reducer.place.file, reducer.place.line, reducer.kind(), text));
}

}  // namespace

ReduceSetup::ReduceSetup(const config::RunConfig& config) : chain_(config.reduce) {
    const core::AllocationContext allocating("pedestals, gains and masks");
    jungfrau_ = find_reducer<config::JungfrauOptions>(chain_);
    mfp_ = find_reducer<config::MfpOptions>(chain_);
    source_count_ = config.sources.size();
    if (mfp_ != nullptr) check_source_names();
    pixels_ = jungfrau_ != nullptr;
    const auto wants_pixels = [](const config::ReduceConfig& one) {
        return one.as<config::JungfrauOptions>() != nullptr || one.as<config::PedestalOptions>() != nullptr;
    };
    if (std::ranges::none_of(chain_, wants_pixels)) return;
    const auto& reducer = *std::ranges::find_if(chain_, wants_pixels);
    std::uint32_t module = 0;
    for (const config::StreamConfig& stream : config.streams) {
        check_stream(reducer, stream);
        add_sources(stream, module, sources_);
        const bool halves = stream.own.interfaces == 2 && stream.source_by != config::SourceBy::header;
        if (halves && stream.source_count % 2 != 0)
            refuse(reducer, fmt::format("found a stream with interfaces = 2 and {} sources; accepted: "
                                        "two sources for each module",
                                        stream.source_count));
        sources_per_module_ = halves ? 2 : 1;
    }
    if (std::ranges::any_of(sources_, [&](const auto& source) { return source.rows != sources_.front().rows; }))
        refuse(reducer,
               "found streams whose sources have different numbers of rows; accepted: "
               "the same `rows` and `interfaces` for all streams");
    modules_ = module;
}

/// What comes by RDMA lies in memory as it does in the packets of UDP, but not every way has a detector header.
void ReduceSetup::check_stream(const config::ReduceConfig& reducer, const config::StreamConfig& stream) const {
    if (stream.transport == config::Transport::udp) return;
    if (jungfrau_ == nullptr) return;
    if (jungfrau_->at == config::JungfrauOptions::At::fragment)
        refuse(reducer,
               "found at = \"fragment\" and a stream with transport = \"roce\", whose packets do not say which "
               "pixels they carry; accepted: at = \"event\"");
    if (jungfrau_->calibration.storage_cells > 1 && stream.event != config::EventBy::format)
        refuse(reducer,
               "found several storage cells and a stream whose frames come without the detector header that says "
               "which; accepted: event = \"format\"");
    const std::uint64_t bytes = std::uint64_t{reduce::jungfrau_columns} * sizeof(std::uint16_t) *
                                stream.own.sls.rows.value_or(reduce::jungfrau_rows) /
                                static_cast<std::uint32_t>(stream.own.interfaces);
    for (const config::RoceConfig::Region& at : stream.roce.regions)
        if (stream.event == config::EventBy::immediate && at.region.backed && at.region.bytes != bytes)
            refuse(reducer, fmt::format("found buffers of {} bytes for frames without a header; accepted: {}",
                                        at.region.bytes, bytes));
}

void ReduceSetup::load() {
    for (const config::ReduceConfig& reducer : chain_) {
        try {
            if (reducer.as<config::JungfrauOptions>() != nullptr) load_calibration();
            if (const auto* sparse = reducer.as<config::SparseOptions>()) load_noise(*sparse);
        } catch (const core::UsageError& error) {
            refuse(reducer, error.what());
        }
    }
}

void ReduceSetup::check_source_names() const {
    const auto& reducer =
        *std::ranges::find_if(chain_, [](const auto& one) { return one.template as<config::MfpOptions>(); });
    for (const auto& [key, numbers] : {std::pair{"source_ids", &mfp_->source_ids}, {"versions", &mfp_->versions}})
        if (!numbers->empty() && numbers->size() != source_count_)
            refuse(reducer, fmt::format("{} has {} numbers; accepted: {}, one for each source", key, numbers->size(),
                                        source_count_));
}

void ReduceSetup::load_calibration() {
    reduce::CalibrationConfig calibration = jungfrau_->calibration;
    calibration.modules = modules_;
    calibration_ = std::make_shared<const reduce::Calibration>(calibration);
}

void ReduceSetup::load_noise(const config::SparseOptions& sparse) {
    if (sparse.rms.empty()) return;
    reduce::NoiseThresholds::Config config{sparse.rms, static_cast<float>(*sparse.sigma), {}};
    if (sparse.threshold) config.lowest = static_cast<float>(*sparse.threshold);
    noise_ = std::make_shared<const reduce::NoiseThresholds>(config, *calibration_);
}

nlohmann::json ReduceSetup::payload_json() const {
    const auto packed = packing(chain_);
    const std::string_view codec = packed ? reduce::pack::name(packed->codec) : "none";
    if (mfp_ != nullptr)
        return {{"content", "mep"},
                {"order", mfp_->order == reduce::MepOrder::sources ? "sources" : "events"},
                {"types", mfp_->layout.type_bytes > 0},
                {"codec", codec}};
    if (!pixels_)
        return needs_version_2() ? nlohmann::json{{"content", "received"}, {"codec", codec}} : nlohmann::json();
    using Unit = reduce::CalibrationConfig::Unit;
    const reduce::CalibrationConfig& calibration = jungfrau_->calibration;
    nlohmann::json out{{"content", "pixels"},
                       {"type", reduce::pixel_type_names[static_cast<std::size_t>(jungfrau_->output)]},
                       {"unit", calibration.unit == Unit::kev ? "kev" : "photon"},
                       {"rows", sources_.front().rows},
                       {"columns", reduce::jungfrau_columns},
                       {"modules", modules_},
                       {"sources_per_module", sources_per_module_}};
    if (calibration.photon_kev != 0) out["photon_kev"] = calibration.photon_kev;
    out["codec"] = codec;
    if (const auto* sparse = find_reducer<config::SparseOptions>(chain_)) {
        out["sparse"] = nlohmann::json::object();
        if (sparse->threshold) out["sparse"]["threshold"] = *sparse->threshold;
        if (sparse->sigma) out["sparse"]["sigma"] = *sparse->sigma;
    }
    if (const auto* veto = find_reducer<reduce::VetoOptions>(chain_)) out["veto"] = {{"threshold", veto->threshold}};
    return out;
}

std::uint32_t ReduceSetup::output_buffer_bytes() const {
    if (!pixels_) return plain_buffer_bytes;
    // Four pieces with their headers, so that a buffer is not a quarter empty.
    const std::uint32_t pieces = plain_buffer_bytes + (64U << 10U);
    const reduce::PixelChain chain(chain_config(), make_codec());
    if (!chain.concludes()) return pieces;
    const std::size_t whole = pixel_event_bytes_max(chain, sources_.size());
    return static_cast<std::uint32_t>((whole + pieces + 4095) / 4096 * 4096);
}

config::ReduceMemory ReduceSetup::memory(std::uint32_t workers) const {
    config::ReduceMemory memory;
    std::uint64_t cells = 1;
    if (jungfrau_ != nullptr) {
        reduce::CalibrationConfig calibration = jungfrau_->calibration;
        calibration.modules = modules_;
        cells = calibration.storage_cells;
        memory.calibration_bytes =
            calibration_ != nullptr ? calibration_->memory_bytes() : reduce::Calibration::memory_bytes(calibration);
    }
    const std::uint64_t pixels = modules_ * cells * reduce::jungfrau_pixels;
    if (const auto* sparse = find_reducer<config::SparseOptions>(chain_); sparse != nullptr && !sparse->rms.empty())
        memory.noise_bytes = pixels * sizeof(float);
    if (const auto* pedestal = find_reducer<config::PedestalOptions>(chain_)) {
        memory.pedestal_bytes = pixels * PedestalKeeper::pixel_bytes;
        std::uint64_t frame = 0;
        for (const reduce::PixelSource& source : sources_) frame += source.pixels() * sizeof(std::uint16_t);
        memory.dark_frame_bytes = frame * workers * config::dark_frames_of_worker(pedestal->queue, workers);
    }
    return memory;
}

bool ReduceSetup::needs_version_2() const noexcept {
    const auto packed = packing(chain_);
    return pixels_ || mfp_ != nullptr || (packed && packed->codec != reduce::pack::Codec::zstd);
}

std::unique_ptr<reduce::PieceCodec> ReduceSetup::make_codec() const {
    return make_piece_codec(chain_);
}

reduce::PixelChain::Config ReduceSetup::chain_config() const {
    reduce::PixelChain::Config config;
    config.calibration = calibration_;
    config.output = jungfrau_->output;
    config.sources = sources_;
    config.storage_cell = jungfrau_->storage_cell;
    config.converted = jungfrau_->at == config::JungfrauOptions::At::fragment;
    if (const auto* veto = find_reducer<reduce::VetoOptions>(chain_)) config.selection.veto = *veto;
    if (const auto* sparse = find_reducer<config::SparseOptions>(chain_)) {
        reduce::SparseConfig& selection = config.selection.sparse.emplace();
        if (sparse->threshold) selection.threshold = static_cast<float>(*sparse->threshold);
        if (sparse->sigma) selection.sigma = static_cast<float>(*sparse->sigma);
        selection.noise = noise_;
    }
    return config;
}

reduce::MepWriter::Config ReduceSetup::mep_config(std::uint32_t event_refs_max) const {
    reduce::MepWriter::Config config;
    config.layout = mfp_->layout;
    config.order = mfp_->order;
    config.fragments_max = mfp_->fragments_max;
    config.refs_max = event_refs_max;
    for (std::size_t source = 0; source < source_count_; ++source) {
        const std::size_t id = mfp_->source_ids.empty() ? source : mfp_->source_ids[source];
        const std::uint32_t version = mfp_->versions.empty() ? mfp_->version : mfp_->versions[source];
        config.sources.push_back({static_cast<std::uint16_t>(id), static_cast<std::uint16_t>(version)});
    }
    return config;
}

std::unique_ptr<EventEncoder> ReduceSetup::make_encoder(const EncoderConfig& config) const {
    if (mfp_ != nullptr) return std::make_unique<MepEncoder>(mep_config(config.event_refs_max), make_codec());
    if (!pixels_)
        return std::make_unique<BytesEncoder>(BytesEncoder::Config{config.refs_max, config.reads_payload},
                                              make_codec());
    reduce::PixelChain::Config chain = chain_config();
    chain.refs_max = config.refs_max;
    chain.pedestals = config.pedestals;
    return std::make_unique<PixelEncoder>(chain, make_codec());
}

std::unique_ptr<reduce::FragmentConverter> ReduceSetup::make_converter() const {
    if (jungfrau_ == nullptr || jungfrau_->at != config::JungfrauOptions::At::fragment) return nullptr;
    return std::make_unique<reduce::FragmentConverter>(
        reduce::FragmentConverterConfig{calibration_, jungfrau_->output, sources_, jungfrau_->storage_cell});
}

std::shared_ptr<PedestalSetup> ReduceSetup::make_pedestals(const config::RunConfig& config) const {
    return make_pedestal_setup(config, sources_, modules_, calibration_.get());
}

}  // namespace weir::stages
