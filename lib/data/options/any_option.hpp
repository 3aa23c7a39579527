// What is done with described options, whatever the type of the values: they are behind a pointer here, so that it is
// compiled once and not for each of some thirty tables.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options/callback.hpp"

namespace weir::options {

class TableReader;

/// A line of the reference.
struct Explained {
    std::string key;
    std::string kind;
    std::string fallback;
    std::string meaning;
    nlohmann::json schema = nlohmann::json::object();  ///< JSON schema of the value; empty: it may be anything
    bool always = false;                               ///< it must be there, whatever else is
};

/// The values of a table, made without their type.
struct ValuesType {
    using Made = std::unique_ptr<void, void (*)(void*)>;
    Made (*as_left_out)();
    Made (*copy)(const void* from);
};
template <class T>
inline constexpr ValuesType values_type{
    [] { return ValuesType::Made(new T{}, [](void* made) { delete static_cast<T*>(made); }); },
    [](const void* from) {
        return ValuesType::Made(new T(*static_cast<const T*>(from)), [](void* made) { delete static_cast<T*>(made); });
    }};

/// One key of a table. Option (option.hpp) describes it. Values are of the type that it was made with.
class AnyOption {
public:
    /// `key` must outlive the option: a literal.
    AnyOption(const ValuesType& values, std::string_view key, std::string kind, std::string_view meaning);

    /// The same key of a table whose values are `whole`; `part` takes one of those to the values in it.
    [[nodiscard]] AnyOption within(const ValuesType& whole, const Callback<const void*(const void*)>& part) const;

    // What Option sets, apart from it so that it is compiled once.

    void require(std::string accepted);
    void set_refused(Callback<std::string(const void*)> why);
    void set_fill(Callback<void(void*)> fill);
    void set_unset(std::string words);
    void set_none(nlohmann::json value, std::string words);
    void set_kind(std::string words);
    void set_usual(std::string words);
    void set_check(Callback<void(TableReader&, void*)> look);
    void set_check_unset(Callback<void(TableReader&, void*)> look);
    void also_check(Callback<void(TableReader&, void*)> look);
    void set_text(Callback<std::string(const nlohmann::json&)> text);
    void set_reported(Callback<nlohmann::json(const void*)> value);
    void set_unprinted();
    void set_read(Callback<void(TableReader&, void*)> read);
    void set_schema(nlohmann::json schema);
    void set_value(Callback<nlohmann::json(const void*)> value);

    // What is done with it.

    [[nodiscard]] std::string_view key() const { return key_; }
    [[nodiscard]] bool is_required() const { return !required_.empty(); }

    void read(TableReader& table, void* into) const;
    [[nodiscard]] bool belongs(const void* from) const { return !refused_ || refused_(from).empty(); }
    /// As it is written in TOML; null if it is not set.
    [[nodiscard]] nlohmann::json value(const void* from) const;
    [[nodiscard]] nlohmann::json report(const void* from) const;
    [[nodiscard]] bool is_default(const void* from) const;
    [[nodiscard]] std::string text(const nlohmann::json& value) const;
    /// `key = value`, or a comment; a line, or nothing.
    [[nodiscard]] std::string line(const void* from) const;
    [[nodiscard]] Explained explained() const;

private:
    const ValuesType* values_;
    std::string_view key_;
    std::string kind_;
    std::string meaning_;
    std::string required_;
    std::string unset_;
    std::string usually_;
    std::optional<nlohmann::json> none_;
    bool printed_ = true;
    Callback<std::string(const void*)> refused_;
    Callback<void(void*)> fill_;
    Callback<void(TableReader&, void*)> read_;
    Callback<void(TableReader&, void*)> check_;
    Callback<void(TableReader&, void*)> check_unset_;
    Callback<nlohmann::json(const void*)> value_;
    Callback<nlohmann::json(const void*)> reported_;
    Callback<std::string(const nlohmann::json&)> text_;
    nlohmann::json schema_ = nlohmann::json::object();
};

/// The keys of a table, in the order in which they are read, printed and explained. OptionTable (option.hpp) knows the
/// type of the values.
class AnyTable {
public:
    [[nodiscard]] const std::vector<AnyOption>& all() const { return options_; }
    [[nodiscard]] std::vector<std::string_view> keys() const;
    [[nodiscard]] std::vector<Explained> explained() const;

    /// Throws core::UsageError for a key that is none of these, and then for the first value that does not fit.
    void read(TableReader& table, void* into) const;
    /// Where the caller has looked for unknown keys.
    void read_values(TableReader& table, void* into) const;
    /// The lines of the table, without its header.
    [[nodiscard]] std::string print(const void* from) const;
    /// What belongs to the table and is set.
    [[nodiscard]] nlohmann::json report(const void* from) const;
    /// What is set and not as it would be anyhow. Null if there are no values.
    [[nodiscard]] nlohmann::json brief(const void* from) const;
    /// What `brief` gives, in one line, in the order of the description.
    [[nodiscard]] std::string inline_text(const nlohmann::json& value) const;
    /// A list of them.
    [[nodiscard]] std::string inline_list(const nlohmann::json& values) const;

protected:
    AnyOption& add(AnyOption option);
    AnyOption& add(const ValuesType& values, std::string_view key, std::string kind, std::string_view meaning);
    void include(const AnyTable& other);

private:
    std::vector<AnyOption> options_;
};

}  // namespace weir::options
