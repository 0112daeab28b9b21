#!/bin/bash
# weir motion on the stand-in GPU: choice of device, trace, report.
# WEIR_PROGRAM=build/release/weir WEIR_FAKE_CUDA_MODULE=... extras/motion/tests/test_motion_gpu.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../../../tests/tools/shell_checks.sh"
cd "$work" || exit 1
export WEIR_CUDA_MODULE=${WEIR_FAKE_CUDA_MODULE:?}

small=(--num_envs 64 --warmup 1 --active 2 --num_steps 6 --headless)

# trace FOLDER NAME PYTHON: e are the events of the trace.
trace() {
    check "$2" python3 - "$1"/*.pt.trace.json.gz <<PY
import gzip, json, sys
e = json.load(gzip.open(sys.argv[1]))["traceEvents"]
named = lambda name: [x for x in e if x["name"] == name and x["ph"] == "X"]
kernels = [x for x in e if x.get("cat") == "kernel"]
launches = {x["args"]["correlation"]: x for x in e if x.get("cat") == "cuda_runtime"}
within = lambda x, y: y["ts"] <= x["ts"] and x["ts"] + x["dur"] <= y["ts"] + y["dur"] + 0.002
memory = [x["args"] for x in e if x["name"] == "[memory]"]
$3
PY
}

run 0 motion --device cuda "${small[@]}" --trace_path ops
err "variant ops on GPU 0"
count '^Top 10 operations by CUDA time:$' 1
count '^ops, GPU 0 \(stand-in\): 86 operators in a fetch of 64 queries$' 1
trace ops "one kernel per operator, launched within its range" '
assert len(kernels) == 2 * 87, len(kernels)
for name, kernel, n in ("aten::index", "motion_index", 20), ("aten::lerp", "motion_lerp", 6), ("aten::linalg_cross", "motion_cross", 6):
    mine = [k for k in kernels if k["name"] == kernel]
    assert len(mine) == 2 * n, (kernel, len(mine))
    for k in mine:
        assert any(within(launches[k["args"]["correlation"]], x) for x in named(name)), kernel'
trace ops "temporaries are in GPU memory" '
assert memory and all(a["Device Type"] == 1 and a["Device Id"] == 0 for a in memory)
assert sum(a["Bytes"] for a in memory) == 0'

run 0 motion --variant fused "${small[@]}" --trace_path fused
err "variant fused on GPU 0"
count '^fused, GPU 0 \(stand-in\): 1 operator in a fetch of 64 queries$' 1
trace fused "one kernel per fetch, one that advances" '
assert sorted(k["name"] for k in kernels) == ["motion_advance"] * 2 + ["motion_pass_clocked"] * 2
for k in kernels:
    if k["name"] == "motion_pass_clocked":
        assert any(within(launches[k["args"]["correlation"]], x) for x in named("weir::motion_pass"))'
trace fused "the stages of the pass lie within their kernel" '
stages = [x for x in e if x.get("cat") == "gpu_stage" and "block" not in x["args"]]
names = ["calc_frame_blend", "indexing_data", "interpolation", "coordinate_transform", "store_buffers"]
assert [x["name"] for x in sorted(stages, key=lambda x: x["ts"])] == 2 * names, stages
for x in stages:
    assert any(within(x, k) for k in kernels if k["name"] == "motion_pass_clocked"), x'
out 'clocks inside motion_pass_clocked: 2 launches, 1 block of 132 each, 2 iterations'
for stage in calc_frame_blend indexing_data interpolation coordinate_transform store_buffers; do
    count "^$stage  *2 " 1
done
check "weir report reads the trace" "$weir" report fused/*.pt.trace.json.gz --export-clocks clocks.csv >/dev/null
check "and writes the stages, also by iteration for both launches" test "$(grep -c 'motion_pass_clocked.*,,,$' clocks.csv) $(grep -c 'motion_pass_clocked.*,0,0$' clocks.csv) $(wc -l <clocks.csv)" = "5 10 16"
run 0 motion --variant fused "${small[@]}" --trace_path fused --json
check "and so does --json" python3 -c '
import json, sys
clocks, = json.load(open(sys.argv[1]))["kernel_clocks"]
assert clocks["kernel"] == "motion_pass_clocked" and clocks["launches"] == 2, clocks
assert [s["laps"] for s in clocks["stages"]] == 5 * [2], clocks' "$work/out"

# ---- failures ----
run 1 motion --device cuda:1 "${small[@]}" --trace_path gone
err "there is no GPU 1"
one_line
export WEIR_FAKE_CUDA=fail=lost:120
run 1 motion --device cuda "${small[@]}" --trace_path lost
err "is lost"
export WEIR_FAKE_CUDA=memory_bytes=100000
run 1 motion --device cuda "${small[@]}" --trace_path small
err "use fewer environments"
export WEIR_FAKE_CUDA=none
run 0 motion "${small[@]}" --trace_path cpu
err "on the CPU"
finish
