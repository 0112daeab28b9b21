#!/bin/bash
# weir convert: copies of every layout in every kind of HDF5 give the same samples as their source.
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

for format in act act-jpeg agilex astrobench robotwin robomind robomimic; do
    source=$work/$format
    "$weir" synth "$source" --format "$format" --episodes 2 --steps 9 --size 32x24 >/dev/null || exit 1
    for to in hdf5 hdf5-vlen; do
        run 0 convert "$source" "$work/$format-$to" --to "$to"
        same "$source" "$work/$format-$to"
        check "nothing is left of $format-$to" [ -z "$(find "$work" -name '*.partial*' -o -name '.*.hdf5*')" ]
    done
done
for format in act agilex robomimic; do
    run 0 convert "$work/$format" "$work/$format-gzip" --to hdf5-gzip
    same "$work/$format" "$work/$format-gzip"
    run 0 convert "$work/$format-gzip" "$work/$format-back" --to hdf5
    same "$work/$format" "$work/$format-back"
done

run 1 convert "$work/act" "$work/act-gzip" --to hdf5
err "weir convert: $work/act-gzip: exists"
one_line
run 1 convert "$work/act-jpeg" "$work/no" --to hdf5-gzip
one_line
finish
