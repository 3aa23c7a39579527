#include "bench/verbs_end.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"

namespace weir::bench {
namespace {

constexpr std::uint32_t last_24_bits = 0xffffff;

std::string ipv4_text(std::uint32_t address) {
    const in_addr number{htonl(address)};
    std::array<char, INET_ADDRSTRLEN> text{};
    return ::inet_ntop(AF_INET, &number, text.data(), text.size());
}

std::uint32_t ipv4_number(const std::string& text) {
    in_addr number{};
    if (::inet_pton(AF_INET, text.c_str(), &number) != 1)
        throw core::RunError(fmt::format("an end of an RDMA connection at \"{}\"", text));
    return ntohl(number.s_addr);
}

}  // namespace

nlohmann::json to_json(const VerbsEnd& end) {
    return {{"address", ipv4_text(end.queue_pair.ipv4().value_or(0))},
            {"queue_pair", end.queue_pair.qp},
            {"psn", end.queue_pair.psn},
            {"path_mtu", end.path_mtu},
            {"operation", end.kind.write ? "write" : "send"},
            {"service", end.kind.reliable ? "rc" : "uc"},
            {"rkey", end.queue_pair.rkey},
            {"memory", end.queue_pair.va},
            {"places", end.places},
            {"place_bytes", end.place_bytes}};
}

VerbsEnd verbs_end_from_json(const nlohmann::json& json) {
    try {
        VerbsEnd end;
        end.queue_pair.set_ipv4(ipv4_number(json.at("address")));
        end.queue_pair.qp = json.at("queue_pair");
        end.queue_pair.psn = json.at("psn");
        end.queue_pair.rkey = json.at("rkey");
        end.queue_pair.va = json.at("memory");
        end.path_mtu = json.at("path_mtu");
        end.kind = {.write = json.at("operation") == "write", .reliable = json.at("service") == "rc"};
        end.places = json.at("places");
        end.place_bytes = json.at("place_bytes");
        if (end.queue_pair.qp > last_24_bits || end.queue_pair.psn > last_24_bits ||
            roce::mtu_number(end.path_mtu) == 0 || (end.kind.write && end.places == 0))
            throw core::RunError(fmt::format("an end of an RDMA connection that cannot be: {}", json.dump()));
        return end;
    } catch (const nlohmann::json::exception& error) {
        throw core::RunError(fmt::format("an end of an RDMA connection that cannot be read: {}", error.what()));
    }
}

}  // namespace weir::bench
