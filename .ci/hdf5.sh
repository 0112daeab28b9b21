#!/bin/bash
# A static HDF5 without network libraries, of the source of Debian's own package: .ci/hdf5.sh FOLDER puts include/ and
# lib/libhdf5.a there, for WEIR_HDF5_ROOT. Debian's archive of it comes with curl, Kerberos and LDAP.
#
# "apt-get source" brings the package, from the servers that this system takes its packages from, with lists and cache of
# its own: nothing of the system is changed, no root is needed. 3 minutes on 2 cores, and nothing where it is done
# already. Where it cannot be done it ends with 1 and one line.
set -eu
to=$(mkdir -p "${1:?usage: .ci/hdf5.sh FOLDER}" && cd "$1" && pwd)
[ ! -f "$to/lib/libhdf5.a" ] || exit 0

fail() {
    echo "hdf5.sh: no lean HDF5: $*" >&2
    exit 1
}

command -v apt-get dpkg-source >/dev/null || fail "apt-get and dpkg-source (dpkg-dev) are needed"
for archive in sz aec z; do
    [ "$(cc -print-file-name=lib$archive.a)" != "lib$archive.a" ] || fail "lib$archive.a is missing (libaec-dev, zlib1g-dev)"
done
work=$to/work
rm -rf "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
log=$work/log

# The package's source is where this system's packages are.
apt-get indextargets --format "deb-src \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" \
    'Created-By: Packages' 'Origin: Debian' 'Component: main' | sort -u >"$work/sources.list"
[ -s "$work/sources.list" ] || fail "this system takes no packages from Debian"
apt=(apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)")
"${apt[@]}" update >"$log" 2>&1 || fail "apt-get update failed: $(tail -1 "$log")"
(cd "$work" && "${apt[@]}" source --only-source hdf5) >>"$log" 2>&1 || fail "apt-get source hdf5 failed: $(tail -1 "$log")"
package=$(find "$work" -maxdepth 1 -name 'hdf5_*.dsc')
source=$(find "$work" -maxdepth 1 -type d -name 'hdf5-*')
echo "building a lean HDF5 of Debian's $(basename "$package" .dsc)"

# What Debian has of it, less the drivers that read by the network, MPI, and all but the C library. A program of its
# configuration writes into the current folder what is then read in the build's.
mkdir "$work/build"
cd "$work/build"
cmake "$source" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DBUILD_SHARED_LIBS=OFF -DBUILD_STATIC_LIBS=ON -DBUILD_TESTING=OFF -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_EXAMPLES=OFF \
    -DHDF5_BUILD_HL_LIB=OFF -DHDF5_BUILD_CPP_LIB=OFF -DHDF5_BUILD_FORTRAN=OFF -DHDF5_BUILD_JAVA=OFF \
    -DHDF5_ENABLE_PARALLEL=OFF -DHDF5_ENABLE_ROS3_VFD=OFF -DHDF5_ENABLE_HDFS=OFF -DHDF5_ENABLE_Z_LIB_SUPPORT=ON \
    -DHDF5_ENABLE_SZIP_SUPPORT=ON -DHDF5_ENABLE_SZIP_ENCODING=ON -DDEFAULT_API_VERSION=v18 >>"$log" 2>&1 ||
    fail "its cmake failed; see $log"
cmake --build . --target hdf5-static >>"$log" 2>&1 || fail "it does not compile; see $log"
mkdir -p "$to/include" "$to/lib"
cp "$source"/src/*.h src/H5pubconf.h "$to/include"
cp "$package" "$to"
cp "$source/COPYING" "$to"
cp bin/libhdf5.a "$to/lib"
cd "$to"
rm -rf "$work"
