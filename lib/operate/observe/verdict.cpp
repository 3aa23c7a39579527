#include "observe/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/foreign_json.hpp"
#include "observe/counted.hpp"

namespace weir::observe {

using assemble::EventCounter;
using wire::PacketCounter;

namespace {

/// What is known to be lost, what might be, and what shows that nothing is.
struct Proof {
    const Ledger& ledger;
    const Expectation& expected;
    std::vector<std::string> unread;  ///< of captures: what may be there and was not seen
    std::vector<std::string> lost;
    std::vector<std::string> unknown;
    std::vector<std::string> known;

    [[nodiscard]] std::uint64_t get(EventCounter counter) const { return ledger.get(counter); }
    /// Where what never came belongs: it may be on an interface of the capture that is not read.
    [[nodiscard]] std::vector<std::string>& absent() {
        return ledger.capture && ledger.capture->other_link > 0 ? unknown : lost;
    }
    /// Distinct events of which anything came.
    [[nodiscard]] std::uint64_t events_seen() const {
        return get(EventCounter::opened) + ledger.events_that_are(core::Fate::refused);
    }
};

void here(Proof& proof) {
    if (const std::uint64_t packets = proof.ledger.lost_packets(); packets > 0)
        proof.lost.push_back(fmt::format("{} came and found no place", counted(packets, "packet")));
    if (const std::uint64_t dropped = proof.ledger.events_that_are(core::Fate::lost); dropped > 0)
        proof.lost.push_back(fmt::format("{} not written", counted(dropped, "closed event")));
    if (proof.ledger.interrupted > 0)
        proof.unknown.push_back(
            fmt::format("a consumer of the stream went away {}: what was on its way to it may not have arrived",
                        counted(proof.ledger.interrupted, "time")));
}

void before(Proof& proof) {
    if (const std::uint64_t packets = proof.ledger.device_losses(); packets > 0)
        proof.lost.push_back(fmt::format("the device dropped {}", counted(packets, "packet")));
    else if (proof.ledger.device_missed > 0)
        proof.known.push_back(fmt::format("the device says it dropped {}, but none of a stream is missing",
                                          counted(proof.ledger.device_missed, "packet")));
    if (const std::uint64_t packets = proof.ledger.missing_packets(); packets > 0)
        proof.absent().push_back(fmt::format("{}{} never came", proof.ledger.missing_is_guessed() ? "about " : "",
                                             counted(packets, "packet")));
}

/// Events that are not whole. Those at the beginning and the end of a run may have been cut off by that alone.
void incomplete(Proof& proof) {
    const bool is_unread = proof.ledger.is_unread();
    const std::uint64_t all = proof.ledger.incomplete();
    const std::uint64_t cut = std::min(all, proof.ledger.cut_at_end);
    const std::uint64_t before = std::min(all - cut, proof.ledger.cut_at_start);
    if (const std::uint64_t events = all - cut - before; events > 0)
        proof.absent().push_back(
            fmt::format("{} incomplete", events == 1 ? "1 event is" : fmt::format("{} events are", events)));
    if (cut > 0)
        proof.unknown.push_back(fmt::format("the end of {} cut {} off: what is missing there may {}",
                                            is_unread ? "what could be read" : "the run", counted(cut, "event"),
                                            is_unread ? "be in the rest of the capture" : "not have been sent yet"));
    if (before > 0)
        proof.unknown.push_back(
            fmt::format("the run began in the middle of {}: what is missing there may have been "
                        "sent before",
                        counted(before, "event")));
}

/// What a capture was to have, and could not be read; and what was left out, if that can be what is missing.
void unread(Proof& proof) {
    if (!proof.ledger.capture) return;
    proof.unread = proof.ledger.capture->unread;
    const std::uint64_t others = proof.ledger.capture->other_link;
    if (others > 0 && (!proof.lost.empty() || !proof.unknown.empty()))
        proof.unread.push_back(
            fmt::format("{} of the capture's other interfaces {} not read: what is missing may be there",
                        counted(others, "packet"), others == 1 ? "was" : "were"));
}

/// Whole events, by their numbers. True if none can be missing unseen.
bool numbers(Proof& proof) {
    if (!proof.ledger.numbers) return false;
    const NumberReport& report = *proof.ledger.numbers;
    if (!report.why_unknown().empty()) return false;
    if (const std::uint64_t missing = report.missing(); missing > 0) {
        proof.absent().push_back(
            fmt::format("{} never came at all: {}", counted(missing, "event"), ranges_text(report)));
        return true;
    }
    if (const auto wrap = report.run.wrap())
        proof.known.push_back(fmt::format("event numbers go from {} to {} where their counter begins again, {}",
                                          wrap->from, wrap->to, counted(wrap->times, "time")));
    const auto& epochs = report.run.epochs;
    const std::uint64_t seen = report.run.seen();
    if (seen == 1)
        proof.known.push_back(fmt::format("one event came, number {}, and it is complete", epochs.front().first));
    else if (epochs.size() == 1)
        proof.known.push_back(fmt::format(
            "all {} events from number {} to {}{} came and are complete", seen, epochs.front().first,
            epochs.front().last, epochs.front().stride == 1 ? "" : fmt::format(" by {}", epochs.front().stride)));
    else
        proof.known.push_back(fmt::format(
            "all {} events came and are complete, in each of {} epochs (the detector restarted)", seen, epochs.size()));
    return true;
}

bool sequences(Proof& proof) {
    if (!proof.ledger.all_sequenced || proof.ledger.sources.empty()) return false;
    if (proof.ledger.missing_packets() == 0)
        proof.known.push_back("every packet carries a sequence number, and none is missing");
    return true;
}

/// What no stream wanted may be data of this detector.
void unmatched(Proof& proof) {
    if (const std::uint64_t packets = proof.ledger.unmatched.possible_losses; packets > 0)
        proof.unknown.push_back(fmt::format("{} matched no stream and look like this detector's: {}",
                                            counted(packets, "packet"), unmatched_text(proof.ledger.unmatched, true)));
}

/// Whether the count of events is the sender's. True if it is.
bool sender(Proof& proof) {
    if (!proof.expected.events) return false;
    const std::uint64_t seen = proof.events_seen();
    const std::uint64_t sent = *proof.expected.events;
    if (seen < sent)
        proof.lost.push_back(fmt::format("{} of the {} that were sent never came ({})", sent - seen,
                                         counted(sent, "event"), proof.expected.by));
    else if (seen > sent)
        proof.unknown.push_back(
            fmt::format("{} came, more than the {} of {}", counted(seen, "event"), sent, proof.expected.by));
    else
        proof.known.push_back(fmt::format("as many events came as were sent ({}, {})", sent, proof.expected.by));
    return seen == sent;
}

void whole_events(Proof& proof) {
    if (proof.ledger.is_share) {
        proof.unknown.push_back(
            "a builder has a share of the events: `weir inspect` of the folder with all of them says "
            "whether whole events are missing");
        return;
    }
    const bool by_sender = sender(proof);
    const bool by_numbers = numbers(proof);
    const bool by_sequences = sequences(proof);
    if (!by_sender && !by_numbers && !by_sequences)
        proof.unknown.push_back(proof.ledger.numbers ? proof.ledger.numbers->why_unknown()
                                                     : "nothing shows whether whole events are missing");
    if (proof.ledger.sources_needed < proof.ledger.sources.size() && !by_sequences)
        proof.unknown.push_back(fmt::format(
            "an event is complete with {} of {} sources (`events.sources`): what the others sent may be missing",
            proof.ledger.sources_needed, proof.ledger.sources.size()));
    if (!proof.ledger.numbers_unknown_because.empty()) proof.unknown.push_back(proof.ledger.numbers_unknown_because);
    if (!by_sender && proof.lost.empty() && proof.unknown.empty())
        proof.known.push_back("what came before the first and after the last is not known (--expect-events, --sent)");
}

}  // namespace

Expectation Expectation::of_reports(const std::vector<std::string>& files) {
    struct Range {
        std::uint64_t first;
        std::uint64_t end;
    };
    std::vector<Range> ranges;
    Expectation expected;
    for (const std::string& file : files) {
        std::ifstream in(file);
        if (!in) throw core::UsageError(fmt::format("--sent {}: cannot be read", file));
        const auto read = core::read_json(std::string(std::istreambuf_iterator(in), {}));
        const nlohmann::json report = read.value_or(nullptr);
        const auto number = [&](const char* key) -> std::uint64_t {
            const auto events = report.is_object() ? report.find("events") : report.end();
            if (!report.is_object() || events == report.end() || !events->is_object() || !events->contains(key) ||
                !(*events)[key].is_number_unsigned())
                throw core::UsageError(
                    fmt::format("--sent {}: found no `events.{}`; accepted: a report of weir send", file, key));
            return (*events)[key].get<std::uint64_t>();
        };
        ranges.push_back({number("first"), number("first") + number("sent")});
        expected.by += (expected.by.empty() ? "" : ", ") + file;
    }
    std::ranges::sort(ranges, {}, &Range::first);
    std::uint64_t sum = 0;
    std::uint64_t reached = 0;
    for (const Range& range : ranges) {
        const std::uint64_t from = std::max(reached, range.first);
        if (range.end <= from) continue;
        sum += range.end - from;
        reached = range.end;
    }
    expected.events = sum;
    return expected;
}

std::string_view name_of(Lossless lossless) noexcept {
    switch (lossless) {
        case Lossless::yes:
            return "yes";
        case Lossless::no:
            return "no";
        case Lossless::unknown:
            break;
    }
    return "unknown";
}

Verdict judge(const Ledger& ledger, const Expectation& expected) {
    Proof proof{ledger, expected, {}, {}, {}, {}};
    Verdict verdict;
    verdict.came = ledger.stream_packets() > 0;
    here(proof);
    before(proof);
    incomplete(proof);
    unmatched(proof);
    if (!verdict.came)
        proof.unknown.push_back(ledger.received == 0 ? "no packet came"
                                                     : fmt::format("{} came, none of them for a configured stream",
                                                                   counted(ledger.received, "packet")));
    if (verdict.came || expected.events) whole_events(proof);
    unread(proof);
    const auto take = [&](Lossless lossless, std::vector<std::string>& from) {
        verdict.lossless = lossless;
        verdict.evidence.insert(verdict.evidence.end(), from.begin(), from.end());
    };
    if (!proof.lost.empty()) {
        take(Lossless::no, proof.lost);
        take(Lossless::no, proof.unread);
    } else if (!proof.unread.empty() || !proof.unknown.empty()) {
        take(Lossless::unknown, proof.unread);
        take(Lossless::unknown, proof.unknown);
    } else {
        take(Lossless::yes, proof.known);
    }
    return verdict;
}

std::string verdict_text(const Verdict& verdict) {
    std::string text;
    for (const std::string& line : verdict.evidence)
        text += fmt::format("{:10}{}{}\n", text.empty() ? "lossless" : "",
                            text.empty() ? fmt::format("{}: ", name_of(verdict.lossless)) : "", line);
    return text;
}

void put_verdict(nlohmann::json& report, const Verdict& verdict) {
    report["lossless"] = name_of(verdict.lossless);
    report["evidence"] = verdict.evidence;
}

}  // namespace weir::observe
