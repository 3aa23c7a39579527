// What a counter means stands in its table: whatever counters are called, the account says the same of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "observe/diagnosis.hpp"
#include "observe/ledger.hpp"
#include "observe/ledger_text.hpp"
#include "observe/loss_places.hpp"
#include "observe/metric_name.hpp"
#include "observe/verdict.hpp"
#include "set_counter.hpp"

namespace {

using namespace weir::observe;
using weir::assemble::EventCounter;
using weir::assemble::NumberAccount;
using weir::core::CounterInfo;
using weir::wire::PacketCounter;

constexpr std::array<const char*, 3> sections{"packets", "messages", "events"};

/// Copies of the tables, in which some counters are called something else.
class RenamedTables {
public:
    RenamedTables() = default;
    RenamedTables(const RenamedTables&) = delete;  // the tables look into the names
    RenamedTables& operator=(const RenamedTables&) = delete;

    /// No digit is in the new name: numbers stay numbers.
    void rename(std::size_t table, std::size_t counter, const char* prefix) {
        const auto letter = [](std::size_t n) { return static_cast<char>('a' + n % 26); };
        names_.push_back(fmt::format("{}{}{}", prefix, letter(counter / 26), letter(counter)));
        tables_[table][counter].name = names_.back();
    }
    void rename_all(const char* prefix) {
        for (std::size_t table = 0; table < tables_.size(); ++table)
            for (std::size_t i = 0; i < tables_[table].size(); ++i) rename(table, i, prefix);
    }
    void forget_fate(std::size_t table, std::size_t counter) { tables_[table][counter].fate = weir::core::Fate::none; }
    [[nodiscard]] Ledger with(Ledger ledger) const {
        ledger.packet_infos = tables_[0];
        ledger.message_infos = tables_[1];
        ledger.event_infos = tables_[2];
        return ledger;
    }
    [[nodiscard]] const std::array<std::vector<CounterInfo>, 3>& tables() const { return tables_; }

private:
    template <class Table>
    static std::vector<CounterInfo> copy(const Table& table) {
        return {table.begin(), table.end()};
    }

    std::array<std::vector<CounterInfo>, 3> tables_{copy(weir::wire::packet_counters),
                                                    copy(weir::assemble::message_counters),
                                                    copy(weir::assemble::event_counters)};
    std::deque<std::string> names_;
};

/// Ten whole events of two sources, numbered 1 to 10, of which nothing is missing.
Ledger lossless() {
    Ledger ledger;
    ledger.received = 20;
    set(ledger, PacketCounter::placed, 20);
    for (const EventCounter counter : {EventCounter::opened, EventCounter::complete, EventCounter::written})
        set(ledger, counter, 10);
    ledger.messages[0] = ledger.messages[1] = 20;
    ledger.sources = {{10, 0}, {10, 0}};
    ledger.sources_needed = 2;
    ledger.sequence_known = true;
    ledger.packets_per_event = 2;
    ledger.devices = {{"det0", "pci", 20, 0, 0}};
    NumberAccount::Result epoch;
    epoch.counting = NumberAccount::Counting::counted;
    epoch.stride = 1;
    epoch.first = 1;
    epoch.last = 10;
    epoch.seen = 10;
    ledger.numbers.emplace();
    ledger.numbers->run.epochs = {epoch};
    return ledger;
}

std::span<std::uint64_t> values_of(Ledger& ledger, std::size_t table) {
    if (table == 0) return ledger.packets;
    return table == 1 ? std::span<std::uint64_t>(ledger.messages) : std::span<std::uint64_t>(ledger.events);
}

/// No counter is zero, and no two are alike.
Ledger full() {
    Ledger ledger = lossless();
    std::uint64_t next = 1000;
    for (std::size_t table = 0; table < sections.size(); ++table)
        for (std::uint64_t& value : values_of(ledger, table)) value = next++;
    ledger.device_missed = 40;
    ledger.devices[0].missed = 40;
    ledger.rule_dropped_of_streams = 30;
    ledger.sources[1].missing_packets = 1'000'000;
    return ledger;
}

/// The words of a text that are numbers.
std::string numbers_in(std::string_view text) {
    const auto in_word = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    };
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    std::string numbers;
    for (auto at = text.begin(); at != text.end();) {
        const auto end = std::find_if_not(at, text.end(), in_word);
        if (at != end && std::all_of(at, end, is_digit)) numbers += std::string(at, end) + " ";
        at = end == text.end() ? end : end + 1;
    }
    return numbers;
}

std::string text_of(const std::optional<std::uint64_t>& value) {
    return value ? std::to_string(*value) : "unknown";
}

/// All that an account says, but for the names of counters.
std::string account_of(const Ledger& ledger) {
    std::string text = verdict_text(judge(ledger, {})) + "\n";
    text += fmt::format("lost {}, unread {}, of streams {}, incomplete {}, before weir {}, all came {}\n",
                        ledger.lost_packets(), ledger.unread_packets(), ledger.stream_packets(), ledger.incomplete(),
                        text_of(ledger.wire_loss()), ledger.all_came());
    text += ledger.imbalance() + "\n";
    for (const Ledger::Loss& loss : ledger.losses())
        text += fmt::format("loss of {} in {}\n", loss.packets, weir::core::name_of(loss.place));
    for (const LossPlace& place : loss_places(ledger))
        text += fmt::format("{}: {}; {}\n", place.place, text_of(place.packets), numbers_in(place.evidence));
    for (const auto& finding : diagnose(ledger, {}))
        text += fmt::format("finding: {} {} {} {}; {}\n", finding.packets, finding.loss, finding.possible, finding.page,
                            numbers_in(finding.sentence));
    return text + "text: " + numbers_in(ledger_text(ledger, 10, 5));
}

/// The metrics of the tables: of those without a family what does not come from the name.
std::string metrics_of(const RenamedTables& renamed) {
    std::string text;
    for (std::size_t table = 0; table < sections.size(); ++table)
        for (const CounterInfo& info : renamed.tables()[table]) {
            const MetricName metric = metric_name(sections[table], info);
            text += fmt::format("{} '{}' {}\n", info.family != nullptr ? metric.family : "", metric.label,
                                metric.kind == MetricKind::counter ? "counter" : "gauge");
        }
    return text;
}

/// Names that say nothing, and names that would have said something else.
constexpr std::array prefixes{"renamed_",           "renamed.",           "not_for_us.", "dropped.",
                              "dropped.malformed.", "dropped.ring_full.", "incomplete.", "refused."};

TEST(Renamed, AnyCounterIsCountedAsBefore) {
    const std::string before = account_of(full());
    const std::string metrics_before = metrics_of(RenamedTables());
    for (std::size_t table = 0; table < sections.size(); ++table)
        for (std::size_t i = 0; i < RenamedTables().tables()[table].size(); ++i) {
            Ledger alone = lossless();
            values_of(alone, table)[i] += 3;
            const std::string alone_before = account_of(alone);
            for (const char* prefix : prefixes) {
                RenamedTables renamed;
                renamed.rename(table, i, prefix);
                SCOPED_TRACE(fmt::format("{}.{} is {}", sections[table], RenamedTables().tables()[table][i].name,
                                         renamed.tables()[table][i].name));
                EXPECT_EQ(account_of(renamed.with(full())), before);
                EXPECT_EQ(account_of(renamed.with(alone)), alone_before);
                EXPECT_EQ(metrics_of(renamed), metrics_before);
            }
        }
}

TEST(Renamed, AllCountersAreCountedAsBefore) {
    for (const char* prefix : prefixes) {
        SCOPED_TRACE(prefix);
        RenamedTables renamed;
        renamed.rename_all(prefix);
        EXPECT_EQ(account_of(renamed.with(full())), account_of(full()));
        EXPECT_EQ(account_of(renamed.with(lossless())), account_of(lossless()));
        EXPECT_EQ(metrics_of(renamed), metrics_of(RenamedTables()));
    }
}

/// A finding names the counter as the table does, for `weir explain`.
TEST(Renamed, FindingsAndLossesHaveTheNewNames) {
    RenamedTables renamed;
    renamed.rename_all("renamed.");
    const Ledger ledger = renamed.with(full());
    for (const auto& finding : diagnose(ledger, {}))
        EXPECT_NE(finding.counter.find("renamed."), std::string::npos) << finding.counter;
    for (const Ledger::Loss& loss : ledger.losses())
        EXPECT_EQ(loss.cause.size() == 2, loss.place == weir::core::Place::weir) << loss.cause;
    const std::string text = ledger_text(ledger, 10, 5);
    for (const char* old : {"late", "no_room", "arp", "end_of_run"})
        EXPECT_EQ(text.find(fmt::format("{} 1", old)), std::string::npos) << text;
}

/// What has no fate is missing somewhere: the accounts above could not be the same if a name were asked.
TEST(Renamed, ACounterWithoutItsFateIsMissed) {
    using weir::core::Fate;
    const RenamedTables original;
    for (std::size_t table = 0; table < sections.size(); ++table)
        for (std::size_t i = 0; i < original.tables()[table].size(); ++i) {
            const Fate fate = original.tables()[table][i].fate;
            const bool makes_no_difference = table == 0 && (fate == Fate::kept || fate == Fate::spared);
            if (fate == Fate::none || makes_no_difference) continue;
            RenamedTables changed;
            changed.forget_fate(table, i);
            EXPECT_NE(account_of(changed.with(full())), account_of(full()))
                << sections[table] << '.' << original.tables()[table][i].name;
        }
}

}  // namespace
