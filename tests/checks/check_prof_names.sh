#!/bin/bash
# The profiler's library is free of the loader: it contains neither its stage names nor the words of its reports.
# tests/checks/check_prof_names.sh LIBWEIR_PROF.SO LOADER_STAGES.C
set -euo pipefail
names=$(sed -nE 's/.*\.name = "([^"]+)".*/\1/p' "$2")
[ "$(wc -l <<<"$names")" -ge 33 ] || { echo "$2: only $(wc -l <<<"$names") stages were found"; exit 1; }
words=("JPEG engine" "decode cache" "解码缓存" "性能分析统计" "bad frames" "batches" "helper process" "fallbacks" "read ahead" "camera")
status=0
while read -r name; do
    if grep -qaF -- "$name" "$1"; then
        echo "$1 contains the loader's \"$name\""
        status=1
    fi
done < <(echo "$names"; printf '%s\n' "${words[@]}")
echo "$(($(wc -l <<<"$names") + ${#words[@]})) names and words"
exit $status
