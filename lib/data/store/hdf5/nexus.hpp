// The NeXus side of a run's files: groups and fields as NXmx asks for them where the data is an image. Only what is
// known is written; docs/reference/HDF5.md says where each value comes from.
#pragma once

#include <string>
#include <vector>

#include "store/hdf5/data_file.hpp"
#include "store/hdf5/handle.hpp"
#include "store/hdf5/layout.hpp"

namespace weir::store::hdf5 {

/// /entry, with what is known of the run when it starts.
Handle put_entry(const Library& library, hid_t file, const RunText& text);
/// /entry/data, a plot of `data` or `payload`, which come next.
Handle put_data_group(const Library& library, hid_t entry, const Layout& layout);
/// Of /entry/data/data or /entry/data/payload: units, markers, and how it is stored.
void put_data_attributes(const Library& library, hid_t dataset, const Layout& layout);
/// /entry/sources/id
void put_source_ids(const Library& library, hid_t entry, const Layout& layout);
/// /entry/instrument and what stands beside it.
void put_instrument(const Library& library, hid_t entry, const Layout& layout, const Nexus& nexus);

/// Keys of the configuration without which the files are no NXmx; empty if nothing is missing.
std::vector<std::string> missing_for_nxmx(const Description& description, const Nexus& nexus, std::size_t modules);

/// Angstrom: from `nexus`, else from the photon energy.
std::optional<double> wavelength(const Description& description, const Nexus& nexus);

/// "2026-11-21T19:40:51.123456Z"
std::string iso_time(core::TimeNs unix_ns);

}  // namespace weir::store::hdf5
