// What the printing functions of config_print*.cpp share: lines of TOML, with defaults marked.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json_fwd.hpp>

#include "config/names.hpp"

namespace weir::pipeline::detail {

class Printer {
public:
    void header(std::string_view text) { out_ += fmt::format("\n{}\n", text); }
    void comment(std::string_view text) { out_ += fmt::format("# {}\n", text); }
    void line(std::string_view key, std::string_view value, bool is_default = false) {
        out_ += fmt::format("{} = {}{}\n", key, value, is_default ? "  # default" : "");
    }
    void number(std::string_view key, std::uint64_t value, std::uint64_t fallback) {
        line(key, std::to_string(value), value == fallback);
    }
    void size(std::string_view key, std::uint64_t value, std::uint64_t fallback) {
        line(key, in_quotes(format_size(value)), value == fallback);
    }
    template <class Table, class E>
    void choice(std::string_view key, const Table& names, E value, E fallback) {
        line(key, in_quotes(name_of(names, value)), value == fallback);
    }
    [[nodiscard]] std::string take() { return std::move(out_); }

private:
    std::string out_;
};

/// A field of a header as it is written: "{ offset = 40, bytes = 4 }", with `more` before the brace.
std::string field_text(const wire::DeclaredField& field, std::string_view more = "");
/// [[reduce]] tables.
void print_reducers(Printer& out, const std::vector<ReduceConfig>& chain);
nlohmann::json reducers_json(const std::vector<ReduceConfig>& chain);
/// What a sink of kind "pcapng" has besides its path.
void print_recorder(Printer& out, const SinkConfig& sink);
void recorder_json(nlohmann::json& out, const SinkConfig& sink);
/// One [[sink]] table.
void print_sink(Printer& out, const SinkConfig& sink);
nlohmann::json sink_json(const SinkConfig& sink);
nlohmann::json field_json(const wire::DeclaredField& field);

}  // namespace weir::pipeline::detail
