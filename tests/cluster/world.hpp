// A cluster in one thread, for the model test: nodes, a network whose messages overtake each other, a detector, disks,
// and death at any moment. Everything follows from the seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cluster/node.hpp"

namespace weir::cluster::test {

struct Faults {
    double crashes = 0;  ///< per node, in the time of the run
    bool come_back = true;
    double not_taken = 0;          ///< part of the events that a readout node does not have
    bool jumps = false;            ///< numbers leap by billions now and then
    bool slow_node = false;        ///< one takes much longer for everything
    bool stalls = false;           ///< long delays of single messages
    bool slow_links = false;       ///< parts take turns, and each a quarter of the time-out
    bool manager_dies = false;     ///< once, soon after it has begun to give out blocks
    bool takes_no_parts = false;   ///< one builder: no payload reaches it while it waits, but all words do
    bool readouts_die = false;     ///< all that only read out, within a moment; they come back
    bool parts = false;            ///< the network falls into two parts, and becomes whole again
    bool parts_at_start = false;   ///< it is in two parts when the nodes start, and becomes whole
    double silences = 0;           ///< per node, in the time of the run: it stands still, and begins anew
    bool leaves = false;           ///< who has heard that the run has ended goes, as a process does
    double drains = 0;             ///< per builder, in the time of the run: it leaves in order, and comes back
    bool left_out = false;         ///< the run is started without some nodes
    bool clocks_are_lost = false;  ///< who comes back may begin a life with a lower number than the one before
};

class World {
public:
    /// `numbers`: events of the run.
    World(Settings settings, Faults faults, Block numbers, std::uint64_t seed);
    ~World();

    /// Runs until all is over; throws std::logic_error with what is wrong.
    void run();

    struct Outcome {
        std::uint64_t runs = 1;
        std::uint64_t built = 0;  ///< events, as the next two
        std::uint64_t complete = 0;
        std::uint64_t lost = 0;
        std::uint64_t assigned = 0;     ///< blocks
        std::uint64_t pieces = 0;       ///< of these, what was not all of its numbers
        std::uint64_t built_twice = 0;  ///< by one that died together with who knew of it, and again
        std::uint64_t deaths = 0;
        std::uint64_t drained = 0;                ///< builders that left in order
        std::uint64_t turned_away = 0;            ///< lives that were told that a later one is over already
        std::uint64_t offered_again = 0;          ///< parts that a node held when it was taken for dead
        std::uint64_t sent_again = 0;             ///< of these, what was sent to somebody afterwards
        std::uint64_t managers = 0;               ///< how many reigns there were
        core::TimeNs longest_interregnum_ns = 0;  ///< Faults::manager_dies: until somebody else gives out blocks
        Outcome& operator+=(const Outcome& other) noexcept;
    };
    [[nodiscard]] const Outcome& outcome() const noexcept { return outcome_; }

private:
    class Life;
    struct Content {
        std::set<Block> numbers;
        NodeId node = 0;
        bool free = false;
    };
    struct Build {
        NodeId node = 0;
        Incarnation life = 0;
        Block end = 0;
        bool written = false;
        bool committed = false;
        bool said = false;  ///< to the manager
        std::vector<BuiltPart> parts;
    };
    struct Action {
        core::TimeNs time = 0;
        std::uint64_t order = 0;
        std::function<void()> act;
        bool operator>(const Action& other) const noexcept {
            return std::tie(time, order) > std::tie(other.time, other.order);
        }
    };

    void at(core::TimeNs time, std::function<void()> act);
    void start_all();
    void start(NodeId node, Incarnation told = 0);
    [[nodiscard]] Incarnation next_life(NodeId node, Incarnation told);
    void see(NodeId who, NodeId whom);
    void find_absent(NodeId node, NodeId other);
    void kill(NodeId node, Ending ending);
    void tell_of_end(NodeId node, Incarnation life, Ending ending);
    void turn_away(NodeId node, Incarnation life, Incarnation known);
    void begin_again(NodeId node, Incarnation told = 0);
    void depart(Life& life);
    void plan_deaths();
    void plan_drains(core::TimeNs end);
    void drain(NodeId node);
    void leave_when_done(NodeId node, Incarnation life);
    void depart_for_a_while(Life& life);
    void fall_apart();
    void meet_again();
    void check_part_of(const Life& builder, BlockSpan span, std::span<const BuiltPart> parts) const;
    [[nodiscard]] bool had_any(NodeId node, BlockSpan span) const;
    [[nodiscard]] bool is_between_parts(NodeId from, NodeId to) const noexcept {
        return !part_of_.empty() && part_of_[from] != part_of_[to];
    }
    [[nodiscard]] Block number_of(Block place) const;
    void take_from_detector(NodeId node, Block number);
    void offer(Life& life, Block end);
    void deliver(NodeId from, NodeId to, Incarnation to_life, const Message& message, Payload payload);
    void carry(Life& from, NodeId to, const Message& message, Payload payload);
    void leave(Life& from, NodeId to, Block block, Payload payload, core::TimeNs leaves);
    [[nodiscard]] core::TimeNs delay(NodeId from, NodeId to);
    [[nodiscard]] std::uint64_t random(std::uint64_t below) { return random_() % below; }
    [[nodiscard]] bool chance(double p) { return std::bernoulli_distribution(p)(random_); }
    [[nodiscard]] Life* alive(NodeId node, Incarnation life) const;
    [[nodiscard]] bool is_over() const;
    void check();
    [[nodiscard]] std::vector<const Build*> builds_of(Block number) const;
    [[nodiscard]] bool has(const Build& build, NodeId node, Block number) const;
    void check_number(Block number, const std::set<Block>& lost);
    void check_parts(Block block, const Build& build);
    void check_whole_part(BlockSpan span, NodeId node, const BuiltPart& part, bool died);
    void note(const std::string& what) const;
    [[noreturn]] void wrong(const std::string& what) const;

    Settings settings_;
    BlockGrid grid_;
    Faults faults_;
    Block numbers_;
    std::uint64_t seed_;
    std::mt19937_64 random_;
    core::TimeNs now_ = 0;
    std::uint64_t actions_ = 0;
    std::priority_queue<Action, std::vector<Action>, std::greater<>> queue_;
    std::vector<std::unique_ptr<Life>> nodes_;
    std::vector<std::unique_ptr<Life>> silent_;  ///< by node: it will begin anew with what it had
    std::vector<Incarnation> lives_;
    std::vector<Incarnation> highest_lives_;
    std::vector<Incarnation> lives_without_clock_;
    std::set<std::pair<NodeId, Incarnation>> told_lives_;  ///< that began after what they were told
    std::vector<std::uint64_t> clocks_ahead_;              ///< of each node, in ns
    std::vector<std::vector<core::TimeNs>> deaths_;        ///< by node
    std::set<Term> terms_;
    Block first_assigned_ = ~Block{0};  ///< where the run began; whoever is late has blocks from before
    std::vector<core::TimeNs> manager_deaths_;
    bool is_interregnum_ = false;
    NodeId slow_ = 0;
    std::vector<bool> part_of_;            ///< Faults::parts: while the network is in two
    bool goes_on_ = false;                 ///< the part that does
    std::vector<core::TimeNs> link_free_;  ///< Faults::slow_links: of each node
    std::map<std::uint64_t, Content> contents_;
    std::uint64_t next_handle_ = 1;
    std::map<Block, std::vector<Build>> builds_;
    std::vector<std::set<Block>> offered_;
    Outcome outcome_;
};

}  // namespace weir::cluster::test
