#!/bin/bash
# Formats all C and CUDA sources; with --check, fails if any is not formatted: .ci/format.sh [--check]
set -eu
cd "$(dirname "$0")/.."
options=(-i)
[ "${1:-}" != --check ] || options=(--dry-run -Werror)
find . -name build -prune -o -name '*.c' -print0 -o -name '*.h' -print0 -o -name '*.cu' -print0 -o -name '*.cuh' -print0 |
    xargs -0 clang-format "${options[@]}"
