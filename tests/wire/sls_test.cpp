// JUNGFRAU, MOENCH and EIGER in every read-out: which packet lies where, and what is refused.
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "wire/format.hpp"
#include "wire/reported_stream.hpp"
#include "wire_support.hpp"

namespace weir::wire {
namespace {

using test::Bytes;
using test::datagram_of;
using test::Exact;
using test::pattern;

struct Answer {
    Verdict verdict = Verdict::count_;
    Fragment fragment;
};

Answer decode(const char* format, const FormatContext& context, const SlsHeader& header, std::uint32_t payload_bytes,
              std::uint8_t lane = 0) {
    Bytes bytes(48 + payload_bytes);
    EXPECT_EQ(write_sls(header, pattern(payload_bytes, header.packet_number), bytes), bytes.size());
    const Exact exact(bytes);
    Datagram datagram = datagram_of(exact);
    datagram.lane = lane;
    Answer answer;
    find_format(format)->decode_burst(context, {&datagram, 1}, &answer.fragment, &answer.verdict);
    if (answer.verdict == ok) {
        EXPECT_EQ(answer.fragment.payload, exact.data() + 48);
        EXPECT_EQ(answer.fragment.bytes, payload_bytes);
        EXPECT_EQ(answer.fragment.total, context.message_bytes);
        EXPECT_LE(answer.fragment.offset + answer.fragment.bytes, context.message_bytes);
    }
    return answer;
}

/// The packet numbers that are accepted must be first .. first + count - 1, and lie one after the other.
void expect_numbers(const char* format, const FormatOptions& options, SlsHeader header, std::uint8_t lane,
                    std::uint32_t first, std::uint32_t count, std::uint32_t offset = 0) {
    const FormatContext context = find_format(format)->make_context(options);
    for (std::uint32_t number = 0; number < 520; ++number) {
        header.packet_number = number;
        const Answer answer = decode(format, context, header, context.payload_bytes, lane);
        const bool inside = number >= first && number < first + count;
        ASSERT_EQ(answer.verdict, inside ? ok : Verdict::malformed_packet_number) << number;
        if (inside) {
            ASSERT_EQ(answer.fragment.offset, offset + (number - first) * context.payload_bytes) << number;
        }
    }
    header.packet_number = 0xffffffff;
    EXPECT_EQ(decode(format, context, header, context.payload_bytes, lane).verdict, Verdict::malformed_packet_number);
}

FormatOptions partial(std::uint32_t rows, int interfaces = 1, LaneBy lane_by = LaneBy::datagram) {
    return {.interfaces = interfaces, .sls = {.rows = rows, .lane_by = lane_by}};
}

TEST(Sls, AFrameOfRdmaHasOneHeader) {
    const std::array<std::pair<const char*, SlsHeader>, 3> detectors{
        {{"jungfrau", {.frame_number = 9, .packet_number = 500, .detector_type = 3}},
         {"moench", {.frame_number = 9, .packet_number = 500, .detector_type = 5}},
         {"eiger", {.frame_number = 9, .packet_number = 500, .detector_type = 1}}}};
    for (const auto& [format, header] : detectors) {
        const FormatEntry* entry = find_format(format);
        const FormatContext context = entry->make_context({});
        Bytes bytes(48);
        ASSERT_EQ(write_sls(header, {}, bytes), 48U);
        const auto answer = [&](std::uint32_t all) {
            const Exact exact(bytes);
            Datagram datagram = datagram_of(exact);
            datagram.payload_bytes = all;  // of which only the header is looked at
            Answer out;
            out.verdict = entry->decode_whole(context, datagram, out.fragment);
            return out;
        };
        const Answer good = answer(48 + context.message_bytes);
        EXPECT_EQ(good.verdict, ok) << format;
        EXPECT_EQ(good.fragment.number, 9U);
        EXPECT_EQ(good.fragment.offset, 0U);
        EXPECT_EQ(good.fragment.bytes, context.message_bytes);
        EXPECT_EQ(good.fragment.header_bytes, 48U);
        EXPECT_EQ(answer(47 + context.message_bytes).verdict, Verdict::malformed_payload_length);
        EXPECT_EQ(answer(40).verdict, Verdict::malformed_header);
        bytes[46] = std::byte{77};
        EXPECT_EQ(answer(48 + context.message_bytes).verdict, Verdict::malformed_header);
    }
}

TEST(Jungfrau, PartialReadoutLiesAroundTheMiddle) {
    for (std::uint32_t rows = 8; rows <= 512; rows += 56)
        expect_numbers("jungfrau", partial(rows), {.frame_number = 1}, 0, 64 - rows / 8, rows / 4);
    EXPECT_EQ(find_format("jungfrau")->make_context(partial(256)).message_bytes, 256U * 2048);
}

TEST(Jungfrau, PartialReadoutOnTwoInterfacesByPort) {
    for (const std::uint32_t rows : {8U, 64U, 256U, 504U}) {
        expect_numbers("jungfrau", partial(rows, 2), {.frame_number = 1}, 0, 64 - rows / 8, rows / 8);
        expect_numbers("jungfrau", partial(rows, 2), {.frame_number = 1}, 1, 0, rows / 8);
    }
    EXPECT_EQ(find_format("jungfrau")->make_context(partial(256, 2)).message_bytes, 128U * 2048);
}

TEST(Jungfrau, PartialReadoutOnTwoInterfacesByRow) {
    const FormatOptions options = partial(64, 2, LaneBy::row);
    for (const std::uint16_t row : {0, 2, 510}) {
        expect_numbers("jungfrau", options, {.frame_number = 1, .row = row}, 1, 56, 8);
        expect_numbers("jungfrau", options, {.frame_number = 1, .row = static_cast<std::uint16_t>(row + 1)}, 0, 0, 8);
    }
}

TEST(Jungfrau, WholeReadoutDoesNotAskForTheInterface) {
    const FormatContext context = find_format("jungfrau")->make_context(partial(512, 2));
    EXPECT_EQ(context.sls.lane_by, LaneBy::none);
    EXPECT_EQ(context.message_bytes, 524288U);
    expect_numbers("jungfrau", partial(512, 2), {.frame_number = 1, .row = 1}, 1, 0, 64);
}

TEST(Jungfrau, InterfacesThatShareAModuleIdMakeOneMessage) {
    for (const std::uint32_t rows : {512U, 64U}) {
        FormatOptions options = partial(rows, 2, LaneBy::row);
        options.sls.interfaces_joined = true;
        EXPECT_EQ(find_format("jungfrau")->make_context(options).message_bytes, rows * 2048);
        expect_numbers("jungfrau", options, {.frame_number = 1, .row = 4}, 0, 64 - rows / 8, rows / 8);
        expect_numbers("jungfrau", options, {.frame_number = 1, .row = 5}, 0, 0, rows / 8, rows / 8 * 8192);
    }
}

TEST(Moench, EveryReadout) {
    const SlsHeader header{.frame_number = 1, .detector_type = 5};
    expect_numbers("moench", {}, header, 0, 0, 50);
    expect_numbers("moench", {.interfaces = 2}, header, 1, 0, 25);
    for (const std::uint32_t rows : {16U, 64U, 384U, 400U}) {
        expect_numbers("moench", partial(rows), header, 0, 25 - rows / 16, rows / 8);
        expect_numbers("moench", partial(rows, 2), header, 0, 25 - rows / 16, rows / 16);
        expect_numbers("moench", partial(rows, 2), header, 1, 0, rows / 16);
    }
    EXPECT_EQ(find_format("moench")->make_context({}).message_bytes, 400U * 400 * 2);
}

TEST(Moench, Malformed) {
    const FormatContext context = find_format("moench")->make_context({});
    const auto verdict = [&](const SlsHeader& header, std::uint32_t bytes = 6400) {
        return decode("moench", context, header, bytes).verdict;
    };
    EXPECT_EQ(verdict({.detector_type = 5}), ok);
    EXPECT_EQ(verdict({.detector_type = 5, .version = 1}), ok);
    EXPECT_EQ(verdict({.detector_type = 5, .version = 3}), Verdict::malformed_header);
    EXPECT_EQ(verdict({.detector_type = 3}, 8192), Verdict::malformed_header);  // a JUNGFRAU, before its length
    EXPECT_EQ(verdict({.detector_type = 5}, 6399), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict({.detector_type = 5}, 8192), Verdict::malformed_payload_length);
}

TEST(Eiger, EveryBitDepthAndSpeed) {
    for (const std::uint32_t bits : {4U, 8U, 12U, 16U, 32U}) {
        const SlsHeader header{.frame_number = 1, .detector_type = 1};
        FormatOptions options{.sls = {.bit_depth = bits}};
        expect_numbers("eiger", options, header, 0, 0, 4 * bits);
        EXPECT_EQ(find_format("eiger")->make_context(options).message_bytes, 512 * 256 * bits / 8);
        options.sls.tengiga = false;
        expect_numbers("eiger", options, header, 0, 0, 16 * bits);
        EXPECT_EQ(find_format("eiger")->make_context(options).payload_bytes, 1024U);
        EXPECT_EQ(find_format("eiger")->make_context(options).message_bytes, 512 * 256 * bits / 8);
    }
}

TEST(Eiger, PartialReadoutBeginsAtPacketZero) {
    const SlsHeader header{.frame_number = 1, .detector_type = 1};
    expect_numbers("eiger", {.sls = {.rows = 128}}, header, 0, 0, 32);
    expect_numbers("eiger", {.sls = {.rows = 16, .bit_depth = 12}}, header, 0, 0, 3);
    expect_numbers("eiger", {.sls = {.rows = 1, .bit_depth = 32, .tengiga = false}}, header, 0, 0, 2);
}

TEST(Eiger, Malformed) {
    const FormatContext context = find_format("eiger")->make_context({});
    const auto verdict = [&](const SlsHeader& header, std::uint32_t bytes = 4096) {
        return decode("eiger", context, header, bytes).verdict;
    };
    EXPECT_EQ(verdict({.frame_number = 1, .detector_type = 1}), ok);
    EXPECT_EQ(verdict({.frame_number = 0, .detector_type = 1}), Verdict::malformed_header);
    EXPECT_EQ(verdict({.frame_number = std::uint64_t{1} << 63, .detector_type = 1}), ok);
    EXPECT_EQ(verdict({.frame_number = 1, .detector_type = 3}), Verdict::malformed_header);
    EXPECT_EQ(verdict({.frame_number = 1, .detector_type = 1}, 1024), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict({.frame_number = 1, .detector_type = 1}, 0), Verdict::malformed_payload_length);
}

ImageShape shape(nlohmann::json stream) {
    const auto found = image_of_streams(nlohmann::json::array({std::move(stream)}));
    return found.value_or(ImageShape{0, 0, 0});
}

TEST(SlsImages, AreWhatTheStreamSays) {
    EXPECT_EQ(shape({{"format", "jungfrau"}}), (ImageShape{512, 1024, 16}));
    EXPECT_EQ(shape({{"format", "jungfrau"}, {"interfaces", 2}, {"rows", 128}}), (ImageShape{64, 1024, 16}));
    EXPECT_EQ(shape({{"format", "jungfrau"}, {"interfaces", 2}, {"source_by", "header"}}), (ImageShape{512, 1024, 16}));
    EXPECT_EQ(shape({{"format", "moench"}, {"interfaces", 2}}), (ImageShape{200, 400, 16}));
    EXPECT_EQ(shape({{"format", "eiger"}}), (ImageShape{256, 512, 16}));
    for (const std::uint32_t bits : {4U, 8U, 12U, 16U, 32U}) {
        EXPECT_EQ(shape({{"format", "eiger"}, {"bit_depth", bits}}), (ImageShape{256, 512, bits}));
        EXPECT_EQ(shape({{"format", "eiger"}, {"bit_depth", bits}, {"tengiga", false}, {"rows", 64}}),
                  (ImageShape{64, 512, bits}));
    }
    EXPECT_EQ(shape({{"format", "eiger"}, {"bit_depth", 10}}), (ImageShape{0, 0, 0}));
    EXPECT_EQ(shape({{"format", "ejfat"}}), (ImageShape{0, 0, 0}));
    EXPECT_FALSE(image_of_streams({{{"format", "eiger"}}, {{"format", "eiger"}, {"bit_depth", 8}}}));
    EXPECT_FALSE(image_of_streams(nullptr));
}

TEST(SlsImages, PixelsThatShareBytesGetBytesOfTheirOwn) {
    const auto unpacked = [](std::uint32_t bits, const Bytes& packed, std::size_t bytes) {
        Bytes out(bytes);
        unpack_pixels(bits, packed, out);
        return out;
    };
    const auto bytes = [](std::initializer_list<int> values) {
        Bytes out;
        for (const int value : values) out.push_back(static_cast<std::byte>(value));
        return out;
    };
    EXPECT_EQ(unpacked(4, bytes({0x21, 0x43, 0xf0}), 6), bytes({1, 2, 3, 4, 0, 15}));
    // 0x321 and 0x654; 0xfff and 0x001.
    EXPECT_EQ(unpacked(12, bytes({0x21, 0x43, 0x65, 0xff, 0x1f, 0x00}), 8),
              bytes({0x21, 0x03, 0x54, 0x06, 0xff, 0x0f, 0x01, 0x00}));
    EXPECT_EQ(unpacked(8, bytes({1, 2}), 2), bytes({1, 2}));
    // Of a pixel that has a bit of a byte, the byte is missing.
    EXPECT_EQ(pixels_of_bytes(12, 1, 2).begin, 0U);
    EXPECT_EQ(pixels_of_bytes(12, 1, 2).end, 2U);
    EXPECT_EQ(pixels_of_bytes(4, 3, 4).begin, 6U);
    EXPECT_EQ(pixels_of_bytes(4, 3, 4).end, 8U);
    EXPECT_EQ(pixels_of_bytes(32, 5, 6).begin, 1U);
    EXPECT_EQ(pixels_of_bytes(32, 5, 6).end, 2U);
}

/// Places of EIGER's tiles with these rows and columns in their headers; nothing: no header.
std::vector<ImagePlace> places(const std::vector<std::optional<ImagePlace>>& tiles) {
    std::vector<Bytes> headers(tiles.size());
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        if (!tiles[i]) continue;
        headers[i].resize(48);
        headers[i][34] = static_cast<std::byte>(tiles[i]->row);
        headers[i][36] = static_cast<std::byte>(tiles[i]->column);
    }
    const std::vector<std::span<const std::byte>> views(headers.begin(), headers.end());
    return find_format("eiger")->image_places(views);
}

TEST(SlsImages, EigerTilesStandWhereTheirHeadersSay) {
    using Places = std::vector<ImagePlace>;
    EXPECT_EQ(places({{{0, 0}}, {{0, 1}}}), (Places{{0, 0, false}, {0, 1, false}}));
    // The first port of a bottom half module has the odd column, and its rows begin at the bottom.
    EXPECT_EQ(places({{{0, 0}}, {{0, 1}}, {{1, 1}}, {{1, 0}}}),
              (Places{{0, 0, false}, {0, 1, false}, {1, 1, true}, {1, 0, true}}));
    EXPECT_EQ(places({{{7, 2}}, {{7, 3}}}), (Places{{0, 0, false}, {0, 1, false}})) << "somewhere in a larger one";
    EXPECT_EQ(places({{{0, 0}}, {{0, 1}}, std::nullopt, {{1, 0}}}),
              (Places{{0, 0, false}, {0, 1, false}, {1, 1, true}, {1, 0, true}}))
        << "nothing came of the only one that can stand there";
    EXPECT_EQ(places({{{0, 0}}, std::nullopt}), (Places{{0, 0, false}, {0, 1, false}}));
    EXPECT_EQ(places({{{0, 0}}}), (Places{{0, 0, false}}));
    EXPECT_TRUE(places({{{0, 0}}, {{0, 0}}}).empty()) << "nobody has told the modules where they are";
    EXPECT_TRUE(places({{{0, 0}}, {{200, 1}}}).empty());
    EXPECT_TRUE(places({std::nullopt, std::nullopt}).empty());
    EXPECT_TRUE(places({{{0, 0}}, {{0, 1}}, std::nullopt, std::nullopt}).empty());
}

/// The error names the option and what is accepted.
void expect_refused(const char* format, const FormatOptions& options, const std::string& found,
                    const std::string& accepted) {
    try {
        static_cast<void>(find_format(format)->make_context(options));
        ADD_FAILURE() << "accepted: " << found;
    } catch (const core::UsageError& error) {
        EXPECT_NE(std::string(error.what()).find(found), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find(accepted), std::string::npos) << error.what();
    }
}

TEST(SlsOptions, ImpossibleOnesNameWhatIsAccepted) {
    for (const std::uint32_t rows : {0U, 4U, 260U, 520U})
        expect_refused("jungfrau", partial(rows), "rows = " + std::to_string(rows), "8 to 512 rows, in steps of 8");
    for (const std::uint32_t rows : {0U, 8U, 200U, 416U})
        expect_refused("moench", partial(rows), "rows = " + std::to_string(rows), "16 to 400 rows, in steps of 16");
    expect_refused("eiger", partial(258), "rows = 258", "256 rows");
    expect_refused("eiger", partial(2), "rows = 2", "steps of 4 with pixels of 16 bits in packets of 4096 bytes");
    expect_refused("eiger", {.sls = {.rows = 8, .bit_depth = 12}}, "rows = 8", "steps of 16");
    expect_refused("eiger", {.sls = {.bit_depth = 10}}, "bit_depth = 10", "4, 8, 12, 16 or 32");
    expect_refused("eiger", {.interfaces = 2}, "interfaces = 2", "jungfrau and moench");
    expect_refused("moench", {.interfaces = 3}, "interfaces = 3", "1 or 2");
    expect_refused("jungfrau", {.sls = {.bit_depth = 16}}, "bit_depth", "eiger");
    expect_refused("moench", {.sls = {.tengiga = true}}, "tengiga", "eiger");
}

}  // namespace
}  // namespace weir::wire
