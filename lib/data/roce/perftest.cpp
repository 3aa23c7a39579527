#include "roce/perftest.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace weir::roce {

namespace {

constexpr std::string_view our_version = "6.06";  // of perftest 4.5, whose exchange this is
constexpr std::size_t version_bytes = 16;
constexpr std::size_t number_bytes = 4;
constexpr std::size_t mtu_bytes = 2;
constexpr std::size_t result_bytes = 8;
using namespace std::string_view_literals;
constexpr std::string_view done = "done\0"sv;  // the zero is sent, too
/// Both texts are the same up to here; then comes a byte of the GID and a colon, or eight digits.
constexpr std::size_t common_bytes = 50;
/// More than this at once is no client of ours: it waits for an answer after every message.
constexpr std::size_t input_max = 4096;

bool is_hex(char c) noexcept {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/// Takes a hexadecimal number of at least one digit and the colon or the zero after it off the front of `text`.
bool take_hex(std::string_view& text, char after, std::uint64_t max, std::uint64_t& value) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || value > max || end == text.data() + text.size() || *end != after) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return true;
}

void put_hex(std::string& out, std::uint64_t value, std::size_t digits) {
    for (std::size_t i = digits; i-- > 0;) out += "0123456789abcdef"[value >> (4 * i) & 15U];
}

}  // namespace

std::uint32_t mtu_number(std::uint32_t bytes) noexcept {
    for (std::uint32_t number = 1; number <= 5; ++number)
        if (bytes == 128U << number) return number;
    return 0;
}

std::size_t PerftestEnd::size(std::string_view begin) noexcept {
    if (begin.size() <= common_bytes + 2) return 0;
    return begin[common_bytes + 2] == ':' ? text_bytes_gid : text_bytes;
}

std::optional<PerftestEnd> PerftestEnd::parse(std::string_view text) noexcept {
    constexpr std::uint64_t max_24 = 0xff'ffff;
    constexpr std::uint64_t max_32 = 0xffff'ffff;
    if (text.size() != size(text)) return std::nullopt;
    PerftestEnd end;
    end.has_gid = text.size() == text_bytes_gid;
    std::uint64_t value = 0;
    const auto take = [&text, &value](std::uint64_t max, auto& into) {
        if (!take_hex(text, ':', max, value)) return false;
        into = static_cast<std::remove_reference_t<decltype(into)>>(value);
        return true;
    };
    if (!take(0xffff, end.lid) || !take(0xffff, end.reads) || !take(max_24, end.qp) || !take(max_24, end.psn) ||
        !take(max_32, end.rkey) || !take(~std::uint64_t{0}, end.va))
        return std::nullopt;
    if (end.has_gid)
        for (std::uint8_t& byte : end.gid)
            if (!take(0xff, byte)) return std::nullopt;
    if (!take_hex(text, end.has_gid ? ':' : '\0', max_32, value)) return std::nullopt;
    end.srq = static_cast<std::uint32_t>(value);
    return end;
}

std::string PerftestEnd::text() const {
    std::string out;
    const auto field = [&out](std::uint64_t value, std::size_t digits) {
        put_hex(out, value, digits);
        out += ':';
    };
    field(lid, 4);
    field(reads, 4);
    field(qp, 6);
    field(psn, 6);
    field(rkey, 8);
    field(va, 16);
    if (has_gid)
        for (const std::uint8_t byte : gid) field(byte, 2);
    put_hex(out, srq, 8);
    if (has_gid) out += ':';
    out += '\0';
    return out;
}

std::optional<std::uint32_t> PerftestEnd::ipv4() const noexcept {
    constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (!has_gid || !std::equal(mapped.begin(), mapped.end(), gid.begin())) return std::nullopt;
    return std::uint32_t{gid[12]} << 24 | std::uint32_t{gid[13]} << 16 | std::uint32_t{gid[14]} << 8 | gid[15];
}

void PerftestEnd::set_ipv4(std::uint32_t address) noexcept {
    gid = {};
    gid[10] = gid[11] = 0xff;
    for (std::uint32_t i = 0; i < 4; ++i) gid[12 + i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
    has_gid = true;
}

PerftestSession::PerftestSession(std::uint32_t path_mtu) : own_mtu_(path_mtu) {}

void PerftestSession::receive(std::string_view bytes) {
    if (state_ == State::ended || state_ == State::failed) return;
    if (input_.size() + bytes.size() > input_max) return fail("more bytes than the exchange has");
    input_ += bytes;
    if (state_ == State::listening) advance();
}

void PerftestSession::advance() {
    while (state_ == State::listening && (step_ == Step::ends ? take_later() : take_greeting())) {
    }
}

bool PerftestSession::take_greeting() {
    const std::size_t bytes = step_ == Step::version ? version_bytes : step_ == Step::mtu ? mtu_bytes : number_bytes;
    if (input_.size() < bytes) return false;
    const std::string_view text(input_.data(), bytes);
    switch (step_) {
        case Step::version:
            if (!check_version(text)) return false;
            output_ += our_version;
            output_.append(version_bytes - our_version.size(), '\0');
            step_ = Step::cycle_buffer;
            break;
        case Step::cycle_buffer:
            output_ += text;  // both sides take the larger one: ours is as the client's
            step_ = Step::cache_line;
            break;
        case Step::cache_line:
            output_ += text;
            step_ = Step::mtu;
            break;
        default:
            if (!check_mtu(text)) return false;
            output_ += static_cast<char>('0' + mtu_number(own_mtu_));
            output_ += '\0';
            step_ = Step::ends;
            break;
    }
    input_.erase(0, bytes);
    return true;
}

bool PerftestSession::check_version(std::string_view text) {
    const std::string_view number = text.substr(0, text.find('\0'));
    double version = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), version);
    if (error != std::errc{} || end == number.data() || number.size() == text.size()) {
        fail("no version of perftest at the start (--dont_xchg_versions does not work with this server)");
        return false;
    }
    if (version < version_min) {
        fail("version " + std::string(number) + " of perftest's exchange; accepted: 5.70 or later");
        return false;
    }
    return true;
}

bool PerftestSession::check_mtu(std::string_view text) {
    if (text[0] < '1' || text[0] > '5' || text[1] != '\0') {
        fail("no path MTU where it belongs; accepted: 256 to 4096 bytes");
        return false;
    }
    path_mtu_ = std::min(own_mtu_, 128U << static_cast<std::uint32_t>(text[0] - '0'));
    return true;
}

/// An end, a result or "done"; false if more bytes are needed, or it is none of them.
bool PerftestSession::take_later() {
    if (input_.size() < 2) return false;
    if (is_hex(input_[0]) && is_hex(input_[1])) {
        const std::size_t bytes = PerftestEnd::size(input_);
        return bytes != 0 && input_.size() >= bytes && take_end(bytes);
    }
    if (running_ && input_[0] == done[0]) {
        if (input_.size() < done.size()) return false;
        if (!input_.starts_with(done)) {
            fail("neither a queue pair, nor a result, nor \"done\"");
            return false;
        }
        input_.erase(0, done.size());
        state_ = State::ended;
        return false;
    }
    if (!running_) {
        fail("no queue pair where one belongs");
        return false;
    }
    if (input_.size() < result_bytes) return false;
    output_.append(result_bytes, '\0');  // the client's results are its own: ours are zeros
    input_.erase(0, result_bytes);
    return true;
}

bool PerftestSession::take_end(std::size_t bytes) {
    const auto end = PerftestEnd::parse({input_.data(), bytes});
    if (!end) {
        fail("a queue pair that cannot be read");
        return false;
    }
    input_.erase(0, bytes);
    const auto known = std::find_if(pairs_.begin(), pairs_.end(), [&end](const Pair& p) { return p.qp == end->qp; });
    if (known != pairs_.end()) {
        if (known->answer.size() != bytes) {
            fail("a queue pair once with a GID and once without");
            return false;
        }
        running_ = true;  // it has come round: there are no more than these
        output_ += known->answer;
        return true;
    }
    if (running_ || count_ == queue_pairs_max) {
        fail(running_ ? "one more queue pair after the last one" : "more than 1024 queue pairs");
        return false;
    }
    peer_ = *end;
    state_ = State::asking;
    return false;
}

void PerftestSession::open(const PerftestEnd& ours) {
    if (state_ != State::asking) return;
    pairs_.push_back({peer_.qp, ours.text()});
    ++count_;
    output_ += pairs_.back().answer;
    state_ = State::listening;
    advance();
}

void PerftestSession::refuse(std::string_view reason) {
    if (state_ == State::asking) fail(reason);
}

void PerftestSession::fail(std::string_view reason) {
    state_ = State::failed;
    reason_ = reason;
    input_.clear();
}

}  // namespace weir::roce
