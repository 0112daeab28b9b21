#!/bin/bash
# Gathers what tests/gpu/*.sh need of a portable build into one small folder, to be copied to a machine with a GPU:
#
#     make nvjpeg; cmake --preset portable && cmake --build --preset portable
#     tests/gpu/pack.sh build/portable build/gpu
# The scripts come along: the folder needs nothing of this tree. build/gpu/tests/gpu/gpu.sh build/gpu runs it there.
set -eu
from=${1:?usage: tests/gpu/pack.sh BUILD_FOLDER TO_FOLDER} to=${2:?usage: tests/gpu/pack.sh BUILD_FOLDER TO_FOLDER}
files=(weir libweir_cuda.so bench/limits bench/prof bench/handoff bench/nvjpeg bench/pinned_read
    tests/test_gpu_ops tests/test_gpu_feed tests/test_gpu_jpeg tests/test_gpu_lost tests/test_cupti tests/jpeg_both)
for file in "${files[@]}"; do
    mkdir -p "$to/$(dirname "$file")"
    strip --strip-debug -o "$to/$file" "$from/$file"
done
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$to/bench/peers" "$to/tests/gpu"
cp "$root"/bench/gpu_*.py "$to/bench"
cp "$root"/bench/peers/*.py "$to/bench/peers"
cp "$root"/tests/gpu/{gpu.sh,ranks.sh,judge.py} "$to/tests/gpu"
du -sh "$to"
