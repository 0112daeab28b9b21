#!/bin/bash
# Injects bottlenecks with a known cause, one at a time, and shows what weir run reports for each.
# Usage: bench/bottlenecks.sh [BUILD [FOLDER]] (default build/release and BUILD/bottlenecks).
# Outputs go to FOLDER/NAME.txt; datasets are created once, in FOLDER/data. Prints the cause of each and the relevant
# lines, for a reader to judge.
set -u
export COLUMNS=170
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${1:-build/release}")
out=${2:-$build/bottlenecks}
weir=$build/weir slow=$build/bench/slow_pread.so
mkdir -p "$out" || exit 1
out=$(realpath "$out")
jpegs=$out/data/jpegs raw=$out/data/raw virtual=$out/data/virtual

# ---- data ----

made() { [ -e "$1" ] && [ -n "$(ls -A "$1")" ]; }
make_data() {
    mkdir -p "$out/data"
    made "$jpegs" || "$weir" synth "$jpegs" --episodes 12 --steps 40 --cameras cam_high,cam_wrist --size 320x240 >/dev/null 2>&1
    made "$raw" || "$weir" synth "$raw" --format act --episodes 12 --steps 40 --cameras cam_high,cam_wrist --size 320x240 >/dev/null 2>&1
    made "$virtual" || "$build/bench/virtual_episodes" "$virtual" 4 40 320 240
    # Records the byte ranges of one camera's reads.
    LD_PRELOAD=$slow WEIR_SLOW_RECORD=$out/data/wrist.map "$weir" run "$jpegs" --cameras cam_wrist --io pread --train-split 1 >/dev/null 2>&1
    echo "0 9223372036854775807 $(realpath "$jpegs")/episode_7.hdf5" >"$out/data/file.map"
}

# ---- cases ----

# show NAME "CAUSE": prints the lines that an honest reader would look at.
show() {
    printf '\n== %s: %s\n' "$1" "$2"
    grep -aE '^(epoch |machine|reads:|0[0-9][a-z]?_|10_|20_|weir-w|consumer|throttled|other load|queue:|fallbacks:|camera |cam_|top |files by|slowest calls)' \
        "$out/$1.txt" | grep -vE '^(00|02|03_|04)_?' | cut -c 1-170
    grep -aE -A 3 '^(files by|slowest calls)' "$out/$1.txt" | grep '^  '
    grep -aE '^weir' "$out/$1.txt" | grep -E ': ' | head -n 2
}

# inject NAME "CAUSE" COMMAND...: runs COMMAND and shows its output.
inject() {
    local name=$1 cause=$2
    shift 2
    { printf '# %s\n# %s\n' "$cause" "$*"; "$@"; } >"$out/$name.txt" 2>&1 </dev/null
    show "$name" "$cause"
}

skip() { printf '\n== %s: skipped: %s\n' "$1" "$2" | tee "$out/$1.txt"; }

# with_slow NAME=VALUE... -- COMMAND...: runs COMMAND under the shim, configured by these variables.
with_slow() {
    local vars=()
    while [ "$1" != -- ]; do
        vars+=("$1")
        shift
    done
    shift
    env LD_PRELOAD="$slow" "${vars[@]}" "$@"
}

# in_group CONTROLLER FILE VALUE COMMAND...: runs COMMAND in its own control group; returns 77 if none can be created.
in_group() {
    local controller=$1 file=$2 value=$3 base status
    shift 3
    for base in "/sys/fs/cgroup/$controller" /sys/fs/cgroup; do
        group=$base/weir-bottlenecks.$$
        { [ -d "$base" ] && mkdir "$group" 2>/dev/null; } || continue
        if [ -e "$group/$file" ] && echo "$value" 2>/dev/null >"$group/$file"; then
            (echo "$BASHPID" >"$group/cgroup.procs" && exec "$@")
            status=$?
            rmdir "$group"
            return "$status"
        fi
        rmdir "$group"
    done
    return 77
}

can_group() { in_group "$1" "$2" "$3" true 2>/dev/null; }

# Half a core: 50 of every 100 ms (cgroup v1: its period is 100 ms by default).
quota() {
    local cause="a CPU quota of half a core, two workers"
    if can_group cpu cpu.cfs_quota_us 50000; then
        inject quota "$cause" in_group cpu cpu.cfs_quota_us 50000 "$weir" run "$jpegs" --num-workers 2
    elif can_group cpu cpu.max "50000 100000"; then
        inject quota "$cause" in_group cpu cpu.max "50000 100000" "$weir" run "$jpegs" --num-workers 2
    else
        skip quota "no control group with a CPU quota can be created here"
    fi
}

# Less memory than the files need: pages are evicted before they are read again.
small_cache() {
    local cause="a memory limit that keeps the page cache smaller than the dataset" bytes=$((90 << 20))
    if can_group memory memory.limit_in_bytes $bytes; then
        inject small-cache "$cause" in_group memory memory.limit_in_bytes $bytes "$weir" run "$raw" --cold --num-epochs 3 --num-workers 2
    elif can_group memory memory.max $bytes; then
        inject small-cache "$cause" in_group memory memory.max $bytes "$weir" run "$raw" --cold --num-epochs 3 --num-workers 2
    else
        skip small-cache "no control group with a memory limit can be created here"
    fi
}

neighbours() {
    local busy=()
    for _ in 1 2 3 4; do
        (while :; do :; done) &
        busy+=("$!")
    done
    inject neighbours "four busy loops alongside" "$weir" run "$jpegs" --num-workers 2
    kill "${busy[@]}"
    wait "${busy[@]}" 2>/dev/null
}

make_data
run=("$weir" run "$jpegs" --io pread --num-workers 2)
inject none "nothing is injected" "${run[@]}"
inject latency "every read takes 5 ms more" with_slow WEIR_SLOW_US=5000 -- "${run[@]}"
inject tail "every 53rd read takes 100 ms more" with_slow WEIR_SLOW_US=100000 WEIR_SLOW_EVERY=53 -- "${run[@]}"
inject camera "reads of cam_wrist take 10 ms more" with_slow WEIR_SLOW_US=10000 WEIR_SLOW_MAP="$out/data/wrist.map" -- "${run[@]}"
inject file "reads of episode_7.hdf5 take 30 ms more" with_slow WEIR_SLOW_US=30000 WEIR_SLOW_MAP="$out/data/file.map" -- "${run[@]}" --train-split 1
quota
inject one-core "two workers on one core" taskset -c 0 "$weir" run "$jpegs" --num-workers 2
neighbours
inject one-slot "a prefetch of one batch, a step of 20 ms" "$weir" run "$jpegs" --num-workers 2 --prefetch 1 --batch-size 2 --step-ms 20
inject cold "the files are not in the page cache" "$weir" run "$raw" --cold --num-workers 2
small_cache
inject fallback "frames that only the HDF5 library can read" "$weir" run "$virtual" --num-workers 8 --num-epochs 4
inject float "planar floats, normalised on the CPU" "$weir" run "$raw" --num-workers 2 --num-epochs 2 --dtype f32 --image-layout nchw --mean imagenet --std imagenet
inject slow-step "a step of 60 ms" "$weir" run "$jpegs" --num-workers 2 --step-ms 60
printf '\nfull outputs: %s/NAME.txt\n' "$out"
