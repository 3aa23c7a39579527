// What live pedestals begin with: made from the configuration before the lcores start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/reducers/pedestal.hpp"
#include "config/run_config.hpp"
#include "reduce/chain/pixel_source.hpp"
#include "reduce/pedestal/tracker.hpp"

namespace weir::reduce {
class Calibration;
}

namespace weir::stages {

/// What pedestals are followed for, and with what.
struct PedestalSetup {
    config::PedestalOptions options;
    std::vector<reduce::PixelSource> sources;  ///< by source id
    wire::DeclaredField storage_cell;          ///< asked if there are several
    std::uint32_t storage_cells = 1;
    std::uint32_t modules = 1;
    reduce::PedestalState start;  ///< is moved to the one that goes on with it
    std::string started_from;     ///< in words, for the report
    std::string run;              ///< its name, for snapshots

    [[nodiscard]] std::size_t pixels() const noexcept {
        return std::size_t{modules} * storage_cells * reduce::jungfrau_pixels;
    }
};

/// Null where the chain has no `pedestal`. `calibration` is that of the `jungfrau` after it, or null if there is none.
/// Reads files; throws core::UsageError naming the reducer and the file.
[[nodiscard]] std::shared_ptr<PedestalSetup> make_pedestal_setup(const config::RunConfig& config,
                                                                 const std::vector<reduce::PixelSource>& sources,
                                                                 std::uint32_t modules,
                                                                 const reduce::Calibration* calibration);

}  // namespace weir::stages
