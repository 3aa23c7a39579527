#include "doctor/sizing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "core/error.hpp"

namespace weir::doctor {

namespace {

// docs/internals/benchmarks/PIPELINE.md, the worst of its orders (1024 events open, packets shuffled), frames of 1086
// and 8282 bytes, at 2.7 GHz: receiving and building ("assemble") took 338 and 430 cycles a packet, and all with one
// pass over the payload ("consume") 821 and 3083. What lies between them is the workers' part.
constexpr double clock_hz = 2.7e9;
constexpr double small_frame = 1086;
constexpr double large_frame = 8282;
constexpr double assemble_small = 338;
constexpr double assemble_large = 430;
constexpr double work_small = 821 - assemble_small;
constexpr double work_large = 3083 - assemble_large;
constexpr double driver_cycles = 40;           // of a card's driver, which that benchmark has not
constexpr double build_ns_per_message = 90;    // "Parts": 180 ns for an event of two messages
constexpr double zstd_bytes_per_s = 1.07e9;    // "Parts": level 1 on noisy pixels
constexpr double lcore_load = 0.7;             // what is planned for of an lcore: bursts need the rest
constexpr double message_bytes_usual = 65536;  // where nothing says how many messages an event has
constexpr double passes = 4;                   // the card writes, a worker reads and writes, the disk reads
constexpr double of_memory_collecting = 0.8;   // plan: a fifth is for events on their way to the disk

double between(double bytes, double small, double large) {
    return std::max(small / 2, small + (bytes - small_frame) * (large - small) / (large_frame - small_frame));
}

std::uint32_t lcores_for(double busy) {
    return std::max(1U, static_cast<std::uint32_t>(std::ceil(busy / lcore_load)));
}

std::string scaled(double value, const char* unit) {
    const char* prefix = "";
    for (const char* larger : {"k", "M", "G", "T", "P"}) {
        if (value < 999.5) break;
        value /= 1000;
        prefix = larger;
    }
    const std::string whole = std::string(prefix) + unit;
    return fmt::format("{:.3g}{}{}", value, whole.empty() ? "" : " ", whole);
}

std::string row(const Load& load) {
    const Size size = size_for(load);
    return fmt::format("| {} | {} B | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.3g} TB |\n",
                       bit_rate_text(load.bits_per_s), load.packet_bytes,
                       bytes_text(static_cast<double>(load.event_bytes)), scaled(size.packets_per_s, ""),
                       scaled(size.events_per_s, ""), size.rx, size.build, size.work, size.work_zstd,
                       bytes_text(static_cast<double>(size.memory_bytes)), byte_rate_text(size.memory_bytes_per_s),
                       byte_rate_text(size.disk_bytes_per_s), size.disk_bytes_per_s * 3600 / 1e12);
}

}  // namespace

Size size_for(const Load& load, double timeout_ms) {
    const double packet = load.packet_bytes > 0 ? load.packet_bytes : 8240;
    const double event = load.event_bytes > 0 ? static_cast<double>(load.event_bytes) : 1 << 20;
    Size size;
    size.packets_per_s = load.bytes_per_s() / packet;
    size.events_per_s = load.events_per_s > 0 ? load.events_per_s : load.bytes_per_s() / event;
    const double per_packet = between(packet, assemble_small, assemble_large) + driver_cycles;
    size.rx = lcores_for(size.packets_per_s * per_packet / clock_hz);
    const double messages = size.events_per_s * std::max(1.0, event / message_bytes_usual);
    size.build = lcores_for(messages * build_ns_per_message / 1e9);
    const double work = size.packets_per_s * between(packet, work_small, work_large) / clock_hz;
    size.work = lcores_for(work);
    size.work_zstd = lcores_for(work + load.bytes_per_s() / zstd_bytes_per_s);
    // All that comes within a time-out is open if a source falls silent.
    size.memory_bytes = static_cast<std::uint64_t>(load.bytes_per_s() * timeout_ms / 1000 / of_memory_collecting);
    size.memory_bytes_per_s = passes * load.bytes_per_s();
    size.disk_bytes_per_s = load.bytes_per_s();
    return size;
}

std::string sizing_basis() {
    return fmt::format(
        "Cycles are those of one core at {:.1f} GHz, measured in docs/internals/benchmarks/PIPELINE.md with packets "
        "from cold memory, 1024 events open, shuffled: {:.0f} to {:.0f} a packet to receive and build (frames of "
        "{:.0f} and {:.0f} bytes), {:.0f} more for a card's driver, {:.0f} to {:.0f} for one pass over the payload, "
        "{:.0f} ns a message in the builder, zstd at {:.2f} GB/s. An lcore is planned to be busy for {:.0f} %. Memory "
        "holds what comes within a time-out of 500 ms, of which {:.0f} % are collecting; payload crosses the memory "
        "bus {:.0f} times. No card has been tried: where a number decides, measure (weir bench).",
        clock_hz / 1e9, assemble_small, assemble_large, small_frame, large_frame, driver_cycles, work_small, work_large,
        build_ns_per_message, zstd_bytes_per_s / 1e9, lcore_load * 100, of_memory_collecting * 100, passes);
}

std::string sizing_markdown(const std::optional<Load>& load) {
    std::string text =
        "| rate | frame | event | frames/s | events/s | rx | build | work | work, zstd 1 | memory | memory bus | "
        "disk | per hour |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    if (load.has_value()) return text + row(*load);
    struct Kind {
        std::uint32_t packet;
        std::uint64_t event;
    };
    constexpr std::array kinds{Kind{1086, 65536}, Kind{4154, 1U << 20U}, Kind{8282, 8U << 20U}};
    for (const double gbps : {10, 25, 40, 100, 200, 400})
        for (const Kind& kind : kinds) text += row({gbps * 1e9, kind.packet, kind.event, 0});
    return text;
}

double parse_bit_rate(std::string_view text, std::string_view option) {
    const std::string whole(text);
    char* end = nullptr;
    const double number = std::strtod(whole.c_str(), &end);
    std::string unit(end);
    std::erase(unit, ' ');
    const auto fail = [&] {
        return core::UsageError(
            fmt::format("{}: found '{}'; accepted: a rate above 0, as 100Gb/s, 25G or 12.5GB/s", option, text));
    };
    if (end == whole.c_str() || !(number > 0) || unit.empty()) throw fail();
    double factor = 1;
    if (const std::size_t at = std::string_view("kMGT").find(unit.front()); at != std::string_view::npos) {
        factor = std::pow(1000, static_cast<double>(at + 1));
        unit.erase(0, 1);
    }
    if (unit == "B/s") factor *= 8;
    const bool bits = unit == "b/s" || unit == "bit/s" || unit == "bps" || (unit.empty() && factor > 1);
    const double rate = number * factor;
    constexpr double rate_max = 1e15;
    if ((unit != "B/s" && !bits) || !(rate <= rate_max)) throw fail();
    return rate;
}

std::string bit_rate_text(double bits_per_s) {
    return scaled(bits_per_s, "b/s");
}

std::string byte_rate_text(double bytes_per_s) {
    return scaled(bytes_per_s, "B/s");
}

std::string bytes_text(double bytes) {
    const char* unit = "B";
    for (const char* larger : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
        if (bytes < 1024) break;
        bytes /= 1024;
        unit = larger;
    }
    return fmt::format("{:.3g} {}", bytes, unit);
}

}  // namespace weir::doctor
