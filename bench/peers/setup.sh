#!/bin/bash
# Creates build/peers-venv with the packages that bench/peers/run.py measures, or only with those named: bench/limits
# needs "setup.sh numpy simplejpeg". Does nothing if they are already installed as listed. A package that cannot be
# installed is left out, with one line; run.py reports which peers are missing.
set -eu
cd "$(dirname "$0")/../.."
venv=build/peers-venv list=bench/peers/requirements.txt
wanted=$(cat "$list")
if [ $# -gt 0 ]; then
    wanted=$(grep -E "^($(IFS='|' && echo "$*"))==" "$list") || { echo "setup.sh: $list has none of: $*" >&2; exit 1; }
fi
for have in "$(cat "$list")" "$wanted"; do
    if [ "$have" = "$(cat "$venv/requirements.txt" 2>/dev/null)" ]; then
        exit 0
    fi
done
rm -rf "$venv"
python=/usr/bin/python3
[ -x "$python" ] || python=python3
"$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip install -q --no-cache-dir --disable-pip-version-check --root-user-action=ignore)
if ! "${pip[@]}" -r <(echo "$wanted"); then
    echo "$wanted" | grep -v '^#' | while read -r package; do
        "${pip[@]}" "$package" || echo "setup.sh: $package cannot be installed here" >&2
    done
fi
echo "$wanted" >"$venv/requirements.txt" # last, so that an incomplete one is rebuilt
