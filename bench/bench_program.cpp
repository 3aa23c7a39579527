#include "bench_program.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>

#include "core/error.hpp"

namespace weir::bench {

int run_program(const char* name, int (*run)(int argc, char** argv), int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const core::UsageError& error) {
        fmt::print(stderr, "{}: {}\n", name, error.what());
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", name, error.what());
        return 1;
    }
}

void save_report(const std::string& path, const nlohmann::json& report) {
    if (path.empty()) return;
    std::ofstream file(path);
    file << report.dump(1) << '\n';
    file.close();
    if (!file) throw core::RunError("cannot write " + path);
}

}  // namespace weir::bench
