// What the operator knows of an experiment and weir does not, for the NeXus fields of its HDF5 files.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace weir::store::hdf5 {

/// Nothing is written for what is not set.
struct Nexus {
    std::string title;
    std::string instrument;
    std::string source;  ///< the storage ring or laser
    std::string sample;
    std::string detector;         ///< description of the detector; else what the format says
    std::string sensor_material;  ///< "Si", "CdTe"
    std::optional<double> sensor_thickness_um;
    std::optional<double> pixel_size_um;        ///< of square pixels; else what the format says
    std::optional<double> wavelength_angstrom;  ///< else from the photon energy of a jungfrau reducer
    std::optional<double> total_flux;           ///< photons per second
    std::optional<double> distance_mm;
    std::optional<std::array<double, 2>>
        beam_center;  ///< x, y in pixels from the corner of the first module, gaps counted
    std::optional<std::array<double, 3>> fast_direction;  ///< unit vectors in the laboratory (McStas) frame
    std::optional<std::array<double, 3>> slow_direction;
    /// Between neighbouring modules of the image, in pixels: one for all, or one for each two.
    std::vector<double> module_gap{};
    bool operator==(const Nexus&) const = default;
};

}  // namespace weir::store::hdf5
