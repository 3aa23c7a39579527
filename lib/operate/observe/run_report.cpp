#include "observe/run_report.hpp"

#include <fmt/format.h>
#include <rte_version.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "plan/placement_text.hpp"

namespace weir::observe {

std::string cpu_model() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown";
}

nlohmann::json machine_json(const std::string& version, const plan::Plan& plan) {
    utsname kernel{};
    ::uname(&kernel);
    return {{"host", kernel.nodename},
            {"kernel", kernel.release},
            {"cpu", cpu_model()},
            {"cpus", plan.host.usable().size()},
            {"dpdk", rte_version()},
            {"weir", version},
            {"topology", plan::topology_json(plan.host)},
            {"placement", placement_json(plan.host, plan.placement)}};
}

nlohmann::json plan_json(const plan::Plan& plan) {
    return {{"lcores", {{"rx", plan.rx}, {"build", plan.build}, {"work", plan.work}}},
            {"open_events_max", plan.open_max},
            {"open_events_limit", plan.open_limit},
            {"queued_events_max", plan.queued_max},
            {"horizon", plan.horizon},
            {"buffers", plan.pool_buffers},
            {"buffer_bytes", plan.room_bytes},
            {"dpdk_memory_bytes", plan.buffer_memory_bytes},
            {"reduce_memory_bytes", plan.reduce.sum()},
            {"bookkeeping_bytes", plan.memory.bookkeeping_bytes},
            {"memory_bytes", plan.memory.sum()}};
}

ReportFile::ReportFile(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_ = std::fopen(path.c_str(), "w");
    if (file_ == nullptr) throw core::RunError(fmt::format("--report {}: {}", path, std::strerror(errno)));
}

ReportFile::~ReportFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::error_code error;  // a device or a pipe stays
    if (!written_ && std::filesystem::is_regular_file(path_, error)) std::filesystem::remove(path_, error);
}

void ReportFile::write(const nlohmann::json& report) {
    if (file_ == nullptr) return;
    const std::string text = report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    const bool ok = std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0;
    if (!ok) throw core::RunError(fmt::format("--report {}: {}", path_, std::strerror(errno)));
    written_ = true;
}

}  // namespace weir::observe
