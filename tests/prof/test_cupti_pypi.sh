#!/bin/bash
# PyPI's CUPTI on a machine without a driver, where every call into CUPTI 13.2 crashes.
# Usage: WEIR_PROGRAM=build/release/weir tests/prof/test_cupti_pypi.sh MODULE PYTHON PYTHONPATH
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"
module=${1:?} python=${2:?}
skip() {
    echo "skipped: $1"
    exit 77
}
strings -n 8 "$module" | grep -q '^cuptiSubscribe$' || skip "the CUDA module was built without CUPTI"
venv=$(dirname "$module")/cupti-venv
library() { find "$venv" -name libcupti.so.13 -printf '%h\n' 2>/dev/null; }
if [ -z "$(library)" ]; then
    { "$python" -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 10 --retries 0 \
        --no-deps nvidia-cuda-cupti==13.2.86; } >"$work/pip" 2>&1 || skip "nvidia-cuda-cupti cannot be installed: $(tail -1 "$work/pip")"
fi
export WEIR_CUDA_MODULE=$module
LD_LIBRARY_PATH=$(library)
export LD_LIBRARY_PATH

run 0 doctor
count '^  cupti  ' 1
PYTHONPATH=${3:?} "$python" -c '
import warnings, weir
warnings.simplefilter("ignore")
for _ in range(2):
    with weir.profile(activities=list(weir.ProfilerActivity)) as prof, weir.stage("here"):
        pass
    assert "here" in [row.key for row in prof.key_averages()]
' >"$work/out" 2>"$work/err"
check "weir.profile works without the GPU" [ $? = 0 ]
finish
