#!/bin/bash
# Creates build/clients-venv for tests/checks/check_clients.sh; does nothing if it already matches the list.
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
"${pip[@]}" --no-deps HolisticTraceAnalysis==0.5.0 axe-playwright-python==0.1.8
cp "$list" "$venv/requirements.txt" # last, so that an incomplete one is rebuilt
