// A configuration table, described once: of each key its name, what it may be, what it is when it is left out, and a
// sentence. From that the table is read and checked, printed as TOML, reported as JSON, and explained in the reference.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "options/any_option.hpp"
#include "options/reader.hpp"
#include "options/schema.hpp"
#include "options/text.hpp"

namespace weir::options {

/// The value as it is in reports; null if it is not set: nothing, an empty text or an empty list.
template <class V>
nlohmann::json value_of(const V& value) {
    if constexpr (requires { value.has_value(); })
        return value.has_value() ? value_of(*value) : nlohmann::json();
    else if constexpr (requires { value.empty(); })
        return value.empty() ? nlohmann::json() : nlohmann::json(value);
    else
        return value;
}

template <class V>
struct Bare {
    using type = V;
};
template <class V>
struct Bare<std::optional<V>> {
    using type = V;
};

/// Describes one key of a table whose values are in a T. It is good until the table has another key.
template <class T>
class Option {
public:
    explicit Option(AnyOption& described) : described_(&described) {}

    // All return the option.

    /// It must be there; the error says that ACCEPTED would be.
    Option required(std::string accepted) const {
        described_->require(std::move(accepted));
        return *this;
    }
    /// Only where `why` has nothing to say: elsewhere the key is refused with its words, and neither printed nor
    /// reported.
    template <class Why>
    Option refused_where(Why why) const {
        described_->set_refused([why](const void* from) { return why(*static_cast<const T*>(from)); });
        return *this;
    }
    /// Left out, it is what `fill` makes of the keys before it.
    template <class Fill>
    Option otherwise(Fill fill) const {
        described_->set_fill([fill](void* into) { fill(*static_cast<T*>(into)); });
        return *this;
    }
    /// What it means that it is not set, in a few words.
    Option unset(std::string words) const {
        described_->set_unset(std::move(words));
        return *this;
    }
    /// This value is as good as not set.
    Option unset(nlohmann::json value, std::string words) const {
        described_->set_none(std::move(value), std::move(words));
        return *this;
    }
    /// What it may be, where that is not what its bounds say.
    Option kind(std::string words) const {
        described_->set_kind(std::move(words));
        return *this;
    }
    /// The default in words, for the reference.
    Option usually(std::string words) const {
        described_->set_usual(std::move(words));
        return *this;
    }
    /// Looked at right after it was read, if it was there.
    template <class Look>
    Option check(Look look) const {
        described_->set_check(looks(look));
        return *this;
    }
    /// Looked at when it was not there, once it is what it is then.
    template <class Look>
    Option check_unset(Look look) const {
        described_->set_check_unset(looks(look));
        return *this;
    }
    /// As check(), after whatever looks at it already.
    template <class Look>
    Option also_check(Look look) const {
        described_->also_check(looks(look));
        return *this;
    }
    Option written(Callback<std::string(const nlohmann::json&)> text) const {
        described_->set_text(std::move(text));
        return *this;
    }
    /// In reports it is this.
    template <class Value>
    Option reported(Value value) const {
        described_->set_reported([value](const void* from) { return value(*static_cast<const T*>(from)); });
        return *this;
    }
    /// Not in print: what another key prints says it already.
    Option unprinted() const {
        described_->set_unprinted();
        return *this;
    }
    template <class Read>
    Option reads(Read read) const {
        described_->set_read(looks(read));
        return *this;
    }
    /// JSON schema of the value; after `reads`.
    Option schema(nlohmann::json schema) const {
        described_->set_schema(std::move(schema));
        return *this;
    }
    template <class Value>
    Option shows(Value value) const {
        described_->set_value(
            [value](const void* from) -> nlohmann::json { return value(*static_cast<const T*>(from)); });
        return *this;
    }

private:
    template <class Look>
    static Callback<void(TableReader&, void*)> looks(Look look) {
        return [look](TableReader& table, void* into) { look(table, *static_cast<T*>(into)); };
    }

    AnyOption* described_;
};

/// The keys of a table, in the order in which they are read, printed and explained. `member` is what takes a T to the
/// value: a pointer to a member, or a lambda that returns a reference.
template <class T>
class OptionTable : public AnyTable {
public:
    template <class Member>
    Option<T> integer(std::string_view key, Bounds bounds, Member member, std::string_view meaning) {
        return scalar(key, bounds_text(bounds.min, bounds.max), member, meaning,
                      [key, bounds](TableReader& table) { return table.integer(key, bounds); })
            .schema(integer_schema(bounds));
    }
    template <class Member>
    Option<T> size(std::string_view key, Bounds bounds, Member member, std::string_view meaning) {
        return scalar(key, size_bounds_text(bounds.min, bounds.max), member, meaning,
                      [key, bounds](TableReader& table) { return table.size(key, bounds); })
            .schema(size_schema(bounds))
            .written(size_text);
    }
    template <class Member>
    Option<T> number(std::string_view key, double min, double max, Member member, std::string_view meaning) {
        return scalar(key, bounds_text(min, max), member, meaning,
                      [key, min, max](TableReader& table) { return table.number(key, min, max); })
            .schema(number_schema(min, max));
    }
    template <class Member>
    Option<T> boolean(std::string_view key, Member member, std::string_view meaning) {
        return scalar(key, "true, false", member, meaning, [key](TableReader& table) { return table.boolean(key); })
            .schema(boolean_schema());
    }
    template <class Member>
    Option<T> text(std::string_view key, Member member, std::string_view meaning) {
        return scalar(key, "text", member, meaning, [key](TableReader& table) { return table.text(key); })
            .schema(text_schema());
    }
    template <class Member>
    Option<T> name(std::string_view key, Member member, std::string_view meaning) {
        return scalar(key, "name", member, meaning, [key](TableReader& table) { return table.name(key); })
            .schema(name_schema());
    }
    /// `names` is an array of Named, which must outlive the table.
    template <class Names, class Member>
    Option<T> choice(std::string_view key, const Names& names, Member member, std::string_view meaning) {
        return add(key, quoted_words(names_in(names)), meaning)
            .reads([key, &names, member](TableReader& table, T& into) {
                std::invoke(member, into) = *table.choice(key, names);
            })
            .schema(words_schema(names_in(names)))
            .shows([&names, member](const T& from) { return name_of(names, std::invoke(member, from)); });
    }
    /// A list; `what` is each of them.
    template <class Member>
    Option<T> integers(std::string_view key, Bounds bounds, std::string_view what, Member member,
                       std::string_view meaning) {
        return add(key, "integers, " + bounds_text(bounds.min, bounds.max), meaning)
            .reads([key, bounds, what = std::string(what), member](TableReader& table, T& into) {
                const auto read = table.integers(key, bounds, what);
                std::invoke(member, into).assign(read.begin(), read.end());
            })
            .schema(integers_schema(bounds))
            .shows([member](const T& from) { return value_of(std::invoke(member, from)); })
            .written(ranges_text);
    }
    /// A table of its own: { key = value, ... }. `member` is an optional, or always there.
    template <class S, class Member>
    Option<T> table(std::string_view key, const OptionTable<S>& described, Member member, std::string_view meaning) {
        const std::shared_ptr<const AnyTable> inner = std::make_shared<AnyTable>(described);
        return add(key, "table", meaning)
            .reads([key, inner, member](TableReader& from, T& into) {
                auto reader = from.table(key);
                S read{};
                inner->read(*reader, &read);
                std::invoke(member, into) = std::move(read);
            })
            .schema(table_schema(inner->explained()))
            .shows([inner, member](const T& from) {
                nlohmann::json value = inner->brief(where(std::invoke(member, from)));
                return value.empty() ? nlohmann::json() : value;
            })
            .written([inner](const nlohmann::json& value) { return inner->inline_text(value); });
    }
    /// One table of its own, or a list of them; `member` is a vector.
    template <class S, class Member>
    Option<T> tables(std::string_view key, const OptionTable<S>& described, Member member, std::string_view meaning) {
        const std::shared_ptr<const AnyTable> inner = std::make_shared<AnyTable>(described);
        return add(key, "table or tables", meaning)
            .reads([key, inner, member](TableReader& from, T& into) {
                auto& out = std::invoke(member, into);
                for (TableReader& entry : from.one_or_more(key)) inner->read(entry, &out.emplace_back());
            })
            .schema(one_or_more_schema(table_schema(inner->explained())))
            .shows([inner, member](const T& from) {
                nlohmann::json out;
                for (const S& entry : std::invoke(member, from)) out.push_back(inner->brief(&entry));
                return out;
            })
            .written([inner](const nlohmann::json& values) { return inner->inline_list(values); });
    }
    /// For what is not one of these: the caller sets `reads` and `shows`.
    Option<T> add(std::string_view key, std::string kind, std::string_view meaning) {
        return Option<T>(AnyTable::add(values_type<T>, key, std::move(kind), meaning));
    }
    /// A key that describes a part of the values; `part` takes a T to it.
    template <class Part>
    Option<T> add_of_part(const AnyOption& option, Part part) {
        return Option<T>(AnyTable::add(option.within(values_type<T>, [part](const void* whole) -> const void* {
            return &std::invoke(part, *static_cast<const T*>(whole));
        })));
    }
    /// The keys of another description of the same values, after those that there are.
    OptionTable& include(const OptionTable& other) {
        AnyTable::include(other);
        return *this;
    }

    // As AnyTable has them.

    void read(TableReader& table, T& into) const { AnyTable::read(table, &into); }
    [[nodiscard]] T read(TableReader table) const {
        T out{};
        read(table, out);
        return out;
    }
    void read_values(TableReader& table, T& into) const { AnyTable::read_values(table, &into); }
    [[nodiscard]] std::string print(const T& from) const { return AnyTable::print(&from); }
    [[nodiscard]] nlohmann::json report(const T& from) const { return AnyTable::report(&from); }
    [[nodiscard]] nlohmann::json brief(const T& from) const { return AnyTable::brief(&from); }
    [[nodiscard]] nlohmann::json brief(const std::optional<T>& from) const { return AnyTable::brief(where(from)); }

private:
    template <class V>
    static const void* where(const V& value) {
        if constexpr (requires { value.has_value(); })
            return value.has_value() ? &*value : nullptr;
        else
            return &value;
    }
    template <class Member, class Read>
    Option<T> scalar(std::string_view key, std::string kind, Member member, std::string_view meaning, Read read) {
        return add(key, std::move(kind), meaning)
            .reads([member, read](TableReader& table, T& into) {
                auto& value = std::invoke(member, into);
                using Value = typename Bare<std::remove_cvref_t<decltype(value)>>::type;
                value = static_cast<Value>(*read(table));
            })
            .shows([member](const T& from) { return value_of(std::invoke(member, from)); });
    }
};

}  // namespace weir::options
