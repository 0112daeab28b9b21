#!/bin/bash
# Builds the Python package's wheel in build/wheel, with build/python-venv: .ci/wheel.sh. The last line of output is the
# wheel's path.
#
# With a lean HDF5 (.ci/hdf5.sh), a static dav1d (.ci/dav1d.sh), a static libmicrohttpd (.ci/microhttpd.sh), a static
# libcurl (.ci/curl.sh) and the stubs of .ci/glibc.sh, all libraries are linked statically, and the wheel runs with glibc 2.28 or later. If these cannot be made, the wheel uses this machine's libraries.
set -eu
cd "$(dirname "$0")/.."
venv=build/python-venv
[ -x $venv/bin/pip ] || /usr/bin/python3 -m venv --system-site-packages $venv
requires='import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])'
$venv/bin/python -c 'import scikit_build_core, wheel' 2>/dev/null ||
    $venv/bin/python -c "$requires" | xargs $venv/bin/pip install --quiet 'wheel>=0.40'

# The archive's times, so that two builds of one commit are equal.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

# Same compiler and flags as CI's other builds, to share their compiler cache.
export CC=${CC:-cc}
settings=(build-dir="$PWD/build/python-wheel" cmake.define.WEIR_WERROR="${CI:+ON}")
if .ci/hdf5.sh build/hdf5 >&2 && .ci/dav1d.sh build/dav1d >&2 && .ci/microhttpd.sh build/microhttpd >&2 &&
    .ci/curl.sh build/curl >&2 && .ci/glibc.sh build/glibc >&2; then
    lean=yes
    settings+=(cmake.define.WEIR_HDF5_ROOT="$PWD/build/hdf5" cmake.define.WEIR_DAV1D_ROOT="$PWD/build/dav1d"
        cmake.define.WEIR_MICROHTTPD_ROOT="$PWD/build/microhttpd" cmake.define.WEIR_CURL_ROOT="$PWD/build/curl"
        cmake.define.WEIR_GLIBC_ROOT="$PWD/build/glibc" cmake.define.WEIR_STATIC_DEPS=ON)
else
    lean=no
    settings+=(cmake.define.WEIR_HDF5_ROOT= cmake.define.WEIR_DAV1D_ROOT= cmake.define.WEIR_MICROHTTPD_ROOT= cmake.define.WEIR_CURL_ROOT=
        cmake.define.WEIR_GLIBC_ROOT= cmake.define.WEIR_STATIC_DEPS=OFF)
    echo "wheel.sh: this wheel needs Debian's libraries at run time: libhdf5-103-1 and those of .ci/packages.sh build" >&2
fi
options=()
for setting in "${settings[@]}"; do
    options+=(--config-settings="$setting")
done
rm -rf build/wheel
$venv/bin/pip wheel --quiet --no-deps --no-build-isolation . -w build/wheel "${options[@]}"
wheel=$(echo build/wheel/*.whl)
if [ $lean = yes ]; then # checked by tests/python/check_wheel.py
    wheel=build/wheel/$($venv/bin/python -m wheel tags --remove --platform-tag manylinux_2_28_x86_64 "$wheel")
fi
echo "$wheel"
