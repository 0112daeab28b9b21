#!/bin/bash
# Every header compiles alone, with gcc and with clang: tests/check_headers.sh
set -eu
cd "$(dirname "$0")/.."
read -ra flags <<<"$(pkg-config --cflags hdf5-serial libjpeg libpng jansson)"
flags+=(-std=c17 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes)
headers=(*/*.h)
# Twice: the second time proves the guard.
compile() {
    printf '#include "%s"\n#include "%s"\n' "$2" "$2" | "$1" "${@:3}" -fsyntax-only -x c - ||
        { echo "$2 does not compile alone with $1"; return 1; }
}
export -f compile
for compiler in gcc clang; do
    printf '%s\n' "${headers[@]}" | xargs -P "$(nproc)" -I {} bash -c 'compile "$@"' _ "$compiler" {} "${flags[@]}"
done
echo "${#headers[@]} headers"
