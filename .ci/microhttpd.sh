#!/bin/bash
# Builds a static libmicrohttpd without TLS from the source of Debian's package, whose archive needs GnuTLS:
# .ci/microhttpd.sh FOLDER puts include/, lib/libmicrohttpd.a and lib/pkgconfig/ into FOLDER, for WEIR_MICROHTTPD_ROOT.
#
# Takes 1 minute on 2 cores; does nothing if this script made FOLDER. On failure it prints one line and exits with 1.
set -eu
# shellcheck source=SCRIPTDIR/debian_source.sh
. "$(dirname "$0")/debian_source.sh"
to=$(mkdir -p "${1:?usage: .ci/microhttpd.sh FOLDER}" && cd "$1" && pwd)
script=$(realpath "$0")
# Another version of this script may have made other files, and so another release.
[ ! -f "$to/lib/libmicrohttpd.a" ] || ! cmp -s "$script" "$to/made_by.sh" || exit 0

fail() {
    echo "microhttpd.sh: no static libmicrohttpd: $*" >&2
    exit 1
}

work=$to/work
log=$work/log
debian_source libmicrohttpd "$work"
echo "building a static libmicrohttpd from Debian's $(basename "$package" .dsc)"
mkdir -p "$work/build"
# Disables unused features. The archive contains the names of its sources: those of the package, so that every
# build is equal.
(cd "$work/build" && CFLAGS="${CFLAGS:--O2} -fPIC -ffile-prefix-map=$work/= -ffile-prefix-map=../=" "$source/configure" \
    --prefix="$to" --libdir="$to/lib" --disable-shared --enable-static --disable-https --disable-bauth --disable-dauth \
    --disable-postprocessor --disable-messages --disable-doc --disable-examples --disable-curl --disable-nls \
    && make -j"$(nproc)" && make install) >>"$log" 2>&1 || fail "the build failed; see $log"
cp "$package" "$source/COPYING" "$to"
cp "$script" "$to/made_by.sh"
rm -rf "$work"
