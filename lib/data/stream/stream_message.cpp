#include "stream/stream_message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "reduce/pack/unpacker.hpp"
#include "store/block_writer.hpp"
#include "stream/compression.hpp"

namespace weir::stream {

using store::Content;
using store::EventInfo;
using store::SourceInfo;

namespace {

std::optional<StreamedChannel> fail(std::string& problem, std::string_view what) {
    problem = what;
    return {};
}

/// The bytes of a typed array: a byte string, or a compressed one.
bool take_bytes_of(const CborValue& value, StreamedChannel& channel, std::string& problem) {
    if (value.kind == CborValue::Kind::bytes) {
        channel.bytes = value.bytes;
        return true;
    }
    const CborValue* const packed = value.tagged(tag_compressed);
    if (packed == nullptr || packed->kind != CborValue::Kind::array || packed->items.size() != 3 ||
        packed->items[2].kind != CborValue::Kind::bytes) {
        problem = "the pixels of an image are no byte string";
        return false;
    }
    channel.codec = compression_named(packed->items[0].as_text());
    channel.bytes = packed->items[2].bytes;
    if (!channel.codec) {
        problem = fmt::format("a compression that is not known: \"{:.20}\"", packed->items[0].as_text());
        return false;
    }
    if (packed->items[1].as_unsigned() != std::uint64_t{channel.type->bytes}) {
        problem = "the element size of the compression is not that of the pixels";
        return false;
    }
    return true;
}

bool take_shape(const CborValue& value, StreamedChannel& channel, std::string& problem) {
    const bool two = value.kind == CborValue::Kind::array && value.items.size() == 2;
    const auto rows = two ? value.items[0].as_unsigned() : std::nullopt;
    const auto columns = two ? value.items[1].as_unsigned() : std::nullopt;
    if (!rows || !columns || *rows > channel_bytes_max || *columns > channel_bytes_max) {
        problem = "the shape of an image is not two numbers";
        return false;
    }
    channel.rows = *rows;
    channel.columns = *columns;
    return true;
}

std::optional<StreamedChannel> read_channel(std::string_view name, const CborValue& value, std::string& problem) {
    StreamedChannel channel;
    channel.name = name;
    if (value.kind == CborValue::Kind::bytes) {
        channel.type = element_type_named("uint8");
        channel.rows = 1;
        channel.columns = value.bytes.size();
        channel.bytes = value.bytes;
    } else {
        const CborValue* const array = value.tagged(tag_multi_dimensional);
        if (array == nullptr || array->kind != CborValue::Kind::array || array->items.size() != 2)
            return fail(problem, "an image is no array of two dimensions");
        const CborValue& typed = array->items[1];
        channel.type = typed.kind == CborValue::Kind::tag ? element_type_of_tag(typed.number) : nullptr;
        if (channel.type == nullptr || typed.items.size() != 1)
            return fail(problem, "an image has pixels of a type that is not known");
        if (!take_shape(array->items[0], channel, problem) || !take_bytes_of(typed.items[0], channel, problem))
            return {};
    }
    // Both numbers are at most 2^30, and an element has at most 8 bytes: no overflow.
    const std::uint64_t pixels = channel.rows * channel.columns;
    if (pixels > channel_bytes_max / channel.type->bytes) return fail(problem, "an image is larger than 1 GiB");
    channel.raw_bytes = pixels * channel.type->bytes;
    const auto says = channel.codec ? reduce::pack::decoded_bytes(*channel.codec, channel.bytes) : channel.bytes.size();
    if (says != channel.raw_bytes) return fail(problem, "an image has not as many bytes as its shape says");
    const auto at_most = channel.codec ? reduce::pack::decoded_bytes_max(*channel.codec, channel.bytes.size()) : says;
    if (at_most && channel.raw_bytes > *at_most) return fail(problem, "an image claims more bytes than it can hold");
    return channel;
}

MessageType type_named(std::string_view name) {
    constexpr std::array<std::string_view, 4> names{"start", "image", "event", "end"};
    const auto* const found = std::find(names.begin(), names.end(), name);
    return static_cast<MessageType>(found - names.begin());
}

bool read_data(StreamMessage& message, std::string& problem) {
    const CborValue* const data = message.value.find("data");
    if (data == nullptr || data->kind != CborValue::Kind::map) {
        problem = "an image without data";
        return false;
    }
    std::uint64_t raw_bytes = 0;
    for (std::size_t i = 0; i + 1 < data->items.size(); i += 2) {
        const auto channel = read_channel(data->items[i].as_text(), data->items[i + 1], problem);
        if (!channel) return false;
        raw_bytes += channel->raw_bytes;
        if (raw_bytes > channel_bytes_max) {
            problem = "its images are larger than 1 GiB together";
            return false;
        }
        message.channels.push_back(*channel);
    }
    return true;
}

// --- what weir says of an event --------------------------------------------------------------------------------------

/// Reads members of a map, and remembers whether all were as they have to be.
class Members {
public:
    explicit Members(const CborValue& map) : map_(map) {}
    std::uint64_t number(std::string_view key) {
        const CborValue* const value = map_.find(key);
        const auto number = value != nullptr ? value->as_unsigned() : std::nullopt;
        good_ = good_ && number.has_value();
        return number.value_or(0);
    }
    template <class T>
    T small(std::string_view key) {
        const std::uint64_t value = number(key);
        good_ = good_ && value <= std::numeric_limits<T>::max();
        return static_cast<T>(value);
    }
    core::TimeNs time(std::string_view key) {
        const CborValue* const value = map_.find(key);
        const auto number = value != nullptr ? value->as_signed() : std::nullopt;
        good_ = good_ && number.has_value();
        return number.value_or(0);
    }
    bool flag(std::string_view key) {
        const CborValue* const value = map_.find(key);
        good_ = good_ && value != nullptr && value->kind == CborValue::Kind::boolean;
        return value != nullptr && value->number != 0;
    }
    /// One of some names; the first of them if it is left out and may be.
    template <class Enum, std::size_t N>
    Enum choice(std::string_view key, const std::array<std::string_view, N>& names, bool may_be_left_out) {
        const CborValue* const value = map_.find(key);
        if (value == nullptr && may_be_left_out) return static_cast<Enum>(0);
        const auto* const found = std::find(names.begin(), names.end(), value == nullptr ? "" : value->as_text());
        good_ = good_ && found != names.end();
        return found == names.end() ? static_cast<Enum>(0) : static_cast<Enum>(found - names.begin());
    }
    void refuse() { good_ = false; }
    [[nodiscard]] bool good() const noexcept { return good_; }

private:
    const CborValue& map_;
    bool good_ = true;
};

constexpr std::array<std::string_view, 5> state_words{"complete", "partial", "size_unknown", "absent",
                                                      "absent_unknown"};

void take_missing(const CborValue& map, SourceInfo& source, Members& members) {
    const CborValue* const missing = map.find("missing");
    if (missing == nullptr) return;
    if (missing->kind != CborValue::Kind::array) return members.refuse();
    for (const CborValue& range : missing->items) {
        const bool two = range.kind == CborValue::Kind::array && range.items.size() == 2;
        const auto offset = two ? range.items[0].as_unsigned() : std::nullopt;
        const auto bytes = two ? range.items[1].as_unsigned() : std::nullopt;
        if (!offset || !bytes || *offset > UINT32_MAX || *bytes > UINT32_MAX - *offset) return members.refuse();
        source.missing.push_back({static_cast<std::uint32_t>(*offset), static_cast<std::uint32_t>(*bytes)});
    }
}

std::optional<SourceInfo> source_of(const CborValue& map, bool reduced) {
    Members members(map);
    SourceInfo source;
    source.id = members.small<std::uint32_t>("id");
    source.state = members.choice<store::SourceState>("state", state_words, true);
    source.packets = members.small<std::uint32_t>("packets");
    source.declared_bytes = members.number("declared_bytes");
    source.received_bytes = members.number("received_bytes");
    source.first_ns = members.time("first_ns");
    source.last_ns = members.time("last_ns");
    if (reduced) source.reduced_bytes = members.small<std::uint32_t>("reduced_bytes");
    if (const CborValue* const meta = map.find("meta")) {
        if (meta->kind != CborValue::Kind::bytes || meta->bytes.size() > store::SourceBody::meta_bytes_max) return {};
        source.meta.assign(meta->bytes.begin(), meta->bytes.end());
    }
    take_missing(map, source, members);
    if (!members.good() || source.missing.size() > store::BlockWriter::missing_count_max ||
        !store::check_source(source).empty())
        return {};
    return source;
}

bool take_event_sources(const CborValue* sources, EventInfo& event) {
    if (sources == nullptr || sources->kind != CborValue::Kind::array) return false;
    for (const CborValue& map : sources->items) {
        auto source = source_of(map, event.reduced());
        if (!source || (!event.sources.empty() && source->id <= event.sources.back().id)) return false;
        if (event.complete && source->state != store::SourceState::complete) return false;
        event.payload_bytes += source->received_bytes;
        event.reduced_bytes += source->reduced_bytes;
        event.sources.push_back(std::move(*source));
    }
    return true;
}

}  // namespace

const CborValue* StreamMessage::extra(std::string_view key) const noexcept {
    const CborValue* const user_data = value.find("user_data");
    return user_data == nullptr ? nullptr : user_data->find(key);
}

std::optional<StreamMessage> read_message(std::span<const std::byte> bytes, std::string& problem) {
    auto value = parse_cbor(bytes, problem);
    if (!value) return {};
    if (value->tagged(tag_self_described) != nullptr) value = CborValue(std::move(value->items.front()));
    const CborValue* const type = value->find("type");
    if (type == nullptr || type->kind != CborValue::Kind::text) {
        problem = "no map with a type";
        return {};
    }
    StreamMessage message;
    message.type = type_named(type->as_text());
    message.value = std::move(*value);
    if (message.type == MessageType::other) return message;
    const CborValue* const series = message.value.find("series_id");
    const CborValue* const unique = message.value.find("series_unique_id");
    const auto id = series != nullptr ? series->as_unsigned() : std::nullopt;
    if (!id) {
        problem = "no series_id";
        return {};
    }
    message.series_id = *id;
    if (unique != nullptr) message.series_unique_id = unique->as_text();
    if (message.type == MessageType::start || message.type == MessageType::end) return message;
    const CborValue* const image = message.value.find("image_id");
    const auto image_id = image != nullptr ? image->as_unsigned() : std::nullopt;
    if (!image_id || *image_id == UINT64_MAX) {
        problem = "no image_id";
        return {};
    }
    message.image_id = *image_id;
    if (!read_data(message, problem)) return {};
    return message;
}

std::optional<EventInfo> event_of(const StreamMessage& message, std::string& problem) {
    problem.clear();
    if (message.extra("content") == nullptr || message.extra("event") == nullptr) return {};
    Members members(*message.value.find("user_data"));
    EventInfo event;
    event.version = store::format_version_reduced;
    event.id = members.number("event");
    event.epoch = members.small<std::uint32_t>("epoch");
    event.complete = members.flag("complete");
    event.cause = members.choice<store::Cause>("cause", store::cause_names, true);
    event.content = members.choice<Content>("content", store::content_names, false);
    event.packets = members.number("packets");
    event.first_ns = members.time("first_ns");
    event.last_ns = members.time("last_ns");
    event.veto = members.choice<store::Veto>("veto", store::veto_names, true);
    if (event.veto != store::Veto::none) {
        event.pixels_above = members.small<std::uint32_t>("pixels_above");
        event.peaks = members.small<std::uint32_t>("peaks");
    }
    const bool agrees = event.complete == (event.cause == store::Cause::complete);
    if (members.good() && agrees && take_event_sources(message.extra("sources"), event)) return event;
    problem = "what it says of its event contradicts itself";
    return {};
}

}  // namespace weir::stream
