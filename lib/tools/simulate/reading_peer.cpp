#include "simulate/reading_peer.hpp"

#include <thread>

#include "config/device_facts.hpp"

namespace weir::simulate {

bool reads_our_memory(const std::string& device) {
    return config::device_facts(device).loss == config::LossTold::lossless && config::driver_of(device) != "net_null";
}

void take_leave_of(const std::string& device) {
    if (reads_our_memory(device)) std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace weir::simulate
