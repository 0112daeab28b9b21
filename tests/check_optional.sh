#!/bin/bash
# WEIR_WITH_<NAME> on a machine without the library: ON is an error that says so, AUTO and OFF configure, another word
# is refused. The library is hidden by giving pkg-config a folder with everything but it.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
IFS=: read -ra folders <<<"$(pkg-config --variable pc_path pkg-config)"
cases=0

# hide LIBRARY
hide() {
    rm -rf "$work/pc"
    mkdir "$work/pc"
    for folder in "${folders[@]}"; do
        find "$folder" -maxdepth 1 -name '*.pc' ! -name "$1*" -exec ln -sf -t "$work/pc" {} + 2>/dev/null || true
    done
    export PKG_CONFIG_LIBDIR=$work/pc
}

# configure NAME VALUE: its output is in $work/log.
configure() {
    cases=$((cases + 1))
    cmake -G Ninja -S . -B "$work/$1-$2" "-DWEIR_WITH_$1=$2" >"$work/log" 2>&1
}

fail() {
    echo "$1"
    cat "$work/log"
    exit 1
}

# check NAME LIBRARY
check() {
    hide "$2"
    configure "$1" ON && fail "ON without $2 was accepted"
    grep -q "WEIR_WITH_$1=ON, but pkg-config finds no" "$work/log" || fail "ON without $2 failed for another reason"
    configure "$1" AUTO || fail "AUTO without $2 was refused"
    grep -q "$2: 0 (WEIR_WITH_$1=AUTO)" "$work/log" || fail "AUTO does not say what it took"
    configure "$1" OFF || fail "OFF was refused"
    configure "$1" maybe && fail "a wrong word was accepted"
    grep -q "must be AUTO, ON or OFF" "$work/log" || fail "a wrong word failed for another reason"
}

check URING liburing
check LIBDEFLATE libdeflate
echo "$cases cases, 0 failures"
