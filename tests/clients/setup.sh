#!/bin/bash
# Makes build/clients-venv with what tests/checks/check_clients.sh runs; does nothing when it is there as the list wants it.
set -eu
cd "$(dirname "$0")/../.."
venv=build/clients-venv list=tests/clients/requirements.txt
if cmp -s "$list" "$venv/requirements.txt"; then
    exit 0
fi
rm -rf "$venv"
/usr/bin/python3 -m venv "$venv"
pip=("$venv/bin/python" -m pip install -q --disable-pip-version-check --root-user-action=ignore)
"${pip[@]}" -r "$list"
"${pip[@]}" --no-deps HolisticTraceAnalysis==0.5.0
cp "$list" "$venv/requirements.txt" # last: a half-made one is made anew
