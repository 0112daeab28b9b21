#!/bin/bash
# Everything that needs a GPU, in one go: the unit tests, and weir run interleaved with the raw limits of the JPEG
# engines and the bus. The last lines list failures.
#
#     make nvjpeg; .ci/hdf5.sh build/hdf5; .ci/dav1d.sh build/dav1d; cmake --preset portable && cmake --build --preset portable      (where the -dev packages are)
#     tests/gpu/pack.sh build/portable build/gpu                                   (one folder to copy)
#     build/gpu/tests/gpu/gpu.sh build/gpu [PART...]       (on the GPU machine: CUDA, nvJPEG, libhdf5 1.10, Python 3.11)
#
# Parts: tests release (the archive and the wheel of "make release", in $RELEASE) clocks compare step profile memory failures (the default, about 8 minutes on 16 cores), video (1 minute; LeRobot
# datasets in $VIDEO, and libavcodec), sanitizer (2 minutes) and motion (2 minutes). clocks is for docs/internals/kernel_clock.md: %globaltimer's step, accuracy and cost of laps,
# the tables of the preparing kernel, its time with and without clocks, and the sum of its stages compared with CUPTI's
# time. motion is for extras/motion/README.md: the minimum time of a step, and steps of both variants, compared with torch if it
# is installed.
#
# Full logs go to $OUT (default /tmp/weir-gpu). ROUNDS sets the rounds of compare, PEERS=all adds the other loaders (3
# more minutes), COMPARE holds further options of bench/gpu_compare.py. Libraries that the machine lacks may be put into
# BUILD_FOLDER/lib.
set -uo pipefail
export COLUMNS=1000 # one line per finding
build=${1:?usage: tests/gpu/gpu.sh BUILD_FOLDER [PART...]}
shift
parts=" ${*:-tests release clocks compare step profile memory failures} "
export LD_LIBRARY_PATH=$build/lib:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
out=${OUT:-/tmp/weir-gpu}
weir=$build/weir
here=$(cd "$(dirname "$0")" && pwd)
bench=$here/../../bench
mkdir -p "$out"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
: >"$out/failed.txt"

fault() { echo "FAILED: $*" | tee -a "$out/failed.txt"; }
head_line() { echo "== $* (at $SECONDS s)"; }
wants() { [[ $parts == *" $1 "* ]]; }

# tried NAME COMMAND...: writes the output to a file and prints its end.
tried() {
    local name=$1 rc=0
    shift
    "$@" >"$out/$name.txt" 2>&1 || rc=$?
    tail -n "${TAIL:-12}" "$out/$name.txt"
    [ $rc -eq 0 ] || fault "$name ($rc)"
}

# run OPTION...: weir run on the GPU, with a timeout.
run() { timeout "${LIMIT_S:-60}" "$weir" run --device cuda "$@"; }

synth() { "$weir" synth "$@" >>"$out/synth.txt" 2>&1 || { tail -5 "$out/synth.txt"; exit 1; }; }

head_line "the machine"
if ldd "$weir" "$build/libweir_cuda.so" | grep "not found"; then
    fault "libraries are missing"
    exit 1
fi
TAIL=40 tried doctor "$weir" doctor
grep -E '^  (cuda|nvjpeg|cupti|gpu)[a-z0-9 ]* no ' "$out/doctor.txt" && fault "doctor reports missing parts"
: >"$out/synth.txt"
synth "$data/q95" --format act-jpeg --episodes 6 --steps 60 --cameras top,left,right,low
synth "$data/q50" --format act-jpeg --quality 50 --episodes 6 --steps 60 --cameras top,left,right,low
synth "$data/raw" --format act --episodes 4 --steps 40 --cameras top,left,right,low
synth "$data/small" --format act-jpeg --episodes 4 --steps 40 --cameras top,wrist --size 64x48

if wants tests; then
    for name in test_gpu_ops test_gpu_upload test_gpu_jpeg test_gpu_order test_gpu_lost test_gpu_video test_cupti test_compute test_motion_cuda; do
        [ -f "$build/tests/$name" ] || continue # an extra that was not built
        head_line "$name"
        arguments=()
        [ "$name" != test_gpu_jpeg ] || arguments=(3000)
        tried "$name" timeout 120 "$build/tests/$name" "${arguments[@]}"
    done
    head_line "the same batches for every decoder and number of workers"
    # --prefetch 8 keeps so few frames in flight that hybrid never uses the multiprocessors, whose bits differ.
    for options in "--decoder turbo --device cpu" "--decoder turbo" "--decoder nvjpeg" "--decoder auto" \
        "--decoder hybrid --prefetch 8" "--decoder hybrid --prefetch 8 --deterministic" \
        "--decoder nvjpeg --num-workers 0" "--decoder hybrid --prefetch 8 --num-workers 3"; do
        rm -f "$data/sums"
        # shellcheck disable=SC2086
        run "$data/q95" --dtype f32 --image-layout nchw --obs-history 2 --checksums "$data/sums" $options \
            >"$out/sums.txt" 2>&1 || { tail -5 "$out/sums.txt"; fault "$options"; }
        echo "$(sha256sum "$data/sums" | cut -c1-16) $options"
    done | tee "$out/equal.txt"
    [ "$(cut -c1-16 "$out/equal.txt" | sort -u | wc -l)" -eq 1 ] || fault "the batches differ"
    head_line "JPEGs with extraneous bytes have the same pixels"
    if python3 "$here/flawed_frames.py" "$data/flawed" 2>"$out/flawed.txt"; then
        for options in "--device cpu" "--decoder nvjpeg" "--decoder hybrid --prefetch 8"; do
            # shellcheck disable=SC2086
            run "$data/flawed" --dtype u8 --train-split 1 --checksums "$data/sums" $options >"$out/flawed.txt" 2>&1 ||
                { tail -5 "$out/flawed.txt"; fault "flawed frames, $options"; }
            echo "sum $(sha256sum "$data/sums" | cut -c1-16) $options"
            grep -E '^(decoded|warnings)' "$out/flawed.txt"
        done | tee "$out/flawed-sums.txt"
        [ "$(grep '^sum ' "$out/flawed-sums.txt" | cut -c1-20 | sort -u | wc -l)" -eq 1 ] || fault "flawed frames: the batches differ"
    else
        echo "skipped: $(tail -1 "$out/flawed.txt")"
    fi
    for again in 1 2; do
        run "$data/q95" --dtype u8 --num-epochs 4 --batch-size 32 --checksums "$data/sums" --decoder hybrid --deterministic \
            --every 0 >"$out/fixed.txt" 2>&1 || { tail -5 "$out/fixed.txt"; fault "hybrid --deterministic"; }
        echo "$(sha256sum "$data/sums" | cut -c1-16) hybrid --deterministic, time $again"
        grep ^decoded "$out/fixed.txt"
    done | tee "$out/fixed-sums.txt"
    [ "$(grep 'deterministic, time' "$out/fixed-sums.txt" | cut -c1-16 | sort -u | wc -l)" -eq 1 ] || fault "a run is not reproducible"
fi

if wants release && [ -n "${RELEASE:-}" ]; then
    head_line "the archive and the wheel"
    if ! python3 -m venv --system-site-packages "$data/venv" ||
        ! "$data/venv/bin/pip" install --quiet --no-index --no-deps "$RELEASE"/*.whl; then
        fault "the wheel cannot be installed"
    fi
    tar -xzf "$RELEASE"/weir-*-linux-x86_64.tar.gz -C "$data"
    for program in "$data"/weir-*-linux-x86_64/bin/weir "$data/venv/bin/weir"; do
        "$program" doctor | grep -E '^  (cuda|nvjpeg|cupti|gpu)'
        for decoder in turbo nvjpeg; do
            rm -f "$data/release-sums"
            "$program" run "$data/q95" --device cuda --decoder $decoder --dtype f32 --image-layout nchw --obs-history 2 \
                --checksums "$data/release-sums" >"$out/release.txt" 2>&1 || { tail -5 "$out/release.txt"; fault "$program"; }
            run "$data/q95" --decoder $decoder --dtype f32 --image-layout nchw --obs-history 2 --checksums "$data/sums" >/dev/null 2>&1
            cmp "$data/release-sums" "$data/sums" || fault "$program: other batches with $decoder"
        done
    done
    "$data/venv/bin/python" - "$data/q95" <<'PYTHON' || fault "weir.Loader on the GPU"
import sys, weir
with weir.Loader(sys.argv[1], batch_size=8, device="cuda", decoder="nvjpeg") as loader:
    shapes = {tuple(batch["image"].shape) + (str(batch["image"].device),) for batch in loader}
print("weir.Loader", weir.__version__, shapes)
PYTHON
fi

if wants clocks; then
    head_line "clocks inside kernels"
    TAIL=60 tried test_device_clock timeout 60 "$build/tests/test_device_clock"
    [ ! -f "$build/tests/test_clock_cost" ] || TAIL=200 tried test_clock_cost timeout 120 "$build/tests/test_clock_cost"
    head_line "the preparing kernel in a run, by its clocks and by CUPTI"
    for decoder in turbo nvjpeg; do
        rm -rf "$out/clocks-$decoder"
        TAIL=1 tried "clocks-$decoder" run "$data/q95" --decoder $decoder --dtype f16 --image-layout nchw --batch-size 32 \
            --num-epochs 4 --every 0 --profile "$out/clocks-$decoder" --schedule wait=2,warmup=1,active=6,repeat=1
        sed -n '/^clocks inside/,$p' "$out/clocks-$decoder.txt"
        grep -q '^clocks inside .*prepare_clocked_kernel' "$out/clocks-$decoder.txt" || fault "no clocks with $decoder"
        TAIL=0 tried "clocks-$decoder-report" "$weir" report "$out/clocks-$decoder"/*.json.gz --export-clocks \
            "$out/clocks-$decoder.csv"
        grep -v '[0-9]$' "$out/clocks-$decoder.csv"
    done
fi

if wants compare; then
    head_line "weir run and the raw limits, interleaved"
    # shellcheck disable=SC2086
    TAIL=60 tried compare timeout 590 python3 "$bench/gpu_compare.py" --build "$build" --data "$data" \
        --rounds "${ROUNDS:-5}" --peers "${PEERS:-none}" --json "$out/compare.json" ${COMPARE:-}
fi

if wants step; then
    head_line "a consumer that is busy for 20 ms per batch"
    for decoder in turbo nvjpeg hybrid; do
        TAIL=1 tried "step-$decoder" run "$data/q95" --dtype f16 --image-layout nchw --train-split 1 --step-ms 20 \
            --num-epochs 4 --batch-size 16 --decoder $decoder --log "$out/step-$decoder.jsonl"
        grep -E '^epoch|^GPU|^decoded' "$out/step-$decoder.txt"
        TAIL=4 tried "step-$decoder-judged" python3 "$here/judge.py" step "$out/step-$decoder.jsonl"
    done
fi

if wants profile; then
    head_line "windows while several threads use the GPU"
    TAIL=30 tried profile run "$data/q95" --decoder hybrid --dtype f16 --image-layout nchw --num-epochs 3 --batch-size 8 --every 0 \
        --step-ms 2 --profile "$out/traces" --schedule wait=1,warmup=1,active=3,repeat=3
    # CUPTI crashed in 4 of 25 such runs when it was detached while another thread was in the driver.
    for ((i = 1; i <= 20; i++)); do
        rm -rf "$out/again"
        run "$data/q95" --decoder hybrid --num-epochs 2 --every 0 --profile "$out/again" \
            --schedule wait=1,warmup=1,active=3,repeat=3 >"$out/again.txt" 2>&1 || fault "profile, time $i"
    done
    rm -rf "$out/again"
fi

if wants memory; then
    head_line "10,000 batches"
    LIMIT_S=120 TAIL=8 tried memory run "$data/small" --decoder hybrid --dtype f16 --image-layout nchw --train-split 1 \
        --batch-size 4 --num-epochs 250 --every 25 --log "$out/memory.jsonl"
    tried memory-judged python3 "$here/judge.py" memory "$out/memory.jsonl"
fi

# Every dataset of $VIDEO: the same batches from the GPU's video engines as from the CPU, and the rates of both.
if wants video && [ -n "${VIDEO:-}" ]; then
    for folder in "$VIDEO"/*/meta; do
        folder=${folder%/meta}
        head_line "$folder"
        for decoder in turbo auto; do
            rm -f "$data/sums-$decoder"
            run "$folder" --decoder $decoder --num-workers 4 --seed 1 --checksums "$data/sums-$decoder" >"$out/video.txt" 2>&1 ||
                { tail -5 "$out/video.txt"; fault "$folder with $decoder"; }
        done
        grep ^videos: "$out/video.txt"
        cmp "$data/sums-turbo" "$data/sums-auto" || fault "$folder: other batches from the GPU"
    done
    for round in 1 2 3; do
        for folder in "$VIDEO"/rates-*; do
            for options in "turbo --num-workers 16" "auto --num-workers 8" "auto --num-workers 16" "auto --num-workers 32"; do
                # shellcheck disable=SC2086
                run "$folder" --seconds 3 --decoder $options >"$out/video.txt" 2>&1 || fault "$folder $options"
                echo "round $round, $(basename "$folder"), $options: $(grep -o '[0-9.]* images/s' "$out/video.txt" | head -1)"
            done
        done
    done
fi

if wants failures; then
    head_line "failures, one clear line each"
    for options in "--batch-size 60000" "--batch-size 4096 --prefetch 8" "--device cuda:7"; do
        # shellcheck disable=SC2086
        run "$data/q95" --dtype f32 $options >"$out/failure.txt" 2>&1
        [ $? -eq 1 ] || fault "$options does not exit with 1"
        tail -1 "$out/failure.txt"
    done
    WEIR_CUDA_MODULE=/nowhere/libweir_cuda.so run "$data/q95" 2>&1 | tail -1
fi

if wants motion && [ -f "$build/bench/motion_floor" ]; then
    export WEIR_CUDA_MODULE=$build/libweir_cuda.so
    head_line "motion: the minimum time of a step"
    tried motion-floor timeout 60 "$build/bench/motion_floor" 4096 1000000
    for envs in 4096 1000000; do
        head_line "motion: a step of $envs environments"
        TAIL=14 tried motion-$envs timeout 120 "$build/bench/motion_sides" --cuda --num-envs $envs --rounds 20
        python3 -c "import torch" 2>/dev/null || continue
        TAIL=8 tried motion-torch-$envs timeout 240 python3 "$bench/motion_torch.py" --device cuda --num-envs $envs \
            --rounds 20 --build "$build"
    done
    head_line "motion: weir motion"
    for variant in ops fused; do
        TAIL=24 tried motion-$variant "$weir" motion --device cuda --variant $variant --trace_path "$out/motion-$variant"
    done
    unset WEIR_CUDA_MODULE
fi

# sanitized NAME TOOL PROGRAM...
sanitized() {
    local name=$1 tool=$2 options=(--target-processes application-only) # not the HDF5 helper processes
    shift 2
    [ "$tool" != memcheck ] || options+=(--report-api-errors no) # failed allocations are expected
    head_line "compute-sanitizer $tool, $name"
    TAIL=3 tried "$tool-$name" timeout 120 compute-sanitizer --tool "$tool" --error-exitcode 9 "${options[@]}" "$@"
}

if wants sanitizer; then
    for tool in memcheck racecheck; do
        for decoder in turbo nvjpeg hybrid; do
            sanitized run-$decoder $tool "$weir" run "$data/small" --device cuda --decoder $decoder --dtype f16 \
                --image-layout nchw --max-batches 3 --every 0
        done
        sanitized ops $tool "$build/tests/test_gpu_ops" few
        sanitized clocks $tool "$build/tests/test_device_clock" untimed
        for name in test_clock_cost test_motion_cuda; do
            [ ! -f "$build/tests/$name" ] || sanitized "$name" $tool "$build/tests/$name" few
        done
        sanitized jpeg $tool "$build/tests/test_gpu_jpeg" 20
    done
fi

failed=$(wc -l <"$out/failed.txt")
head_line "summary: $failed failed"
cat "$out/failed.txt"
echo "done in $SECONDS s; logs in $out"
exit $((failed > 0))
