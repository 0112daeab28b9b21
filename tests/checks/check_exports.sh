#!/bin/bash
# The shared library exports exactly what the installed headers declare:
# tests/checks/check_exports.sh LIBWEIR.SO HEADER...
set -euo pipefail
library=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for header in "$@"; do
    echo "#include \"$header\""
done >"$work/all.c"
# gcc lists all declared functions; sed finds the variables, which are few and declared alike.
gcc -std=c17 -D_GNU_SOURCE -I. -Iinclude -fsyntax-only -aux-info "$work/seen" "$work/all.c"
{
    sed -nE 's/.*:NC \*\/ extern [^(]*[ *](weir_\w+) \(.*/\1/p' "$work/seen"
    sed -nE 's/^extern .*[ *](weir_\w+)( __attribute__.*)?;$/\1/p' "$@"
} | sort -u >"$work/declared"
[ -s "$work/declared" ]
nm -D --defined-only "$library" | awk '{print $3}' | sort -u >"$work/exported"

status=0
missing=$(comm -23 "$work/declared" "$work/exported")
[ -z "$missing" ] || { echo "declared but not exported (weir_write_map in cmake/Install.cmake):" "$missing" && status=1; }
extra=$(comm -13 "$work/declared" "$work/exported")
[ -z "$extra" ] || { echo "exported but not declared in an installed header:" "$extra" && status=1; }
echo "$(wc -l <"$work/declared") declared, $(wc -l <"$work/exported") exported"
exit $status
