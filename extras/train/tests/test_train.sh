#!/bin/bash
# `weir train`: the command line of ACT users, falling losses, checkpoints and bit-exact resuming, tables in both
# languages, Ctrl-C, invalid input.
# Usage: WEIR_PROGRAM=build/release/weir extras/train/tests/test_train.sh
# shellcheck disable=SC2016 # programs that it writes expand the variables
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../../../tests/tools/shell_checks.sh"
unset WEIR_DATASETS

synth() { "$weir" synth "$work/$1" --format "$2" --episodes "$3" --steps "$4" --size "$5" "${@:6}" >/dev/null || exit 1; }
mkdir "$work/sets"
synth jpeg act-jpeg 5 12 32x32 --cameras top,wrist
synth sets/astrobench_dual_arm astrobench 4 8 32x24
data=$work/jpeg
small=(--hidden-dim 16 --dim-feedforward 32 --chunk-size 4 --batch-size 4)

"$weir" train "$data" "${small[@]}" --max-batches 1 >/dev/null 2>"$work/err"
if grep -q 'libopenblas' "$work/err"; then
    echo "skipped: no OpenBLAS here"
    exit 77
fi

# log NAME PYTHON: `lines` are the log's lines; runs, epochs and tables are those of one type.
log() {
    check "$1" python3 - "$work/log" <<PY
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1], encoding="utf-8")]
runs, epochs, tables = ([l for l in lines if l["type"] == t] for t in ("run", "epoch", "stages"))
stage = lambda t, name: next((s for s in t["stages"] if s["name"] == name), None)
$2
PY
}

# ---- the command line of ACT users ----
act=(--task_name astrobench_dual_arm --ckpt_dir "$work/ckpt_profile" --policy_class CNN --kl_weight 10 --chunk_size 20
    --hidden_dim 512 --batch_size 4 --dim_feedforward 3200 --num_epochs 1 --lr 1e-5 --seed 0)
WEIR_DATASETS=$work/sets run 0 train "${act[@]}" --log "$work/log"
count '^epoch 1/1 total [0-9.]+ s \| train [0-9.]+ s \| val [0-9.]+ s \| data wait [0-9.]+ % \| .* \| train loss [0-9.]+ \| val loss [0-9.]+ \| ' 1
count '^10_val_forward_pass +consumer-work +2 ' 1
count '^20_train_forward_pass +consumer-work +6 ' 1
count '^21_backward +consumer-work +6 ' 1
count '^22_optimizer_step +consumer-work +6 ' 1
count '^26_checkpoint +consumer-work +2 ' 1
count '^00_TOTAL_getitem +span +32 ' 1
count '^  shares of the step: data wait [0-9.]+ % \| forward [0-9.]+ % \| backward [0-9.]+ %( \| optimiser [0-9.]+ %)?( \| batch release [0-9.]+ %)? \| unattributed [0-9.]+ %$' 1
count '^  backward over forward: [0-9.]+ \(1 to 2 is usual\)' 1
count '^  a longer run +for example  --num-epochs 10$' 1
err "policy: CNN, "
err "ignored by CNN: --kl-weight"
err "checkpoints: $work/ckpt_profile/policy_last.safetensors"
check "both checkpoints exist, and nothing else" [ "$(find "$work/ckpt_profile" -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" = "policy_best.safetensors policy_last.safetensors " ]
log "the log has the losses, the policy, and the shares of the step" '
assert len(epochs) == 1 and epochs[0]["train_loss"] > 0 and epochs[0]["val_loss"] > 0, epochs
p = runs[0]["used"]["policy"]; c = runs[0]["config"]
assert p["class"] == "CNN" and p["parameters"] > 1000 and p["engine"] and not p["resumed"], p
assert c["lr"] == 1e-5 and c["hidden_dim"] == 512 and c["grad_accumulation"] == 1 and c["task_name"] == "astrobench_dual_arm", c
s = tables[-1]["verdict"]["step_shares"]
assert s["forward"] > 0 and s["backward"] > 0 and s["optimizer"] > 0 and s["backward_over_forward"] > 0, s
assert abs(s["data_wait"] + s["forward"] + s["backward"] + s["optimizer"] + s["release"] + s["unattributed"] - 1) < 1e-6, s
assert abs(s["backward"] / s["forward"] / s["backward_over_forward"] - 1) < 1e-6, s'
check "a checkpoint follows the safetensors format and contains its options" python3 - "$work/ckpt_profile/policy_last.safetensors" <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
(n,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + n])
meta = header.pop("__metadata__")
assert meta["hidden-dim"] == "512" and meta["lr"] == "1e-05" and meta["epoch"] == "1" and meta["optimizer_steps"] == "6", meta
assert any(k.startswith("optimizer.") for k in header) and any(not k.startswith("optimizer.") for k in header)
assert max(v["data_offsets"][1] for v in header.values()) == len(data) - 8 - n
PY
WEIR_DATASETS=$work/sets run 0 train "${act[@]}" --amp --grad_accumulation 2
err "--amp is ignored: the CPU computes in float32"
err "ignored by CNN: --kl-weight"
cp -r "$work/sets/astrobench_dual_arm" "$work/here"
run 0 train --dataset_dir "$work/here" "${small[@]}"
err "checkpoints: none; use --ckpt-dir DIR to save the policy"

# ---- ACT, in PyTorch ----
# python FILE COMMAND...: a program that stands for Python: it runs COMMAND with the arguments of weir in "$@".
python() {
    mkdir -p "$(dirname "$1")"
    printf '#!/bin/bash\n[ "$1" = -c ] || exit 99\ncode=$2\nshift 2\n%s\n' "${*:2}" >"$1"
    chmod +x "$1"
}
usual=(--task_name astrobench_dual_arm --ckpt_dir "it's here" --policy_class ACT --kl_weight=10 --eval "" "$data")
python "$work/path/python3" 'printf "<%s>\n" "$@"; grep SigIgn /proc/$$/status; echo "$$" >&2; exit 7'
PATH=$work/path:$PATH "$weir" train "${usual[@]}" >"$work/out" 2>"$work/err" &
pid=$!
wait "$pid"
check "the exit status is that of Python" [ $? -eq 7 ]
check "Python has the arguments as typed" [ "$(grep '^<' "$work/out")" = "$(printf '<%s>\n' "${usual[@]}")" ]
check "Python replaces weir, so that signals reach it" [ "$(cat "$work/err")" = "$pid" ]
check "and does not ignore SIGPIPE and SIGXFSZ" [ $((0x$(sed -n 's/SigIgn:[[:space:]]*//p' "$work/out") & 0x1001000)) -eq 0 ]
PATH=$work/path:$PATH run 7 train --policy-class CNN --policy-class=ACT --help
out "<--help>"
PATH=$work/path:$PATH run 2 train --policy-class ACT --policy-class MLP
python "$work/only/python" 'echo python; exit 3'
PATH=$work/only run 3 train --policy_class ACT
PATH=$work/none run 1 train --policy_class ACT
err "--policy-class ACT runs in PyTorch, but Python cannot be started: No such file or directory; install Python 3.11"
one_line
# The Python of the package that is installed together with the program comes before PATH's.
mkdir -p "$work/venv/bin" "$work/venv/lib/python3.99/site-packages/weir"
cp "$weir" "$work/venv/bin/weir"
touch "$work/venv/lib/python3.99/site-packages/weir/__init__.py"
for at in user venv/bin; do # as installed with pip --user, and in a virtual environment
    python "$work/$at/python3.99" "echo $at; exit 5"
    PATH=$work/user:$work/path:$PATH "$work/venv/bin/weir" train --policy_class ACT >"$work/out" 2>"$work/err"
    check "the program of a package uses its Python" [ "$?:$(cat "$work/out")" = "5:$at" ]
done
if /usr/bin/python3 -S -c '' 2>/dev/null; then
    python "$work/bare/python3" 'exec /usr/bin/python3 -S -c "$code" "$@"'
    PATH=$work/bare:$PATH PYTHONPATH='' run 1 train --policy_class ACT
    err "weir train: --policy-class ACT runs in PyTorch, but /usr/bin/python3 has no package weir-loader; run /usr/bin/python3 -m pip install weir-loader torch numpy"
    one_line
fi
package=$(dirname "$weir")/python
if [ -f "$package/weir/_weir.abi3.so" ] && [ -x "$work/bare/python3" ]; then
    mkdir -p "$work/no/numpy"
    echo "raise ModuleNotFoundError('not here', name='numpy')" >"$work/no/numpy/__init__.py"
    PATH=$work/bare:$PATH PYTHONPATH=$work/no:$package run 1 train --policy_class ACT
    err "imitate_episodes: /usr/bin/python3 cannot import numpy (not here); "
    err "run /usr/bin/python3 -m pip install weir-loader torch numpy"
    one_line
fi
if [ -f "$package/weir/_weir.abi3.so" ] && /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    python "$work/torch/python3" 'exec /usr/bin/python3 -c "$code" "$@"'
    act_command=("${act[@]/CNN/ACT}" --hidden_dim 64 --dim_feedforward 128 --lang zh) # the later ones take precedence
    WEIR_DATASETS=$work/sets PYTHONPATH=$package PATH=$work/torch:$PATH "$weir" train "${act_command[@]}" 2>&1 | tee "$work/out" >/dev/null
    check "ACT is trained" [ "${PIPESTATUS[0]}" -eq 0 ]
    count '^Epoch 1/1 总耗时: .* \| 训练损失: [0-9.]+ \| 验证损失: [0-9.]+$' 1
    check "grep -A 20 性能分析统计 finds the stages" [ "$(grep -A 20 "性能分析统计" "$work/out" | grep -cE '^(00_TOTAL_getitem|03b_image_decode|10_val_forward_pass|20_train_forward_pass|21_backward|22_optimizer_step) +\| 总计: ')" -eq 6 ]
    check "checkpoints of ACT are beside the others" [ -s "$work/ckpt_profile/policy_best.ckpt" ]
    WEIR_DATASETS=$work/sets PYTHONPATH=$package PATH=$work/torch:$PATH run 2 train "${act_command[@]}" --onscreen_render
    err "imitate_episodes: --onscreen_render: it needs ACT's simulator or a robot"
fi

# ---- it learns ----
synth many act-jpeg 24 12 32x32 --cameras top,wrist
run 0 train "$work/many" --hidden-dim 64 --dim-feedforward 128 --chunk-size 4 --lr 3e-3 --num-epochs 15 --train-split 0.8 --every 0 --log "$work/log"
log "the loss falls to less than half" '
assert len(epochs) == 15 and epochs[-1]["train_loss"] < 0.5 * epochs[0]["train_loss"], [e["train_loss"] for e in epochs]
assert epochs[-1]["val_loss"] < epochs[0]["val_loss"], [e["val_loss"] for e in epochs]'
log "advice for the step names the options of weir train" '
t = tables[-1]; v = t["verdict"]; s = v["step_shares"]
assert t["steps"]["own_step"], t["steps"]
names = {a["name"]: a for a in v["stage_advice"]}
if v["data_bound"] and s["backward"] == max(x for k, x in s.items() if k != "backward_over_forward"):
    assert "--chunk-size" in names["backward"]["advice"], v
assert all("--" in a["advice"] for a in names.values()), v'
run 0 train "$data" "${small[@]}" --train-split 1 --num-epochs 2 --ckpt-dir "$work/no-val"
err "the validation split is empty"
check "without validation the best checkpoint is by training loss" [ -s "$work/no-val/policy_best.safetensors" ]
check "and there is no validation loss" lacks "$work/out" 'val loss'

# ---- tables: every N epochs, two languages, the log ----
for lang in en zh; do
    run 0 train "$data" "${small[@]}" --num-epochs 3 --every 2 --lang $lang --log "$work/log"
    cp "$work/out" "$work/live"
    run 0 report "$work/log" --lang $lang
    check "weir report --lang $lang repeats the run's tables" python3 -c '
import sys
live, report = (open(p, encoding="utf-8").read() for p in sys.argv[1:])
assert len(live) > 1000 and live in report' "$work/live" "$work/out"
done
grep -A 20 "性能分析统计" "$work/live" >"$work/grepped"
for word in 00_TOTAL_getitem 03b_image_decode 08_wait_for_data 10_val_forward_pass 20_train_forward_pass 21_backward 22_optimizer_step; do
    check "grep -A 20 性能分析统计 finds $word" [ "$(grep -cE "^$word +\| 总计: +[0-9.]+s \| 调用: +[0-9]+次 \| 平均: +[0-9.]+ms$" "$work/grepped")" -eq 2 ]
done
check "grep Epoch.*总耗时 finds the epochs, with losses" [ "$(grep -c "Epoch.*总耗时.*训练损失: .*验证损失: " "$work/live")" -eq 3 ]
check "grep 耗时: finds the epochs" [ "$(grep -c "耗时:" "$work/live")" -eq 3 ]
check "backward over forward" grep -q 'backward over forward: ' "$work/live"
run 0 train "$data" "${small[@]}" --no-timing
out "stage timing was off (--no-timing)"
count '^epoch 1/1 .* train loss ' 1
run 0 train "$data" "${small[@]}" --log -
check "with --log - every line of stdout is JSON" python3 -c '
import json, sys
assert [json.loads(l)["type"] for l in open(sys.argv[1])] == ["run", "start", "epoch", "stages"]' "$work/out"
run 0 train "$data" "${small[@]}" --json
check "with --json stdout is one object" python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))
assert found["schema"] == 1 and found["epochs"][0]["train_loss"] > 0 and found["report"]["final"], found' "$work/out"

# ---- a trace ----
run 0 train "$data" "${small[@]}" --num-epochs 2 --profile "$work/trace" --record-shapes
count '^profile: steps 2 to 4, ' 1
check "the trace has steps and their stages" python3 - "$work/trace" <<'PY'
import glob, gzip, json, sys
(path,) = glob.glob(sys.argv[1] + "/*")
events = json.load(gzip.open(path) if path.endswith("gz") else open(path))["traceEvents"]
names = [e.get("name") for e in events]
assert sum(str(n).startswith("ProfilerStep#") for n in names) >= 3
for stage in ("20_train_forward_pass", "21_backward", "22_optimizer_step"):
    assert names.count(stage) >= 3, stage
PY

# ---- cameras of several sizes, and depth ----
run 0 train "$data" "${small[@]}" --crop wrist=16x24+0+0
err "wrist 16x24 (of 16x24+0+0)"
run 0 train "$data" "${small[@]}" --image-size 16x16 --mean imagenet --std imagenet --cameras wrist
err "cameras: wrist 16x16"
run 0 train "$work/here" "${small[@]}" --cameras rgb_main,depth_main
err "depth cameras are ignored: depth_main"
run 1 train "$work/here" "${small[@]}" --cameras depth_main
err "the policy needs a colour camera"
one_line

# ---- resuming: the same bytes as without interruption ----
same() {
    for name in policy_last policy_best; do
        check "$name equals that of an uninterrupted run: $1" cmp -s "$work/whole/$name.safetensors" "$work/parts/$name.safetensors"
    done
}
for accumulation in 1 4; do
    rm -rf "$work/whole" "$work/parts"
    options=("${small[@]}" --lr 1e-3 --grad-accumulation "$accumulation")
    run 0 train "$data" "${options[@]}" --num-epochs 4 --ckpt-dir "$work/whole"
    run 0 train "$data" "${options[@]}" --num-epochs 2 --ckpt-dir "$work/parts" --resume
    err "no checkpoint yet, training starts from scratch"
    run 0 train "$data" "${options[@]}" --num-epochs 4 --ckpt-dir "$work/parts" --resume
    err "checkpoints: resuming from $work/parts/policy_last.safetensors"
    same "accumulation $accumulation"
done
run 0 train "$data" "${options[@]}" --num-epochs 4 --ckpt-dir "$work/parts" --resume
same "nothing is left to do"

# ---- Ctrl-C at any point ----
rm -rf "$work/parts" "$work/log"
"$weir" train "$data" "${options[@]}" --num-epochs 100000 --every 0 --ckpt-dir "$work/parts" --log "$work/log" >"$work/out" 2>"$work/err" </dev/null &
pid=$!
until grep -q '"epoch":1,' "$work/log" 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -INT $pid
wait $pid
status=$?
check "Ctrl-C exits with 130 (was $status)" [ "$status" -eq 130 ]
count '^whole run \(interrupted\): epoch' 1
count '^21_backward ' 1
epochs=$(python3 - "$work/parts/policy_last.safetensors" <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
meta = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"]
print(int(meta["epoch"]) + 1)
PY
)
run 0 train "$data" "${options[@]}" --num-epochs "$epochs" --every 0 --ckpt-dir "$work/parts" --resume
rm -rf "$work/whole"
run 0 train "$data" "${options[@]}" --num-epochs "$epochs" --every 0 --ckpt-dir "$work/whole"
same "after Ctrl-C in epoch $epochs"

# ---- checkpoints that do not fit, or are damaged ----
refused() {
    run 1 train "$data" "${options[@]}" --num-epochs 6 --ckpt-dir "$work/parts" --resume "${@:2}"
    err "$1"
    one_line
}
refused "policy_last.safetensors: --lr was 0.001 when this checkpoint was saved, but now it is 0.01; use the same value, or choose another --ckpt-dir" --lr 1e-2
refused "--hidden-dim was 16 when this checkpoint was saved, but now it is 24" --hidden-dim 24
refused "--cameras was not set when this checkpoint was saved, but now it is top" --cameras top
refused "--drop-last was false when this checkpoint was saved, but now it is true" --drop-last
cp "$work/parts/policy_last.safetensors" "$work/whole.safetensors"
synth other act-jpeg 6 12 32x32 --cameras top,wrist
data=$work/other refused "number-of-episodes"
head -c 5000 "$work/whole.safetensors" >"$work/parts/policy_last.safetensors"
refused "policy_last.safetensors"
echo nonsense >"$work/parts/policy_last.safetensors"
refused "policy_last.safetensors"
python3 - "$work/whole.safetensors" "$work/parts/policy_last.safetensors" <<'PY'
import sys
data = open(sys.argv[1], "rb").read()
open(sys.argv[2], "wb").write(data.replace(b'"next_batch":"', b'"next_batch":"-', 1).replace(b'"data_0":"0"', b'"data_0":""', 1))
PY
refused "is not a checkpoint of this version of weir train"
run 0 train "$data" "${options[@]}" --ckpt-dir "$work/parts"

# ---- a full disk ----
run 0 train "$data" "${small[@]}" --ckpt-dir "$work/full"
cp "$work/full/policy_last.safetensors" "$work/before"
(ulimit -f 200 && "$weir" train "$data" "${small[@]}" --num-epochs 3 --ckpt-dir "$work/full" --resume >"$work/out" 2>"$work/err")
status=$?
check "a checkpoint that cannot be written is exit 1 (was $status)" [ "$status" -eq 1 ]
err "safetensors: cannot be written: File too large"
check "and the previous one is intact" cmp -s "$work/before" "$work/full/policy_last.safetensors"
check "and nothing is left behind" [ "$(find "$work/full" -type f | wc -l)" -eq 2 ]
run 1 train "$data" "${small[@]}" --num-epochs 1 --batch-size 2 --ckpt-dir "$work/full" --resume
err "--batch-size was 4 when this checkpoint was saved, but now it is 2"

# ---- invalid input ----
usage() {
    run 2 train "$data" "$@"
    check "nothing on stdout" [ ! -s "$work/out" ]
}
run 2 train "${small[@]}"
err "no data is given; use weir train DATA or --dataset-dir DIR, or put the data into \$WEIR_DATASETS/NAME and use --task-name NAME"
one_line
usage --policy-class MLP
err '--policy-class "MLP" does not exist; use CNN'
echo "policy-class = ACT" >"$work/act.toml"
usage --config "$work/act.toml"
err "--policy-class ACT is in the --config file, which ACT does not read; type its options"
# Options of ACT's script and of DETR's parser: refused, with the reason.
while read -r option words; do
    usage "--$option"
    option=${option//_/-}
    err "weir train: --${option%%=*}: $words"
done <<'EOF'
onscreen_render it needs ACT's simulator or a robot, which weir does not have; leave it out
temporal_agg it needs ACT's simulator
eval CNN is validated after each epoch
enc_layers=4 only ACT has it; add --policy-class ACT
backbone=resnet18 only ACT has it
grad_checkpoint only ACT has it
camera_names=top use --cameras A,B
num_queries=100 use --chunk-size
epochs=3 use --num-epochs
masks it has no effect on training here; leave it out
EOF

usage --resume
err "add --ckpt-dir DIR"
usage --ckpt-dir ""
for bad in --lr=x --lr=-1 --hidden-dim=0 --dim-feedforward=x --grad-accumulation=0 --weight-decay=-1 --kl-weight=ten \
    --chunk-size=0 --batch-size=0 --num-workers=x --device=gpu --step-ms=5 --dtype=u8 --mean=red --amp=yes; do
    usage "$bad"
    err "${bad%%=*}"
done
WEIR_CUDA_MODULE=$work/no-module.so run 1 train "$data" --device cuda
err "$work/no-module.so"
one_line
run 1 train "$work/nowhere"
err "$work/nowhere"
one_line
WEIR_DATASETS=$work/sets run 1 train --task_name another
err "$work/sets/another"
one_line
run 1 train "$data" --ckpt-dir "$data/episode_0.hdf5"
err "--ckpt-dir cannot be created: Not a directory"
one_line
run 1 train "$data" --ckpt-dir /proc/self/nothing
err "/proc/self/nothing: --ckpt-dir cannot be created"
one_line
run 1 train "$data" "${small[@]}" --lr 10 --weight-decay 10 --num-epochs 200 --every 0
err "the training has diverged; try a smaller --lr (now 10)"
no_out "whole run" # too short to report more than the error
cp -r "$data" "$work/bad"
python3 - "$work/bad/episode_2.hdf5" <<'PY'
import re, sys
with open(sys.argv[1], "r+b") as f:
    f.seek([m.start() for m in re.finditer(b"\xff\xd8\xff", f.read())][14])
    f.write(bytes(3))
PY
run 1 train "$work/bad" "${small[@]}"
err "episode_2.hdf5"
run 0 train "$work/bad" "${small[@]}" --on-error skip --batch-size 1
out "errors: 1 bad frames, 1 samples skipped"
head -c 3000 "$data/episode_1.hdf5" >"$work/bad/episode_1.hdf5"
run 1 train "$work/bad" "${small[@]}"
err "episode_1.hdf5"
one_line

# ---- real episodes, if available ----
real=$(dirname "$0")/../../../../shared/data/episodes
if [ -d "$real" ]; then
    for set in actpp_jpeg actpp_jpeg_512x384 astrobench astrobench_512x384 robotwin; do
        run 0 train "$real/$set" --hidden-dim 32 --dim-feedforward 64 --batch-size 4 --image-size 80x60 --ckpt-dir "$work/real-$set" --lang zh
        check "$set: all three greps find their lines" [ "$(grep -A 20 "性能分析统计" "$work/out" | grep -cE '^(20_train_forward_pass|21_backward|22_optimizer_step) ')" -eq 3 ]
        check "$set: epoch lines" [ "$(grep -c "Epoch.*总耗时" "$work/out")" -eq 1 ]
    done
else
    echo "skipped: no real episodes under $real"
fi
finish
