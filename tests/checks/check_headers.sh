#!/bin/bash
# Every header compiles alone, even if included twice, with gcc and with clang: tests/checks/check_headers.sh [ROOT].
# --self-test checks that a header without its includes is rejected.
set -eu
here=$(realpath "$(dirname "$0")")
if [ "${1:-}" = --self-test ]; then
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
    mkdir -p "$root/prof/record"
    echo 'size_t f(void);' >"$root/prof/record/lost.h"
    if output=$(bash "$here/check_headers.sh" "$root" 2>&1); then
        echo "a header without its includes, in a nested folder, was accepted"
        exit 1
    fi
    grep -q "prof/record/lost.h does not compile alone" <<<"$output"
    exit
fi
cd "${1:-$here/../..}"
read -ra flags <<<"$(pkg-config --cflags hdf5-serial libjpeg libpng jansson)"
flags+=(-isystem "$(pkg-config --variable=includedir python3)/python3.11") # of the limited API's version
flags+=(-std=c17 -D_GNU_SOURCE -I. -Iinclude -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes)
mapfile -t headers < <(find . -path ./build -prune -o -name '*.h' -printf '%P\n' | sort)
# Includes it twice, to test the include guard.
compile() {
    printf '#include "%s"\n#include "%s"\n' "$2" "$2" | "$1" "${@:3}" -fsyntax-only -x c - ||
        { echo "$2 does not compile alone with $1"; return 1; }
}
export -f compile
for compiler in gcc clang; do
    printf '%s\n' "${headers[@]}" | xargs -P "$(nproc)" -I {} bash -c 'compile "$@"' _ "$compiler" {} "${flags[@]}"
done
echo "${#headers[@]} headers"
