// Tables of which there are several kinds, `kind = "NAME"`, each with options of its own.
#pragma once

#include "options/held.hpp"
#include "options/option.hpp"

namespace weir::options {

/// A kind, with the type of its options forgotten. No two kinds of a table have the same type.
struct Kind {
    std::string_view name;
    std::vector<std::string> keys;  ///< its own
    /// Of a table in which unknown keys have been looked for.
    Callback<Held(TableReader&)> read;
    Callback<std::string(const Held&)> print;
    Callback<nlohmann::json(const Held&)> report;
    std::vector<Explained> explained;
    bool (*holds)(const Held&) = nullptr;  ///< whether these are options of this kind

    [[nodiscard]] bool has(std::string_view key) const {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
    }
};

template <class T>
Kind kind_of(std::string_view name, const OptionTable<T>& described) {
    const std::shared_ptr<const AnyTable> options = std::make_shared<AnyTable>(described);
    const auto keys = options->keys();
    return {name,
            {keys.begin(), keys.end()},
            [options](TableReader& table) {
                T out{};
                options->read_values(table, &out);
                return Held(std::move(out));
            },
            [options](const Held& from) { return options->print(from.get_if<T>()); },
            [options](const Held& from) { return options->report(from.get_if<T>()); },
            options->explained(),
            [](const Held& from) { return from.get_if<T>() != nullptr; }};
}

}  // namespace weir::options
