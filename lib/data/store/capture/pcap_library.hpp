// libpcap, loaded where a capture is read with it.
#pragma once

#include <pcap/pcap.h>

#include "core/loaded_library.hpp"

namespace weir::store {

struct PcapLibrary {
    core::LoadedLibrary library{"libpcap", "libpcap.so.0.8", "libpcap0.8"};
    WEIR_LIBRARY_FUNCTION(pcap_close);
    WEIR_LIBRARY_FUNCTION(pcap_datalink);
    WEIR_LIBRARY_FUNCTION(pcap_datalink_val_to_name);
    WEIR_LIBRARY_FUNCTION(pcap_fopen_offline_with_tstamp_precision);
    WEIR_LIBRARY_FUNCTION(pcap_geterr);
    WEIR_LIBRARY_FUNCTION(pcap_next_ex);
};

/// Throws core::RunError if libpcap cannot be loaded.
inline const PcapLibrary& pcap() {
    static const PcapLibrary functions;
    return functions;
}

}  // namespace weir::store
