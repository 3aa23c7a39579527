// A configuration table, described once: of each key its name, what it may be, what it is when it is left out, and a
// sentence. From that the table is read and checked, printed as TOML, reported as JSON, and explained in the reference.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "options/reader.hpp"
#include "options/schema.hpp"
#include "options/text.hpp"

namespace weir::options {

/// A line of the reference.
struct Explained {
    std::string key;
    std::string kind;
    std::string fallback;
    std::string meaning;
    nlohmann::json schema = nlohmann::json::object();  ///< JSON schema of the value; empty: it may be anything
    bool always = false;                               ///< it must be there, whatever else is
};

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

/// One key of a table whose values are in a T.
template <class T>
class Option {
public:
    using Text = std::function<std::string(const nlohmann::json&)>;

    /// `key` must outlive the option: a literal.
    Option(std::string_view key, std::string kind, std::string_view meaning)
        : key_(key), kind_(std::move(kind)), meaning_(meaning) {}

    // How an option is described. All return the option.

    /// It must be there; the error says that ACCEPTED would be.
    Option& required(std::string accepted) {
        required_ = std::move(accepted);
        return *this;
    }
    /// Only where `why` has nothing to say: elsewhere the key is refused with its words, and neither printed nor
    /// reported.
    Option& refused_where(std::function<std::string(const T&)> why) {
        refused_ = std::move(why);
        return *this;
    }
    /// Left out, it is what `fill` makes of the keys before it.
    Option& otherwise(std::function<void(T&)> fill) {
        fill_ = std::move(fill);
        return *this;
    }
    /// What it means that it is not set, in a few words.
    Option& unset(std::string words) {
        unset_ = std::move(words);
        return *this;
    }
    /// This value is as good as not set.
    Option& unset(nlohmann::json value, std::string words) {
        none_ = std::move(value);
        return unset(std::move(words));
    }
    /// What it may be, where that is not what its bounds say.
    Option& kind(std::string words) {
        kind_ = std::move(words);
        return *this;
    }
    /// The default in words, for the reference.
    Option& usually(std::string words) {
        usually_ = std::move(words);
        return *this;
    }
    /// Looked at right after it was read, if it was there.
    Option& check(std::function<void(TableReader&, T&)> look) {
        check_ = std::move(look);
        return *this;
    }
    /// Looked at when it was not there, once it is what it is then.
    Option& check_unset(std::function<void(TableReader&, T&)> look) {
        check_unset_ = std::move(look);
        return *this;
    }
    /// As check(), after whatever looks at it already.
    Option& also_check(std::function<void(TableReader&, T&)> look) {
        return check([first = std::move(check_), then = std::move(look)](TableReader& table, T& into) {
            if (first) first(table, into);
            then(table, into);
        });
    }
    Option& written(Text text) {
        text_ = std::move(text);
        return *this;
    }
    /// In reports it is this.
    Option& reported(std::function<nlohmann::json(const T&)> value) {
        reported_ = std::move(value);
        return *this;
    }
    /// Not in print: what another key prints says it already.
    Option& unprinted() {
        printed_ = false;
        return *this;
    }
    Option& reads(std::function<void(TableReader&, T&)> read) {
        read_ = std::move(read);
        schema_ = nlohmann::json::object();  // the one before was of what was read before
        return *this;
    }
    /// JSON schema of the value; after `reads`.
    Option& schema(nlohmann::json schema) {
        schema_ = std::move(schema);
        return *this;
    }
    Option& shows(std::function<nlohmann::json(const T&)> value) {
        value_ = std::move(value);
        return *this;
    }

    /// The same key of a table whose values are in an S; `part` takes the S to the T in it.
    template <class S, class Part>
    [[nodiscard]] Option<S> within(Part part) const {
        Option<S> out(key_, kind_, meaning_);
        out.required_ = required_;
        out.unset_ = unset_;
        out.usually_ = usually_;
        out.none_ = none_;
        out.printed_ = printed_;
        out.text_ = text_;
        out.schema_ = schema_;
        const auto asks = [part](const auto& of_part) {
            return [of_part, part](const S& from) { return of_part(std::invoke(part, from)); };
        };
        const auto looks = [part](const auto& of_part) {
            return [of_part, part](TableReader& table, S& into) { of_part(table, std::invoke(part, into)); };
        };
        if (refused_) out.refused_ = asks(refused_);
        if (fill_) out.fill_ = [fill = fill_, part](S& into) { fill(std::invoke(part, into)); };
        if (read_) out.read_ = looks(read_);
        if (check_) out.check_ = looks(check_);
        if (check_unset_) out.check_unset_ = looks(check_unset_);
        if (value_) out.value_ = asks(value_);
        if (reported_) out.reported_ = asks(reported_);
        return out;
    }

    // What is done with it.

    [[nodiscard]] std::string_view key() const { return key_; }
    [[nodiscard]] bool is_required() const { return !required_.empty(); }

    void read(TableReader& table, T& into) const {
        if (refused_)
            if (const std::string why = refused_(into); !why.empty()) return table.refuse(key_, why);
        if (table.get(key_) == nullptr) {
            if (is_required()) table.missing(key_, required_);
            if (fill_) fill_(into);
            if (check_unset_) check_unset_(table, into);
            return;
        }
        read_(table, into);
        if (check_) check_(table, into);
    }
    [[nodiscard]] bool belongs(const T& from) const { return !refused_ || refused_(from).empty(); }
    /// As it is written in TOML; null if it is not set.
    [[nodiscard]] nlohmann::json value(const T& from) const {
        nlohmann::json value = value_(from);
        return none_ && value == *none_ ? nlohmann::json() : value;
    }
    [[nodiscard]] nlohmann::json report(const T& from) const { return reported_ ? reported_(from) : value(from); }
    [[nodiscard]] bool is_default(const T& from) const {
        if (is_required()) return false;
        T filled = from;
        if (fill_) fill_(filled);
        return value(from) == value(fill_ ? filled : T{});
    }
    [[nodiscard]] std::string text(const nlohmann::json& value) const {
        return text_ ? text_(value) : toml_text(value);
    }
    /// `key = value`, or a comment; a line, or nothing.
    [[nodiscard]] std::string line(const T& from) const {
        if (!printed_ || !belongs(from)) return {};
        const nlohmann::json shown = value(from);
        if (!shown.is_null())
            return std::string(key_) + " = " + text(shown) + (is_default(from) ? "  # default\n" : "\n");
        return unset_.empty() ? std::string() : "# " + std::string(key_) + ": " + unset_ + " (default)\n";
    }
    [[nodiscard]] Explained explained() const {
        Explained out{std::string(key_), kind_, usually_, meaning_, schema_, false};
        out.always = is_required() && !refused_ && usually_.empty();
        if (!out.fallback.empty()) return out;
        if (is_required()) {
            out.fallback = "required";
        } else if (const nlohmann::json fallback = value(T{}); !fallback.is_null() && !fill_) {
            out.fallback = text(fallback);
            if (fallback.is_string()) out.fallback = "`" + out.fallback + "`";
            if (fallback.is_number()) std::erase(out.fallback, '"');  // of a size
        } else {
            out.fallback = unset_.empty() ? "none" : unset_;
        }
        return out;
    }

private:
    template <class>
    friend class Option;

    std::string_view key_;
    std::string kind_;
    std::string meaning_;
    std::string required_;
    std::string unset_;
    std::string usually_;
    std::optional<nlohmann::json> none_;
    bool printed_ = true;
    std::function<std::string(const T&)> refused_;
    std::function<void(T&)> fill_;
    std::function<void(TableReader&, T&)> read_;
    std::function<void(TableReader&, T&)> check_;
    std::function<void(TableReader&, T&)> check_unset_;
    std::function<nlohmann::json(const T&)> value_;
    std::function<nlohmann::json(const T&)> reported_;
    Text text_;
    nlohmann::json schema_ = nlohmann::json::object();
};

/// The keys of a table, in the order in which they are read, printed and explained. `member` is what takes a T to the
/// value: a pointer to a member, or a lambda that returns a reference.
template <class T>
class OptionTable {
public:
    template <class Member>
    Option<T>& integer(std::string_view key, Bounds bounds, Member member, std::string_view meaning) {
        return scalar(key, bounds_text(bounds.min, bounds.max), member, meaning,
                      [key = std::string(key), bounds](TableReader& table) { return table.integer(key, bounds); })
            .schema(integer_schema(bounds));
    }
    template <class Member>
    Option<T>& size(std::string_view key, Bounds bounds, Member member, std::string_view meaning) {
        return scalar(key, size_bounds_text(bounds.min, bounds.max), member, meaning,
                      [key = std::string(key), bounds](TableReader& table) { return table.size(key, bounds); })
            .schema(size_schema(bounds))
            .written(size_text);
    }
    template <class Member>
    Option<T>& number(std::string_view key, double min, double max, Member member, std::string_view meaning) {
        return scalar(key, bounds_text(min, max), member, meaning,
                      [key = std::string(key), min, max](TableReader& table) { return table.number(key, min, max); })
            .schema(number_schema(min, max));
    }
    template <class Member>
    Option<T>& boolean(std::string_view key, Member member, std::string_view meaning) {
        return scalar(key, "true, false", member, meaning,
                      [key = std::string(key)](TableReader& table) { return table.boolean(key); })
            .schema({{"type", "boolean"}});
    }
    template <class Member>
    Option<T>& text(std::string_view key, Member member, std::string_view meaning) {
        return scalar(key, "text", member, meaning,
                      [key = std::string(key)](TableReader& table) { return table.text(key); })
            .schema(text_schema());
    }
    template <class Member>
    Option<T>& name(std::string_view key, Member member, std::string_view meaning) {
        return scalar(key, "name", member, meaning,
                      [key = std::string(key)](TableReader& table) { return table.name(key); })
            .schema(name_schema());
    }
    /// `names` is an array of Named, which must outlive the table.
    template <class Names, class Member>
    Option<T>& choice(std::string_view key, const Names& names, Member member, std::string_view meaning) {
        Option<T>& option = add(key, quoted_words(names_in(names)), meaning);
        option.reads([key = std::string(key), &names, member](TableReader& table, T& into) {
            std::invoke(member, into) = *table.choice(key, names);
        });
        option.schema({{"enum", names_in(names)}});
        return option.shows(
            [&names, member](const T& from) { return nlohmann::json(name_of(names, std::invoke(member, from))); });
    }
    /// A list; `what` is each of them.
    template <class Member>
    Option<T>& integers(std::string_view key, Bounds bounds, std::string_view what, Member member,
                        std::string_view meaning) {
        Option<T>& option = add(key, "integers, " + bounds_text(bounds.min, bounds.max), meaning);
        option.reads([key = std::string(key), bounds, what = std::string(what), member](TableReader& table, T& into) {
            const auto read = table.integers(key, bounds, what);
            std::invoke(member, into).assign(read.begin(), read.end());
        });
        option.schema(integers_schema(bounds));
        option.shows([member](const T& from) { return value_of(std::invoke(member, from)); });
        return option.written(ranges_text);
    }
    /// A table of its own: { key = value, ... }. `member` is an optional, or always there.
    template <class S, class Member>
    Option<T>& table(std::string_view key, const OptionTable<S>& inner, Member member, std::string_view meaning) {
        Option<T>& option = add(key, "table", meaning);
        option.reads([key = std::string(key), inner, member](TableReader& from, T& into) {
            auto reader = from.table(key);
            std::invoke(member, into) = inner.read(*reader);
        });
        option.schema(table_schema(inner.explained()));
        option.shows([inner, member](const T& from) {
            nlohmann::json value = inner.brief(std::invoke(member, from));
            return value.empty() ? nlohmann::json() : value;
        });
        return option.written([inner](const nlohmann::json& value) { return inner.inline_text(value); });
    }
    /// One table of its own, or a list of them; `member` is a vector.
    template <class S, class Member>
    Option<T>& tables(std::string_view key, const OptionTable<S>& inner, Member member, std::string_view meaning) {
        Option<T>& option = add(key, "table or tables", meaning);
        option.reads([key = std::string(key), inner, member](TableReader& from, T& into) {
            auto& out = std::invoke(member, into);
            for (const TableReader& entry : from.one_or_more(key)) out.push_back(inner.read(entry));
        });
        option.schema(one_or_more_schema(table_schema(inner.explained())));
        option.shows([inner, member](const T& from) {
            nlohmann::json out;
            for (const S& entry : std::invoke(member, from)) out.push_back(inner.brief(entry));
            return out;
        });
        return option.written([inner](const nlohmann::json& value) {
            std::string out;
            for (const nlohmann::json& entry : value) out += (out.empty() ? "[" : ", ") + inner.inline_text(entry);
            return out + "]";
        });
    }
    /// For what is not one of these: the caller sets `reads` and `shows`.
    Option<T>& add(std::string_view key, std::string kind, std::string_view meaning) {
        return options_.emplace_back(key, std::move(kind), meaning);
    }
    Option<T>& add(Option<T> option) { return options_.emplace_back(std::move(option)); }
    /// The keys of another description of the same values, after those that there are.
    OptionTable& include(const OptionTable& other) {
        options_.insert(options_.end(), other.options_.begin(), other.options_.end());
        return *this;
    }

    [[nodiscard]] const std::vector<Option<T>>& all() const { return options_; }
    [[nodiscard]] std::vector<std::string_view> keys() const {
        std::vector<std::string_view> keys;
        for (const Option<T>& option : options_) keys.push_back(option.key());
        return keys;
    }
    /// Throws core::UsageError for a key that is none of these, and then for the first value that does not fit.
    void read(TableReader& table, T& into) const {
        table.allow(keys());
        read_values(table, into);
    }
    [[nodiscard]] T read(TableReader table) const {
        T out{};
        read(table, out);
        return out;
    }
    /// Where the caller has looked for unknown keys.
    void read_values(TableReader& table, T& into) const {
        for (const Option<T>& option : options_) option.read(table, into);
    }
    /// The lines of the table, without its header.
    [[nodiscard]] std::string print(const T& from) const {
        std::string out;
        for (const Option<T>& option : options_) out += option.line(from);
        return out;
    }
    /// What belongs to the table and is set.
    [[nodiscard]] nlohmann::json report(const T& from) const {
        nlohmann::json out = nlohmann::json::object();
        for (const Option<T>& option : options_)
            if (nlohmann::json value = option.belongs(from) ? option.report(from) : nlohmann::json(); !value.is_null())
                out[std::string(option.key())] = std::move(value);
        return out;
    }
    /// What is set and not as it would be anyhow.
    [[nodiscard]] nlohmann::json brief(const T& from) const {
        nlohmann::json out = nlohmann::json::object();
        for (const Option<T>& option : options_)
            if (nlohmann::json value = option.value(from);
                !value.is_null() && option.belongs(from) && !option.is_default(from))
                out[std::string(option.key())] = std::move(value);
        return out;
    }
    /// An optional one.
    [[nodiscard]] nlohmann::json brief(const std::optional<T>& from) const {
        return from ? brief(*from) : nlohmann::json();
    }
    /// What `brief` gives, in one line, in the order of the description.
    [[nodiscard]] std::string inline_text(const nlohmann::json& value) const {
        std::string out;
        for (const Option<T>& option : options_)
            if (const auto at = value.find(option.key()); at != value.end())
                out.append(out.empty() ? "{ " : ", ").append(option.key()).append(" = ").append(option.text(*at));
        return out + " }";
    }
    [[nodiscard]] std::vector<Explained> explained() const {
        std::vector<Explained> out;
        for (const Option<T>& option : options_) out.push_back(option.explained());
        return out;
    }

private:
    template <class Member, class Read>
    Option<T>& scalar(std::string_view key, std::string kind, Member member, std::string_view meaning, Read read) {
        Option<T>& option = add(key, std::move(kind), meaning);
        option.reads([member, read](TableReader& table, T& into) {
            auto& value = std::invoke(member, into);
            using Value = typename Bare<std::remove_cvref_t<decltype(value)>>::type;
            value = static_cast<Value>(*read(table));
        });
        return option.shows([member](const T& from) { return value_of(std::invoke(member, from)); });
    }

    std::vector<Option<T>> options_;
};

}  // namespace weir::options
