#!/bin/bash
# Makes build/peers-venv with what bench/peers/run.py measures; does nothing when it is there as the list wants it.
# A package that does not install is left out, with one line: run.py says which peers that takes away.
set -eu
cd "$(dirname "$0")/../.."
venv=build/peers-venv list=bench/peers/requirements.txt
if cmp -s "$list" "$venv/requirements.txt"; then
    exit 0
fi
rm -rf "$venv"
python=/usr/bin/python3
[ -x "$python" ] || python=python3
"$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip install -q --no-cache-dir --disable-pip-version-check --root-user-action=ignore)
if ! "${pip[@]}" -r "$list"; then
    grep -v '^#' "$list" | while read -r package; do
        "${pip[@]}" "$package" || echo "setup.sh: $package does not install here" >&2
    done
fi
cp "$list" "$venv/requirements.txt" # last: a half-made one is made anew
