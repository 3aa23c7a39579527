// HDF5, loaded where files of it are written.
#pragma once

#include <hdf5.h>

#include "core/loaded_library.hpp"

// Flags such as H5F_ACC_EXCL are macros that call the library first, as if it were linked: to start it, and to compare
// its version with the headers'. Session does both.
#undef H5CHECK
#define H5CHECK
#undef H5OPEN
#define H5OPEN

namespace weir::store::hdf5 {

/// Its variables have their values after H5open().
struct Hdf5Library {
    core::LoadedLibrary library{"HDF5", "libhdf5_serial.so.103", "libhdf5-103-1"};
    WEIR_LIBRARY_FUNCTION(H5Aclose);
    WEIR_LIBRARY_FUNCTION(H5Acreate2);
    WEIR_LIBRARY_FUNCTION(H5Aexists);
    WEIR_LIBRARY_FUNCTION(H5Aget_space);
    WEIR_LIBRARY_FUNCTION(H5Aopen);
    WEIR_LIBRARY_FUNCTION(H5Aread);
    WEIR_LIBRARY_FUNCTION(H5Awrite);
    WEIR_LIBRARY_FUNCTION(H5Dclose);
    WEIR_LIBRARY_FUNCTION(H5Dcreate2);
    WEIR_LIBRARY_FUNCTION(H5Dflush);
    WEIR_LIBRARY_FUNCTION(H5Dget_space);
    WEIR_LIBRARY_FUNCTION(H5Dget_type);
    WEIR_LIBRARY_FUNCTION(H5Dopen2);
    WEIR_LIBRARY_FUNCTION(H5Dread);
    WEIR_LIBRARY_FUNCTION(H5Dset_extent);
    WEIR_LIBRARY_FUNCTION(H5Dwrite);
    WEIR_LIBRARY_FUNCTION(H5Dwrite_chunk);
    WEIR_LIBRARY_FUNCTION(H5Eset_auto2);
    WEIR_LIBRARY_FUNCTION(H5Ewalk2);
    WEIR_LIBRARY_FUNCTION(H5Fclose);
    WEIR_LIBRARY_FUNCTION(H5Fcreate);
    WEIR_LIBRARY_FUNCTION(H5Fflush);
    WEIR_LIBRARY_FUNCTION(H5Fget_vfd_handle);
    WEIR_LIBRARY_FUNCTION(H5Fopen);
    WEIR_LIBRARY_FUNCTION(H5Fstart_swmr_write);
    WEIR_LIBRARY_FUNCTION(H5Gclose);
    WEIR_LIBRARY_FUNCTION(H5Gcreate2);
    WEIR_LIBRARY_FUNCTION(H5Gopen2);
    WEIR_LIBRARY_FUNCTION(H5Lcreate_external);
    WEIR_LIBRARY_FUNCTION(H5Lcreate_soft);
    WEIR_LIBRARY_FUNCTION(H5Lexists);
    WEIR_LIBRARY_FUNCTION(H5Ocopy);
    WEIR_LIBRARY_FUNCTION(H5Pclose);
    WEIR_LIBRARY_FUNCTION(H5Pcreate);
    WEIR_LIBRARY_FUNCTION(H5Pset);
    WEIR_LIBRARY_FUNCTION(H5Pset_chunk);
    WEIR_LIBRARY_FUNCTION(H5Pset_file_locking);
    WEIR_LIBRARY_FUNCTION(H5Pset_fill_value);
    WEIR_LIBRARY_FUNCTION(H5Pset_filter);
    WEIR_LIBRARY_FUNCTION(H5Pset_libver_bounds);
    WEIR_LIBRARY_FUNCTION(H5Pset_meta_block_size);
    WEIR_LIBRARY_FUNCTION(H5Pset_virtual);
    WEIR_LIBRARY_FUNCTION(H5Sclose);
    WEIR_LIBRARY_FUNCTION(H5Scopy);
    WEIR_LIBRARY_FUNCTION(H5Screate);
    WEIR_LIBRARY_FUNCTION(H5Screate_simple);
    WEIR_LIBRARY_FUNCTION(H5Sget_simple_extent_dims);
    WEIR_LIBRARY_FUNCTION(H5Sget_simple_extent_ndims);
    WEIR_LIBRARY_FUNCTION(H5Sselect_hyperslab);
    WEIR_LIBRARY_FUNCTION(H5Sselect_none);
    WEIR_LIBRARY_FUNCTION(H5Tclose);
    WEIR_LIBRARY_FUNCTION(H5Tcopy);
    WEIR_LIBRARY_FUNCTION(H5Tequal);
    WEIR_LIBRARY_FUNCTION(H5Tget_class);
    WEIR_LIBRARY_FUNCTION(H5Tget_size);
    WEIR_LIBRARY_FUNCTION(H5Tis_variable_str);
    WEIR_LIBRARY_FUNCTION(H5Tset_cset);
    WEIR_LIBRARY_FUNCTION(H5Tset_ebias);
    WEIR_LIBRARY_FUNCTION(H5Tset_fields);
    WEIR_LIBRARY_FUNCTION(H5Tset_size);
    WEIR_LIBRARY_FUNCTION(H5Tset_strpad);
    WEIR_LIBRARY_FUNCTION(H5Zregister);
    WEIR_LIBRARY_FUNCTION(H5check_version);
    WEIR_LIBRARY_FUNCTION(H5dont_atexit);
    WEIR_LIBRARY_FUNCTION(H5open);
    WEIR_LIBRARY_VARIABLE(H5P_CLS_DATASET_CREATE_ID_g);
    WEIR_LIBRARY_VARIABLE(H5P_CLS_FILE_ACCESS_ID_g);
    WEIR_LIBRARY_VARIABLE(H5T_C_S1_g);
    WEIR_LIBRARY_VARIABLE(H5T_IEEE_F32LE_g);
    WEIR_LIBRARY_VARIABLE(H5T_NATIVE_DOUBLE_g);
    WEIR_LIBRARY_VARIABLE(H5T_NATIVE_INT32_g);
    WEIR_LIBRARY_VARIABLE(H5T_NATIVE_INT64_g);
    WEIR_LIBRARY_VARIABLE(H5T_NATIVE_UINT32_g);
    WEIR_LIBRARY_VARIABLE(H5T_NATIVE_UINT64_g);
    WEIR_LIBRARY_VARIABLE(H5T_NATIVE_UINT8_g);
    WEIR_LIBRARY_VARIABLE(H5T_STD_I16LE_g);
    WEIR_LIBRARY_VARIABLE(H5T_STD_U16LE_g);
    WEIR_LIBRARY_VARIABLE(H5T_STD_U32LE_g);
    WEIR_LIBRARY_VARIABLE(H5T_STD_U8LE_g);
};

/// Throws core::RunError if HDF5 cannot be loaded.
inline const Hdf5Library& h5() {
    static const Hdf5Library functions;
    return functions;
}

}  // namespace weir::store::hdf5
