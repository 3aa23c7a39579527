// CBOR: what is written comes back, and no bytes do harm.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "stream/cbor_value.hpp"
#include "stream/cbor_writer.hpp"

namespace weir::stream {
namespace {

using Kind = CborValue::Kind;

/// A value of at most so many levels, written, and as it has to come back; texts and bytes are kept elsewhere.
struct Made {
    CborWriter out;
    std::vector<std::unique_ptr<std::string>> texts;
    std::mt19937 random;

    CborValue scalar() {
        CborValue value;
        switch (random() % 6) {
            case 0:
                value.kind = Kind::integer;
                value.number = (std::uint64_t{random()} << 32U | random()) >> random() % 64;
                out.integer(value.number);
                return value;
            case 1:
                value.kind = Kind::negative;
                value.number = (std::uint64_t{random()} << 32U | random()) >> (1 + random() % 63);
                out.signed_integer(-1 - static_cast<std::int64_t>(value.number));
                return value;
            case 2:
                value.kind = Kind::boolean;
                value.number = random() % 2;
                out.boolean(value.number != 0);
                return value;
            case 3:
                value.kind = Kind::real;
                value.real = static_cast<double>(random()) / 3;
                out.real(value.real);
                return value;
            case 4:
                value.kind = Kind::text;
                value.text = *texts.emplace_back(std::make_unique<std::string>(random() % 300, 'x'));
                out.text(value.text);
                return value;
            default:
                value.kind = Kind::bytes;
                const std::string& kept = *texts.emplace_back(std::make_unique<std::string>(random() % 300, '\xff'));
                value.bytes = std::as_bytes(std::span(kept));
                out.bytes(value.bytes);
                return value;
        }
    }
    CborValue any(int levels) {
        const unsigned which = random() % 6;
        if (levels == 0 || which > 2) return scalar();
        CborValue value;
        const std::size_t count = random() % 40;
        value.kind = which == 0 ? Kind::array : which == 1 ? Kind::map : Kind::tag;
        if (which == 0) out.array(count);
        if (which == 1) out.map(count);
        if (which == 2) out.tag(value.number = random());
        const std::size_t items = which == 0 ? count : which == 1 ? 2 * count : 1;
        for (std::size_t i = 0; i < items; ++i) value.items.push_back(any(levels - 1));
        return value;
    }
};

bool same(const CborValue& a, const CborValue& b) {
    if (a.kind != b.kind || a.number != b.number || a.real != b.real || a.text != b.text) return false;
    if (!std::ranges::equal(a.bytes, b.bytes) || a.items.size() != b.items.size()) return false;
    for (std::size_t i = 0; i < a.items.size(); ++i)
        if (!same(a.items[i], b.items[i])) return false;
    return true;
}

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
}

std::string problem_of(std::span<const std::byte> bytes) {
    std::string problem;
    const auto value = parse_cbor(bytes, problem);
    return value ? std::string() : problem;
}

TEST(Cbor, WhatIsWrittenComesBack) {
    EXPECT_TRUE(rc::check([] {
        Made made;
        made.random.seed(*rc::gen::arbitrary<unsigned>());
        const CborValue value = made.any(4);
        std::string problem;
        const auto read = parse_cbor(made.out.written(), problem);
        RC_ASSERT(read.has_value());
        RC_ASSERT(same(*read, value));
    }));
}

TEST(Cbor, ABeginningIsNoMessage) {
    Made made;
    made.random.seed(7);
    made.out.map(3);
    for (int i = 0; i < 3; ++i) {
        made.out.text("key");
        made.any(3);
    }
    const auto whole = made.out.written();
    EXPECT_EQ(problem_of(whole), "");
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
        ASSERT_NE(problem_of(whole.first(bytes)), "") << bytes << " bytes of " << whole.size();
}

TEST(Cbor, AnyBytesDoNoHarm) {
    EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& bytes) {
        const std::vector<std::uint8_t> exact(bytes);  // so that a sanitizer sees a byte too far
        std::string problem;
        const auto value = parse_cbor(std::as_bytes(std::span(exact)), problem);
        RC_ASSERT(value.has_value() == problem.empty());
    }));
}

TEST(Cbor, ChangedBytesDoNoHarm) {
    EXPECT_TRUE(rc::check([](unsigned seed, std::size_t at, std::uint8_t to) {
        Made made;
        made.random.seed(seed);
        made.any(4);
        std::vector<std::byte> bytes(made.out.written().begin(), made.out.written().end());
        bytes[at % bytes.size()] = static_cast<std::byte>(to);
        std::string problem;
        const auto value = parse_cbor(bytes, problem);
        RC_ASSERT(value.has_value() == problem.empty());
    }));
}

TEST(Cbor, CollectionsOfIndefiniteLengthEndWithTheirEnd) {
    std::string problem;
    const auto bytes = bytes_of({0xbf, 0x61, 'a', 0x9f, 0x01, 0x20, 0xff, 0xff});  // {_ "a": [_ 1, -1]}
    const auto value = parse_cbor(bytes, problem);
    ASSERT_TRUE(value) << problem;
    ASSERT_NE(value->find("a"), nullptr);
    ASSERT_EQ(value->find("a")->items.size(), 2U);
    EXPECT_EQ(value->find("a")->items[1].as_signed(), -1);
    EXPECT_EQ(problem_of(bytes_of({0xbf, 0x61, 'a', 0xff})), "a key without a value");
    EXPECT_EQ(problem_of(bytes_of({0xff})), "an end without a beginning");
}

TEST(Cbor, WhatIsTooMuchIsRefused) {
    EXPECT_EQ(problem_of(bytes_of({0x5f, 0x41, 0x00, 0xff})), "it has a string of indefinite length");
    EXPECT_EQ(problem_of(bytes_of({0x01, 0x01})), "something follows the message");
    EXPECT_EQ(problem_of(std::vector<std::byte>(cbor_depth_max + 1, std::byte{0x81})), "it is nested deeper than 16");
    EXPECT_EQ(problem_of(std::vector<std::byte>(cbor_depth_max, std::byte{0x81})), "it is cut off");
    // 2^62 items, of which none is there: no memory is taken for them.
    EXPECT_EQ(problem_of(bytes_of({0x9b, 0x40, 0, 0, 0, 0, 0, 0, 0})), "it has more than 262144 items");
    EXPECT_EQ(problem_of(bytes_of({0xbb, 0xc0, 0, 0, 0, 0, 0, 0, 1})), "it has more than 262144 items");
    EXPECT_EQ(problem_of(bytes_of({0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})), "it is cut off");
    std::vector<std::byte> many(cbor_items_max + 2, std::byte{0x01});
    many.front() = std::byte{0x9f};
    EXPECT_EQ(problem_of(many), "it has more than 262144 items");
}

}  // namespace
}  // namespace weir::stream
