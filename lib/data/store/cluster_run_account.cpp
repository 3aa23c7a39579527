#include "store/cluster_run_account.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/json_members.hpp"

namespace weir::store {

namespace {

using nlohmann::json;

std::uint64_t account_number(const json& object, const char* key) {
    return number_at(object, key).value_or(0);
}

std::map<std::string, std::uint64_t> numbers_of(const json& object) {
    std::map<std::string, std::uint64_t> numbers;
    if (!object.is_object()) return numbers;
    for (const auto& [key, value] : object.items())
        if (value.is_number_unsigned()) numbers[key] = value.get<std::uint64_t>();
    return numbers;
}

void add_numbers(std::map<std::string, std::uint64_t>& sums, const std::map<std::string, std::uint64_t>& more) {
    for (const auto& [key, value] : more) sums[key] += value;
}

void read_builder_part(const json& builder, ClusterAccount& account) {
    if (!builder.is_object()) return;
    const json& blocks = at_or_null(builder, "blocks");
    account.builder = {account_number(blocks, "complete"), account_number(blocks, "incomplete"),
                       account_number(blocks, "empty"), account_number(blocks, "given_up"),
                       account_number(builder, "malformed_parts")};
    const json& readouts = at_or_null(builder, "readouts");
    if (!readouts.is_array()) return;
    for (const json& readout : readouts) {
        ClusterAccount::Received& received = account.received[text_at(readout, "node")];
        received.parts += account_number(readout, "received");
        received.late += account_number(readout, "received_late");
        add_numbers(received.missing, numbers_of(at_or_null(readout, "missing")));
    }
}

void read_readout_part(const json& readout, ClusterAccount& account) {
    if (!readout.is_object()) return;
    const json& events = at_or_null(readout, "events");
    account.readout = {account_number(events, "too_late"), account_number(events, "left")};
    const json& builders = at_or_null(readout, "builders");
    if (!builders.is_array()) return;
    for (const json& builder : builders)
        account.handed_over[text_at(builder, "node")] += account_number(builder, "handed_over");
}

void read_lost_blocks(const json& section, ClusterAccount& account) {
    account.lost_counts = numbers_of(section);
    const json& list = at_or_null(section, "list");
    if (!list.is_array()) return;
    for (const json& block : list) {
        // Blocks were not given out in pieces once, and had no numbers in the list.
        const std::uint64_t whole = number_at(block, "block").value_or(0) * account.block;
        const std::uint64_t first = number_at(block, "first").value_or(whole);
        const std::uint64_t last = number_at(block, "last").value_or(whole + account.block - 1);
        account.lost.emplace(first, LostBlock{last, text_at(block, "cause")});
    }
}

}  // namespace

std::vector<ClusterNodeName> read_cluster_nodes(const json& list) {
    std::vector<ClusterNodeName> nodes;
    if (!list.is_array()) return nodes;
    for (const json& node : list) nodes.push_back({text_at(node, "name"), text_at(node, "role")});
    return nodes;
}

std::optional<ClusterAccount> read_cluster_account(const json& section) {
    ClusterAccount account;
    account.node = text_at(section, "node");
    account.role = text_at(section, "role");
    account.block = account_number(section, "block");
    if (account.node.empty() || account.role.empty() || account.block == 0) return {};
    account.lives = number_at(section, "lives").value_or(1);
    account.nodes = read_cluster_nodes(at_or_null(section, "nodes"));
    const json& manager = at_or_null(section, "manager");
    if (manager.is_object())
        account.manager = {account_number(manager, "assigned"), account_number(manager, "assigned_again")};
    read_builder_part(at_or_null(section, "builder"), account);
    read_readout_part(at_or_null(section, "readout"), account);
    read_lost_blocks(at_or_null(section, "lost_blocks"), account);
    return account;
}

ClusterAccount& ClusterAccount::operator+=(const ClusterAccount& other) {
    lives = std::max(lives, other.lives);
    if (other.manager) {
        if (!manager) manager.emplace();
        manager->assigned += other.manager->assigned;
        manager->assigned_again += other.manager->assigned_again;
    }
    if (other.builder) {
        if (!builder) builder.emplace();
        builder->complete += other.builder->complete;
        builder->incomplete += other.builder->incomplete;
        builder->empty += other.builder->empty;
        builder->given_up += other.builder->given_up;
        builder->malformed_parts += other.builder->malformed_parts;
    }
    if (other.readout) {
        if (!readout) readout.emplace();
        readout->events_too_late += other.readout->events_too_late;
        readout->events_left += other.readout->events_left;
    }
    for (const auto& [name, more] : other.received) {
        Received& sum = received[name];
        sum.parts += more.parts;
        sum.late += more.late;
        add_numbers(sum.missing, more.missing);
    }
    add_numbers(handed_over, other.handed_over);
    // What is lost is what all know of, so later starts may know of the same.
    lost.insert(other.lost.begin(), other.lost.end());
    for (const auto& [cause, count] : other.lost_counts) lost_counts[cause] = std::max(lost_counts[cause], count);
    return *this;
}

}  // namespace weir::store
