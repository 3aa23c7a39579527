#include "feed.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "reduce/pack/packer.hpp"
#include "store/aligned_bytes.hpp"

namespace weir::stream::test {

using store::Content;
using store::SourceState;

namespace {

/// What came of a message.
std::vector<std::byte> received(const std::vector<std::byte>& message,
                                const std::vector<assemble::ByteRange>& missing) {
    std::vector<std::byte> out;
    std::size_t at = 0;
    for (const assemble::ByteRange& range : missing) {
        out.insert(out.end(), message.begin() + static_cast<std::ptrdiff_t>(at),
                   message.begin() + static_cast<std::ptrdiff_t>(range.begin));
        at = range.end;
    }
    out.insert(out.end(), message.begin() + static_cast<std::ptrdiff_t>(at), message.end());
    return out;
}

}  // namespace

void feed(store::EventSink& sink, const FedEvent& event, std::size_t piece_bytes, std::size_t buffer_bytes) {
    const store::AlignedBytes buffer(buffer_bytes);
    store::BlockWriter writer;
    writer.reset(buffer.span());
    const auto flush = [&] {
        sink.append(writer.blocks());
        writer.reset(buffer.span());
    };
    std::vector<std::byte> payload;
    std::vector<store::SourceRecord> records;
    store::EventRecord record;
    record.complete = true;
    const bool reduced = event.content != Content::received;
    for (std::size_t i = 0; i < event.sources.size(); ++i) {
        const auto missing = i < event.missing.size() ? event.missing[i] : std::vector<assemble::ByteRange>{};
        const std::vector<std::byte> came =
            received(event.sources[i], reduced ? std::vector<assemble::ByteRange>{} : missing);
        store::SourceRecord source;
        source.source = static_cast<std::uint32_t>(i);
        source.state = missing.empty() ? SourceState::complete : SourceState::partial;
        source.declared_bytes = event.sources[i].size();
        source.received_bytes = received(event.sources[i], missing).size();
        source.reduced_bytes = reduced ? event.sources[i].size() : 0;
        source.packets = 7;
        source.first_ns = 1'000'000'000 + static_cast<core::TimeNs>(event.id) * 1000;
        source.last_ns = source.first_ns + 500;
        record.payload_bytes += source.received_bytes;
        record.reduced_bytes += source.reduced_bytes;
        record.complete = record.complete && missing.empty();
        payload.insert(payload.end(), came.begin(), came.end());
        records.push_back(source);
    }
    record.id = event.id;
    record.sources = static_cast<std::uint32_t>(records.size());
    record.cause = record.complete ? store::Cause::complete : store::Cause::timeout;
    record.packets = 7 * records.size();
    record.first_ns = records.front().first_ns;
    record.last_ns = records.front().last_ns;
    record.content = event.content;
    while (!writer.put_event(record)) flush();
    for (std::size_t i = 0; i < records.size(); ++i) {
        const auto missing = i < event.missing.size() ? event.missing[i] : std::vector<assemble::ByteRange>{};
        while (!writer.put_source(records[i], missing)) flush();
    }
    std::optional<reduce::pack::Packer> packer;
    if (event.codec) packer.emplace(reduce::pack::PackOptions{*event.codec, 1, 2, false}, piece_bytes);
    std::size_t piece = 0;
    for (std::size_t at = 0; at < payload.size(); at += piece_bytes, ++piece) {
        const std::span<const std::byte> raw =
            std::span<const std::byte>(payload).subspan(at, std::min(piece_bytes, payload.size() - at));
        const bool packs = packer && event.plain_piece != piece;
        std::vector<std::byte> packed(packs ? packer->bound(raw.size()) : 0);
        if (packs) packed.resize(packer->pack(raw, packed));
        const std::span<const std::byte> stored = packed.empty() ? raw : std::span<const std::byte>(packed);
        if (writer.payload_room() < stored.size()) flush();
        std::ranges::copy(stored, writer.open_payload().begin());
        const auto encoding = packed.empty() ? store::Encoding::raw : static_cast<store::Encoding>(*event.codec);
        writer.close_payload(static_cast<std::uint32_t>(stored.size()), static_cast<std::uint32_t>(raw.size()),
                             encoding, at + piece_bytes >= payload.size(), store::has_elements(encoding) ? 2 : 0);
    }
    flush();
}

std::vector<std::uint16_t> noise(std::size_t pixels, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::uint16_t> out(pixels);
    for (std::uint16_t& pixel : out) pixel = static_cast<std::uint16_t>(2700 + random() % 30);
    return out;
}

std::vector<std::byte> as_bytes(const std::vector<std::uint16_t>& pixels) {
    std::vector<std::byte> out(2 * pixels.size());
    std::memcpy(out.data(), pixels.data(), out.size());
    return out;
}

std::string pixels_json(std::uint32_t columns) {
    return R"({"payload": {"content": "pixels", "type": "u16", "columns": )" + std::to_string(columns) +
           R"(, "unit": "photon"}})";
}

std::string jungfrau_json() {
    return R"({"config": {"stream": [{"format": "jungfrau"}]}})";
}

}  // namespace weir::stream::test
