#!/bin/bash
# Collects the parts of a portable build that tests/gpu/*.sh need into one small folder for a machine with a GPU:
#
#     make nvjpeg; .ci/hdf5.sh build/hdf5; .ci/dav1d.sh build/dav1d; cmake --preset portable && cmake --build --preset portable
#     tests/gpu/pack.sh build/portable build/gpu
#
# The folder is self-contained: it includes the scripts, and simplejpeg for bench/limits, which pip downloads once.
# build/gpu/tests/gpu/gpu.sh build/gpu runs the tests there.
set -eu
from=${1:?usage: tests/gpu/pack.sh BUILD_FOLDER TO_FOLDER} to=${2:?usage: tests/gpu/pack.sh BUILD_FOLDER TO_FOLDER}
files=(weir weir-hdf5 libweir_cuda.so bench/limits bench/prof bench/handoff bench/nvjpeg bench/pinned_read
    tests/test_gpu_ops tests/test_gpu_upload tests/test_gpu_jpeg tests/test_gpu_order tests/test_gpu_lost tests/test_gpu_video tests/test_cupti
    tests/jpeg_both tests/test_device_clock)
# The extras that were built.
for file in bench/train_step bench/motion_floor bench/motion_sides tests/test_compute tests/test_clock_cost tests/test_motion_cuda; do
    [ ! -f "$from/$file" ] || files+=("$file")
done
for file in "${files[@]}"; do
    mkdir -p "$to/$(dirname "$file")"
    strip --strip-debug -o "$to/$file" "$from/$file"
done
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$to/bench/peers" "$to/tests/gpu"
ln -sf ../weir-hdf5 "$to/bench/weir-hdf5"
ln -sf ../weir-hdf5 "$to/tests/weir-hdf5"
cp "$root"/bench/gpu_*.py "$root"/bench/simplejpeg_side.py "$to/bench"
cp "$root"/bench/peers/*.py "$to/bench/peers"
cp "$root"/tests/gpu/{gpu.sh,ranks.sh} "$root"/tests/gpu/*.py "$to/tests/gpu"
for file in "$root"/extras/*/bench/*.py; do
    [ ! -f "$file" ] || cp "$file" "$to/bench"
done
for file in "$root"/extras/*/tests/gpu/*.{sh,py}; do
    [ ! -f "$file" ] || cp "$file" "$to/tests/gpu"
done

# The reference BLAS, for the CPU side of test_compute on machines without one.
mkdir -p "$to/lib"
for library in libblas.so.3 libgfortran.so.5 libquadmath.so.0; do
    file=$(ldconfig -p | sed -n "s/.*$library .*=> //p" | head -1)
    if [ $library = libblas.so.3 ]; then
        file=$(find /usr/lib -path '*/blas/libblas.so.3' | head -1)
    fi
    if [ -f "$file" ]; then
        strip --strip-unneeded -o "$to/lib/$library" "$file"
    else
        echo "pack.sh: no $library here: test_compute will be skipped where there is no BLAS" >&2
    fi
done

# simplejpeg_side.py looks in this folder, which has the wheels for these Python versions; the machine must have numpy.
pythons="3.11 3.12 3.13" package=$(grep ^simplejpeg== "$root/bench/peers/requirements.txt")
site=$to/bench/site-packages wheels=$to/wheels.part

fetch() {
    for python in $pythons; do
        python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --python-version "$python" \
            -d "$wheels" "$package" || return
    done
}

if [ "$(cat "$site/.packed" 2>/dev/null)" != "$package $pythons" ]; then
    rm -rf "$site" "$wheels"
    if fetch; then
        for wheel in "$wheels"/*.whl; do
            python3 -m zipfile -e "$wheel" "$site"
        done
        echo "$package $pythons" >"$site/.packed"
    else
        echo "pack.sh: pip cannot download $package: bench/limits will leave it out there" >&2
    fi
    rm -rf "$wheels"
fi
du -sh "$to"
