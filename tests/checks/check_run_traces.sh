#!/bin/bash
# Reads traces of real runs with the programs they are meant for (tests/checks/check_clients.sh): the plugin's
# DataLoader share must match the run's own data wait over the same steps, within one percentage point.
set -eu
cd "$(dirname "$0")/../.."
weir=build/release/weir
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$weir" synth "$work/data" --episodes 4 --steps 30 --size 320x240 --cameras top,wrist >/dev/null

# record NAME COMMAND OPTION...: records a trace and passes it, with the run's own data wait, to the clients.
record() {
    local name=$1 command=$2 found
    shift 2
    "$weir" "$command" "$work/data" --batch-size 8 --profile "$work/$name" --json --record-shapes --profile-memory "$@" \
        >"$work/$name.json" 2>/dev/null
    found=$(python3 - "$work/$name.json" <<'PY'
import json, sys
(window,) = json.load(open(sys.argv[1]))["profile"]["windows"]
assert window["dropped"] == 0 and window["error"] is None, window
print(f"{100 * window['data_wait']:.3f}", window["path"])
PY
    )
    echo "==== weir $command $*: data wait ${found% *} %"
    bash tests/checks/check_clients.sh --expect-dataloader "${found% *}" "${found#* }"
}

# built NAME: true if this extra was built.
built() { "$weir" --help | grep -q "^  $1 "; }

record starved run --schedule wait=1,warmup=1,active=4,repeat=1 --step-ms 2 --num-workers 1
record fed run --schedule wait=2,warmup=1,active=3,repeat=1 --step-ms 60 --with-stack
record operators run --schedule wait=1,warmup=1,active=3,repeat=1 --step-ms 5 --num-workers 2 --worker-ops
! built train || record training train --schedule wait=1,warmup=1,active=4,repeat=1 --image-size 64x48 --num-workers 1

if built motion; then
    echo "==== weir motion"
    for variant in ops fused; do
        WEIR_CUDA_MODULE=/nowhere "$weir" motion --task motion --num_envs 256 --num_steps 20 --variant $variant --trace_path "$work/motion" >/dev/null
    done
    bash tests/checks/check_clients.sh "$work"/motion/*.pt.trace.json.gz
fi

# On the stand-in GPU. In the plugin's split GPU work takes precedence over the wait, so the shares differ.
echo "==== weir run --device cuda"
WEIR_CUDA_MODULE=$PWD/build/release/tests/libweir_fake_cuda.so "$weir" run "$work/data" --batch-size 8 --device cuda \
    --dtype f32 --image-layout nchw --step-ms 20 --schedule wait=2,warmup=1,active=4,repeat=1 --profile "$work/gpu" >/dev/null
bash tests/checks/check_clients.sh "$work"/gpu/*.pt.trace.json.gz

# A loop in Python that measures its own data wait.
echo "==== weir.profile"
PYTHONPATH=build/release/python /usr/bin/python3 - "$work" >"$work/python.txt" <<'PY'
import sys, time
import weir

work, waits, steps, longer = sys.argv[1], [], [], []
with weir.Loader(work + "/data", batch_size=16, num_workers=1, tensors="array") as loader, weir.profile(
        activities=[weir.ProfilerActivity.CPU], schedule=weir.schedule(wait=1, warmup=1, active=4, repeat=1),
        record_shapes=True, profile_memory=True, with_stack=True,
        on_trace_ready=weir.tensorboard_trace_handler(work + "/python", use_gzip=True)) as prof:
    batches, begin = iter(loader), time.perf_counter()
    before = begin
    for _ in range(7):
        asked = time.perf_counter()
        batch = next(batches)
        waits.append(time.perf_counter() - asked)
        with weir.stage("20_train_forward_pass"), weir.record_function("model"):
            time.sleep(0.002)
        end = time.perf_counter()
        steps.append(end - begin)
        longer.append(end - before)
        before = end
        prof.step()
        begin = time.perf_counter()
# A step of the trace begins somewhere within prof.step().
most, least = (100 * sum(waits[2:6]) / sum(x[2:6]) for x in (steps, longer))
print(f"{(most + least) / 2:.3f} {1 + (most - least) / 2:.3f}")
PY
read -r share tolerance <"$work/python.txt"
bash tests/checks/check_clients.sh --expect-dataloader "$share" --tolerance "$tolerance" "$work"/python/*.pt.trace.json.gz
