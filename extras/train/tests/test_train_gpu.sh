#!/bin/bash
# `weir train --device cuda` on the stand-in GPU, whose networks run the CPU's code: the same losses as on the CPU,
# stages by the GPU's clock, bit-exact resuming, a lost GPU, too little GPU memory.
# Usage: WEIR_PROGRAM=build/release/weir WEIR_FAKE_CUDA_MODULE=build/release/tests/libweir_fake_cuda.so extras/train/tests/test_train_gpu.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../../../tests/tools/shell_checks.sh"
export WEIR_CUDA_MODULE=${WEIR_FAKE_CUDA_MODULE:?}

"$weir" synth "$work/data" --format act-jpeg --episodes 5 --steps 12 --size 48x32 --cameras top,wrist >/dev/null || exit 1
data=$work/data
small=(--hidden-dim 16 --dim-feedforward 32 --chunk-size 4 --batch-size 4 --lr 1e-3)
# The stand-in computes on one thread, so this run must too: another order of summation changes the bits.
same=(--num-workers 0)

taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[,-].*//')" "$weir" train "$data" "${small[@]}" "${same[@]}" --num-epochs 3 \
    --ckpt-dir "$work/cpu" >"$work/cpu.txt" 2>"$work/err"
if grep -q 'libopenblas' "$work/err"; then
    echo "skipped: no OpenBLAS here"
    exit 77
fi
losses() { grep -o 'train loss [0-9.]* | val loss [0-9.]*' "$1"; }

run 0 train "$data" "${small[@]}" "${same[@]}" --device cuda --num-epochs 3 --ckpt-dir "$work/gpu" --log "$work/log"
err "policy: CNN, "
err "GPU 0 (stand-in)"
check "the losses equal the CPU's" [ "$(losses "$work/out")" = "$(losses "$work/cpu.txt")" ]
check "three epochs have losses" [ "$(losses "$work/out" | wc -l)" = 3 ]
for stage in 20_train_forward_pass 21_backward 22_optimizer_step; do
    count "^$stage +consumer-work +36 " 1
    count "^$stage +gpu-work +36 " 1
done
count '^10_val_forward_pass +gpu-work +9 ' 1
count '^  shares of the step: data wait [0-9.]+ % \| forward [0-9.]+ % \| backward [0-9.]+ %( \| optimiser [0-9.]+ %)?( \| batch release [0-9.]+ %)? \| unattributed [0-9.]+ %$' 1
count '^  backward over forward: [0-9.]+' 1
check "the parts of a step add up to its time on the GPU, and each has some" python3 - "$work/log" <<'PY'
import json, sys
table = [json.loads(l) for l in open(sys.argv[1], encoding="utf-8")][-1]
while table["type"] != "stages":
    table = [json.loads(l) for l in open(sys.argv[1], encoding="utf-8") if '"type":"stages"' in l][-1]
rows = {r["name"]: r for r in table["gpu"]["stages"]}
parts = [rows[n]["total_s"] for n in ("10_val_forward_pass", "20_train_forward_pass", "21_backward", "22_optimizer_step")]
assert all(p > 0 for p in parts), parts
share = table["verdict"]["step_shares"]
assert share["forward"] > 0 and share["backward"] > 0 and share["optimizer"] > 0, share
PY

# ---- resuming ----
run 0 train "$data" "${small[@]}" --device cuda --num-epochs 1 --ckpt-dir "$work/parts"
run 0 train "$data" "${small[@]}" --device cuda --num-epochs 3 --ckpt-dir "$work/parts" --resume
err "resuming from"
for file in policy_last policy_best; do
    check "$file of a resumed run equals that of an uninterrupted one" cmp "$work/gpu/$file.safetensors" "$work/parts/$file.safetensors"
done
run 0 train "$data" "${small[@]}" --device cuda --num-epochs 2 --grad-accumulation 5 --max-batches 4 --amp --ckpt-dir "$work/more"
err "mixed precision"
check "mixed precision is not ignored" lacks "$work/err" "--amp is ignored"
run 0 train "$data" "${small[@]}" --device cuda --num-epochs 3 --grad-accumulation 5 --max-batches 4 --amp --ckpt-dir "$work/more" --resume

# ---- in Chinese ----
run 0 train "$data" "${small[@]}" --device cuda --num-epochs 1 --lang zh
check "the table has the stages" [ "$(grep -A 20 '性能分析统计' "$work/out" | grep -cE '2[012]_')" = 3 ]
check "grep finds the epoch's line" [ "$(grep -c 'Epoch.*总耗时' "$work/out")" = 1 ]

# ---- failures ----
WEIR_FAKE_CUDA=fail=lost:400 run 1 train "$data" "${small[@]}" --device cuda --num-epochs 3 --ckpt-dir "$work/lost"
err "lost"
WEIR_FAKE_CUDA=memory_bytes=20000000 run 1 train "$data" --batch-size 4 --device cuda --num-epochs 1
err "of GPU memory"
WEIR_FAKE_CUDA=none run 1 train "$data" "${small[@]}" --device cuda --num-epochs 1
err "no NVIDIA driver"
run 1 train "$data" "${small[@]}" --device cuda:3 --num-epochs 1
err "there is no GPU 3"
run 2 train "$data" "${small[@]}" --device gpu
err "--device"
run 1 train "$data" "${small[@]}" --device cuda --num-epochs 4 --lr 10 --weight-decay 10 --ckpt-dir "$work/nan"
err "the training has diverged; try a smaller --lr"
finish
