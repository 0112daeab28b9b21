#!/bin/bash
# bench/limits: its three sides, how it describes frames, a missing or broken Python side; speed is not checked.
# WEIR_PROGRAM=build/release/weir WEIR_LIMITS=build/release/bench/limits tests/bench/test_limits.sh
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tools/shell_checks.sh
. tests/tools/shell_checks.sh
limits=$(realpath "${WEIR_LIMITS:?set WEIR_LIMITS to bench/limits}")

# limits STATUS ARGUMENT...: a minimal run on small data.
limits() {
    local expected=$1 status
    shift
    "$limits" --data "$work/data" --workers 1 --rounds 1 --seconds 0.05 "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    check "limits $* exits with $expected (was $status)" [ "$status" -eq "$expected" ]
}

# shellcheck disable=SC2317 # called by check
# holds CODE: a Python condition on `c`, the comparisons in the last run's JSON, and `d`, its datasets.
holds() {
    python3 -c "import json, sys; found = json.load(open(sys.argv[1])); c, d = found['comparisons'], found['datasets']
assert $1, found" "$work/out"
}

# fake LINE...: creates the helper $work/fake, which prints these lines and then reads until it is stopped.
fake() {
    printf '#!/bin/sh\nprintf "%%s\\n"' >"$work/fake"
    printf " '%s'" "$@" >>"$work/fake"
    printf '\nexec cat >/dev/null\n' >>"$work/fake"
    chmod +x "$work/fake"
}

# broken WORDS: limits fails with one line that contains WORDS.
broken() {
    limits 1 --simplejpeg "$work/fake"
    grep '^limits: ' "$work/err" >"$work/last"
    mv "$work/last" "$work/err"
    one_line
    err "$1"
}

run 0 synth "$work/data" --episodes 1 --steps 4 --size 64x48 --quality 95
run 0 synth "$work/low" --episodes 1 --steps 4 --size 64x48 --quality 50
mkdir "$work/mixed"
cp "$work/data/episode_0.hdf5" "$work/mixed"
cp "$work/low/episode_0.hdf5" "$work/mixed/episode_1.hdf5"

# ---- without simplejpeg ----
limits 0 --simplejpeg none --decoder turbo,turbo-original
out "quality 95"
out "simplejpeg is left out: --simplejpeg none"
out "turbo / turbo-original: "
count '(PASS|MISS) \(>= 1\.40\)' 1
no_out "simplejpeg/raw"
limits 0 --simplejpeg none --formats u8,u8@32x24 --json
check "a format with a size" holds "[each['format'] for each in c] == ['u8', 'u8@32x24']"
for format in u8@32 u8@0x24 u8@32x24x u9@32x24; do
    limits 2 --formats "$format"
    err "such as u8,f32-nchw@224x224"
done
limits 0 --simplejpeg none --data "$work/low" --formats u8,f32-nchw
out "quality 50"
count '(PASS|MISS) \(>= 1\.30\)' 1
count '(PASS|MISS) \(>= 1\.15\)' 1
limits 0 --simplejpeg none --data "$work/mixed" --json
check "frames of two qualities have no quality and no target" holds \
    'd[0]["quality"] is None and c[0]["weir_over_raw_target"] is None'
limits 0 --raw-only --json
check "raw alone" holds '"simplejpeg_left_out" not in d[0] and c[0]["raw_images_per_s"]["median"] > 0'
limits 2 --quality 95,50
one_line
limits 2 --quality 0
err "limits: --quality accepts up to 8 numbers"
limits 2 --decoder turbo,nothing
err "nothing"
limits 1 --simplejpeg "$work/nowhere"
err "$work/nowhere: No such file or directory; install it with bench/peers/setup.sh numpy simplejpeg"

# ---- a helper that misbehaves ----
fake "left out: No module of this name"
broken "simplejpeg: No module of this name ($work/fake); install it with bench/peers/setup.sh numpy simplejpeg"
fake hello
broken 'answered "hello" instead of "ready"'
printf '#!/bin/sh\necho first >&2\necho the reason >&2\n' >"$work/fake"
broken "ended without an answer: the reason"
printf '#!/bin/sh\necho ready\n' >"$work/fake"
broken "answered \"ready\""
printf '#!/bin/sh\necho ready 1\n' >"$work/fake"
broken "ended"
for answer in "12 fast" "12" "" "0 1" "nan 1" "1000 0.000001" "1000 1 1" "a frame does not decode: why"; do
    fake "ready 1" "$answer"
    broken "answered \"$answer\" instead of the images and seconds"
done
fake "ready 1" "$(printf '%0600d' 0)"
broken "sent a line that is too long"

# ---- the real helper, with a simplejpeg that decodes nothing ----
mkdir -p "$work/modules/simplejpeg" "$work/workers"
cat >"$work/modules/simplejpeg/__init__.py" <<'PY'
import os
from . import _jpeg
__version__ = "1.2.3"


def decode_jpeg(data, colorspace, fastdct, fastupsample, buffer):
    assert data[:2] == b"\xff\xd8" and data[-2:] == b"\xff\xd9" and colorspace == "RGB"
    assert buffer.shape == (48, 64, 3) and not fastdct and not fastupsample
    if "BROKEN" in os.environ:
        raise ValueError("no more of these\nand no more words")
    open(f"{os.environ['WORKERS']}/{os.getpid()}", "a").close()
PY
echo '"libjpeg-turbo version 9.8.7 (build 0)"' >"$work/modules/simplejpeg/_jpeg.py"
export PYTHONPATH=$work/modules WORKERS=$work/workers
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    limits 0 --simplejpeg /usr/bin/python3 --workers 1,3 --json
    check "simplejpeg is named" holds 'd[0]["simplejpeg"].startswith("simplejpeg 1.2.3 (libjpeg-turbo 9.8.7), Python 3.")'
    check "simplejpeg is measured once per row" holds 'all(x["simplejpeg_images_per_s"]["n"] == 1 and
        x["weir_over_simplejpeg_target"] == 1.3 and x["simplejpeg_over_raw"]["median"] > 0 for x in c) and len(c) == 2'
    check "as many processes as workers" [ "$(find "$WORKERS" -type f | wc -l)" -eq 3 ]
    BROKEN=1 limits 1 --simplejpeg /usr/bin/python3
    err 'answered "a frame does not decode: no more of these" instead of the images'
else
    echo "skipped: the helper: no /usr/bin/python3 with numpy here"
fi
unset PYTHONPATH WORKERS

# ---- simplejpeg ----
limits 0
if grep -q "^peer:    simplejpeg is left out" "$work/out"; then
    sed -n 's/^peer:    simplejpeg is left out/skipped: simplejpeg/p' "$work/out"
    out "install it with bench/peers/setup.sh numpy simplejpeg (or make bench-peers)"
else
    check "its libjpeg-turbo is version 3" grep -q '^peer:    simplejpeg 1.*(libjpeg-turbo 3\.' "$work/out"
    out "simplejpeg/raw"
    count '(PASS|MISS) \(>= 1\.30\)' 1
fi
finish
