#!/bin/bash
# WEIR_WITH_URING on a machine without liburing: ON is an error that says so, AUTO and OFF configure, another word is
# refused. liburing is hidden by giving pkg-config a folder with everything but it.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/pc"
IFS=: read -ra folders <<<"$(pkg-config --variable pc_path pkg-config)"
for folder in "${folders[@]}"; do
    find "$folder" -maxdepth 1 -name '*.pc' ! -name 'liburing*' -exec ln -sf -t "$work/pc" {} + 2>/dev/null || true
done
export PKG_CONFIG_LIBDIR=$work/pc

# configure VALUE: its output is in $work/log.
configure() {
    cmake -G Ninja -S . -B "$work/$1" "-DWEIR_WITH_URING=$1" >"$work/log" 2>&1
}

fail() {
    echo "$1"
    cat "$work/log"
    exit 1
}

configure ON && fail "ON without liburing was accepted"
grep -q "WEIR_WITH_URING=ON, but pkg-config finds no" "$work/log" || fail "ON failed for another reason"
configure AUTO || fail "AUTO without liburing was refused"
grep -q "liburing: 0 (WEIR_WITH_URING=AUTO)" "$work/log" || fail "AUTO does not say what it took"
configure OFF || fail "OFF was refused"
configure maybe && fail "a wrong word was accepted"
grep -q "must be AUTO, ON or OFF" "$work/log" || fail "a wrong word failed for another reason"
echo "4 cases, 0 failures"
