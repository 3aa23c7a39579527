// libFuzzer target: any bytes as a configuration. It may be refused with a UsageError, and nothing else may come out;
// what is accepted must print as a configuration that reads back the same. A profile is never opened: the name of one
// is input too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/run_config.hpp"
#include "core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto copy = std::make_unique<char[]>(size);
    for (std::size_t i = 0; i < size; ++i) copy[i] = static_cast<char>(data[i]);
    const std::string_view text(copy.get(), size);
    for (const char* key : {"profile", "flows", "include"})  // these open files
        if (text.find(key) != std::string_view::npos) return 0;
    weir::config::RunConfig config;
    try {
        config = weir::config::parse_config(text, "fuzz.toml");
    } catch (const weir::core::UsageError&) {
        return 0;
    }
    // No try: an exception from here on is a finding.
    if (config_json(config).empty()) std::abort();
    if (!(weir::config::parse_config(print_config(config), "printed.toml") == config)) std::abort();
    return 0;
}
