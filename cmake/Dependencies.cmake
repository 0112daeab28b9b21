# Weir's dependencies, found by pkg-config, as imported targets weir::hdf5, weir::jpeg, ...
#
# WEIR_STATIC_DEPS=ON links everything except the C library statically, for a program that is copied to other machines.
# HDF5 is then the one in WEIR_HDF5_ROOT, dav1d the one in WEIR_DAV1D_ROOT, libcurl the one in WEIR_CURL_ROOT. docs/internals/release.md says what is linked and what is opened at run time.
option(WEIR_STATIC_DEPS "Link the libraries statically, except libc; HDF5, dav1d and libcurl only with WEIR_HDF5_ROOT, WEIR_DAV1D_ROOT and WEIR_CURL_ROOT" OFF)

if(WEIR_STATIC_DEPS) # .ci/linked.py reads which archives the linker took
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/maps)
  add_link_options(LINKER:-Map=${CMAKE_BINARY_DIR}/maps/$<TARGET_PROPERTY:NAME>.map)
  # The id is a hash that includes debug information, and so the folder, also after stripping.
  add_link_options(LINKER:--build-id=none)
endif()

set(WEIR_GLIBC_ROOT "" CACHE PATH "Folder made by .ci/glibc.sh, to link for glibc 2.28 and later; empty: this machine's glibc")
if(WEIR_GLIBC_ROOT)
  if(NOT EXISTS ${WEIR_GLIBC_ROOT}/libc.so)
    message(FATAL_ERROR "${WEIR_GLIBC_ROOT}/libc.so is missing; run .ci/glibc.sh ${WEIR_GLIBC_ROOT}")
  endif()
  add_link_options(-B${WEIR_GLIBC_ROOT} -L${WEIR_GLIBC_ROOT}) # -B: the start file
endif()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# weir_dependency(NAME MODULE [ARCHIVE...]): weir::NAME from the pkg-config module; with WEIR_STATIC_DEPS from the named
# archives instead, in link order.
function(weir_dependency name module)
  pkg_check_modules(${name} REQUIRED QUIET IMPORTED_TARGET GLOBAL ${module})
  message(STATUS "${name}: ${${name}_VERSION}")
  weir_library(${name} ${ARGN})
  set_target_properties(weir_${name} PROPERTIES WEIR_MODULE ${module}) # for the installed library's own pkg-config file
endfunction()

# weir_library(NAME [ARCHIVE...]): weir::NAME for a module found by pkg_check_modules.
function(weir_library name)
  add_library(weir_${name} INTERFACE)
  add_library(weir::${name} ALIAS weir_${name})
  if(NOT WEIR_STATIC_DEPS OR NOT ARGN)
    target_link_libraries(weir_${name} INTERFACE PkgConfig::${name})
    return()
  endif()
  target_include_directories(weir_${name} SYSTEM INTERFACE ${${name}_INCLUDE_DIRS})
  foreach(archive ${ARGN})
    find_library(WEIR_ARCHIVE_${archive} NAMES ${archive} HINTS ${${name}_LIBRARY_DIRS} REQUIRED)
    target_link_libraries(weir_${name} INTERFACE ${WEIR_ARCHIVE_${archive}})
  endforeach()
  target_link_libraries(weir_${name} INTERFACE m) # after the archives: libpng's needs it
endfunction()

# Debian's archive of HDF5 includes network access. .ci/hdf5.sh builds one without it from Debian's source.
set(WEIR_HDF5_ROOT "" CACHE PATH "Folder with include/ and lib/libhdf5.a, linked statically; empty: use pkg-config")
pkg_check_modules(hdf5_serial QUIET hdf5-serial)
if(WEIR_HDF5_ROOT)
  if(NOT EXISTS ${WEIR_HDF5_ROOT}/lib/libhdf5.a)
    message(FATAL_ERROR "${WEIR_HDF5_ROOT}/lib/libhdf5.a is missing; run .ci/hdf5.sh ${WEIR_HDF5_ROOT}")
  endif()
  file(STRINGS ${WEIR_HDF5_ROOT}/include/H5pubconf.h version REGEX "H5_VERSION ")
  message(STATUS "hdf5: ${version}, ${WEIR_HDF5_ROOT}/lib/libhdf5.a")
  add_library(weir_hdf5 INTERFACE)
  add_library(weir::hdf5 ALIAS weir_hdf5)
  target_include_directories(weir_hdf5 SYSTEM INTERFACE ${WEIR_HDF5_ROOT}/include)
  target_link_libraries(weir_hdf5 INTERFACE ${WEIR_HDF5_ROOT}/lib/libhdf5.a libsz.a libaec.a libz.a m ${CMAKE_DL_LIBS})
elseif(hdf5_serial_FOUND)
  weir_dependency(hdf5 hdf5-serial)
else()
  weir_dependency(hdf5 hdf5)
endif()
weir_dependency(jpeg libjpeg libjpeg.a)
weir_dependency(jansson jansson libjansson.a)
weir_dependency(png libpng libpng16.a libz.a)
weir_dependency(zlib zlib libz.a)
find_path(WEIR_XXHASH_INCLUDE_DIR xxhash.h REQUIRED) # used as a header only

# Optional dependencies, each controlled by WEIR_WITH_<NAME> = AUTO|ON|OFF.
include(WeirWith)
weir_with(LIBDEFLATE libdeflate "libdeflate" libdeflate.a)
weir_with(BLOSC blosc "libblosc" libblosc.a liblz4.a libzstd.a libz.a)
weir_with(ZSTD libzstd "libzstd" libzstd.a)
weir_with(URING liburing "liburing" liburing.a)
weir_with(LMDB lmdb "liblmdb" liblmdb.a)
weir_with(OPENJPEG libopenjp2 "libopenjp2" libopenjp2.a)
weir_with(JXL libjxl "libjxl") # header only
# weir_static_root(NAME): WEIR_<NAME>_ROOT is a folder made by .ci/<name>.sh from Debian's source, whose archive is then
# linked. Without it, WEIR_STATIC_DEPS leaves the library out.
function(weir_static_root name)
  string(TOLOWER ${name} library)
  set(WEIR_${name}_ROOT "" CACHE PATH "Folder with lib/lib${library}.a and lib/pkgconfig, linked statically; empty: use pkg-config")
  set(root ${WEIR_${name}_ROOT})
  if(root)
    if(NOT EXISTS ${root}/lib/lib${library}.a)
      message(FATAL_ERROR "${root}/lib/lib${library}.a is missing; run .ci/${library}.sh ${root}")
    endif()
    set(ENV{PKG_CONFIG_PATH} "${root}/lib/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  elseif(WEIR_STATIC_DEPS)
    set(WEIR_WITH_${name} OFF CACHE STRING "${library}: AUTO, ON or OFF")
  endif()
endfunction()
weir_static_root(DAV1D) # Debian has no archive of it
weir_with(DAV1D dav1d>=1.0.0 "dav1d" libdav1d.a)
weir_static_root(MICROHTTPD) # Debian's archive needs GnuTLS
weir_with(MICROHTTPD libmicrohttpd>=0.9.75 "libmicrohttpd" libmicrohttpd.a)
weir_static_root(CURL) # Debian's archive needs 20 other libraries
weir_with(CURL libcurl>=7.87 "libcurl" libcurl.a)
weir_with(CRYPTO libcrypto>=3 "libcrypto" libssl.a libcrypto.a)
if(NOT WEIR_HAVE_CRYPTO) # both or none
  if(WEIR_WITH_CURL STREQUAL "ON")
    message(FATAL_ERROR "WEIR_WITH_CURL=ON needs libcrypto 3: install libssl-dev")
  endif()
  set(WEIR_HAVE_CURL 0)
endif()
weir_with(LIBDW libdw "libdw") # header only
weir_with(NVDEC ffnvcodec>=11 "ffnvcodec") # headers only
weir_with(CRITERION criterion "Criterion (for the tests)")
weir_with(TURBOJPEG libturbojpeg "TurboJPEG (for the benchmarks)" libturbojpeg.a)
if(WEIR_HAVE_LIBDEFLATE)
  set_target_properties(weir_LIBDEFLATE PROPERTIES WEIR_MODULE libdeflate) # part of libweir
endif()
