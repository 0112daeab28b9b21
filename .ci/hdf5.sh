#!/bin/bash
# Builds a static HDF5 without network libraries from the source of Debian's package: .ci/hdf5.sh FOLDER puts include/
# and lib/libhdf5.a into FOLDER, for WEIR_HDF5_ROOT. Debian's own static HDF5 depends on curl, Kerberos and LDAP.
#
# Takes 3 minutes on 2 cores; does nothing if this script made FOLDER. On failure it prints one line and exits with 1.
set -eu
# shellcheck source=SCRIPTDIR/debian_source.sh
. "$(dirname "$0")/debian_source.sh"
to=$(mkdir -p "${1:?usage: .ci/hdf5.sh FOLDER}" && cd "$1" && pwd)
script=$(realpath "$0")
# Another version of this script may have made other files, and so another release.
[ ! -f "$to/lib/libhdf5.a" ] || ! cmp -s "$script" "$to/made_by.sh" || exit 0

fail() {
    echo "hdf5.sh: no lean HDF5: $*" >&2
    exit 1
}

for archive in sz aec z; do
    [ "$(cc -print-file-name=lib$archive.a)" != "lib$archive.a" ] || fail "lib$archive.a is missing (libaec-dev, zlib1g-dev)"
done
work=$to/work
log=$work/log
debian_source hdf5 "$work"
echo "building a lean HDF5 from Debian's $(basename "$package" .dsc)"

# The library contains the date of its configuration and the names of its sources: those of the package, so that every
# build is equal.
export CC="${CC:-cc} -ffile-prefix-map=$work/= -ffile-prefix-map=../= -ffile-prefix-map=$work/build/=" # not CFLAGS, which the library contains too

# Debian's configuration, minus network drivers, MPI and everything except the C library. Runs in the build folder
# because a configure-time program writes to the current folder, and the build reads its output from the build folder.
mkdir "$work/build"
cd "$work/build"
cmake "$source" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DBUILD_SHARED_LIBS=OFF -DBUILD_STATIC_LIBS=ON -DBUILD_TESTING=OFF -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_EXAMPLES=OFF \
    -DHDF5_BUILD_HL_LIB=OFF -DHDF5_BUILD_CPP_LIB=OFF -DHDF5_BUILD_FORTRAN=OFF -DHDF5_BUILD_JAVA=OFF \
    -DHDF5_ENABLE_PARALLEL=OFF -DHDF5_ENABLE_ROS3_VFD=OFF -DHDF5_ENABLE_HDFS=OFF -DHDF5_ENABLE_Z_LIB_SUPPORT=ON \
    -DHDF5_ENABLE_SZIP_SUPPORT=ON -DHDF5_ENABLE_SZIP_ENCODING=ON -DDEFAULT_API_VERSION=v18 >>"$log" 2>&1 ||
    fail "cmake failed; see $log"
cmake --build . --target hdf5-static >>"$log" 2>&1 || fail "the build failed; see $log"
mkdir -p "$to/include" "$to/lib"
cp "$source"/src/*.h src/H5pubconf.h "$to/include"
cp "$package" "$to"
cp "$source/COPYING" "$to"
cp bin/libhdf5.a "$to/lib"
cp "$script" "$to/made_by.sh"
cd "$to"
rm -rf "$work"
