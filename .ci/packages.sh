#!/bin/bash
# Installs missing Debian packages for a task: .ci/packages.sh build|test|bench|python|peers|ci
# This is the only list of them. Installed packages keep their versions unless a missing package depends on a newer one;
# such upgrades are printed.
set -eu
build=(gcc libc6-dev make cmake ninja-build pkg-config
    libhdf5-dev libjpeg62-turbo-dev libjansson-dev libpng-dev libdeflate-dev zlib1g-dev
    libxxhash-dev liburing-dev liblmdb-dev libopenjp2-7-dev libjxl-dev libdw-dev libdav1d-dev libmicrohttpd-dev libffmpeg-nvenc-dev libblosc-dev libzstd-dev liblz4-dev libcurl4-openssl-dev libssl-dev
    libopenblas0-pthread) # loaded at run time: no headers
python=(python3-dev python3-venv dpkg-dev libaec-dev meson nasm)
tests=(libcriterion-dev ffmpeg python3 python3-dev python3-h5py python3-lmdb python3-prometheus-client python3-numpy python3-pil python3-xxhash hdf5-tools nginx-light)
bench=(libturbojpeg0-dev)
# fio for the disk, FFmpeg's libraries for SPDL's decoder
peers=(python3 python3-venv fio libavdevice59)
ci=(git g++ ccache clang clang-format libclang-rt-dev llvm shellcheck groff-base zsh
    chromium python3-venv python3-torch python3-torchvision)

case "${1:-build}" in
build) wanted=("${build[@]}") ;;
test) wanted=("${build[@]}" "${tests[@]}") ;;
bench) wanted=("${build[@]}" "${bench[@]}") ;;
python) wanted=("${build[@]}" "${python[@]}") ;;
peers) wanted=("${build[@]}" "${bench[@]}" "${peers[@]}") ;;
ci) wanted=("${build[@]}" "${tests[@]}" "${bench[@]}" "${python[@]}" "${ci[@]}") ;;
*) echo "usage: packages.sh build|test|bench|python|peers|ci" >&2 && exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
    echo "packages.sh: not a Debian system; install the equivalents of: ${wanted[*]}" >&2
    exit 0
fi
missing=()
for package in "${wanted[@]}"; do
    # Not "dpkg -s", which also succeeds for removed packages.
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [[ $status == installed* ]] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "Installing: ${missing[*]}"
root=()
[ "$(id -u)" -eq 0 ] || root=(sudo)
"${root[@]}" apt-get update -q </dev/null
install=(env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends --no-upgrade)
# A simulated run prints "Inst NAME [OLD VERSION] (NEW VERSION ...)", without brackets for new packages. If it fails,
# the real run below reports why.
upgraded=$("${root[@]}" "${install[@]}" -s "${missing[@]}" </dev/null 2>/dev/null |
    sed -n 's/^Inst \([^ ]*\) \[\([^]]*\)\] (\([^ ]*\) .*/\1 (\2 to \3)/p' || true)
[ -z "$upgraded" ] || echo "packages.sh: dependencies upgrade these installed packages: ${upgraded//$'\n'/, }"
"${root[@]}" "${install[@]}" "${missing[@]}" </dev/null
