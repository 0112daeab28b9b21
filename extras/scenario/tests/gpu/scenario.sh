#!/bin/bash
# weir scenario on a GPU: each scenario has its own first cause of GPU idle time, and --fix removes it; in torch's
# traces of the same loops weir report ranks the same causes first. Takes about a minute; the last lines list failures.
#
#     tests/gpu/pack.sh build/portable build/gpu
#     build/gpu/tests/gpu/scenario.sh build/gpu   (on the GPU machine; PYTHON: a Python with torch, default python3)
#
# Traces and full outputs go to $OUT (default /tmp/weir-scenario).
# shellcheck disable=SC2317 # functions are called by name
set -uo pipefail
build=$(cd "${1:?usage: scenario.sh BUILD_FOLDER}" && pwd)
export LD_LIBRARY_PATH=$build/lib:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
out=${OUT:-/tmp/weir-scenario}
python=${PYTHON:-python3}
weir=$build/weir
here=$(cd "$(dirname "$0")" && pwd)
scenarios="dataloader sync tiny_ops memory_churn"
rm -rf "$out/traces" "$out/torch"
mkdir -p "$out/traces" "$out/torch"
: >"$out/failed.txt"
: >"$out/judged.txt"

fault() { echo "FAILED: $*" | tee -a "$out/failed.txt"; }
head_line() { echo "== $* (at $SECONDS s)"; }

# report TRACE: writes weir report's JSON to TRACE.report.json.
report() {
    timeout 20 "$weir" report --json "$1" >"$1.report.json" 2>"$1.report.txt" || fault "weir report $1: $(tail -1 "$1.report.txt")"
}

# judge NAME CAUSE-OF TRACE [TRACE-WITH-FIX]
judge() {
    local name=$1 of=$2
    shift 2
    python3 "$here/scenario_judge.py" "$name" "$of" "${@/%/.report.json}" | tee -a "$out/judged.txt"
    return "${PIPESTATUS[0]}"
}

# again NAME JUDGED RUN: calls the function JUDGED on the existing traces, up to three times, with RUN to record new
# ones in between: on a shared host, launches are sometimes delayed.
again() {
    local name=$1 judged=$2 run=$3
    for try in 1 2 3; do
        [ "$try" -eq 1 ] || "$run" "$scenario"
        "$judged" "$scenario" && return
    done
    fault "$name"
}

newest() { find "$out/traces" -name "$1.[0-9]*.pt.trace.json.gz" | sort | tail -1; }

head_line "all four, without and with their remedies"
timeout 60 "$weir" scenario --all --fix --pin_memory --trace_dir "$out/traces" --output_json "$out/figures.json" \
    >"$out/all.txt" 2>"$out/all-head.txt" || { tail -3 "$out/all-head.txt"; fault "weir scenario --all --fix"; }
sed -n '/^scenario /,/^$/p' "$out/all.txt"
head -1 "$out/all-head.txt"
run_weir() {
    for fix in "" --fix; do
        # shellcheck disable=SC2086
        timeout 30 "$weir" scenario --scenario "$1" $fix --pin_memory --trace_dir "$out/traces" --output_json "" >"$out/again.txt" 2>&1 ||
            tail -3 "$out/again.txt"
    done
}
judge_weir() {
    local before after
    before=$(newest "$1") after=$(newest "${1}_fix")
    if [ -z "$before" ] || [ -z "$after" ]; then
        echo "$1: no trace"
        return 1
    fi
    report "$before"
    report "$after"
    judge "$1" "$1" "$before" "$after"
}
for scenario in $scenarios; do
    again "$scenario" judge_weir run_weir
done

head_line "one of them with common settings: pageable batches, --amp"
timeout 30 "$weir" scenario --scenario sync --amp --trace_dir "$out/traces" --output_json "" >"$out/sync-amp.txt" 2>&1 ||
    { tail -3 "$out/sync-amp.txt"; fault "weir scenario --scenario sync --amp"; }
grep -E '^(steps|network|First cause|GPU 0|idle: |busy: )' "$out/sync-amp.txt"

head_line "the same loops in torch"
if "$python" -c "import torch; assert torch.cuda.is_available()" 2>"$out/torch.txt"; then
    # The first three share a process. Without the caching allocator each tensor costs a cudaMalloc and a cudaFree.
    timeout 60 "$python" "$here/scenario_torch.py" "$out/torch" dataloader sync tiny_ops >>"$out/torch.txt" 2>&1 ||
        { tail -3 "$out/torch.txt"; fault "torch"; }
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 timeout 40 "$python" "$here/scenario_torch.py" "$out/torch" memory_churn \
        >>"$out/torch.txt" 2>&1 || { tail -3 "$out/torch.txt"; fault "torch, memory_churn"; }
    grep -E '^(torch|[a-z_]+:)' "$out/torch.txt"
    run_torch() { timeout 40 "$python" "$here/scenario_torch.py" "$out/torch" "$1" >"$out/again.txt" 2>&1 || tail -3 "$out/again.txt"; }
    judge_torch() {
        report "$out/torch/$1.pt.trace.json"
        judge "torch $1" "$1" "$out/torch/$1.pt.trace.json"
    }
    for scenario in $scenarios; do
        [ "$scenario" != memory_churn ] || export PYTORCH_NO_CUDA_MEMORY_CACHING=1
        again "torch $scenario" judge_torch run_torch
    done
else
    echo "$python has no torch with a usable GPU: left out"
fi

failed=$(wc -l <"$out/failed.txt")
head_line "summary: $failed failed"
cat "$out/judged.txt" "$out/failed.txt"
echo "done in $SECONDS s; outputs in $out"
exit $((failed > 0))
