#!/bin/bash
# WEIR_WITH_<NAME> on a machine without the library: ON fails and names it, AUTO and OFF configure, any other value is
# refused. The library is hidden by giving pkg-config a folder with every other .pc file.
set -eu
cd "$(dirname "$0")/../.."
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

# configure NAME VALUE [OPTION...]: output goes to $work/log.
configure() {
    cases=$((cases + 1))
    cmake -G Ninja -S . -B "$work/$1-$2" "-DWEIR_WITH_$1=$2" "${@:3}" >"$work/log" 2>&1
}

fail() {
    echo "$1"
    cat "$work/log"
    exit 1
}

# check NAME LIBRARY
check() {
    local no_cuda=-DWEIR_WITH_CUDA=OFF # finding its compiler is slow
    hide "$2"
    configure "$1" ON $no_cuda && fail "ON without $2 was accepted"
    grep -q "WEIR_WITH_$1=ON, but pkg-config finds no" "$work/log" || fail "ON without $2 failed for another reason"
    configure "$1" AUTO $no_cuda || fail "AUTO without $2 was refused"
    grep -q "$2: 0 (WEIR_WITH_$1=AUTO)" "$work/log" || fail "AUTO does not report its choice"
    configure "$1" OFF $no_cuda || fail "OFF was refused"
    configure "$1" maybe $no_cuda && fail "an invalid value was accepted"
    grep -q "must be AUTO, ON or OFF" "$work/log" || fail "an invalid value failed for another reason"
}

# The CUDA Toolkit is not a pkg-config module.
check_cuda() {
    local without=-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
    unset PKG_CONFIG_LIBDIR
    configure CUDA ON $without && fail "ON without the CUDA Toolkit was accepted"
    grep -q "WEIR_WITH_CUDA=ON, but no CUDA Toolkit" "$work/log" || fail "ON without it failed for another reason"
    configure CUDA AUTO $without || fail "AUTO without the CUDA Toolkit was refused"
    grep -q "The CUDA module: 0 (WEIR_WITH_CUDA=AUTO)" "$work/log" || fail "AUTO does not report its choice"
    configure CUDA OFF || fail "OFF was refused"
    configure CUDA maybe && fail "an invalid value was accepted"
    grep -q "must be AUTO, ON or OFF" "$work/log" || fail "an invalid value failed for another reason"
}

check URING liburing
check LIBDEFLATE libdeflate
check LMDB lmdb
check CURL libcurl
check BLOSC blosc
check ZSTD libzstd
check OPENJPEG libopenjp2
check JXL libjxl
check DAV1D dav1d
check NVDEC ffnvcodec
check MICROHTTPD libmicrohttpd
check LIBDW libdw
check_cuda
echo "$cases cases, 0 failures"
