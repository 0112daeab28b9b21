#!/bin/bash
# weir convert, and swapped colours that a dataset records: copies of every layout in every kind of HDF5 give the same samples as their source.
# Usage: WEIR_PROGRAM=build/release/weir tests/test_convert.sh
# shellcheck source=tests/shell_checks.sh
. "$(dirname "$0")/shell_checks.sh"

# sums DATA OUT: the checksums of all samples in the order of the files.
sums() {
    "$weir" run "$1" --no-shuffle --batch-size 4 --num-workers 2 --num-epochs 1 --train-split 1 --checksums "$2" >/dev/null 2>"$work/err" </dev/null
}

# same SOURCE COPY: both give the same samples.
same() {
    rm -f "$work/source.sums" "$work/copy.sums"
    sums "$1" "$work/source.sums"
    sums "$2" "$work/copy.sums"
    check "$2 gives the samples of $1" cmp -s "$work/source.sums" "$work/copy.sums"
}

if ! "${python:=/usr/bin/python3}" -c 'import h5py, numpy' 2>/dev/null; then
    echo "no h5py: skipped"
    [ -n "${CI:-}" ] && exit 1
    exit 77
fi

for format in act act-jpeg agilex astrobench robotwin robomind robomimic; do
    source=$work/$format
    "$weir" synth "$source" --format "$format" --episodes 2 --steps 9 --size 32x24 >/dev/null || exit 1
    for to in hdf5 hdf5-vlen; do
        run 0 convert "$source" "$work/$format-$to" --to "$to"
        same "$source" "$work/$format-$to"
        check "nothing is left of $format-$to" [ -z "$(find "$work" -name '*.partial*' -o -name '.*.hdf5*')" ]
    done
done
for format in act act-jpeg agilex astrobench robomimic; do
    run 0 convert "$work/$format" "$work/$format.weir" --to packed
    same "$work/$format" "$work/$format.weir"
    run 0 convert "$work/$format" "$work/$format.zarr" --to zarr --chunk-frames 4
    same "$work/$format" "$work/$format.zarr"
done
/usr/bin/python3 "$(dirname "$0")/clients/read_packed.py" "$work/act-jpeg.weir" "$work"/act-jpeg/*.hdf5 >"$work/out" 2>"$work/err"
status=$?
[ "$status" -eq 77 ] || check "a reader written from docs/packed.md alone finds the source's frames" [ "$status" -eq 0 ]
for format in act agilex robomimic; do
    run 0 convert "$work/$format" "$work/$format-gzip" --to hdf5-gzip
    same "$work/$format" "$work/$format-gzip"
    run 0 convert "$work/$format-gzip" "$work/$format-back" --to hdf5
    same "$work/$format" "$work/$format-back"
done

for format in act-jpeg astrobench; do
    run 0 convert "$work/$format" "$work/$format-tfrecord" --to tfrecord
    same "$work/$format" "$work/$format-tfrecord"
    run 0 convert "$work/$format-tfrecord" "$work/$format-again" --to hdf5
    same "$work/$format" "$work/$format-again"
done
run 1 convert "$work/act" "$work/no" --to tfrecord
one_line

run 1 convert "$work/act" "$work/act-gzip" --to hdf5
err "weir convert: $work/act-gzip: exists"
one_line
run 1 convert "$work/act-jpeg" "$work/no" --to hdf5-gzip
one_line
# ---- red and blue that are swapped, and recorded ----
# swapped ARGUMENT...: batches of the copy that is recorded as bgr are those of its source with red and blue swapped.
swapped() {
    "$weir" run "$work/act-jpeg" "${settings[@]}" --color bgr --checksums "$work/source.sums" "$@" >/dev/null 2>"$work/err"
    "$weir" run "$work/bgr" "${settings[@]}" --color rgb --checksums "$work/copy.sums" "$@" >/dev/null 2>>"$work/err"
    check "bgr is honoured: $*" cmp -s "$work/source.sums" "$work/copy.sums"
    check "there are checksums" [ "$(grep -c . "$work/copy.sums")" -gt 3 ]
}
settings=(--no-shuffle --batch-size 4 --num-workers 2 --num-epochs 1 --train-split 1)
record() { "$python" -c 'import sys, h5py
h5py.File(sys.argv[1], "r+").attrs["weir_color"] = sys.argv[2]' "$1" "$2"; }
cp -r "$work/act-jpeg" "$work/bgr"
record "$work/bgr/episode_0.hdf5" bgr
run 1 run "$work/bgr"
err "recorded as"
one_line
record "$work/bgr/episode_1.hdf5" bgr
run 0 info "$work/bgr"
out "colors: red and blue of the frames are swapped"
run 0 info "$work/bgr" --json
out '"color": "bgr"'
swapped
swapped --output f32 --layout nchw
# Each value keeps its own mean: those of the source, whose colours are the other way round, are given so.
"$weir" run "$work/act-jpeg" "${settings[@]}" --color bgr --output f32 --mean .3,.2,.1 --std 3,2,1 --checksums "$work/source.sums" >/dev/null 2>"$work/err"
"$weir" run "$work/bgr" "${settings[@]}" --output f32 --mean .1,.2,.3 --std 1,2,3 --checksums "$work/copy.sums" >/dev/null 2>>"$work/err"
check "means follow their colours" cmp -s "$work/source.sums" "$work/copy.sums"
swapped --index "$work/index"
swapped --index "$work/index"
if [ -n "${WEIR_FAKE_CUDA_MODULE:-}" ]; then
    export WEIR_CUDA_MODULE=$WEIR_FAKE_CUDA_MODULE
    swapped --device cuda
    swapped --device cuda --output f32 --layout nchw
    swapped --device cuda --decoder nvjpeg --output f16
    unset WEIR_CUDA_MODULE
fi

finish
