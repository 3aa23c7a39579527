// One data file of a run. See data_file.hpp.
#include "store/hdf5/data_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "store/file.hpp"
#include "store/hdf5/nexus.hpp"

namespace weir::store::hdf5 {

namespace {

/// The library's own blocks together, rather than strewn between chunks: what a flush writes is then few pieces.
constexpr hsize_t metadata_block_bytes = hsize_t{64} << 10;

Handle create_file(const Library& library) {
    const Handle access = library.own(h5().H5Pcreate(h5().H5P_CLS_FILE_ACCESS_ID_g), h5().H5Pclose);
    // SWMR needs the formats of HDF5 1.10; later ones would shut out readers.
    library.check(h5().H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110));
    library.check(h5().H5Pset_meta_block_size(access.get(), metadata_block_bytes));
    // On file systems without locks: go on without.
    library.check(h5().H5Pset_file_locking(access.get(), true, true));
    return library.own(h5().H5Fcreate(library.path().c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.get()), h5().H5Fclose);
}

}  // namespace

Handle element_type(const Library& library, const Layout& layout) {
    const auto copy = [&](hid_t type) { return library.own(h5().H5Tcopy(type), h5().H5Tclose); };
    switch (layout.element) {
        case Element::u8:
            return copy(h5().H5T_STD_U8LE_g);
        case Element::u16:
            return copy(h5().H5T_STD_U16LE_g);
        case Element::u32:
            return copy(h5().H5T_STD_U32LE_g);
        case Element::i16:
            return copy(h5().H5T_STD_I16LE_g);
        case Element::f32:
            return copy(h5().H5T_IEEE_F32LE_g);
        case Element::f16:
            break;
    }
    // IEEE 754 binary16: sign at bit 15, 5 bits of exponent from bit 10, 10 bits of mantissa.
    Handle half = copy(h5().H5T_IEEE_F32LE_g);
    library.check(h5().H5Tset_fields(half.get(), 15, 10, 5, 0, 10));
    library.check(h5().H5Tset_size(half.get(), 2));
    library.check(h5().H5Tset_ebias(half.get(), 15));
    return half;
}

DataFile::DataFile(const std::filesystem::path& path, const Layout& layout, const RunText& text,
                   const RunPosition& begin)
    : library_(path),
      layout_(layout),
      begin_(begin),
      end_(begin),
      encoder_(layout.description.codec, layout.description.level, element_bytes(layout.element),
               layout.chunk_bytes()) {
    file_ = create_file(library_);
    entry_ = put_entry(library_, file_.get(), text);
    const Handle data = put_data_group(library_, entry_.get(), layout);
    if (layout_.image)
        create_image(data.get());
    else
        create_stream(data.get());
    tables_.emplace(library_, entry_.get(), layout);
    put_source_ids(library_, entry_.get(), layout);
    if (layout_.image) put_instrument(library_, entry_.get(), layout_, text.nexus);
    library_.put_attribute(entry_.get(), "weir_first_event", begin.events);
    library_.put_attribute(entry_.get(), "weir_first_missing", begin.missing);
    if (!layout.image) library_.put_attribute(entry_.get(), "weir_first_payload_byte", begin.payload_bytes);
    library_.check(h5().H5Fflush(file_.get(), H5F_SCOPE_LOCAL));
    library_.check(h5().H5Fstart_swmr_write(file_.get()));
}

Handle DataFile::creation_properties(int rank, const hsize_t* chunk) const {
    Handle creation = library_.own(h5().H5Pcreate(h5().H5P_CLS_DATASET_CREATE_ID_g), h5().H5Pclose);
    library_.check(h5().H5Pset_chunk(creation.get(), rank, chunk));
    const Handle type = element_type(library_, layout_);
    const auto fill = layout_.fill();
    library_.check(h5().H5Pset_fill_value(creation.get(), type.get(), fill.data()));
    if (layout_.description.codec != Codec::raw) {
        const Filter filter = filter_of(layout_.description.codec, element_bytes(layout_.element));
        library_.check(h5().H5Pset_filter(creation.get(), filter.number, H5Z_FLAG_MANDATORY, filter.parameters.size(),
                                          filter.parameters.data()));
    }
    return creation;
}

void DataFile::create_image(hid_t parent) {
    const hsize_t now[] = {0, layout_.image_rows(), layout_.columns};
    const hsize_t most[] = {H5S_UNLIMITED, layout_.image_rows(), layout_.columns};
    const hsize_t chunk[] = {1, layout_.chunk_rows, layout_.columns};
    const Handle space = library_.own(h5().H5Screate_simple(3, now, most), h5().H5Sclose);
    const Handle type = element_type(library_, layout_);
    const Handle creation = creation_properties(3, chunk);
    data_ =
        library_.own(h5().H5Dcreate2(parent, "data", type.get(), space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                     h5().H5Dclose);
    put_data_attributes(library_, data_.get(), layout_);
}

void DataFile::create_stream(hid_t parent) {
    const hsize_t now[] = {0};
    const hsize_t most[] = {H5S_UNLIMITED};
    const hsize_t chunk[] = {Layout::stream_chunk_bytes};
    const Handle space = library_.own(h5().H5Screate_simple(1, now, most), h5().H5Sclose);
    const Handle type = element_type(library_, layout_);
    const Handle creation = creation_properties(1, chunk);
    data_ = library_.own(
        h5().H5Dcreate2(parent, "payload", type.get(), space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
        h5().H5Dclose);
    put_data_attributes(library_, data_.get(), layout_);
    tail_.reserve(Layout::stream_chunk_bytes);
}

void DataFile::begin_image() {
    const hsize_t size[] = {events() + 1, layout_.image_rows(), layout_.columns};
    library_.check(h5().H5Dset_extent(data_.get(), size));
    image_open_ = true;
}

void DataFile::write_chunk(const hsize_t* offset, std::span<const std::byte> stored, bool filtered) {
    const std::uint32_t skipped = filtered || layout_.description.codec == Codec::raw ? 0 : 1;
    library_.check(h5().H5Dwrite_chunk(data_.get(), H5P_DEFAULT, skipped, offset, stored.size(), stored.data()));
    bytes_ += stored.size();
}

void DataFile::put_chunk(std::uint64_t chunk, std::span<const std::byte> stored, bool filtered) {
    const hsize_t offset[] = {events(), chunk * layout_.chunk_rows, 0};
    write_chunk(offset, stored, filtered);
}

void DataFile::encode_chunk(std::uint64_t chunk, std::span<const std::byte> plain) {
    const std::span<const std::byte> encoded = encoder_.encode(plain);
    put_chunk(chunk, encoded.empty() ? plain : encoded, !encoded.empty());
}

/// The stream's last chunk, as it will be (`whole`) or as far as it goes.
void DataFile::write_tail(bool whole) {
    if (tail_.empty()) return;
    const std::uint64_t begin = stream_bytes_ - tail_.size();
    const hsize_t size[] = {stream_bytes_};
    library_.check(h5().H5Dset_extent(data_.get(), size));
    const hsize_t offset[] = {begin};
    // A chunk that changes its length moves, and in a file that is being followed the old place is not used again.
    const std::span<const std::byte> encoded =
        whole && !tail_written_ ? encoder_.encode(tail_) : std::span<const std::byte>{};
    if (encoded.empty()) {
        const std::size_t used = tail_.size();
        tail_.resize(Layout::stream_chunk_bytes);
        write_chunk(offset, tail_, false);
        tail_.resize(used);
    } else {
        write_chunk(offset, encoded, true);
    }
    tail_written_ = !whole;
    if (whole) tail_.clear();
}

void DataFile::put_payload(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const std::size_t taken = std::min<std::size_t>(bytes.size(), Layout::stream_chunk_bytes - tail_.size());
        tail_.insert(tail_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
        stream_bytes_ += taken;
        bytes = bytes.subspan(taken);
        if (tail_.size() == Layout::stream_chunk_bytes) write_tail(true);
    }
}

void DataFile::end_event(const EventInfo& event, std::uint64_t first_offset) {
    EventRow row{event, end_.missing, {}};
    if (!layout_.image)
        for (const SourceInfo& source : event.sources) {
            row.payload_offsets.push_back(first_offset);
            first_offset += payload_bytes(event, source);
        }
    const std::size_t before = tables_->pending_bytes();
    tables_->put(row);
    bytes_ += tables_->pending_bytes() - before;
    end_.missing += missing_count(event);
    ++end_.events;
    whole_stream_bytes_ = stream_bytes_;
    end_.payload_bytes = begin_.payload_bytes + whole_stream_bytes_;
    image_open_ = false;
    constexpr std::size_t pending_bytes_max = std::size_t{1} << 20;
    if (tables_->pending_bytes() >= pending_bytes_max) flush();
}

void DataFile::drop_event() noexcept {
    // Its bytes may be in chunks already; nothing refers to them.
    image_open_ = false;
}

void DataFile::flush() {
    if (!file_.is_open()) return;
    write_tail(tail_.size() == Layout::stream_chunk_bytes);
    library_.check(h5().H5Dflush(data_.get()));
    tables_->append(library_);
    library_.check(h5().H5Fflush(file_.get(), H5F_SCOPE_LOCAL));
}

void DataFile::sync() {
    void* descriptor = nullptr;
    library_.check(h5().H5Fget_vfd_handle(file_.get(), H5P_DEFAULT, &descriptor));
    if (::fdatasync(*static_cast<const int*>(descriptor)) != 0)
        throw core::RunError(write_error_text("cannot sync", path(), errno));
}

void DataFile::close() {
    if (!file_.is_open()) return;
    // The room that an event took which did not become whole.
    if (layout_.image && H5I_INVALID_HID != data_.get()) {
        const hsize_t size[] = {events(), layout_.image_rows(), layout_.columns};
        library_.check(h5().H5Dset_extent(data_.get(), size));
    }
    flush();
    sync();
    tables_.reset();
    data_.reset();
    entry_.reset();
    if (!file_.close()) throw_library_error("cannot close", path());
}

/// Closing would write what the library still has in memory, in whatever order; on a disk that takes only some of it,
/// what readers can see now would be lost.
void DataFile::abandon() noexcept {
    if (tables_) tables_->leave();
    data_.leave();
    entry_.leave();
    file_.leave();
}

}  // namespace weir::store::hdf5
