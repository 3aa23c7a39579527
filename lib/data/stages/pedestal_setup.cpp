#include "stages/pedestal_setup.hpp"

#include "config/reducers/jungfrau.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "reduce/pixels/calibration.hpp"
#include "reduce/pixels/plane_files.hpp"
#include "store/pedestal_snapshot.hpp"

namespace weir::stages {

namespace {

using Start = config::PedestalOptions::Start;

/// The pedestals of `jungfrau`: where they are bad, so are these. Without RMS they weigh nothing against dark frames,
/// but stay until there are enough of those.
void start_from_files(PedestalSetup& setup, const reduce::Calibration& calibration) {
    reduce::PedestalState& start = setup.start;
    const std::size_t gain = setup.options.gain;
    for (std::uint32_t module = 0; module < setup.modules; ++module)
        for (std::uint32_t cell = 0; cell < setup.storage_cells; ++cell) {
            const float* pedestal = calibration.of(module, 0, cell).pedestal[gain];
            double* mean =
                start.mean.data() + (std::size_t{module} * setup.storage_cells + cell) * reduce::jungfrau_pixels;
            std::copy(pedestal, pedestal + reduce::jungfrau_pixels, mean);
        }
    setup.started_from = "the files of jungfrau";
}

/// What the RMS files have: a pixel whose RMS is 0 or no number stays unknown.
void read_rms(PedestalSetup& setup) {
    const reduce::PlaneFiles files("rms", setup.options.rms, setup.modules, {setup.storage_cells},
                                   {sizeof(float), sizeof(double)});
    std::size_t at = 0;
    for (std::uint32_t module = 0; module < setup.modules; ++module)
        for (std::uint32_t cell = 0; cell < setup.storage_cells; ++cell)
            for (const double rms : files.read(module, cell)) {
                if (std::isfinite(rms) && rms > 0) {
                    setup.start.variance[at] = static_cast<float>(rms * rms);
                    setup.start.weight[at] = static_cast<float>(setup.options.frames);
                }
                ++at;
            }
    setup.started_from += " and their RMS";
}

void start_from_snapshot(PedestalSetup& setup, const std::filesystem::path& path,
                         const reduce::Calibration* calibration) {
    store::PedestalSnapshot about;
    about.gain = setup.options.gain;
    about.modules = setup.modules;
    about.storage_cells = setup.storage_cells;
    const reduce::PedestalState files = std::move(setup.start);
    setup.start = store::read_pedestal_snapshot(path, about);
    // A pixel that is bad by now is bad; of one that the snapshot knows nothing of the file's pedestal stays.
    for (std::size_t i = 0; calibration != nullptr && i < files.mean.size(); ++i)
        if (std::isnan(files.mean[i]) || (setup.start.weight[i] == 0 && !std::isnan(setup.start.mean[i])))
            setup.start.mean[i] = files.mean[i];
    setup.started_from = path.string();
}

void load(PedestalSetup& setup, const reduce::Calibration* calibration) {
    setup.start = reduce::PedestalState(setup.pixels());
    if (calibration != nullptr)
        start_from_files(setup, *calibration);
    else
        setup.started_from = "nothing";
    if (!setup.options.rms.empty()) {
        if (calibration == nullptr)
            throw core::UsageError("rms: found files without pedestals; accepted: rms where a jungfrau has them");
        read_rms(setup);
    }
    if (setup.options.start == Start::snapshot) start_from_snapshot(setup, setup.options.start_path, calibration);
    if (setup.options.start != Start::last) return;
    if (const auto last = store::last_pedestal_snapshot(setup.options.snapshots, setup.options.gain))
        start_from_snapshot(setup, *last, calibration);
    else
        setup.started_from +=
            fmt::format(", because {} has no snapshot of gain {}", setup.options.snapshots, setup.options.gain);
}

}  // namespace

std::shared_ptr<PedestalSetup> make_pedestal_setup(const config::RunConfig& config,
                                                   const std::vector<reduce::PixelSource>& sources,
                                                   std::uint32_t modules, const reduce::Calibration* calibration) {
    const auto reducer = std::ranges::find_if(
        config.reduce, [](const config::ReduceConfig& one) { return one.as<config::PedestalOptions>() != nullptr; });
    if (reducer == config.reduce.end()) return nullptr;
    auto setup = std::make_shared<PedestalSetup>();
    setup->options = *reducer->as<config::PedestalOptions>();
    setup->sources = sources;
    setup->modules = modules;
    setup->run = config.name;
    if (const auto* jungfrau = find_reducer<config::JungfrauOptions>(config.reduce)) {
        setup->storage_cell = jungfrau->storage_cell;
        setup->storage_cells = jungfrau->calibration.storage_cells;
    }
    try {
        load(*setup, calibration);
    } catch (const core::UsageError& error) {
        throw core::UsageError(
            fmt::format("{}:{}: [[reduce]] pedestal: {}", reducer->place.file, reducer->place.line, error.what()));
    }
    return setup;
}

}  // namespace weir::stages
