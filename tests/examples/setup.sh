#!/bin/bash
# Creates build/examples-venv with the examples' frameworks and OpenCV; it also sees Debian's packages (torch, h5py,
# numpy). Does nothing if it already matches the list; without torch or PyPI it prints one line and succeeds.
set -eu
cd "$(dirname "$0")/../.."
venv=build/examples-venv list=tests/examples/requirements.txt
if cmp -s "$list" "$venv/requirements.txt"; then
    exit 0
fi
if ! /usr/bin/python3 -c "import torch" 2>/dev/null; then
    echo "no python3-torch: the examples of frameworks are not tested"
    exit 0
fi
rm -rf "$venv"
/usr/bin/python3 -m venv --system-site-packages "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --retries 2)
if ! "${pip[@]}" install -q --no-deps --root-user-action=ignore -r "$list" 2>"$venv/pip.log"; then
    if ! "${pip[@]}" download -q --no-deps -d "$venv/reach" packaging 2>/dev/null; then
        echo "PyPI is not reachable: the examples of frameworks are not tested"
        exit 0
    fi
    cat "$venv/pip.log" >&2
    exit 1
fi
cp "$list" "$venv/requirements.txt" # last, so that an incomplete one is rebuilt
