// What nodes of a cluster tell each other, and what each word means. Plain data: engines bring it over.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cluster/node_set.hpp"

namespace weir::cluster {

/// A start of a node: who comes back has a higher one, and nothing that was meant for the life before reaches it.
using Incarnation = std::uint32_t;
/// A node in one of its lives, in a word for lists of them.
using NodeLife = std::uint64_t;
[[nodiscard]] constexpr NodeLife life_of(NodeId node, Incarnation incarnation) noexcept {
    return NodeLife{node} << 32U | incarnation;
}
[[nodiscard]] constexpr NodeId node_of(NodeLife life) noexcept {
    return static_cast<NodeId>(life >> 32U);
}
[[nodiscard]] constexpr Incarnation incarnation_of(NodeLife life) noexcept {
    return static_cast<Incarnation>(life);
}

/// A block of consecutive event numbers, which are built by one node: the first of them. Readout nodes cut the numbers
/// alike (BlockGrid); what they have of a block that is not full may be given out before that, and the rest later, as
/// a block of its own.
using Block = std::uint64_t;

/// All numbers of a block.
struct BlockSpan {
    Block block = 0;
    Block end = 0;  ///< the number after the last one
    auto operator<=>(const BlockSpan&) const = default;
};
/// A reign of a manager. The higher one counts; no two managers have the same.
using Term = std::uint64_t;

enum class Kind : std::uint8_t {
    claim,    ///< manager to all: I manage. `term`, `gone`
    report,   ///< the answer: what I have. `report`
    hello,    ///< to a node that came, or whose claim is too old: `term`, `gone`, and `node` manages if `managed`;
              ///< and to all when the run is over: `ended`; and when this node, a builder, is about to go: `leaving`
    ready,    ///< readout to manager: numbers from `first` up to before `block` are here, or, as `gaps`, never will be.
              ///< Others say the same of those before, or nothing does: what has been given out need not be told
    assign,   ///< manager to builder: `block` is yours; those have parts who are in the list of `members` with the
              ///< number `first`, which is there the first time that the builder is told of it. 0: nobody has
    request,  ///< builder, or manager where readouts push, to readout: send the part of `block` to `node`
    part,     ///< readout to builder, with payload, or `part` says why there is none
    finished,   ///< builder to manager: may I call `block` built? `empty`, and `part` says why
    record,     ///< manager to a witness: `node`, in its `life`, is about to be told that `block` is its own. As
                ///< `finished`
    recorded,   ///< the answer, of the same `node`: who manages next will hear of it
    committed,  ///< manager to builder, then: it is yours for good
    done,       ///< builder to manager: `block` needs no memory any more
    release,    ///< builder to readout: the part of `block` is not needed any more
    settled,    ///< manager to all: what became of every number before `block` is known. `node` is waited for. `losses`
    step,       ///< manager to readout, where these push in step: send what you have for steps up to `block`
    reached,    ///< the answer: that has left, up to step `block`, or `node` takes nothing
    expelled,   ///< anybody to a node that counts as gone: begin anew, as a later one than `life`
};

/// Why an event lacks the part of a node, or why a part is not there.
enum class Part : std::uint8_t {
    whole,      ///< it is there
    not_held,   ///< the node was not there in time, or had to drop it
    node_down,  ///< the node went away
    late,       ///< the node stood still for longer than the time-out, or its parts do not reach the builder
};

/// Why a block is lost whole.
enum class LossCause : std::uint8_t {
    builder_down,  ///< the builder that had it went away, and nobody holds the parts
    nothing_held,  ///< no readout node had a part of it
    node_down,     ///< nor was there any other when those that had one went away
    late,          ///< nor did any other come than from nodes that stood still
};
inline constexpr std::size_t loss_causes = 4;
/// Of a block that no part came of.
[[nodiscard]] constexpr LossCause cause_of(Part part) noexcept {
    return part == Part::late        ? LossCause::late
           : part == Part::node_down ? LossCause::node_down
                                     : LossCause::nothing_held;
}

struct Loss {
    Block block = 0;
    LossCause cause = LossCause::builder_down;
    Block end = 0;
    auto operator<=>(const Loss&) const = default;
};

/// That a block is built, and by whom.
struct Recorded {
    BlockSpan span;
    NodeLife builder = 0;
    auto operator<=>(const Recorded&) const = default;
};

/// What a node knows that a manager has to know, from its side.
struct Report {
    // As a readout node:
    Block first = 0;
    Block ready = 0;
    bool ended = false;
    std::vector<Block> gaps;          ///< as in Message, from `settled` on
    std::vector<BlockSpan> released;  ///< parts that a builder has done with, from `settled` on
    // As a builder:
    std::uint32_t credits = 0;         ///< blocks that there is room for
    std::vector<BlockSpan> open;       ///< given to it, and not committed
    std::vector<BlockSpan> committed;  ///< built, and not done
    std::vector<BlockSpan> done;       ///< from `settled` on
    std::vector<Loss> empty;           ///< of these, and of what is recorded here, what no part came of
    // As anybody:
    std::vector<Recorded> recorded;  ///< see Kind::record; from `settled` on
    std::vector<NodeLife> up;        ///< who is there
    Block settled = 0;
    std::vector<Loss> losses;  ///< all that it has heard of
    bool operator==(const Report&) const = default;
};

struct Message {
    Kind kind = Kind::claim;
    Part part = Part::whole;
    bool ended = false;    ///< ready, settled, hello: nothing more comes
    bool empty = false;    ///< finished: no part came
    bool late = false;     ///< claim: the blocks have been given out for a while
    bool managed = false;  ///< hello: `node` manages
    bool leaving = false;  ///< hello: this node takes blocks only where all builders are about to go
    NodeId node = 0;       ///< request: the builder that is to have the part; hello: who manages; or a builder
    Incarnation life = 0;  ///< of `node`; settled, reached: 0 if there is none
    Incarnation from = 0;  ///< of the sender
    Incarnation to = 0;    ///< of the receiver, as the sender knows it
    Term term = 0;
    Block block = 0;
    Block end = 0;  ///< assign, request, part, record, release: of `block`
    Block first = 0;
    std::vector<NodeLife> members{};  ///< assign: who may have parts; empty: see there
    std::vector<NodeLife> up{};       ///< claim: who is there
    std::vector<NodeLife> gone{};     ///< claim, hello: lives that are over; 0: it never came
    std::vector<Loss> losses{};
    std::vector<Block> gaps{};  ///< ready: first, and after the last, of each range of which the node has no part
    Report report{};
    bool operator==(const Message&) const = default;
};

/// Bytes of a part; what they are is the engine's business.
struct Payload {
    std::uint64_t bytes = 0;
    std::uint64_t handle = 0;
};

/// Adds up counts by node.
void add_counts(std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& more);

[[nodiscard]] std::string_view name_of(Kind kind) noexcept;
[[nodiscard]] std::string_view name_of(Part part) noexcept;
[[nodiscard]] std::string_view name_of(LossCause cause) noexcept;

}  // namespace weir::cluster
