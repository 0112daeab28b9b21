#!/bin/bash
# Creates build/lerobot-venv (lerobot 0.4, datasets v3.0) and build/lerobot-v21-venv (lerobot 0.3, datasets v2.1, which
# sees the first one's other packages). PyPI's torch brings CUDA's libraries, 8 GB on disk, so CI does not run this.
# Does nothing if they already match the lists. For datasets with depth: a venv of Python 3.12 with lerobot 0.6.
set -eu
cd "$(dirname "$0")/../.."
here=tests/lerobot

fill() { # fill VENV LIST [pip's options]
    local venv=$1 list=$2
    shift 2
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --root-user-action=ignore "$@" -r "$list"
    cp "$list" "$venv/requirements.txt" # last, so that an incomplete one is rebuilt
}

venv=build/lerobot-venv
if ! cmp -s $here/requirements.txt $venv/requirements.txt; then
    rm -rf $venv build/lerobot-v21-venv
    /usr/bin/python3 -m venv $venv
    fill $venv $here/requirements.txt
fi
old=build/lerobot-v21-venv
if ! cmp -s $here/requirements-v21.txt $old/requirements.txt; then
    rm -rf $old
    /usr/bin/python3 -m venv $old
    site=lib/python3.11/site-packages
    echo "$PWD/$venv/$site" >"$old/$site/base.pth"
    fill $old $here/requirements-v21.txt --no-deps
fi
