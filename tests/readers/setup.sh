#!/bin/bash
# Creates build/readers-venv with the formats' reference readers, which tests compare with. Does nothing if it already
# matches the list.
set -eu
cd "$(dirname "$0")/../.."
venv=build/readers-venv list=tests/readers/requirements.txt
if cmp -s "$list" "$venv/requirements.txt"; then
    exit 0
fi
rm -rf "$venv"
/usr/bin/python3 -m venv "$venv"
"$venv/bin/python" -m pip install -q --disable-pip-version-check --root-user-action=ignore -r "$list"
cp "$list" "$venv/requirements.txt" # last, so that an incomplete one is rebuilt
