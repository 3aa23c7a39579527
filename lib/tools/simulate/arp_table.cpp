#include "simulate/arp_table.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace weir::simulate {

std::string ip_text(std::uint32_t ip) {
    return fmt::format("{}.{}.{}.{}", ip >> 24U, ip >> 16U & 255U, ip >> 8U & 255U, ip & 255U);
}

bool is_asked_for(std::uint32_t ip) {
    std::ifstream table("/proc/net/arp");
    const std::string wanted = ip_text(ip);
    std::string line;
    while (std::getline(table, line)) {
        std::string address;
        std::string type;
        std::string flags;
        if (std::istringstream(line) >> address >> type >> flags && address == wanted) return flags == "0x0";
    }
    return false;
}

}  // namespace weir::simulate
