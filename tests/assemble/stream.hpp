// Random streams of packets with every kind of fault, and the truth about each packet. The faults stay within what is
// promised: a wild number is a single one, a restart begins with several whole messages after what it repeats has
// ended.
#pragma once

#include <random>
#include <vector>

#include "oracle.hpp"

namespace weir::assemble::test {

struct Stream {
    Limits limits;
    std::size_t ranges_max = 0;  ///< separate ranges that a message may have
    bool limited = false;        ///< the window binds, so order at equal times matters
    std::vector<Sent> sent;      ///< by time
};

class StreamMaker {
public:
    explicit StreamMaker(std::uint64_t seed) : random_(seed) {}
    static constexpr std::size_t packets_min = 200;
    [[nodiscard]] Stream make();

private:
    struct Plan {  ///< of one source: its epoch, and all it has sent
        std::uint32_t source = 0;
        std::uint32_t epoch = 0;
        TimeNs start = 0;
        std::size_t first = 0;  ///< index into numbers_
        std::size_t last = 0;   ///< exclusive
        std::size_t clean = 0;  ///< so many first messages come whole and in order
        std::vector<Sent> sent;
    };

    [[nodiscard]] std::uint64_t below(std::uint64_t n) { return random_() % n; }
    [[nodiscard]] bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
    void try_to_make();
    void choose();
    void choose_numbers();
    void add_epoch(Plan& plan);
    void add_message(Plan& plan, std::size_t index, TimeNs at, bool clean);
    void add_copy(Plan& plan, const Sent& sent);
    void make_wild(Plan& plan);
    void restart(std::vector<Plan>& plans);
    void end_epoch(Plan& plan) const;
    [[nodiscard]] TimeNs repeatable_from(const Plan& plan) const;

    std::mt19937_64 random_;
    Stream stream_;
    std::vector<std::uint64_t> numbers_;
    std::uint32_t epochs_ = 1;
    std::size_t events_ = 0;
    TimeNs gap_ = 0;     ///< between events
    TimeNs jitter_ = 0;  ///< of packets
    double loss_ = 0, copies_ = 0, cuts_ = 0, overlaps_ = 0, undeclared_ = 0;
};

}  // namespace weir::assemble::test
