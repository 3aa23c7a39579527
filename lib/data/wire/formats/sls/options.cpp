// What the options of a stream make of the three detectors: sizes, and which packet numbers a frame has.
#include <numeric>
#include <string>

#include "core/error.hpp"
#include "wire/formats/eiger/eiger.hpp"
#include "wire/formats/jungfrau/jungfrau.hpp"
#include "wire/formats/moench/moench.hpp"

namespace weir::wire {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& accepted) {
    throw core::UsageError(option + ": " + accepted);
}

void refuse_eiger_options(const FormatOptions& options, const std::string& name) {
    if (options.sls.bit_depth) refuse("bit_depth", "belongs to format eiger; " + name + " always has 16 bits");
    if (options.sls.tengiga) refuse("tengiga", "belongs to format eiger; " + name + " has one packet size");
}

/// JUNGFRAU and MOENCH. A partial readout lies around the middle of the module and keeps the packet numbers of the
/// whole image. With two interfaces the first has the first half of the image memory, so there the numbers end with the
/// last of the half; the second half begins at 0 again.
template <class Detector>
FormatContext module_context(const FormatOptions& options, const std::string& name) {
    refuse_eiger_options(options, std::string(Detector::name));
    if (options.interfaces != 1 && options.interfaces != 2)
        refuse("interfaces = " + std::to_string(options.interfaces), "a " + name + " module has 1 or 2 UDP interfaces");
    const std::uint32_t rows = options.sls.rows.value_or(Detector::rows);
    if (rows == 0 || rows > Detector::rows || rows % Detector::rows_step != 0)
        refuse("rows = " + std::to_string(rows),
               "a " + name + " module reads out " + std::to_string(Detector::rows_step) + " to " +
                   std::to_string(Detector::rows) + " rows, in steps of " + std::to_string(Detector::rows_step));
    const auto interfaces = static_cast<std::uint32_t>(options.interfaces);
    const std::uint32_t module_packets = rows * Detector::row_bytes / Detector::payload_bytes;
    const std::uint32_t lane_packets = module_packets / interfaces;
    const bool joined = interfaces == 2 && options.sls.interfaces_joined;
    const std::uint32_t packets = joined ? module_packets : lane_packets;
    FormatContext context{.header_bytes = Sls::header_bytes,
                          .header_read_bytes = Sls::header_bytes,
                          .payload_bytes = Detector::payload_bytes,
                          .packets_per_message = packets,
                          .message_bytes = packets * Detector::payload_bytes,
                          .message_bytes_max = packets * Detector::payload_bytes,
                          .carries_source = true};
    context.sls.lane_packets = lane_packets;
    context.sls.lanes[0].first_packet = (Detector::packets_per_module - module_packets) / 2;
    if (joined) context.sls.lanes[1].offset = lane_packets * Detector::payload_bytes;
    // With the whole image on two sources, both interfaces have the same numbers.
    if (interfaces == 2 && (joined || rows != Detector::rows)) context.sls.lane_by = options.sls.lane_by;
    return context;
}

}  // namespace

FormatContext Jungfrau::make_context(const FormatOptions& options) {
    return module_context<Jungfrau>(options, "JUNGFRAU");
}

FormatContext Moench::make_context(const FormatOptions& options) {
    return module_context<Moench>(options, "MOENCH");
}

FormatContext Eiger::make_context(const FormatOptions& options) {
    if (options.interfaces != 1)
        refuse("interfaces = " + std::to_string(options.interfaces),
               "belongs to formats jungfrau and moench; every port of an EIGER half module is a source");
    const std::uint32_t bits = options.sls.bit_depth.value_or(16);
    if (bits != 4 && bits != 8 && bits != 12 && bits != 16 && bits != 32)
        refuse("bit_depth = " + std::to_string(bits), "an EIGER pixel has 4, 8, 12, 16 or 32 bits");
    const std::uint32_t payload = options.sls.tengiga.value_or(true) ? payload_bytes_10g : payload_bytes_1g;
    const std::uint32_t row_bytes = columns * bits / 8;
    const std::uint32_t rows_read = options.sls.rows.value_or(rows);
    // Packets are always full, so the rows have to fill them.
    const std::uint32_t step = payload / std::gcd(payload, row_bytes);
    if (rows_read == 0 || rows_read > rows || rows_read % step != 0)
        refuse("rows = " + std::to_string(rows_read),
               "a port of an EIGER half module reads out up to 256 rows, in steps of " + std::to_string(step) +
                   " with pixels of " + std::to_string(bits) + " bits in packets of " + std::to_string(payload) +
                   " bytes");
    const std::uint32_t bytes = rows_read * row_bytes;
    FormatContext context{.header_bytes = Sls::header_bytes,
                          .header_read_bytes = Sls::header_bytes,
                          .payload_bytes = payload,
                          .packets_per_message = bytes / payload,
                          .message_bytes = bytes,
                          .message_bytes_max = bytes,
                          .carries_source = true};
    context.sls.lane_packets = bytes / payload;
    return context;
}

}  // namespace weir::wire
