// Keys of [[stream]] that say how PSI's detectors are set up. Which numbers go together is checked by the formats
// (options.cpp).
#include "wire/formats/sls/sls_entry.hpp"

namespace weir::wire {

options::OptionTable<FormatOptions> sls_keys() {
    const auto of = [](auto member) {
        return [member](auto& format) -> auto& {
            return format.sls.*member;
        };
    };
    options::OptionTable<FormatOptions> out;
    out.integer("interfaces", {1, 2}, &FormatOptions::interfaces,
                "jungfrau, moench: with 2, "
                "a module sends half its rows from each of two interfaces to a UDP port of its own. Each is a source; "
                "with `source_by = \"header\"` the module is")
        .kind("1, 2");
    out.integer("bit_depth", {0, 64}, of(&SlsOptions::bit_depth), "eiger only: bits per pixel")
        .kind("4, 8, 12, 16, 32")
        .otherwise([](FormatOptions& format) { format.sls.bit_depth = 16; })
        .usually("16");
    out.boolean("tengiga", of(&SlsOptions::tengiga), "eiger only: packets of 4096 bytes, or of 1024")
        .otherwise([](FormatOptions& format) { format.sls.tengiga = true; })
        .usually("true");
    out.integer("rows", {0, 65535}, of(&SlsOptions::rows),
                "jungfrau (steps of 8), moench (of 16), eiger (whole packets): partial readout, "
                "rows of a module (eiger: of a port). A message has just these rows")
        .kind("integer")
        .unset("all");
    return out;
}

}  // namespace weir::wire
