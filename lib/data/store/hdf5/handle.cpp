// The HDF5 library behind owned handles. See handle.hpp.
#include "store/hdf5/handle.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/error.hpp"
#include "store/file.hpp"

namespace weir::store::hdf5 {

namespace {

std::mutex& library_mutex() {
    static std::mutex mutex;
    return mutex;
}

/// Filters are only ever named here, never run: chunks are written as they are stored. Known under their numbers they
/// can stand in a dataset's description without a plug-in being looked for.
std::size_t refuse_to_filter(unsigned, std::size_t, const unsigned*, std::size_t, std::size_t*, void**) {
    return 0;
}

bool start_library() {
    h5().H5dont_atexit();
    h5().H5check_version(H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
    h5().H5open();
    // Numbers from The HDF Group's list of registered filters.
    static const std::pair<H5Z_filter_t, const char*> filters[] = {
        {32004, "lz4"}, {32008, "bitshuffle; see https://github.com/kiyo-masui/bitshuffle"}, {32015, "zstd"}};
    for (const auto& [number, name] : filters) {
        const H5Z_class2_t filter{H5Z_CLASS_T_VERS, number, 1, 1, name, nullptr, nullptr, refuse_to_filter};
        h5().H5Zregister(&filter);
    }
    return true;
}

struct Trouble {
    std::string deepest;
    int error_number = 0;
};

herr_t look_at_error(unsigned depth, const H5E_error2_t* error, void* to) {
    Trouble& trouble = *static_cast<Trouble*>(to);
    const std::string_view text = error->desc == nullptr ? "" : error->desc;
    if (depth == 0) trouble.deepest = text;
    // The library's drivers write it like this.
    constexpr std::string_view mark = "errno = ";
    if (const std::size_t at = text.find(mark); at != std::string_view::npos && trouble.error_number == 0)
        std::from_chars(text.data() + at + mark.size(), text.data() + text.size(), trouble.error_number);
    return 0;
}

}  // namespace

Session::Session() : lock_(library_mutex()) {
    static const bool started = start_library();
    static_cast<void>(started);
    h5().H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Handle& Handle::operator=(Handle&& other) noexcept {
    if (this != &other) {
        reset();
        id_ = std::exchange(other.id_, H5I_INVALID_HID);
        close_ = other.close_;
    }
    return *this;
}

void Handle::reset() noexcept {
    static_cast<void>(close());
}

bool Handle::close() noexcept {
    if (id_ < 0) return true;
    return close_(std::exchange(id_, H5I_INVALID_HID)) >= 0;
}

void throw_library_error(const std::string& what, const std::filesystem::path& path) {
    Trouble trouble;
    h5().H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, look_at_error, &trouble);
    if (trouble.error_number != 0) throw core::RunError(write_error_text(what, path, trouble.error_number));
    throw core::RunError(fmt::format("{} {}: HDF5 says: {}", what, path.string(),
                                     trouble.deepest.empty() ? "nothing" : trouble.deepest));
}

Handle Library::own(hid_t result, Handle::Close close) const {
    if (result < 0) throw_library_error(trouble_, path_);
    return {result, close};
}

void Library::check(herr_t result) const {
    if (result < 0) throw_library_error(trouble_, path_);
}

Handle Library::text_type(std::size_t bytes) const {
    Handle type = own(h5().H5Tcopy(h5().H5T_C_S1_g), h5().H5Tclose);
    check(h5().H5Tset_size(type.get(), bytes == 0 ? 1 : bytes));
    check(h5().H5Tset_cset(type.get(), H5T_CSET_UTF8));
    check(h5().H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
    return type;
}

Handle Library::create_group(hid_t parent, const std::string& name, const std::string& nexus_class) const {
    Handle group = own(h5().H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), h5().H5Gclose);
    put_attribute(group.get(), "NX_class", nexus_class);
    return group;
}

void Library::put_attribute(hid_t object, const std::string& name, hid_t type, std::span<const hsize_t> shape,
                            const void* values) const {
    const Handle space =
        own(shape.empty() ? h5().H5Screate(H5S_SCALAR)
                          : h5().H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
            h5().H5Sclose);
    const Handle attribute =
        own(h5().H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), h5().H5Aclose);
    check(h5().H5Awrite(attribute.get(), type, values));
}

void Library::put_attribute(hid_t object, const std::string& name, std::string_view text) const {
    const std::string owned(text.empty() ? std::string_view("\0", 1) : text);
    put_attribute(object, name, text_type(owned.size()).get(), {}, owned.data());
}

void Library::put_attribute(hid_t object, const std::string& name, double value) const {
    put_attribute(object, name, h5().H5T_NATIVE_DOUBLE_g, {}, &value);
}

void Library::put_attribute(hid_t object, const std::string& name, std::uint64_t value) const {
    put_attribute(object, name, h5().H5T_NATIVE_UINT64_g, {}, &value);
}

void Library::put_texts(hid_t object, const std::string& name, const std::vector<std::string>& texts) const {
    std::size_t bytes = 1;
    for (const std::string& text : texts) bytes = std::max(bytes, text.size());
    std::string all(texts.size() * bytes, '\0');
    for (std::size_t i = 0; i < texts.size(); ++i) texts[i].copy(all.data() + i * bytes, bytes);
    const hsize_t shape[] = {texts.size()};
    put_attribute(object, name, text_type(bytes).get(), shape, all.data());
}

Handle Library::put_dataset(hid_t parent, const std::string& name, hid_t type, std::span<const hsize_t> shape,
                            const void* values) const {
    const Handle space =
        own(shape.empty() ? h5().H5Screate(H5S_SCALAR)
                          : h5().H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
            h5().H5Sclose);
    Handle dataset = own(
        h5().H5Dcreate2(parent, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), h5().H5Dclose);
    check(h5().H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    return dataset;
}

Handle Library::put_text(hid_t parent, const std::string& name, std::string_view text) const {
    const std::string owned(text.empty() ? std::string_view("\0", 1) : text);
    return put_dataset(parent, name, text_type(owned.size()).get(), {}, owned.data());
}

Handle Library::put_number(hid_t parent, const std::string& name, double value, const std::string& units) const {
    Handle dataset = put_dataset(parent, name, h5().H5T_NATIVE_DOUBLE_g, {}, &value);
    if (!units.empty()) put_attribute(dataset.get(), "units", units);
    return dataset;
}

}  // namespace weir::store::hdf5
