#!/bin/bash
# Every header compiles alone, with gcc and with clang: tests/check_headers.sh
set -eu
cd "$(dirname "$0")/.."
read -ra flags <<<"$(pkg-config --cflags hdf5-serial libjpeg libpng jansson)"
flags+=(-std=c17 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes)
headers=(*/*.h)
failed=0
for compiler in gcc clang; do
    for header in "${headers[@]}"; do
        # Twice: the second time proves the guard.
        printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
            "$compiler" "${flags[@]}" -fsyntax-only -x c - || {
            echo "$header does not compile alone with $compiler"
            failed=$((failed + 1))
        }
    done
done
echo "${#headers[@]} headers, $failed failures"
[ "$failed" -eq 0 ]
