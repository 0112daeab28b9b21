#!/bin/bash
# Builds a static libcurl from the source of Debian's package, whose archive needs 20 other libraries: .ci/curl.sh FOLDER
# puts include/, lib/libcurl.a and lib/pkgconfig/ into FOLDER, for WEIR_CURL_ROOT. It speaks HTTP and TLS (by Debian's
# libssl.a) and nothing else.
#
# Takes 2 minutes on 2 cores; does nothing if this script made FOLDER. On failure it prints one line and exits with 1.
set -eu
# shellcheck source=SCRIPTDIR/debian_source.sh
. "$(dirname "$0")/debian_source.sh"
to=$(mkdir -p "${1:?usage: .ci/curl.sh FOLDER}" && cd "$1" && pwd)
script=$(realpath "$0")
# Another version of this script may have made other files, and so another release.
[ ! -f "$to/lib/libcurl.a" ] || ! cmp -s "$script" "$to/made_by.sh" || exit 0

fail() {
    echo "curl.sh: no static libcurl: $*" >&2
    exit 1
}

work=$to/work
log=$work/log
debian_source curl "$work"
echo "building a static libcurl from Debian's $(basename "$package" .dsc)"
without=()
for library in zlib brotli zstd nghttp2 nghttp3 ngtcp2 libidn2 libpsl librtmp libssh libssh2 gssapi libgsasl ca-bundle ca-path; do
    without+=("--without-$library")
done
for part in shared ftp file ldap ldaps rtsp dict telnet tftp pop3 imap smb smtp gopher mqtt manual cookies alt-svc hsts \
    unix-sockets tls-srp ntlm netrc websockets doh mime form-api aws libcurl-option verbose; do
    without+=("--disable-$part")
done
# The archive contains the names of its sources: those of the package, so that every build is equal.
(cd "$source" && CFLAGS="${CFLAGS:-} -O2 -fPIC -ffile-prefix-map=$work/=" ./configure --prefix="$to" --libdir="$to/lib" \
    --enable-static --with-openssl --enable-threaded-resolver ac_cv_func_arc4random=no "${without[@]}") >>"$log" 2>&1 ||
    fail "configure failed; see $log"
for part in lib include; do
    make -C "$source/$part" -j"$(nproc)" install >>"$log" 2>&1 || fail "the build failed; see $log"
done
make -C "$source" install-pkgconfigDATA >>"$log" 2>&1 || fail "the build failed; see $log"
cp "$package" "$source/COPYING" "$to"
cp "$script" "$to/made_by.sh"
rm -rf "$work"
