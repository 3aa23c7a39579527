#include "store/run_contents.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "store/block_reader.hpp"
#include "store/json_members.hpp"
#include "store/manifest.hpp"
#include "store/run_directory.hpp"
#include "store/run_path.hpp"

namespace weir::store {

namespace {

using nlohmann::json;

std::string read_text(const std::filesystem::path& path, std::size_t bytes_max) {
    const File file = File::open_to_read(path);
    const std::uint64_t size = file.size();
    if (size > bytes_max) throw core::RunError(fmt::format("{} is too large", path.string()));
    std::string text(size, '\0');
    text.resize(file.read_at(0, std::as_writable_bytes(std::span(text))));
    return text;
}

/// Says where the run that was asked for may be instead.
[[noreturn]] void throw_not_a_run(const std::filesystem::path& path) {
    const std::filesystem::path hidden = hidden_path(path);
    std::error_code error;
    if (std::filesystem::exists(path / "master.h5", error))
        throw core::RunError(fmt::format("{} is a run as HDF5 files: open {} with h5py or h5dump", path.string(),
                                         (path / "master.h5").string()));
    if (std::filesystem::is_directory(path, error))
        throw core::RunError(fmt::format("{} is not a run: it has no segment {}", path.string(), segment_name(0)));
    if (std::filesystem::exists(path, error))
        throw core::RunError(fmt::format("{} is not a run: a run is a directory", path.string()));
    if (std::filesystem::is_directory(hidden, error))
        throw core::RunError(
            fmt::format("{} does not exist; an unfinished run to it is in {}", path.string(), hidden.string()));
    throw core::RunError(fmt::format("{} does not exist", path.string()));
}

}  // namespace

RunContents::RunContents(const std::filesystem::path& where) : path(where) {
    std::error_code error;
    if (!path.has_filename()) path = path.parent_path();
    if (!std::filesystem::is_directory(path, error)) throw_not_a_run(where);
    list_segments();
    read_manifest();
    if (segments.empty()) throw_not_a_run(path);
    read_first_head();
}

/// Segment files in the directory, in order of their number.
void RunContents::list_segments() {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (name.starts_with("events-") && name.ends_with(".weir")) names.push_back(name);
    }
    if (error) throw core::RunError(system_error_text("cannot list", path, error.value()));
    // Numbers have at least six digits, so a longer name has a larger number.
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
    segments = std::move(names);
}

void RunContents::read_manifest() {
    const std::filesystem::path file = path / manifest_name;
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::symlink_status(file, error))) {
        being_written = is_being_written(path);
        manifest_problem = being_written ? "the run is still being written: it has no manifest yet"
                                         : "the run was not closed: it has no manifest, "
                                           "and no program of this machine writes to it any more; "
                                           "it was ended by force";
        return;
    }
    try {
        manifest = parse_manifest(read_text(file, manifest_bytes_max));
    } catch (const core::RunError& problem) {
        manifest_problem = problem.what();
        return;
    }
    closed = true;
    version = static_cast<std::uint16_t>(number_at(manifest, "version").value_or(format_version));
    const std::string tag = text_at(manifest, "tag");
    std::uint64_t value = 0;
    if (std::from_chars(tag.data(), tag.data() + tag.size(), value, 16).ec == std::errc{}) run_tag = value;

    // The manifest says which segments there are; what else lies here is not part of the run.
    std::vector<std::string> listed;
    const json& members = at_or_null(manifest, "segments");
    if (members.is_array())
        for (std::size_t i = 0; i < members.size(); ++i) listed.push_back(segment_name(static_cast<std::uint32_t>(i)));
    for (const std::string& name : segments)
        if (std::find(listed.begin(), listed.end(), name) == listed.end()) unlisted.push_back(name);
    segments = std::move(listed);
}

void RunContents::read_first_head() {
    try {
        const FileSource file(path / segments.front());
        BlockReader reader(file, run_tag, BlockReader::window_bytes_heads);
        reader.expect_version(version);
        Block block;
        SegmentBody body;
        if (reader.next(block) != BlockReader::Result::block || block.header.type != BlockType::segment ||
            block.body.size() < sizeof body)
            return;
        run_tag = reader.run_tag();
        version = reader.version();
        std::memcpy(&body, block.body.data(), sizeof body);
        if (body.run != SegmentBody::no_run) run = body.run;
        created_ns = body.created_ns;
        const std::span<const std::byte> text = block.body.subspan(sizeof body);
        const char* const chars = reinterpret_cast<const char*>(text.data());
        start = parse_json({chars, text.size()});
    } catch (const core::RunError&) {
        // scan() says what is wrong with the file
    }
}

void RunContents::identify(EventScanner& scanner) const {
    if (run_tag) scanner.set_run_tag(*run_tag);
    scanner.set_version(version);
}

}  // namespace weir::store
