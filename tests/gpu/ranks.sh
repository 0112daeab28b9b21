#!/bin/bash
# Two ranks on one machine with two GPUs: the images/s of each when both run at once, compared with one rank alone and
# with the raw limits of two processes at once. Trials are interleaved in ROUNDS rounds; ends with a table of medians.
#
#     make nvjpeg; .ci/hdf5.sh build/hdf5; .ci/dav1d.sh build/dav1d; cmake --preset portable && cmake --build --preset portable      (where the -dev packages are)
#     tests/gpu/pack.sh build/portable build/gpu                                   (one folder to copy)
#     build/gpu/tests/gpu/ranks.sh build/gpu                      (on a machine with two GPUs, otherwise as for gpu.sh)
#
# Takes five to six minutes with ROUNDS=3 (the default). Logs go to $OUT (default /tmp/weir-ranks). Failures are listed
# at the end; any makes the exit status 1. SIDES selects trials by words that their names begin with (default all). For
# slow machines: BATCHES per epoch (default 135), and LONGER_S, seconds added to each of Weir's trials.
set -uo pipefail
export COLUMNS=1000 # one line per finding
build=$(realpath "${1:?usage: tests/gpu/ranks.sh BUILD_FOLDER}")
export LD_LIBRARY_PATH=$build/lib:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
out=${OUT:-/tmp/weir-ranks} rounds=${ROUNDS:-3} sides=${SIDES:-} longer_s=${LONGER_S:-0}
weir=$build/weir
mkdir -p "$out"
rm -f "$out"/*.txt "$out"/*.jsonl
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
: >"$out/failed.txt"
: >"$out/rates.txt" # NAME RANK IMAGES_PER_S, one line per trial

fault() { echo "FAILED: $*" | tee -a "$out/failed.txt"; }
head_line() { echo "== $* (at $SECONDS s)"; }

# ---- the machine ----

mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
join() { local IFS=,; echo "$*"; }
half=$((${#cpus[@]} / 2))
halves=("$(join "${cpus[@]:0:half}")" "$(join "${cpus[@]:half:half}")")
head_line "the machine: ${#cpus[@]} cores, halves ${halves[*]}"
"$weir" doctor >"$out/doctor.txt" 2>&1
grep -E '^  (cores|memory|gpu[ 0-9]*|cuda) ' "$out/doctor.txt"
for folder in /sys/devices/system/node/node[0-9]*; do
    [ ! -r "$folder/cpulist" ] || echo "  ${folder##*/}: CPUs $(cat "$folder/cpulist")"
done
for folder in /sys/bus/pci/devices/*; do # NVIDIA's display and 3D controllers
    [ "$(cat "$folder/vendor" 2>/dev/null)" = 0x10de ] && grep -q '^0x03' "$folder/class" &&
        echo "  ${folder##*/}: NUMA node $(cat "$folder/numa_node" 2>/dev/null), CPUs $(cat "$folder/local_cpulist" 2>/dev/null)"
done
nvidia-smi topo -m 2>/dev/null | head -n 5
[ "$half" -ge 1 ] || { fault "two ranks need two cores"; exit 1; }

# ---- data: the same episodes under many names, for epochs long enough to be timed ----

"$weir" synth "$data/jpeg" --format act-jpeg --episodes 6 --steps 60 --cameras top,left,right,low >"$out/synth.txt" 2>&1 ||
    { tail -n 5 "$out/synth.txt"; exit 1; }
mkdir "$data/many"
i=0
for ((copy = 0; copy < 24; copy++)); do
    for file in "$data"/jpeg/*.hdf5; do
        ln "$file" "$data/many/episode_$((i++)).hdf5"
    done
done
batches=${BATCHES:-$((i * 60 / 32 / 2))} # of 32 samples per epoch of a rank, also if it is alone

# ---- Weir ----

# rate LOG SETTLE_S: images/s of the epochs that began SETTLE_S seconds or more after the first.
rate() {
    python3 - "$1" "$2" <<'PY'
import json, sys
epochs, at = [], 0.0
for line in open(sys.argv[1]):
    if line.endswith("\n"):
        record = json.loads(line)
        if record["type"] == "epoch" and not record["interrupted"]:
            epochs.append((at, record["images_per_s"] * record["total_s"], record["total_s"]))
            at += record["total_s"]
late = [e for e in epochs if e[0] >= float(sys.argv[2])] or epochs[len(epochs) // 2:]
print(round(sum(e[1] for e in late) / sum(e[2] for e in late)) if late else "-")
PY
}

# started NAME RANK SECONDS DECODER COMMAND...: runs weir for SECONDS in the background, under COMMAND (env, taskset).
started() {
    local log="$out/$1.$2" seconds=$3 decoder=$4
    shift 4
    rm -f "$log".*jsonl
    timeout -s INT -k 20 "$seconds" "$@" "$weir" run "$data/many" --dtype f16 --image-layout nchw --mean imagenet \
        --std imagenet --train-split 1 --batch-size 32 --max-batches "$batches" --num-epochs 100000 --every 0 \
        --decoder "$decoder" --log "$log.jsonl" "${more[@]}" >"$log.txt" 2>&1 &
}

# ended NAME RANK SETTLE_S
ended() {
    local found # with several ranks, the program adds .rankN to the name
    found=$(rate "$out/$1.$2".*jsonl "$3" 2>/dev/null || echo -)
    [ "${found:--}" != - ] || fault "$1, rank $2: $(tail -n 1 "$out/$1.$2.txt")"
    echo "$1 $2 ${found:--}" >>"$out/rates.txt"
}

wanted() { # NAME
    local word
    [ -n "$sides" ] || return 0
    for word in $sides; do [[ $1 != "$word"* ]] || return 0; done
    return 1
}

# A rank's environment, as set by torchrun.
as_rank() { rank=(env RANK="$1" WORLD_SIZE=2 LOCAL_RANK="$1" LOCAL_WORLD_SIZE=2); }

# weir_turn DECODER KIND
weir_turn() {
    local decoder=$1 kind=$2 name=$1-$2 seconds=$((5 + longer_s)) ranks=0
    wanted "$name" || return 0
    more=(--device cuda)
    case $kind in
    alone) started "$name" 0 $seconds "$decoder" env ;;
    half) started "$name" 0 $seconds "$decoder" taskset -c "${halves[0]}" ;;
    two) for r in 0 1; do as_rank $r && started "$name" $r $seconds "$decoder" "${rank[@]}" && ranks=1; done ;;
    bound) for r in 0 1; do
        as_rank $r && started "$name" $r $seconds "$decoder" "${rank[@]}" taskset -c "${halves[r]}" && ranks=1
    done ;;
    unaware) for r in 0 1; do # as if each were alone on the machine
        more=(--device "cuda:$r" --rank "$r" --world-size 2)
        started "$name" $r $seconds "$decoder" env -u LOCAL_RANK && ranks=1
    done ;;
    esac
    wait
    for ((r = 0; r <= ranks; r++)); do ended "$name" "$r" 0.7; done
}

# ---- the raw limits ----

# Prints nvJPEG's best configuration on this machine, from a short sweep: "RATE;GROUP;THREADS;OUTPUT".
sweep() {
    CUDA_VISIBLE_DEVICES=0 timeout 60 "$build/bench/nvjpeg" "$data/jpeg" --engine hw --cpu 0 --groups 64,128,256 \
        --threads 1,2,4 --outputs rgbi,turns --rounds 1 --seconds 0.25 >"$out/sweep.txt" 2>&1 || fault "the sweep of nvJPEG"
    sed -n 's/^best of hardware, .*: \([0-9]*\) images.s (\(.*\), groups of \([0-9]*\), \([0-9]*\) threads)$/\1;\3;\4;\2/p' \
        "$out/sweep.txt" | sort -n | tail -n 1
}

raw_nvjpeg() { # GPU MORE...
    local gpu=$1
    shift
    CUDA_VISIBLE_DEVICES=$gpu timeout 60 "$@" "$build/bench/nvjpeg" "$data/jpeg" --engine hw --groups "$group" --threads \
        "$threads" --outputs "$([ "$beside" -gt 0 ] && echo turns || echo "$output")" --rounds 1 --seconds 1.2 --json --cpu "$beside"
}

raw_turbo() { # COMMAND... WORKERS, in this order
    timeout 60 "${@:1:$#-1}" "$build/bench/limits" --data "$data/jpeg" --workers "${!#}" --raw-only --rounds 1 --seconds 1.5 --json
}

# picked NAME RANK EXPRESSION: extracts the rate from the printed JSON.
picked() {
    local found
    found=$(python3 -c "import json, sys; found = json.load(open(sys.argv[1])); print(round($3))" "$out/$1.$2.json" 2>/dev/null)
    [ -n "$found" ] || fault "$1, rank $2: $(tail -n 1 "$out/$1.$2.err")"
    echo "$1 $2 ${found:--}" >>"$out/rates.txt"
}
single='found["rows"][0]["images_per_s"]["median"]'
limit='found["comparisons"][0]["raw_images_per_s"]["median"]'
together='[row for row in found["rows"] if row["sides"] and row["cpu_threads"]][0]["images_per_s"]["median"]'

raw_turn() { # NAME
    local name=$1 kind=${1##*-} ranks=0 expression=$limit n=${#cpus[@]}
    wanted "$name" || return 0
    beside=0
    case $name in # next to nvJPEG, libjpeg-turbo gets all cores except two
    raw_nvjpeg-*) expression=$single ;;
    raw_both-alone) expression=$together beside=$((n > 3 ? n - 2 : 1)) ;;
    raw_both-two) expression=$together beside=$((half > 3 ? half - 2 : 1)) ;;
    esac
    [ "$kind" != two ] || ranks=1
    for ((r = 0; r <= ranks; r++)); do
        case $name in
        raw_turbo-alone) raw_turbo "$n" ;;
        raw_turbo-half) raw_turbo taskset -c "${halves[0]}" "$half" ;;
        raw_turbo-two) raw_turbo "$half" ;;
        *) raw_nvjpeg "$r" ;;
        esac >"$out/$name.$r.json" 2>"$out/$name.$r.err" &
    done
    wait
    for ((r = 0; r <= ranks; r++)); do picked "$name" "$r" "$expression"; done
}

# ---- all trials, interleaved ----

output=turns group=256 threads=2
if wanted raw_nvjpeg-two || wanted raw_both-two; then
    head_line "nvJPEG's best configuration"
    IFS=';' read -r _ group threads output < <(sweep; echo "0;256;2;turns")
    [[ $output != *turns* ]] || output=turns
    echo "$output, groups of $group, $threads threads"
fi
turns=(hybrid-alone hybrid-two raw_both-two hybrid-half hybrid-bound raw_turbo-two hybrid-unaware raw_nvjpeg-two
    nvjpeg-alone nvjpeg-two raw_nvjpeg-alone nvjpeg-bound turbo-alone turbo-two raw_turbo-alone turbo-half turbo-bound
    raw_turbo-half raw_both-alone)
for ((round = 0; round < rounds; round++)); do
    head_line "round $((round + 1)) of $rounds"
    first=$((round * ${#turns[@]} / rounds))
    for name in "${turns[@]:first}" "${turns[@]:0:first}"; do
        case $name in
        raw_*) raw_turn "$name" ;;
        *) weir_turn "${name%-*}" "${name#*-}" ;;
        esac
    done
done

head_line "the ranks' own output"
for name in hybrid-two.0 hybrid-two.1 hybrid-bound.1; do
    [ -r "$out/$name.txt" ] || continue
    echo "-- $name"
    grep -E 'workers, prefetch|^decodes|^device|^rank|^local rank|^machine' "$out/$name.txt"
    grep -E '^decoded' "$out/$name.txt" | tail -n 1
done
for name in hybrid-alone.0 hybrid-half.0 hybrid-unaware.0; do
    [ -r "$out/$name.txt" ] || continue
    echo "-- $name"
    grep -E 'workers, prefetch|^decoded' "$out/$name.txt" | tail -n 2
done

head_line "summary: images/s, medians of $rounds rounds"
python3 - "$out/rates.txt" <<'PY'
import statistics, sys
rates = {}
for line in open(sys.argv[1]):
    name, rank, rate = line.split()
    if rate != "-":
        rates.setdefault((name, int(rank)), []).append(float(rate))
median = {key: statistics.median(values) for key, values in rates.items()}

def turns(name, rank=0):
    return rates.get((name, rank), [])

def ratio(above, below):
    """The median of the rounds' ratios; above and below are lists of lists of turns, each list summed."""
    sums = [[sum(turn) for turn in zip(*lists)] for lists in (above, below) if all(lists)]
    if len(sums) < 2 or not sums[0] or not sums[1]:
        return "-"
    return f"{statistics.median(a / b for a, b in zip(*sums)):.3f}"

def cell(name, rank):
    values = rates.get((name, rank))
    return f"{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})" if values else "-"

print(f"{'what':<46} {'rank 0 (min-max)':>28} {'rank 1':>28} {'each, relative to the reference'}")
rows = [("hybrid, one alone, all cores", "hybrid-alone", None),
        ("hybrid, one alone, half of the cores", "hybrid-half", "hybrid-alone"),
        ("hybrid, two at once", "hybrid-two", "hybrid-half"),
        ("hybrid, two at once, each bound to half", "hybrid-bound", "hybrid-half"),
        ("hybrid, two at once, each as if alone", "hybrid-unaware", "hybrid-half"),
        ("nvjpeg, one alone, all cores", "nvjpeg-alone", None),
        ("nvjpeg, two at once", "nvjpeg-two", "nvjpeg-alone"),
        ("nvjpeg, two at once, each bound to half", "nvjpeg-bound", "nvjpeg-alone"),
        ("turbo, one alone, all cores", "turbo-alone", None),
        ("turbo, one alone, half of the cores", "turbo-half", "turbo-alone"),
        ("turbo, two at once", "turbo-two", "turbo-half"),
        ("turbo, two at once, each bound to half", "turbo-bound", "turbo-half"),
        ("raw nvJPEG, one process", "raw_nvjpeg-alone", None),
        ("raw nvJPEG, two processes at once", "raw_nvjpeg-two", "raw_nvjpeg-alone"),
        ("raw libjpeg-turbo, one, all cores", "raw_turbo-alone", None),
        ("raw libjpeg-turbo, one, half of the cores", "raw_turbo-half", "raw_turbo-alone"),
        ("raw libjpeg-turbo, two at once, half each", "raw_turbo-two", "raw_turbo-half"),
        ("raw both, one process, all cores but 2", "raw_both-alone", None),
        ("raw both, two at once, half of the cores each", "raw_both-two", "raw_both-alone")]
for text, name, reference in rows:
    if (name, 0) not in rates:
        continue
    ranks = [rank for rank in (0, 1) if (name, rank) in rates]
    words = " and ".join(ratio([turns(name, rank)], [turns(reference)]) for rank in ranks) if reference else ""
    print(f"{text:<46} {cell(name, 0):>28} {cell(name, 1):>28} {words and words + ' of ' + reference}")
print("each rank, relative to the raw limits of two processes at once:")
for text, name, limits in [("hybrid / raw both", "hybrid-two", ["raw_both-two"]),
                           ("hybrid / (raw nvJPEG + raw libjpeg-turbo)", "hybrid-two", ["raw_nvjpeg-two", "raw_turbo-two"]),
                           ("nvjpeg / raw nvJPEG", "nvjpeg-two", ["raw_nvjpeg-two"]),
                           ("turbo / raw libjpeg-turbo", "turbo-two", ["raw_turbo-two"])]:
    print(f"  {text:<44}", " and ".join(ratio([turns(name, r)], [turns(other, r) for other in limits]) for r in (0, 1)))
PY
failed=$(wc -l <"$out/failed.txt")
echo "$failed failed; done in $SECONDS s; logs in $out"
cat "$out/failed.txt"
exit $((failed > 0))
