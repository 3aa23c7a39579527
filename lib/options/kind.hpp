// Tables of which there are several kinds, `kind = "NAME"`, each with options of its own.
#pragma once

#include "options/option.hpp"

namespace weir::options {

/// A kind, with its type forgotten: its values are one alternative of a Variant.
template <class Variant>
struct Kind {
    std::string_view name;
    std::vector<std::string> keys;  ///< its own
    /// Of a table in which unknown keys have been looked for.
    std::function<Variant(TableReader&)> read;
    std::function<std::string(const Variant&)> print;
    std::function<nlohmann::json(const Variant&)> report;
    std::vector<Explained> explained;

    [[nodiscard]] bool has(std::string_view key) const {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
    }
};

template <class Variant, class T>
Kind<Variant> kind_of(std::string_view name, const OptionTable<T>& options) {
    const auto keys = options.keys();
    return {name,
            {keys.begin(), keys.end()},
            [options](TableReader& table) {
                T out{};
                options.read_values(table, out);
                return Variant(std::move(out));
            },
            [options](const Variant& from) { return options.print(std::get<T>(from)); },
            [options](const Variant& from) { return options.report(std::get<T>(from)); },
            options.explained()};
}

}  // namespace weir::options
