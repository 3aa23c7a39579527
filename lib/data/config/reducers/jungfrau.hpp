// [[reduce]] kind = "jungfrau", as configured.
#pragma once

#include <cstdint>

#include "reduce/pixels/calibration.hpp"
#include "reduce/pixels/pixel_type.hpp"
#include "wire/format.hpp"

namespace weir::config {

/// docs/reference/reduce/jungfrau.md. `calibration.modules` is not read: it follows from the streams.
struct JungfrauOptions {
    reduce::CalibrationConfig calibration;
    reduce::PixelType output = reduce::PixelType::f32;
    /// Where pixels are converted: whole events by the work lcores, or each packet by the rx lcore that it arrives at.
    enum class At : std::uint8_t { event, fragment };
    At at = At::event;
    /// Where the detector header has the storage cell, asked only with more than one: bits 11..8 of detSpec3
    /// (slsDetectorPackage, docs/src/udpheader.rst, "DAQ info").
    wire::DeclaredField storage_cell{.offset = 40, .bytes = 4, .mask = 0xf00, .shift = 8};

    bool operator==(const JungfrauOptions&) const = default;
};

}  // namespace weir::config
