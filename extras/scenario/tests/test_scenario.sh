#!/bin/bash
# `weir scenario` on the stand-in GPU: each scenario and its remedy, --all, the switches, the traces and figures,
# invalid input, Ctrl-C. extras/scenario/tests/gpu/scenario.sh checks the causes of idle time on a real GPU.
# Usage: WEIR_PROGRAM=build/release/weir WEIR_FAKE_CUDA_MODULE=... extras/scenario/tests/test_scenario.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../../../tests/tools/shell_checks.sh"
script=$(realpath "$0")
export WEIR_CUDA_MODULE=${WEIR_FAKE_CUDA_MODULE:?set WEIR_FAKE_CUDA_MODULE to the stand-in}
unset WEIR_FAKE_CUDA
# The stand-in computes the GPU's network: OpenBLAS takes processors that are newer than itself for very old ones.
! grep -qw avx2 /proc/cpuinfo || export OPENBLAS_CORETYPE=Haswell
cd "$work" || exit 1

small=(--batch_size 2 --warmup_steps 1 --profile_steps 3)
on_cpu=(--device cpu --num_workers 1) # much faster, for what is the same on both
if "$weir" scenario "${small[@]}" "${on_cpu[@]}" 2>&1 >/dev/null | grep -q libopenblas; then
    echo "skipped: no OpenBLAS here"
    exit 77
fi

only() { find "$1" -name "$2.*.pt.trace.json.gz"; }

# trace FILE NAME PYTHON: t is the trace, e its events.
trace() {
    check "$2" python3 - "$1" <<PY
import gzip, json, sys
t = json.load(gzip.open(sys.argv[1]))
e = t["traceEvents"]
named = lambda name: [x for x in e if x["name"] == name and x["ph"] != "s" and x["ph"] != "f"]
on_gpu = [x for x in e if x.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
memory = [x["args"] for x in named("[memory]")]
$3
PY
}

# ---- the defaults: dataloader, no files ----
before=$(find . | sort)
run 0 scenario "${small[@]}"
check "nothing is written without an option" [ "$(find . | sort)" = "$before" ]
no_out "trace: "
no_out "figures: "
last() { check "the last line: ${1:-no hint}" [ "$(tail -1 "$work/out" | grep '^not written: ')" = "$1" ]; }
trace_hint="the trace (--trace_dir results/traces/profiler_demo)"
figures_hint="the figures (--output_json results/metrics_demo.json)"
last "not written: $trace_hint, $figures_hint"

# ---- new folders, the trace, the figures ----
run 0 scenario "${small[@]}" --trace_dir results/traces/demo --output_json results/metrics_demo.json
count '^steps 2 to 4: average iteration [0-9.]+ ms: step [0-9.]+ ms, data wait [0-9.]+ ms \([0-9.]+ %\); [0-9.]+ steps/s, [0-9]+ images/s$' 1
count '^network: [0-9]+ parameters, .*; loss [0-9.]+ after the last step$' 1
count '^The (data wait|step) is longer than the (step: prepare items faster \(more workers, or less work per item\)|data wait: see the step.s operators)\.$' 1
out "Top CUDA operations, by self CUDA time:"
count '^ *Name +Self CPU % .* Self CUDA ' 1
count '^GPU 0 [a-z ]+ [0-9.]+ % of the time' 1
count '^GPU 0 +time  of total +a step$' 1
count '^First cause of GPU idle time: [a-z ]+, [0-9.]+ % of the time\.$' 1
count '^dataloader: making an item takes 2 ms of simulated I/O and 4000 units of CPU work' 1
count '^  How to read it: .*08_wait_for_data' 1
count '^  Remedy: .*--num_workers.* --fix applies it here: ' 1
out "trace: results/traces/demo/dataloader."
out "figures: results/metrics_demo.json"
err "dataloader on stand-in: batches of 2 in pageable memory, 2 workers that prefetch 2 batches each; float32; 6 steps, 3 of them recorded"
one_line
check "the figures have these members and no others" python3 - <<'PY'
import json
m = json.load(open("results/metrics_demo.json"))
assert list(m) == ["scenario", "device", "batch_size", "num_workers", "pin_memory", "amp", "avg_iteration_time_s", "avg_step_time_s", "avg_dataloader_wait_s", "trace_dir"], m
assert m["scenario"] == "dataloader" and m["device"] == "cuda:0" and m["batch_size"] == 2 and m["num_workers"] == 2, m
assert m["pin_memory"] is False and m["amp"] is False and m["trace_dir"] == "results/traces/demo", m
assert 0 < m["avg_dataloader_wait_s"] < m["avg_iteration_time_s"], m
# A step begins when its batch has arrived, so the two parts add up.
assert abs(m["avg_step_time_s"] + m["avg_dataloader_wait_s"] - m["avg_iteration_time_s"]) < 1e-6, m
PY
last ""
check "the trace and the figures, and nothing else" [ "$(find results -type f | sed 's/[0-9]\{9,\}/N/' | sort | tr '\n' ' ')" = "results/metrics_demo.json results/traces/demo/dataloader.N.pt.trace.json.gz " ]
trace "$(only results dataloader)" "the trace has its steps, stages, waits, the measurement, shapes and memory" '
assert sorted(x["name"] for x in e if x["name"].startswith("ProfilerStep#")) == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
for name in "07_h2d_copy", "20_train_forward_pass", "21_backward", "22_optimizer_step":
    assert len([x for x in named(name) if x["cat"] == "cpu_op"]) == 3, name
assert len(named("enumerate(DataLoader)#WeirLoader.__next__")) == 3
m = [x for x in named("measurement") if x["cat"] == "user_annotation"]
assert len(m) == 3 and not named("read_loss_back"), m
assert named("20_train_forward_pass")[0]["args"]["Input Dims"] == [[2, 3, 64, 64], [2, 1024]]
assert t["record_shapes"] == 1 and t["profile_memory"] == 1 and "with_stack" not in t
assert memory and any(a["Device Type"] == 0 for a in memory), memory
assert len([x for x in e if x["name"] == "adamw"]) == 3 and len(on_gpu) > 60
'
check "weir report reads the trace" "$weir" report "$(only results dataloader)" >/dev/null

# ---- all scenarios, without and with their remedies ----
run 0 scenario --all --fix "${small[@]}" --trace_dir "$work/t/a/b" --output_json "$work/all/m.json"
err "--fix: "
count '^(dataloader|sync|tiny_ops|memory_churn)( --fix)?: average iteration [0-9.]+ ms: step [0-9.]+ ms, data wait [0-9.]+ ms; loss [0-9.]+; trace: ' 8
count '^scenario +iteration +step +data wait +first cause, idle +share +kernels/step +remedy$' 1
count '^(dataloader|sync|tiny_ops|memory_churn)( --fix)? +[0-9.]+ms +[0-9.]+ms +[0-9.]+ms  [a-z -]+ +([0-9.]+%|-) +[0-9.]+  [a-z]' 8
count '^  How to read it: ' 4
count '^  Remedy: ' 4
check "eight traces and files of figures" [ "$(find "$work/t" -type f | wc -l) $(find "$work/all" -type f | wc -l)" = "8 8" ]
cp "$work/out" "$work/all.txt"
loss() { sed -n "s/^$1: .*; loss \([0-9.]*\); .*/\1/p" "$work/all.txt"; }
for scenario in dataloader sync tiny_ops memory_churn; do
    check "$scenario: there is a loss" [ -n "$(loss $scenario)" ]
    check "$scenario: the remedy does not change the loss" [ "$(loss $scenario)" = "$(loss "$scenario --fix")" ]
    for run in $scenario ${scenario}_fix; do
        check "a trace of $run" [ "$(find "$work/t/a/b" -name "$run.*.json.gz" | wc -l)" -eq 1 ]
        check "the figures of $run" python3 -c "
import json; m = json.load(open('$work/all/m_$run.json'))
assert m['scenario'] == '$scenario' and m['avg_step_time_s'] > 0, m"
    done
    case $scenario in
    dataloader)
        err "instead of 2, because an item sleeps ten times as long as it computes"
        check "the figures have the actual number of workers" python3 -c "import json; assert json.load(open('$work/all/m_dataloader_fix.json'))['num_workers'] > 2"
        ;;
    sync)
        trace "$(only "$work/t" sync)" "the loss is read back in each step, between forward and backward" '
r, f, b = named("read_loss_back"), [x for x in named("20_train_forward_pass") if x["cat"] == "cpu_op"], [x for x in named("21_backward") if x["cat"] == "cpu_op"]
assert len(r) == len(f) == len(b) == 3
for x, y, z in zip(*(sorted(l, key=lambda x: x["ts"]) for l in (f, r, b))):
    assert x["ts"] + x["dur"] <= y["ts"] and y["ts"] + y["dur"] <= z["ts"]'
        trace "$(only "$work/t" sync_fix)" "with the remedy it is not" 'assert not named("read_loss_back") and len(named("use_loss_sent_before")) == 3'
        ;;
    tiny_ops)
        trace "$(only "$work/t" tiny_ops)" "400 tiny kernels per step" 'assert len([x for x in named("affine") if x["cat"] == "kernel"]) == 3 * 400'
        trace "$(only "$work/t" tiny_ops_fix)" "with the remedy two" 'assert len([x for x in named("affine") if x["cat"] == "kernel"]) == 3 * 2'
        ;;
    memory_churn)
        churn='
g = [a for a in memory if a["Device Type"] == 1]
assert sorted(a["Bytes"] for a in g) == sorted(3 * 6 * [s * (m << 20) for s in (1, -1) for m in (1, 2, 3, 4)]), g
for i in range(24):
    assert len([x for x in named("temporary_%02d" % i) if x["cat"] == "cpu_op"]) == 3
reserved = {a["Total Reserved"] for a in g}
assert min(reserved) > 24 << 20, reserved'
        trace "$(only "$work/t" memory_churn)" "24 named temporaries per step, in the trace's memory events" "$churn
assert len(reserved) > 1, reserved"
        trace "$(only "$work/t" memory_churn_fix)" "with the remedy the pool keeps its size" "$churn
assert len(reserved) == 1, reserved"
        ;;
    esac
done
run 0 scenario --scenario sync --fix "${small[@]}" "${on_cpu[@]}" --trace_dir "$work/t2" --output_json figures
check "one scenario with --fix runs only the remedy" [ "$(find "$work/t2" -type f -printf '%f\n' | cut -d. -f1)" = sync_fix_cpu ]
check "its figures are in the named file" [ -f figures ]
run 0 scenario --all "${small[@]}" "${on_cpu[@]}" --trace_dir "$work/t8" --output_json figures
check "a name without an extension gets a suffix per scenario" [ -f figures_sync ]
check "and no remedy without --fix" [ "$(find "$work/t8" . -maxdepth 1 -name '*_fix*' | wc -l)" -eq 0 ]

# ---- on the CPU, without a GPU ----
WEIR_CUDA_MODULE=/nowhere run 0 scenario --all --fix "${small[@]}" "${on_cpu[@]}" --trace_dir "$work/cpu" --output_json "$work/cpu.json"
err "dataloader on the CPU: batches of 2 in pageable memory, 1 workers"
count '^scenario, on the CPU +iteration +step +data wait +shown by +share +calls/step +remedy$' 1
count '^(dataloader|sync|tiny_ops|memory_churn)( --fix)? +[0-9.]+ms +[0-9.]+ms +[0-9.]+ms  [a-z0-9_]+ +[0-9.]+% +[0-9.]+  [a-z]' 8
count '^  On the CPU: ' 4
no_out "GPU idle time"
check "calls per step of each scenario's symptom, and fewer with the remedy" python3 - "$work/out" <<'PY'
import re, sys
rows = {m[1]: float(m[2]) for m in re.finditer(r"^(\w+(?: --fix)?) +[0-9.]+ms .*% +([0-9.]+)  ", open(sys.argv[1]).read(), re.M)}
assert rows == {"dataloader": 1, "dataloader --fix": 1, "sync": 1, "sync --fix": 0, "tiny_ops": 400, "tiny_ops --fix": 2,
                "memory_churn": 24, "memory_churn --fix": 24}, rows
PY
cp "$work/out" "$work/all.txt"
for scenario in dataloader sync tiny_ops memory_churn; do
    check "$scenario on the CPU: there is a loss" [ -n "$(loss $scenario)" ]
    check "$scenario on the CPU: the same with its remedy" [ "$(loss $scenario)" = "$(loss "$scenario --fix")" ]
    check "$scenario: the figures name the CPU" python3 -c "
import json; m = json.load(open('$work/cpu_$scenario.json')); assert m['scenario'] == '$scenario' and m['device'] == 'cpu', m"
    check "a trace of $scenario, named after the CPU" [ "$(find "$work/cpu" -name "${scenario}_cpu.[0-9]*.json.gz" | wc -l)" -eq 1 ]
done
trace "$(only "$work/cpu" tiny_ops_cpu)" "400 tiny operators per step, and no GPU" '
assert len([x for x in named("affine") if x["cat"] == "cpu_op"]) == 3 * 400 and not on_gpu'
trace "$(only "$work/cpu" memory_churn_cpu)" "24 temporaries per step in CPU memory" '
assert len([a for a in memory if a["Bytes"] >= 1 << 20 and a["Device Type"] == 0]) >= 3 * 24
assert not [a for a in memory if a["Device Type"] == 1]'
last ""
small_cpu=(--batch_size 16 --num_workers 1 --device cpu --warmup_steps 1 --profile_steps 3)
WEIR_CUDA_MODULE=/nowhere run 0 scenario "${small_cpu[@]}" --trace_dir "$work/cpu1" --output_json ""
out "Top operations, by self CPU time:"
count '^enumerate\(DataLoader\)#WeirLoader.__next__: 1.0 calls and [0-9.]+ ms per iteration, [0-9.]+ % of it\.$' 1
count '^The CPU has no GPU idle time: ' 1
count '^  On the CPU: ' 1
last ""
check "the first operations are work; the data wait is below the table" python3 - "$work/out" <<'PY'
import re, sys
table, waits = re.search(r"(?m)^Name +Self CPU %.*\n((?:.+\n)+)Self CPU time total: .*\nwaiting, .*\n((?:.+\n)+)", open(sys.argv[1]).read()).groups()
shares = [float(share) for share in re.findall(r"(?m)^\S+ +(\d+\.\d\d)% ", table)]
assert abs(sum(shares) - 100) < 0.1, table
assert not re.search("__next__|wait_for|simulated_io", table), table
assert re.search(r"(?m)^item_simulated_io +\S+ +\S+ +\d+$", waits), waits
assert re.search(r"(?m)^enumerate\(DataLoader\)#WeirLoader.__next__ +\S+ +\S+ +3$", waits), waits
PY

# ---- options for a GPU, and the seed, on the CPU ----
run 0 scenario "${small_cpu[@]}" --pin_memory --amp --seed 7 --output_json cpu.json
err "--amp and --pin_memory are ignored: they are for a GPU"
err "batches of 16 in pageable memory"
err "; float32; "
no_out "loss scale"
last "not written: $trace_hint"
check "the figures have what was used" python3 -c "
import json; m = json.load(open('cpu.json')); assert m['pin_memory'] is False and m['amp'] is False, m"
loss_of_run() { sed -n 's/.*; loss \([0-9.]*\) after.*/\1/p' "$work/out"; }
run 0 scenario "${small_cpu[@]}" --amp --seed 7
err "--amp is ignored: it is for a GPU"
seven=$(loss_of_run)
last "not written: $trace_hint, $figures_hint"
run 0 scenario "${small_cpu[@]}" --pin_memory --seed 7 --trace_dir "$work/cpu2"
err "--pin_memory is ignored: it is for a GPU"
last "not written: $figures_hint"
check "the same seed gives the same loss" [ "x$(loss_of_run)" = "x${seven:-none}" ]
run 0 scenario "${small_cpu[@]}" --trace_dir "$work/cpu2" --output_json "$work/cpu2.json"
check "another seed gives another loss" [ "$(loss_of_run)" != "$seven" ]
check "without these options nothing is said of them" [ "$(grep -c ignored "$work/err")" -eq 0 ]
run 0 scenario "${small_cpu[@]}" --json
last ""

# ---- the width of the output: piped and on a terminal ----
check "lines fit the width, the verdict comes first, and only it is bold" python3 - "$(dirname "$script")/../../../tests/cli" "${small[@]}" <<'PY'
import re, sys
sys.path.insert(0, sys.argv[1])
import test_texts
small = sys.argv[2:]

def check(columns, more, text):
    """Returns whether the verdict is bold."""
    for line in re.sub(r"\x1b\[\d*[A-Za-z]", "", text).splitlines():
        assert test_texts.width(line) <= columns, (columns, more, line)
    if "--all" in more:
        head = re.search(r"(?m)^scenario.* +data wait .*$", text)[0]
        assert ("remedy" in head) or columns == 80, head
        return None
    verdict = re.search(r"(?m)^(\x1b\[1m)?The (data wait|step) is longer than .*$", text)
    assert verdict.start() < text.index("average iteration"), text
    return bool(verdict[1])

for columns in (80, 120, 200):
    for more in [["--device", "cpu"], ["--all", "--device", "cpu"]] + [[]] * (columns == 80):
        text = test_texts.piped("scenario", *small, *more, **({"COLUMNS": str(columns)} if columns > 80 else {}))
        assert "\x1b" not in text and not check(columns, more, text), text
    for more in [[], ["--device", "cpu"], ["--all", "--device", "cpu"]] + [["--all", "--fix"]] * (columns == 80):
        assert check(columns, more, test_texts.on_terminal(columns, "scenario", *small, *more)) in (True, None), more
wide = test_texts.piped("scenario", *small, "--all", "--device", "cpu", "--wide")
assert re.search(r"(?m)^scenario, on the CPU +iteration +step +data wait +shown by +share +calls/step +remedy$", wide), wide
PY

# ---- the switches ----
run 0 scenario "${small[@]}" --pin_memory --amp --persistent_workers --with_stack --num_workers 1 --prefetch_factor 3 --seed 7 --device cuda:0 --trace_dir "$work/t3" --output_json "$work/m3.json"
err "batches of 2 in pinned memory, 1 workers that prefetch 3 batches each and persist across epochs; float16 (--amp)"
count '^network: .*, loss scale [0-9]' 1
trace "$(only "$work/t3" dataloader)" "--with_stack records stacks" 'assert t["with_stack"] == 1 and any("Call stack" in x.get("args", {}) for x in e)'
check "the figures have the switches" python3 -c "
import json; m = json.load(open('$work/m3.json')); assert m['pin_memory'] is True and m['amp'] is True and m['num_workers'] == 1, m"
run 0 scenario "${small[@]}" --num_workers 0 --persistent_workers --output_json "" --trace_dir "$work/t4"
err "no workers: the loop's thread makes the items; --prefetch_factor and --persistent_workers have no effect"
no_out "figures:"
check "an empty --output_json writes none" [ "$(find "$work/t4" -type f | wc -l)" -eq 1 ]
trace "$(only "$work/t4" dataloader)" "without workers the items are made within the wait" '
w = named("enumerate(DataLoader)#WeirLoader.__next__")
assert len(w) == 3 and all(x["dur"] > 2 * 2000 for x in w), w'
run 0 scenario --batch_size 2 --warmup_steps 0 --profile_steps 2 --output_json "" --trace_dir "$work/t5"
err "warning: with --profile_steps 2, one disturbed step dominates"

# ---- invalid input ----
for bad in "--scenario nothing" "--batch_size 0" "--batch_size 2049" "--num_workers 257" "--prefetch_factor 0" "--profile_steps 0" \
    "--warmup_steps -1" "--device cuda:x" "--device gpu" "--seed x" "extra"; do
    # shellcheck disable=SC2086
    run 2 scenario $bad
    check "$bad: nothing on stdout" [ ! -s "$work/out" ]
done
run 2 scenario --trace_dir ""
err "--trace-dir: the value is empty"
for fake in none gpus=0; do
    WEIR_FAKE_CUDA=$fake run 1 scenario "${small[@]}" --trace_dir "$work/none"
    one_line
    err "weir scenario: "
    err "; --device cpu runs the scenarios without a GPU"
    check "without a GPU no folder is made" [ ! -e "$work/none" ]
done
WEIR_CUDA_MODULE=/nowhere run 1 scenario "${small[@]}"
one_line
run 1 scenario --device cuda:3
err "there is no GPU 3"
one_line
: >"$work/file"
mkdir "$work/file.d"
run 1 scenario "${small[@]}" --trace_dir "$work/file/traces"
err "$work/file/traces: the folder of --trace_dir cannot be created: "
run 1 scenario "${small[@]}" --trace_dir "$work/t6" --output_json "$work/file/m.json"
err "the folder of --output_json cannot be created: "
run 1 scenario "${small[@]}" --trace_dir "$work/t6" --output_json "$work/file.d"
err "$work/file.d: --output_json must be a file, not a folder"
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 500 "$work/locked"
    run 1 scenario "${small[@]}" --trace_dir "$work/locked"
    err "the folder of --trace_dir cannot be written: "
fi
WEIR_FAKE_CUDA=fail=pin run 1 scenario "${small[@]}" --pin_memory --trace_dir "$work/t6" --output_json ""
err "weir scenario: "
WEIR_FAKE_CUDA=fail=lost:500 run 1 scenario "${small[@]}" --scenario tiny_ops --trace_dir "$work/t6" --output_json "$work/t6/m.json"
err "lost"
check "no figures from a failed run" [ ! -e "$work/t6/m.json" ]
for bytes in 1000000 40000000 130000000; do
    WEIR_FAKE_CUDA=memory_bytes=$bytes run 1 scenario "${small[@]}" --scenario memory_churn --fix --trace_dir "$work/t6" --output_json ""
    err "weir scenario: "
done

# ---- Ctrl-C: stops between two steps, with exit status 130 and no figures ----
rm -f "$work/err" # left by the previous run
"$weir" scenario --batch_size 2 --profile_steps 10000 --warmup_steps 100000 --trace_dir "$work/t7" --output_json "$work/t7/m.json" >"$work/out" 2>"$work/err" &
pid=$!
until grep -q 'steps, .* recorded' "$work/err" 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -INT $pid
wait $pid
check "Ctrl-C is exit 130 (was $?)" [ $? -eq 130 ]
err "weir scenario: interrupted"
check "no figures, nothing half-written" [ "$(find "$work/t7" -type f | wc -l)" -eq 0 ]
finish
