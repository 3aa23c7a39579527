#include "output_folder.hpp"

#include <fmt/core.h>

#include "core/error.hpp"
#include "output_file.hpp"
#include "store/run_path.hpp"

namespace weir::app {

OutputFolder::OutputFolder(std::filesystem::path path) : path_(std::move(path)), hidden_(store::hidden_path(path_)) {
    refuse_existing(path_);
    std::error_code error;
    if (!std::filesystem::create_directory(hidden_, error))
        throw core::RunError(fmt::format("cannot create {}: {}", hidden_.string(), error.message()));
}

OutputFolder::~OutputFolder() {
    std::error_code error;
    if (!finished_) std::filesystem::remove_all(hidden_, error);
}

void OutputFolder::finish() {
    store::rename_new(hidden_, path_);
    finished_ = true;
}

}  // namespace weir::app
