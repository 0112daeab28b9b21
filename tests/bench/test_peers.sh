#!/bin/bash
# bench/peers runs, compares pixels before measuring, and reports missing peers; speed is not checked. Needs Python 3.11
# with h5py and numpy; the thread pool runs if cv2 or simplejpeg is installed, and must be left out otherwise.
# WEIR_PROGRAM=build/release/weir WEIR_LIMITS=build/release/bench/limits tests/bench/test_peers.sh
cd "$(dirname "$0")/../.." || exit 1
python=""
for candidate in build/peers-venv/bin/python /usr/bin/python3 python3; do
    if "$candidate" -c 'import sys, h5py, numpy; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$(command -v "$candidate")
        break
    fi
done
if [ -z "$python" ]; then
    echo "skipped: no Python 3.11 with h5py and numpy here"
    exit 77
fi
# shellcheck source=tests/tools/shell_checks.sh
. tests/tools/shell_checks.sh
limits=$(realpath "${WEIR_LIMITS:?set WEIR_LIMITS to bench/limits}")

peers() {
    local expected=$1 status
    shift
    "$python" bench/peers/run.py --no-install --weir "$weir" --limits "$limits" --data "$work/data" --size 64x48 \
        --episodes 2 --steps 8 --workers 1 --seconds 0.05 "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    check "run.py $* exits with $expected (was $status)" [ "$status" -eq "$expected" ]
}

has() { "$python" -c "import $1" 2>/dev/null; }

# shellcheck disable=SC2317 # called by check, as is compare below
# holds CODE: a Python condition on `found`, the last run's JSON.
holds() {
    "$python" -c "import json, sys; found = json.load(open(sys.argv[1])); assert $1, found" "$work/peers.json"
}

peers 0 --qualities 90 --rounds 2 --peers pool --json "$work/peers.json"
out "quality 90: images/s"
out "raw libjpeg-turbo"
out "weir u8 / raw libjpeg-turbo, 1 workers"
check "every side has a rate for each round" holds \
    'all(len(l["rates"]) == 2 and min(l["rates"]) > 0 for l in found["results"][0]["loaders"])'
check "raw and both of weir's outputs are listed" holds \
    '{"raw", "weir u8", "weir f32-nchw"} <= {l["name"] for l in found["results"][0]["loaders"]}'
if has cv2 || has simplejpeg; then
    out "weir u8 / thread pool, 1 workers"
    err "pixels differ from Weir's by 0.0"
else
    out "Python thread pool, u8 nhwc: left out: No module named"
    no_out "weir u8 / thread pool"
fi
out "weir u8 / raw libjpeg-turbo"

# The pixel comparison rejects other pixels.
cat >"$work/difference.py" <<'PY'
import sys
sys.path.insert(0, "bench/peers")
import check, run
limits, data, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
kind = [kind for kind in run.kinds(1) if kind.name == "pool"][0]
ours = check.weir_batches(limits, {"data": data, "batch_size": 4})["u8"]
theirs = [ours[0] // 2 + step, *ours[1:]]
print(check.difference(kind, {"decoder": "simplejpeg"}, theirs, [ours[0] // 2, *ours[1:]]))
PY
# shellcheck disable=SC2317
compare() {
    "$python" "$work/difference.py" "$limits" "$work/data/64x48-q90-2x8" "$1" >"$work/out" 2>"$work/err"
}
check "pixels one step away pass" compare 1
out "1.0"
check "pixels two steps away do not" eval '! compare 2'
err "pool: pixels differ from Weir's by 2.00 of 255"

peers 2 --rounds 0
peers 1 --weir "$work/nothing"
one_line
err "$work/nothing does not exist"
finish
