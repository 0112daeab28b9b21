#!/bin/bash
# Reads traces with the programs they are meant for: TensorBoard's PYTORCH_PROFILER plugin (its back end, and its page
# in Chromium), HolisticTraceAnalysis, Perfetto's trace processor, and the rules of PyTorch's trace validator.
#   tests/checks/check_clients.sh [--expect-dataloader PERCENT [--tolerance POINTS]] [TRACE.pt.trace.json[.gz]...]
# Without TRACE it creates one with a GPU and one without (build/release/tests/make_trace), whose steps wait 30 % of the
# time, and records steps on the stand-in GPU (make_gpu_trace).
# Needs chromium and python3-venv (.ci/packages.sh ci) and, the first time, the network. Screenshots: build/clients/.
set -eu
cd "$(dirname "$0")/../.."
expect=()
while [[ ${1:-} == --* ]]; do
    expect+=("$1" "$2")
    shift 2
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p build/clients

if [ $# -eq 0 ]; then
    build/release/tests/make_trace cpu "$work/cpu.pt.trace.json"
    build/release/tests/make_trace gpu "$work/gpu.pt.trace.json.gz"
    WEIR_CUDA_MODULE=$PWD/build/release/tests/libweir_fake_cuda.so \
        build/release/tests/make_gpu_trace "$work/stand-in.pt.trace.json.gz"
    set -- "$work/cpu.pt.trace.json" "$work/gpu.pt.trace.json.gz" "$work/stand-in.pt.trace.json.gz"
    expect=(--expect-dataloader 30)
fi
bash tests/clients/setup.sh
python=build/clients-venv/bin/python
# The clients' own Python warnings are noise.
export PYTHONWARNINGS=ignore

check() {
    local trace=$1 name logdir
    name=$(basename "$trace")
    name=${name%%.pt.trace.json*}
    logdir=$work/logs-$name
    mkdir -p "$logdir/$name"
    cp "$trace" "$logdir/$name/"
    printf -- '---- %s: rules\n' "$trace"
    "$python" tests/clients/trace_rules.py "$trace"
    printf -- '---- %s: TensorBoard, back end\n' "$trace"
    "$python" tests/clients/tb_views.py "$trace" "${expect[@]}"
    printf -- '---- %s: HolisticTraceAnalysis\n' "$trace"
    "$python" tests/clients/hta_check.py "$logdir/$name"
    printf -- '---- %s: TensorBoard, the page\n' "$trace"
    "$python" tests/clients/tb_screenshot.py "$logdir" "build/clients/$name.png" --expect "$name" --expect DataLoader
}

printf -- '---- Perfetto\n'
"$python" tests/clients/perfetto_check.py "$@"
for trace in "$@"; do
    case $trace in "$work"/stand-in.*) expect=() ;; esac # real clocks: the wait is not exactly 30 %
    check "$trace"
done
echo "$# traces read by all clients in $SECONDS s"
