#!/bin/bash
# weir motion: the report, the trace's ranges and operators, options, files, invalid input.
# WEIR_PROGRAM=build/release/weir extras/motion/tests/test_motion.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../../../tests/tools/shell_checks.sh"
cd "$work" || exit 1
export WEIR_CUDA_MODULE=/nowhere # without a GPU

small=(--num_envs 64 --warmup 1 --active 2 --num_steps 6)

only() { find "$1" -name '*.pt.trace.json.gz'; }

# trace FILE NAME PYTHON: t is the trace, e its events; nested(x, y): x lies within y, on the same thread.
trace() {
    check "$2" python3 - "$1" <<PY
import gzip, json, sys
t = json.load(gzip.open(sys.argv[1]))
e = t["traceEvents"]
named = lambda name: sorted((x for x in e if x["name"] == name and x["ph"] == "X"), key=lambda x: x["ts"])
nested = lambda x, y: x["tid"] == y["tid"] and y["ts"] <= x["ts"] and x["ts"] + x["dur"] <= y["ts"] + y["dur"] + 0.002
operators = sorted((x for x in e if x.get("cat") == "cpu_op"), key=lambda x: x["ts"])
memory = [x["args"] for x in e if x["name"] == "[memory]"]
$3
PY
}

# ---- no files without an option ----
before=$(find . | sort)
run 0 motion "${small[@]}"
check "nothing is written without --trace_path" [ "$(find . | sort)" = "$before" ]
no_out "trace: "
out "not written: the trace (--trace_path ./profiler_logs)"
run 0 motion "${small[@]}" --json
out '"trace": null'

# ---- the trainer's command line ----
run 0 motion --task Isaac-Velocity-Rough-Unitree-G1-v0 "${small[@]}" --trace_path ./profiler_logs --headless --wide
err "Isaac-Velocity-Rough-Unitree-G1-v0: 64 environments, 8 clips of synthetic"
err "29 dofs, 13 bodies; variant ops on the CPU; 6 steps, 2 of them recorded after 1"
one_line
count '^=+$' 2
count '^={80}$' 2
check "the title is between the two rules" [ "$(grep -A1 -m1 '^=' out | tail -1)" = "Top 10 operations by CPU time:" ]
count '^ +Name +Self CPU % +Self CPU +CPU total % ' 1
count '^ +(ProfilerStep\*|AnimationTerm::update|AnimationTerm::_fetch_motion_data|get_motion_state|get_motion_state_call) ' 5
check "ten rows" [ "$(sed -n '/^ *Name /,/^Self CPU time/p' out | grep -cE '^ +[A-Za-z_:*]+ +[0-9]')" -eq 10 ]
count '^Self CPU time total: ' 1
count '^ops, [0-9]+ threads?.*: 86 operators in a fetch of 64 queries$' 1
count '^3 steps without the profiler: median [0-9.]+ ms per step \(min [0-9.]+, p99 [0-9.]+, max [0-9.]+\), [0-9]+ queries/s$' 1
out "trace: ./profiler_logs/"
trace "$(only profiler_logs)" "the ranges are nested as in the trainer, once per step" '
assert sorted(x["name"] for x in e if x["name"].startswith("ProfilerStep#")) == ["ProfilerStep#1", "ProfilerStep#2"]
tree = {"AnimationTerm::update": None, "AnimationTerm::_fetch_motion_data": "AnimationTerm::update",
        "prepare_query": "AnimationTerm::_fetch_motion_data", "get_motion_state_call": "AnimationTerm::_fetch_motion_data",
        "store_buffers": "AnimationTerm::_fetch_motion_data", "get_motion_state": "get_motion_state_call",
        "calc_frame_blend": "get_motion_state", "indexing_data": "get_motion_state", "interpolation": "get_motion_state",
        "coordinate_transform": "get_motion_state"}
for name, outer in tree.items():
    inside = named(name)
    assert len(inside) == 2 and all(x["cat"] == "user_annotation" for x in inside), name
    for x, y in zip(inside, named(outer) if outer else inside):
        assert nested(x, y), (name, outer)
for a, b in ("prepare_query", "get_motion_state_call"), ("get_motion_state_call", "store_buffers"), \
        ("calc_frame_blend", "indexing_data"), ("indexing_data", "interpolation"), ("interpolation", "coordinate_transform"):
    for x, y in zip(named(a), named(b)):
        assert x["ts"] + x["dur"] <= y["ts"] + 0.002, (a, b)'
trace "$(only profiler_logs)" "86 operators per fetch with torch's names and shapes, and one that advances" '
assert len(operators) == 2 * 87, len(operators)
count = lambda name, outer: sum(nested(x, y) for x in named(name) for y in named(outer))
assert count("aten::index", "indexing_data") == 2 * 14
assert count("aten::index", "prepare_query") == 2 * 2 and count("aten::repeat_interleave", "prepare_query") == 2
assert count("aten::lerp", "interpolation") == 2 * 6 and count("aten::sin", "interpolation") == 2 * 3
assert count("aten::linalg_cross", "coordinate_transform") == 2 * 6 and count("aten::clone", "coordinate_transform") == 2
assert count("aten::index_put_", "store_buffers") == 2 * 9 and count("aten::add_", "AnimationTerm::update") == 2
assert {tuple(map(tuple, x["args"]["Input Dims"])) for x in named("aten::lerp")} >= {((64, 3), (64, 3), (64,)), ((64, 29), (64, 29), (64,)), ((64, 13, 3), (64, 13, 3), (64,))}
assert all(x["args"]["Input Dims"] for x in operators if x["name"] != "aten::arange")
assert t["record_shapes"] == 1 and t["profile_memory"] == 1 and t["with_stack"] == 1
assert any("Call stack" in x.get("args", {}) for x in operators)
assert t["weir_task"] == "Isaac-Velocity-Rough-Unitree-G1-v0" and t["weir_num_envs"] == 64'
trace "$(only profiler_logs)" "each operator allocates what it returns, and all of it is freed" '
assert sum(a["Bytes"] for a in memory) == 0 and all(a["Device Type"] == 0 for a in memory)
taken = [a for a in memory if a["Bytes"] > 0]
assert len(taken) == 2 * 77, len(taken)
assert max(a["Bytes"] for a in taken) == 64 * 13 * 4 * 4'
check "weir report reads the trace" "$weir" report "$(only profiler_logs)" >/dev/null

# ---- the other variant ----
run 0 motion --variant fused "${small[@]}" --num_steps_to_use 4 --trace_path fused --threads 1 --seed 3
err "64 environments with 4 steps each"
err "variant fused on the CPU"
count '^fused, 1 thread.*: 1 operator in a fetch of 256 queries$' 1
trace "$(only fused)" "one pass per fetch, without temporaries" '
assert len(named("weir::motion_pass")) == 2 and len(operators) == 4 and not memory
for x, y in zip(named("weir::motion_pass"), named("get_motion_state")):
    assert nested(x, y)
assert not named("interpolation") and named("weir::motion_pass")[0]["args"]["Input Dims"][1:] == [[64], [64, 4]]'

# ---- each piece of advice alone: operators per fetch as in docs/internals/motion.md ----
while read -r advice operators; do
    run 0 motion "${small[@]}" --advice "$advice" --trace_path "advice_$advice" --device cpu
    check "$advice: $operators operators" grep -q ": $operators operators in a fetch of 64 queries\$" out
    check "$advice: the docs have this number" grep -qE "^\| \`?$advice(of them)?[\` :].* \| $operators \|" "$WEIR_SOURCE/docs/internals/motion.md"
done <<'LIST'
none 86
indices 65
in_place_lerp 86
fast_slerp 68
rotations 77
no_copies 84
preallocated 77
all 31
LIST
err "variant ops with all advice on the CPU"
trace "$(only advice_fast_slerp)" "the trace has the operator that the advice adds" 'assert len(named("weir::fast_slerp")) == 2 and not named("aten::acos")'
run 2 motion "${small[@]}" --variant fused --advice indices
err "--advice indices: the variant fused has no operators to change; remove --variant"
run 2 motion "${small[@]}" --advice often

# ---- smaller traces ----
size() { stat -c %s "$(only "$1")"; }
run 0 motion "${small[@]}" --trace_path whole --device cpu
for left_out in shapes memory stack; do
    run 0 motion "${small[@]}" --no_$left_out --trace_path "no_$left_out" --device cpu
    check "without $left_out the trace is smaller" [ "$(size "no_$left_out")" -lt "$(size whole)" ]
done
trace "$(only no_shapes)" "no shapes" 'assert not any("Input Dims" in x.get("args", {}) for x in e) and not t.get("record_shapes") and memory'
trace "$(only no_memory)" "no memory" 'assert not memory and not t.get("profile_memory") and any("Input Dims" in x.get("args", {}) for x in e)'
trace "$(only no_stack)" "no stacks" 'assert not any("Call stack" in x.get("args", {}) for x in e) and not t.get("with_stack") and memory'

# ---- clips from a file ----
python3 - <<'PY'
import struct, zipfile
def npy(shape, values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}f", *values)
frames, dofs, bodies = 11, 3, 4
with zipfile.ZipFile("walk.npz", "w") as z:
    z.writestr("fps.npy", npy((), [10]))
    for name, shape in ("joint_pos", (frames, dofs)), ("body_pos_w", (frames, bodies, 3)):
        n = frames * (dofs if len(shape) == 2 else bodies * 3)
        z.writestr(name + ".npy", npy(shape, [i % 7 / 7 for i in range(n)]))
    z.writestr("body_quat_w.npy", npy((frames, bodies, 4), [1, 0, 0, 0] * (frames * bodies)))
PY
run 0 motion --motion walk.npz --root_body 1 --key_bodies 0,3 --loop always "${small[@]}" --trace_path file_trace
err "1 clip of walk.npz (11 frames, 1.0 s, 1 of them loops), 3 dofs, 2 bodies"
run 1 motion --motion walk.npz --key_bodies 9 "${small[@]}" --trace_path gone
err "walk.npz"
one_line

# ---- figures, steps ----
run 0 motion "${small[@]}" --json --trace_path json --device cpu --loop always
check "the figures are complete" python3 - out <<'PY'
import json, os, sys
m = json.load(open(sys.argv[1]))
assert m["type"] == "motion" and m["gpu"] == -1 and m["operators"] == 86 and m["timed_steps"] == 3, m
assert m["options"]["num_envs"] == 64 and m["options"]["variant"] == "ops" and m["options"]["loop"] == "always", m
assert 0 < m["min_ms"] <= m["median_ms"] <= m["p99_ms"] <= m["max_ms"] and m["queries_per_s"] > 0, m
assert os.path.exists(m["trace"]), m
PY
err "8 of them loop)"
run 0 motion --num_envs 3 --warmup 0 --active 2 --num_steps 2 --trace_path none
out "no step ran without the profiler"

# ---- invalid input ----
for bad in "--num_envs 0" "--num_steps 0" "--active 0" "--warmup -1" "--variant quick" "--device gpu" "--loop sometimes" "--num_steps_to_use 0" \
    "--threads 0" "extra" "--num_steps 14"; do
    # shellcheck disable=SC2086
    run 2 motion $bad
    check "$bad: nothing on stdout" [ ! -s "$work/out" ]
done
err "--num-steps 14 is less than --warmup 5 and --active 10 together; use at least 15"
run 2 motion --warmup 1000000 --active 10 --num_steps 1000000
err "--warmup 1000000 and --active 10 exceed 1000000 steps together; use smaller numbers"
for option in root-body key-bodies; do
    run 2 motion --$option hip
    err "--$option selects bodies in a file; add --motion FILE"
done
run 1 motion --device cuda "${small[@]}" --trace_path gone
err "weir motion: "
one_line
check "no folder is made" [ ! -e gone ]
run 1 motion --motion nothing.npz "${small[@]}" --trace_path gone
err "weir motion: nothing.npz: "
one_line
check "no folder is made for a missing file" [ ! -e gone ]
run 1 motion --num_envs 100000000 --num_steps_to_use 40 --num_steps 20 --trace_path huge
err "motion: 4000000000 queries and"
err "GiB is free; use fewer environments"
: >file
run 1 motion "${small[@]}" --trace_path file/traces
err "file/traces: the folder of --trace_path cannot be created: "

# ---- Ctrl-C: stops between two steps, with exit status 130 and the figures so far ----
"$weir" motion --num_envs 64 --num_steps 1000000 --trace_path stopped >out 2>err &
pid=$!
until [ -n "$(only stopped 2>/dev/null)" ]; do sleep 0.05; done
kill -INT $pid
wait $pid
check "Ctrl-C is exit 130 (was $?)" [ $? -eq 130 ]
err "weir motion: interrupted; the figures cover the steps so far"
check "the report is printed" grep -q "^Top 10 operations by " out
check "so are the steps so far" grep -qE "^([0-9]+ steps|no step ran) without the profiler" out
check "the trace is named" grep -q "^trace: .*stopped/" out
"$weir" motion --num_envs 64 --warmup 900000 --num_steps 1000000 --trace_path early >out 2>err &
pid=$!
until grep -q " recorded after 900000" err; do sleep 0.05; done
kill -TERM $pid
wait $pid
check "SIGTERM before anything is recorded is exit 143 (was $?)" [ $? -eq 143 ]
err "weir motion: interrupted; no figures"
check "no figures" [ ! -s out ]
finish
