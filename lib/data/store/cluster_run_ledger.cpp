#include "store/cluster_run_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "store/json_members.hpp"

namespace weir::store {

namespace {

using nlohmann::json;
using Member = ClusterRun::Member;

constexpr const char* builder_down_key = "builder_down";
constexpr const char* nothing_held_key = "nothing_held";
constexpr const char* node_down_key = "node_down";
constexpr const char* late_key = "late";

std::string with_count(std::uint64_t count, std::string_view thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string name_or_unknown(const Member& member) {
    return member.name.empty() ? "a builder whose run does not say which it is" : member.name;
}

/// "a 3, b 4", without those that are 0
std::string counts_text(const std::map<std::string, std::uint64_t>& counts) {
    std::string text;
    for (const auto& [name, count] : counts)
        if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
    return text;
}

std::uint64_t count_of(const std::map<std::string, std::uint64_t>& counts, const char* key) {
    const auto found = counts.find(key);
    return found == counts.end() ? 0 : found->second;
}

class ClusterBooks {
public:
    ClusterBooks(const ClusterRun& cluster, ClusterEvents& events) : cluster_(cluster), events_(events) {}

    ClusterLedger make() {
        count_lost();
        pair_nodes();
        count_missing();
        add_blocks();
        balance_blocks();
        add_problems();
        judge();
        return std::move(ledger_);
    }

private:
    void count_lost() {
        ledger_.lost = lost_cluster_blocks(cluster_);
        for (const auto& [first, block] : ledger_.lost) ++ledger_.lost_counts[block.cause];
        // Lists are cut, counts are not.
        for (const Member& member : cluster_.members)
            if (member.account)
                for (const auto& [cause, count] : member.account->lost_counts)
                    if (count > 0) ledger_.lost_counts[cause] = std::max(ledger_.lost_counts[cause], count);
    }

    void pair_nodes() {
        for (const Member& readout : cluster_.members)
            for (const Member& builder : cluster_.members)
                if (readout.is_readout() && builder.is_builder() && !builder.name.empty())
                    ledger_.pairs.push_back(pair_of(readout, builder));
    }

    static ClusterLedger::Pair pair_of(const Member& readout, const Member& builder) {
        ClusterLedger::Pair pair{readout.name, builder.name, {}, {}, {}};
        if (readout.account_is_whole && readout.account->readout) {
            const auto& to = readout.account->handed_over;
            const auto found = to.find(builder.name);
            pair.handed_over = found == to.end() ? 0 : found->second;
        }
        if (builder.account_is_whole && builder.account->builder) {
            const auto& from = builder.account->received;
            const auto found = from.find(readout.name);
            pair.received = found == from.end() ? 0 : found->second.parts;
            pair.received_late = found == from.end() ? 0 : found->second.late;
        }
        return pair;
    }

    void count_missing() {
        for (const Member& member : cluster_.members)
            if (member.account)
                for (const auto& [readout, received] : member.account->received)
                    for (const auto& [cause, count] : received.missing)
                        if (count > 0) ledger_.missing[readout][cause] += count;
    }

    void add_blocks() {
        ClusterLedger::Blocks& blocks = ledger_.blocks;
        for (const Member& member : cluster_.members) {
            if (member.may_manage && !member.account_is_whole) blocks.assigned_is_all = false;
            if (!member.account) continue;
            if (member.account->manager) {
                blocks.assigned = blocks.assigned.value_or(0) + member.account->manager->assigned;
                blocks.assigned_again += member.account->manager->assigned_again;
            }
            if (member.account->builder) {
                blocks.complete += member.account->builder->complete;
                blocks.incomplete += member.account->builder->incomplete;
                blocks.empty += member.account->builder->empty;
                blocks.given_up += member.account->builder->given_up;
            }
        }
        // A block that no part came of is listed as lost, and counted as empty by its builder.
        const std::uint64_t builder_down = count_of(ledger_.lost_counts, builder_down_key);
        const std::uint64_t empty = ledger_.lost_total() - builder_down;
        blocks.lost = ledger_.lost_total() - std::min(empty, blocks.empty) - std::min(builder_down, blocks.given_up);
        blocks.unaccounted = events_.unaccounted_blocks;
    }

    void balance_blocks() {
        ClusterLedger::Blocks& blocks = ledger_.blocks;
        if (!blocks.assigned) {
            blocks.why.emplace_back("no node that managed the cluster has left an account");
            return;
        }
        if (*blocks.assigned == blocks.known()) {
            blocks.balanced = true;
            return;
        }
        std::uint64_t lives = 1;
        for (const Member& member : cluster_.members) {
            if (!member.account_is_whole && (member.is_builder() || member.may_manage))
                blocks.why.push_back(fmt::format("{} has left no account of what it {}{}", name_or_unknown(member),
                                                 member.is_builder() ? "built" : "assigned",
                                                 member.is_builder() && member.may_manage ? " and assigned" : ""));
            if (member.account) lives = std::max(lives, member.account->lives);
            // The manager may have taken for built what its builder had not heard of yet.
            if (member.account && member.account->builder && member.account->builder->given_up > 0)
                blocks.why.push_back(fmt::format("the sinks of {} failed", name_or_unknown(member)));
        }
        // What a node had in hand when it was taken for dead is counted by it, and is given to another.
        if (lives > 1) blocks.why.emplace_back("the cluster took a node for dead, and it began anew");
        if (!blocks.why.empty()) return;
        blocks.balanced = false;
        blocks.why.push_back(
            *blocks.assigned > blocks.known()
                ? fmt::format("nobody says what became of {}", with_count(*blocks.assigned - blocks.known(), "block"))
                : fmt::format("{} more than were assigned", with_count(blocks.known() - *blocks.assigned, "block")));
    }

    void problem(const std::string& text) {
        ++events_.all.problem_count;
        events_.all.problems.push_back(text);
        events_.all.verified = false;
    }

    void add_problems() {
        for (const ClusterEvents::Twice& twice : events_.twice_listed) {
            std::string where;
            for (std::size_t i = 0; i < twice.runs.size(); ++i)
                where += fmt::format("{}{}", i == 0 ? "" : " and ", cluster_.runs[twice.runs[i]].name);
            problem(fmt::format("event {}:{} is in {}", twice.epoch, twice.id, where));
        }
        if (const std::uint64_t more = events_.twice - events_.twice_listed.size(); more > 0) {
            problem(fmt::format("{} more than once",
                                with_count(more, "more event") + (more == 1 ? " is there" : " are there")));
            events_.all.problem_count += more - 1;
        }
        for (const Member& member : cluster_.members)
            if (member.is_builder() && member.runs.empty() && !is_dispensable(member))
                problem(fmt::format("there is no run of {}, which is a builder", member.name));
    }

    /// A builder that never was there, or built nothing.
    [[nodiscard]] bool is_dispensable(const Member& builder) const {
        if (builder.account_is_whole && builder.account->builder)
            return builder.account->builder->complete + builder.account->builder->incomplete == 0;
        return ledger_.blocks.balanced == true || all_are_found();
    }

    // --- what was lost ---

    void no(std::string text) { no_.push_back(std::move(text)); }
    void unknown(std::string text) { unknown_.push_back(std::move(text)); }

    void judge() {
        all_found_ = all_are_found();
        judge_events();
        judge_blocks();
        for (const Member& member : cluster_.members) judge_member(member);
        if (!all_found_) judge_pairs();
        ledger_.lossless = !no_.empty() ? "no" : !unknown_.empty() ? "unknown" : "yes";
        ledger_.evidence = std::move(no_);
        ledger_.evidence.insert(ledger_.evidence.end(), unknown_.begin(), unknown_.end());
        if (ledger_.evidence.empty()) ledger_.evidence.push_back(proof());
    }

    /// Each readout node had as many events as there are, and a part in each of them: so they are the same ones.
    [[nodiscard]] bool all_are_found() const {
        return std::ranges::any_of(cluster_.members, &Member::is_readout) && events_.twice == 0 &&
               events_.all.heads == events_.all.complete && events_.all.heads == events_.distinct &&
               std::ranges::all_of(cluster_.members, [&](const Member& member) {
                   return !member.is_readout() || member.events_sent == events_.distinct;
               });
    }

    [[nodiscard]] std::string proof() const {
        if (all_found_)
            return fmt::format("the readout nodes had {} each, which are all there and complete",
                               with_count(events_.distinct, "event"));
        return fmt::format(
            "no readout node has lost anything, and the {} that were given to builders are accounted for",
            with_count(ledger_.blocks.assigned.value_or(0), "block"));
    }

    void judge_events() {
        const std::uint64_t incomplete = events_.all.heads - events_.all.complete;
        if (incomplete == 0) return;
        std::map<std::string, std::uint64_t> causes;
        for (std::size_t i = 0; i < events_.causes.size(); ++i) causes[std::string(cause_names[i])] = events_.causes[i];
        no(fmt::format("{} of {} are incomplete: {}", incomplete, with_count(events_.all.events, "event"),
                       counts_text(causes)));
        for (const auto& [readout, counts] : ledger_.missing) {
            std::uint64_t sum = 0;
            for (const auto& [cause, count] : counts) sum += count;
            no(fmt::format("{} of {} missing: {}", with_count(sum, "part"), readout + (sum == 1 ? " is" : " are"),
                           counts_text(counts)));
        }
    }

    void judge_blocks() {
        if (all_found_) return;
        const std::uint64_t with_builder = count_of(ledger_.lost_counts, builder_down_key);
        if (with_builder > 0)
            no(fmt::format("{} of up to {} {} lost with a builder; {} of their events {} found all the same",
                           with_count(with_builder, "block"), with_count(cluster_.block, "event number"),
                           with_builder == 1 ? "was" : "were", events_.lost_found,
                           events_.lost_found == 1 ? "is" : "are"));
        const std::uint64_t nothing_held = count_of(ledger_.lost_counts, nothing_held_key);
        if (nothing_held > 0)
            unknown(
                fmt::format("no readout node had anything of {}: nothing came for their numbers, or only a node "
                            "that went away had it",
                            with_count(nothing_held, "block")));
        const std::uint64_t node_down = count_of(ledger_.lost_counts, node_down_key);
        if (node_down > 0)
            unknown(fmt::format("nothing of {} is here: a readout node that may have had it went away",
                                with_count(node_down, "block")));
        const std::uint64_t late = count_of(ledger_.lost_counts, late_key);
        if (late > 0)
            no(fmt::format("nothing of {} is here: readout nodes stood still, or their parts did not reach the builder",
                           with_count(late, "block")));
        const ClusterLedger::Blocks& blocks = ledger_.blocks;
        for (const std::string& why : blocks.why) {
            const std::string text = fmt::format(
                "the blocks {}: {}", blocks.balanced.has_value() ? "do not balance" : "cannot be balanced", why);
            blocks.balanced == false && *blocks.assigned > blocks.known() ? no(text) : unknown(text);
        }
    }

    void judge_member(const Member& member) {
        if (member.is_readout()) judge_readout(member);
        if (member.is_builder()) judge_builder(member);
    }

    void judge_readout(const Member& readout) {
        if (readout.reports.empty()) return unknown(fmt::format("there is no report of {}", readout.name));
        for (const ClusterRun::Report& report : readout.reports)
            if (report.lossless != "yes")
                for (const std::string& line : report.evidence)
                    (report.lossless == "no" ? no_ : unknown_).push_back(fmt::format("{}: {}", readout.name, line));
        if (!readout.account || !readout.account->readout) return;
        const ClusterAccount::Readout& own = *readout.account->readout;
        if (own.events_too_late > 0)
            no(fmt::format("{}: {} came too late for their blocks", readout.name,
                           with_count(own.events_too_late, "event")));
        if (own.events_left > 0)
            no(fmt::format("{}: no builder had taken {} when it ended", readout.name,
                           with_count(own.events_left, "event")));
        const std::uint64_t seen = events_.distinct + left_out() + own.events_too_late + own.events_left;
        if (readout.events_sent.value_or(0) > seen)
            no(fmt::format("{} had {}, of which {} or more are nowhere", readout.name,
                           with_count(*readout.events_sent, "event"), *readout.events_sent - seen));
    }

    /// Numbers of `object`, and of the objects in it.
    static std::uint64_t sum_of(const json& object) {
        if (object.is_number_unsigned()) return object.get<std::uint64_t>();
        std::uint64_t sum = 0;
        if (object.is_object())
            for (const json& member : object) sum += sum_of(member);
        return sum;
    }

    /// Events that builders had, and did not write.
    [[nodiscard]] std::uint64_t left_out() const {
        std::uint64_t sum = 0;
        for (const ClusterRun::Run& run : cluster_.runs)
            for (const char* what : {"vetoed", "dropped", "refused"})
                sum += sum_of(at_or_null(at_or_null(at_or_null(run.reader.manifest(), "ledger"), "events"), what));
        return sum;
    }

    void judge_builder(const Member& builder) {
        for (const std::size_t run : builder.runs) judge_run(cluster_.runs[run]);
        if (builder.account && builder.account->builder && builder.account->builder->malformed_parts > 0)
            no(fmt::format("{}: {} malformed", builder.name,
                           with_count(builder.account->builder->malformed_parts, "part")));
        if (!builder.is_found() && !all_found_ && ledger_.blocks.balanced != true)
            unknown(fmt::format("nothing is found of {}", name_or_unknown(builder)));
    }

    /// A builder sees gaps in the numbers that are no losses, so what it does not know is not taken from it.
    void judge_run(const ClusterRun::Run& run) {
        const bool by_force = run.state == RunState::left || run.state == RunState::interrupted;
        if (by_force && !all_found_)
            unknown(fmt::format("the builder of {} was ended by force, and nobody has counted what it had built",
                                run.name));
        if (run.state == RunState::being_written) unknown(fmt::format("{} is still being written", run.name));
        if (run.state == RunState::damaged) unknown(fmt::format("the manifest of {} is damaged", run.name));
        const json& events = at_or_null(at_or_null(run.reader.manifest(), "ledger"), "events");
        for (const char* what : {"dropped", "refused"})
            if (const std::uint64_t count = sum_of(at_or_null(events, what)); count > 0)
                no(fmt::format("{}: {} {}", run.name, with_count(count, "event"), what));
    }

    void judge_pairs() {
        for (const ClusterLedger::Pair& pair : ledger_.pairs)
            if (pair.is_equal() == false) {
                const std::string text = fmt::format("{} says that it handed {} over to {}, which received {}",
                                                     pair.readout, with_count(*pair.handed_over, "part"), pair.builder,
                                                     *pair.received + *pair.received_late);
                unknown(text);
                problem(text);
            }
    }

    const ClusterRun& cluster_;
    ClusterEvents& events_;
    ClusterLedger ledger_;
    bool all_found_ = false;
    std::vector<std::string> no_;
    std::vector<std::string> unknown_;
};

}  // namespace

std::uint64_t ClusterLedger::lost_total() const {
    std::uint64_t total = 0;
    for (const char* cause : {builder_down_key, nothing_held_key, node_down_key, late_key})
        total += count_of(lost_counts, cause);
    return total;
}

LostBlocks lost_cluster_blocks(const ClusterRun& cluster) {
    LostBlocks lost;
    for (const Member& member : cluster.members)
        if (member.account) lost.insert(member.account->lost.begin(), member.account->lost.end());
    return lost;
}

ClusterLedger make_cluster_ledger(const ClusterRun& cluster, ClusterEvents& events) {
    return ClusterBooks(cluster, events).make();
}

}  // namespace weir::store
