#!/bin/bash
# Tests the Python package as installed: builds the wheel, checks its dependencies and its program, installs it into
# virtual environments and runs the tests there: with PyPI's NumPy, h5py and JAX, and with Debian's torch and NumPy. mypy
# checks its stubs. Needs the network once; usage: tests/python/try_wheel.sh [BUILD_FOLDER], the folder with the program.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:-build/release}" && pwd)
work=build/try-wheel
unset PYTHONPATH LD_LIBRARY_PATH WEIR_HDF5_HELPER WEIR_CUDA_MODULE
export PYTHONDONTWRITEBYTECODE=1 WEIR_SOURCE=$PWD WEIR_PROGRAM=$build/weir
export WEIR_FAKE_CUDA_MODULE=$build/tests/libweir_fake_cuda.so WEIR_MOTION_DUMP=$build/tests/motion_dump

wheel=$(.ci/wheel.sh | tail -1)
python3 tests/python/check_wheel.py "$wheel"
echo "-- the program, versions, another package named weir, the source archive"
build/python-venv/bin/python tests/python/check_installed.py "$wheel" $work/installed

# in_venv NAME OPTION...: creates a virtual environment with the wheel and $packages, and with a space in its path.
in_venv() {
    venv="$work/$1 venv"
    rm -rf "$venv"
    /usr/bin/python3 -m venv "${@:2}" "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel" "${packages[@]}"
    "$venv/bin/python" -c 'import os, weir; helper = os.path.join(os.path.dirname(weir.__file__), "weir-hdf5")
assert os.access(helper, os.X_OK), helper; print(helper)'
}

# Runs the package's tests, and the extras'.
run_tests() {
    "$venv/bin/python" tests/python/run.py
    local folder
    for folder in extras/*/tests/python; do
        [ ! -d "$folder" ] || "$venv/bin/python" tests/python/run.py --folder "$folder"
    done
}

echo "-- NumPy, h5py and Pillow from PyPI"
packages=(numpy h5py pillow mypy)
in_venv pypi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check jax || echo "jax cannot be installed: its test is left out"
run_tests
echo "-- mypy: the stubs and their users"
"$venv/bin/python" -m mypy.stubtest weir --ignore-missing-stub --ignore-disjoint-bases --ignore-unused-allowlist \
    --allowlist tests/python/stubs.allow --mypy-config-file tests/python/mypy.ini
"$venv/bin/python" -m mypy --strict "$build/python/weir/__init__.pyi"
for use in tests/python/typed_use.py extras/*/tests/python/typed_*.py; do
    [ ! -f "$use" ] || "$venv/bin/python" -m mypy --strict --warn-unused-ignores "$use"
done

echo "-- torch and NumPy from Debian"
packages=()
in_venv debian --system-site-packages
run_tests
