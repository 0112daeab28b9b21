#!/bin/bash
# WEIR_WITH_<NAME> on a machine without the library: ON fails and names it, AUTO and OFF configure, any other value is
# refused. Libraries are hidden by giving pkg-config a folder with all other .pc files.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
IFS=: read -ra folders <<<"$(pkg-config --variable pc_path pkg-config)"
cases=0

# hide LIBRARY...
hide() {
    rm -rf "$work/pc"
    mkdir "$work/pc"
    for folder in "${folders[@]}"; do
        find "$folder" -maxdepth 1 -name '*.pc' -exec ln -sf -t "$work/pc" {} + 2>/dev/null || true
    done
    for library in "$@"; do
        rm -f "$work/pc/$library"*
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

optional=(URING:liburing LIBDEFLATE:libdeflate LMDB:lmdb CURL:libcurl BLOSC:blosc ZSTD:libzstd OPENJPEG:libopenjp2 JXL:libjxl
    DAV1D:dav1d NVDEC:ffnvcodec MICROHTTPD:libmicrohttpd LIBDW:libdw)
no_cuda=-DWEIR_WITH_CUDA=OFF # finding its compiler is slow

# First each library alone is missing and wanted, then all are missing, then none is wanted.
check_libraries() {
    local both name library off=()
    for both in "${optional[@]}"; do
        name=${both%:*} library=${both#*:}
        hide "$library"
        configure "$name" ON $no_cuda && fail "ON without $library was accepted"
        grep -q "WEIR_WITH_$name=ON, but pkg-config finds no" "$work/log" || fail "ON without $library failed for another reason"
        off+=("-DWEIR_WITH_$name=OFF")
    done
    configure URING maybe $no_cuda && fail "an invalid value was accepted"
    grep -q "must be AUTO, ON or OFF" "$work/log" || fail "an invalid value failed for another reason"
    hide "${optional[@]#*:}"
    configure URING AUTO $no_cuda || fail "AUTO without the libraries was refused"
    for both in "${optional[@]}"; do
        grep -q "${both#*:}.*: 0 (WEIR_WITH_${both%:*}=AUTO)" "$work/log" || fail "AUTO does not report its choice of ${both#*:}"
    done
    configure LIBDW OFF $no_cuda "${off[@]}" || fail "OFF was refused"
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

check_libraries
check_cuda
echo "$cases cases, 0 failures"
