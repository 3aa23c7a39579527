// Decodes CBOR with libcbor's streaming decoder, which allocates nothing; what it tells is put together here.
#include "stream/cbor_value.hpp"

#include <cbor.h>
#include <fmt/format.h>

#include <utility>

namespace weir::stream {

const CborValue* CborValue::find(std::string_view key) const noexcept {
    if (kind != Kind::map) return nullptr;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
        if (items[i].kind == Kind::text && items[i].text == key) return &items[i + 1];
    return nullptr;
}

const CborValue* CborValue::tagged(std::uint64_t tag) const noexcept {
    return kind == Kind::tag && number == tag && items.size() == 1 ? items.data() : nullptr;
}

std::optional<std::uint64_t> CborValue::as_unsigned() const noexcept {
    if (kind != Kind::integer) return {};
    return number;
}

std::optional<std::int64_t> CborValue::as_signed() const noexcept {
    if (number > INT64_MAX) return {};
    if (kind == Kind::integer) return static_cast<std::int64_t>(number);
    if (kind == Kind::negative) return -1 - static_cast<std::int64_t>(number);
    return {};
}

namespace {

/// Puts items together to the one that they are. A collection is kept open until it has all of its items.
class CborTree {
public:
    void add(CborValue value) {
        if (!problem_.empty()) return;
        if (root_) return fail("something follows the message");
        if (++items_ > cbor_items_max) return fail(fmt::format("it has more than {} items", cbor_items_max));
        close(std::move(value));
    }
    void open(CborValue::Kind kind, std::uint64_t items, bool indefinite, std::uint64_t number = 0) {
        if (!problem_.empty()) return;
        if (root_) return fail("something follows the message");
        if (++items_ > cbor_items_max || items > cbor_items_max)
            return fail(fmt::format("it has more than {} items", cbor_items_max));
        if (open_.size() == cbor_depth_max) return fail(fmt::format("it is nested deeper than {}", cbor_depth_max));
        CborValue value;
        value.kind = kind;
        value.number = number;
        open_.push_back({std::move(value), items, indefinite});
        if (!indefinite && items == 0) close_top();
    }
    void end_indefinite() {
        if (!problem_.empty()) return;
        if (open_.empty() || !open_.back().indefinite) return fail("an end without a beginning");
        const CborValue& value = open_.back().value;
        if (value.kind == CborValue::Kind::map && value.items.size() % 2 != 0) return fail("a key without a value");
        close_top();
    }
    void fail(std::string what) {
        if (problem_.empty()) problem_ = std::move(what);
    }

    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    [[nodiscard]] bool is_whole() const noexcept { return root_.has_value(); }
    [[nodiscard]] std::optional<CborValue> take() { return std::move(root_); }

private:
    struct Open {
        CborValue value;
        std::uint64_t left = 0;
        bool indefinite = false;
    };

    void close_top() {
        CborValue done = std::move(open_.back().value);
        open_.pop_back();
        close(std::move(done));
    }
    /// An item is whole; it may be the last one of what it is in.
    void close(CborValue value) {
        for (;;) {
            if (open_.empty()) {
                root_ = std::move(value);
                return;
            }
            Open& parent = open_.back();
            parent.value.items.push_back(std::move(value));
            if (parent.indefinite || --parent.left > 0) return;
            value = std::move(parent.value);
            open_.pop_back();
        }
    }

    std::vector<Open> open_;
    std::optional<CborValue> root_;
    std::size_t items_ = 0;
    std::string problem_;
};

CborTree& tree(void* context) {
    return *static_cast<CborTree*>(context);
}

template <class Number>
void take_unsigned(void* context, Number number) {
    CborValue value;
    value.kind = CborValue::Kind::integer;
    value.number = number;
    tree(context).add(std::move(value));
}

template <class Number>
void take_negative(void* context, Number number) {
    CborValue value;
    value.kind = CborValue::Kind::negative;
    value.number = number;
    tree(context).add(std::move(value));
}

template <class Number>
void take_real(void* context, Number number) {
    CborValue value;
    value.kind = CborValue::Kind::real;
    value.real = static_cast<double>(number);
    tree(context).add(std::move(value));
}

void take_null(void* context) {
    tree(context).add({});
}

void take_boolean(void* context, bool is_true) {
    CborValue value;
    value.kind = CborValue::Kind::boolean;
    value.number = is_true ? 1 : 0;
    tree(context).add(std::move(value));
}

void take_bytes(void* context, cbor_data data, std::size_t bytes) {
    CborValue value;
    value.kind = CborValue::Kind::bytes;
    value.bytes = {reinterpret_cast<const std::byte*>(data), bytes};
    tree(context).add(std::move(value));
}

void take_text(void* context, cbor_data data, std::size_t bytes) {
    CborValue value;
    value.kind = CborValue::Kind::text;
    value.text = {reinterpret_cast<const char*>(data), bytes};
    tree(context).add(std::move(value));
}

void take_indefinite_string(void* context) {
    tree(context).fail("it has a string of indefinite length");
}

/// A map has two items for each of its pairs.
void take_map(void* context, std::size_t pairs) {
    const std::uint64_t items = pairs > cbor_items_max ? pairs : std::uint64_t{2} * pairs;
    tree(context).open(CborValue::Kind::map, items, false);
}

cbor_callbacks tree_callbacks() {
    cbor_callbacks to = ::cbor_empty_callbacks;
    to.uint8 = take_unsigned<std::uint8_t>;
    to.uint16 = take_unsigned<std::uint16_t>;
    to.uint32 = take_unsigned<std::uint32_t>;
    to.uint64 = take_unsigned<std::uint64_t>;
    to.negint8 = take_negative<std::uint8_t>;
    to.negint16 = take_negative<std::uint16_t>;
    to.negint32 = take_negative<std::uint32_t>;
    to.negint64 = take_negative<std::uint64_t>;
    to.float2 = take_real<float>;
    to.float4 = take_real<float>;
    to.float8 = take_real<double>;
    to.null = take_null;
    to.undefined = take_null;
    to.boolean = take_boolean;
    to.byte_string = take_bytes;
    to.string = take_text;
    to.byte_string_start = take_indefinite_string;
    to.string_start = take_indefinite_string;
    to.array_start = [](void* context, std::size_t items) { tree(context).open(CborValue::Kind::array, items, false); };
    to.indef_array_start = [](void* context) { tree(context).open(CborValue::Kind::array, 0, true); };
    to.map_start = take_map;
    to.indef_map_start = [](void* context) { tree(context).open(CborValue::Kind::map, 0, true); };
    to.tag = [](void* context, std::uint64_t number) { tree(context).open(CborValue::Kind::tag, 1, false, number); };
    to.indef_break = [](void* context) { tree(context).end_indefinite(); };
    return to;
}

}  // namespace

std::optional<CborValue> parse_cbor(std::span<const std::byte> message, std::string& problem) {
    static const cbor_callbacks callbacks = tree_callbacks();
    CborTree values;
    const auto* data = reinterpret_cast<const unsigned char*>(message.data());
    std::size_t at = 0;
    while (at < message.size() && values.problem().empty()) {
        const cbor_decoder_result result = ::cbor_stream_decode(data + at, message.size() - at, &callbacks, &values);
        if (result.status == CBOR_DECODER_NEDATA) values.fail("it is cut off");
        if (result.status == CBOR_DECODER_ERROR || (result.status == CBOR_DECODER_FINISHED && result.read == 0))
            values.fail(fmt::format("byte {} is no CBOR", at));
        at += result.read;
    }
    if (values.problem().empty() && !values.is_whole()) values.fail("it is cut off");
    problem = values.problem();
    if (!problem.empty()) return {};
    return values.take();
}

}  // namespace weir::stream
