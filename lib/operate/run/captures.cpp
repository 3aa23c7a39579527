#include "run/captures.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "store/capture/reader.hpp"

namespace weir::run {

namespace {

std::uint16_t port_index(const config::RunConfig& config, const std::string& name) {
    std::string names;
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        if (config.ports[i].name == name) return static_cast<std::uint16_t>(i);
        names += (names.empty() ? "" : ", ") + config.ports[i].name;
    }
    throw core::UsageError(fmt::format("--port: found '{}'; accepted: {}", name, names));
}

}  // namespace

void measure_captures(const stages::CaptureFeeder::Config& captures, plan::PlanInput& input) {
    constexpr std::uint64_t counted_bytes_max = std::uint64_t{64} << 20U;
    constexpr std::uint64_t unknown = std::uint64_t{1} << 50U;
    // A record header, Ethernet, IPv4 and UDP headers and a byte. Smaller records end at once.
    constexpr std::uint64_t record_bytes_min = 16 + 14 + 20 + 8 + 1;
    for (const std::string& file : captures.files) {
        std::error_code error;
        const std::uintmax_t size = std::filesystem::file_size(file, error);
        // A pipe has no size, and that of a compressed file says little; then the memory alone decides how many
        // buffers there are.
        const bool known = !error && !store::is_compressed(file);
        input.capture_bytes += known ? size : unknown;
        std::uint64_t packets = known ? size / record_bytes_min : unknown;
        if (known && input.capture_bytes <= counted_bytes_max) {
            try {
                store::CaptureReader reader(file);
                store::CaptureReader::Record record;
                while (reader.next(record)) {
                }
                packets = reader.records();
            } catch (const core::RunError&) {
                // Said when it is opened to be replayed.
            }
        }
        input.capture_packets += packets;
    }
    input.capture_bytes *= captures.loop;
    input.capture_packets *= captures.loop;
}

std::vector<std::uint16_t> port_indices(const RunOptions& options) {
    const std::size_t files = options.capture->files.size();
    if (options.ports.empty()) return std::vector<std::uint16_t>(files, 0);
    if (options.ports.size() != 1 && options.ports.size() != files)
        throw core::UsageError(fmt::format(
            "--port: found {} names for {} captures; accepted: one for all, or one for each in the same order",
            options.ports.size(), files));
    std::vector<std::uint16_t> ports;
    for (const std::string& name : options.ports) ports.push_back(port_index(options.config, name));
    ports.resize(files, ports.front());
    return ports;
}

void probe_captures(const stages::CaptureFeeder::Config& captures) {
    std::error_code error;
    for (const std::string& file : captures.files)
        if (file != "-" && (!std::filesystem::exists(file, error) || std::filesystem::is_regular_file(file, error)))
            store::CaptureReader probe(file);
}

}  // namespace weir::run
