#!/bin/bash
# Lets this machine's compiler link programs for glibc 2.28 (RHEL 8) and later: .ci/glibc.sh FOLDER puts the linker's
# view of that glibc into FOLDER, for WEIR_GLIBC_ROOT: stubs of the shared libraries with all symbols and versions up to
# 2.28, libc_nonshared.a and a start file. A call of a newer function is then an undefined reference.
#
# Zig's package contains the symbols of each glibc release, and builds these files from them; it is removed afterwards.
# Takes 2 minutes, mostly for the download (100 MB); does nothing if this script made FOLDER. On failure it prints one line
# and exits with 1.
set -eu
to=$(mkdir -p "${1:?usage: .ci/glibc.sh FOLDER}" && cd "$1" && pwd)
glibc=2.28 zig=0.17.1
script=$(realpath "$0")
# Another version of this script may have made other files, and so another release.
[ ! -f "$to/libc.so" ] || ! cmp -s "$script" "$to/made_by.sh" || exit 0

fail() {
    echo "glibc.sh: no stubs of glibc $glibc: $*" >&2
    exit 1
}

work=$to/work
rm -rf "$work"
mkdir "$work"
/usr/bin/python3 -m venv "$work/venv" >"$work/log" 2>&1 || fail "python3 -m venv failed; see $work/log"
"$work/venv/bin/pip" install --quiet "ziglang==$zig" >>"$work/log" 2>&1 ||
    fail "pip install ziglang==$zig failed: $(tail -1 "$work/log")"

# Zig builds the files when it links a program, into its cache.
export ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache
echo 'int main(void) { return 0; }' >"$work/empty.c"
"$work/venv/bin/python" -m ziglang cc -target "x86_64-linux-gnu.$glibc" -fPIE -pie "$work/empty.c" -o "$work/empty" \
    >>"$work/log" 2>&1 || fail "zig cc failed; see $work/log"
libraries=(libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1)
for file in Scrt1.o libc_nonshared.a libc.so.6 libld.so.2 "${libraries[@]}"; do
    found=$(find "$work/cache" -name "$file" | head -1)
    [ -n "$found" ] || fail "zig $zig made no $file"
    cp "$found" "$to"
done
for library in "${libraries[@]}"; do
    ln -sf "$library" "$to/${library%.so*}.so"
done
# Without debug information and names of members, which contain paths.
mapfile -t members < <(ar t "$to/libc_nonshared.a")
rm "$to/libc_nonshared.a"
strip --strip-debug "$to/Scrt1.o" "${members[@]}"
ar crD "$to/libc_nonshared.a" "${members[@]}"
# Later releases have threads and dlopen in libc.so.6, so no build names their libraries. libpthread comes first, as
# with -lpthread, because libc.so.6 has stand-ins for some of its functions.
echo "GROUP(AS_NEEDED(libpthread.so.0) libc.so.6 libc_nonshared.a AS_NEEDED(libdl.so.2 librt.so.1 libld.so.2))" \
    >"$work/libc.so"
mv "$work/libc.so" "$to"
cp "$script" "$to/made_by.sh"
rm -rf "$work"
