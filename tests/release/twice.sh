#!/bin/bash
# Makes the release a second time, from a clone in another folder and without a compiler cache, and compares the files
# with those of build/release-files. Takes minutes. Usage: tests/release/twice.sh
set -eu
cd "$(dirname "$0")/../.."
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q . "$work/another/place"
[ ! -d build/nvjpeg-venv ] || { mkdir -p "$work/another/place/build" && cp -r build/nvjpeg-venv "$work/another/place/build"; }
cd "$work/another/place"
unset CCACHE_BASEDIR CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CMAKE_CUDA_COMPILER_LAUNCHER
.ci/release.sh >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
diff build/release-files/SHA256SUMS "$here/build/release-files/SHA256SUMS" || {
    rm -rf "$here/build/release-twice"
    cp -r build/release-files "$here/build/release-twice"
    echo "the two builds differ; the second is in build/release-twice"
    exit 1
}
echo "equal files"
