#!/bin/bash
# Builds a static dav1d from the source of Debian's package, which has only a shared one: .ci/dav1d.sh FOLDER puts
# include/, lib/libdav1d.a and lib/pkgconfig/ into FOLDER, for WEIR_DAV1D_ROOT.
#
# Takes 1 minute on 2 cores; does nothing if this script made FOLDER. On failure it prints one line and exits with 1.
set -eu
# shellcheck source=SCRIPTDIR/debian_source.sh
. "$(dirname "$0")/debian_source.sh"
to=$(mkdir -p "${1:?usage: .ci/dav1d.sh FOLDER}" && cd "$1" && pwd)
script=$(realpath "$0")
# Another version of this script may have made other files, and so another release.
[ ! -f "$to/lib/libdav1d.a" ] || ! cmp -s "$script" "$to/made_by.sh" || exit 0

fail() {
    echo "dav1d.sh: no static dav1d: $*" >&2
    exit 1
}

command -v meson ninja >/dev/null || fail "meson and ninja (ninja-build) are needed"
# Without its assembly code, dav1d is several times slower.
[ "$(uname -m)" != x86_64 ] || command -v nasm >/dev/null || fail "nasm is needed"
work=$to/work
log=$work/log
debian_source dav1d "$work"
echo "building a static dav1d from Debian's $(basename "$package" .dsc)"
# The archive contains the names of its sources: those of the package, so that every build is equal.
CFLAGS="${CFLAGS:-} -ffile-prefix-map=$work/= -ffile-prefix-map=../=" meson setup "$work/build" "$source" \
    --buildtype=release -Db_ndebug=true -Db_staticpic=true -Ddefault_library=static -Denable_tools=false \
    -Denable_tests=false --prefix="$to" --libdir=lib >>"$log" 2>&1 || fail "meson failed; see $log"
ninja -C "$work/build" install >>"$log" 2>&1 || fail "the build failed; see $log"
cp "$package" "$source/COPYING" "$to"
cp "$script" "$to/made_by.sh"
rm -rf "$work"
