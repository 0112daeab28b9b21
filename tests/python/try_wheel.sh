#!/bin/bash
# The Python package as its users get it: makes the wheel, looks at what it needs, installs it into virtual environments
# and runs the tests there: with NumPy, h5py and JAX of PyPI, and with Debian's torch and NumPy. mypy compares its stubs
# with it. Needs the network once; usage: tests/python/try_wheel.sh [BUILD_FOLDER], which has the program.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:-build/release}" && pwd)
work=build/try-wheel
unset PYTHONPATH LD_LIBRARY_PATH WEIR_HDF5_HELPER WEIR_CUDA_MODULE
export PYTHONDONTWRITEBYTECODE=1 WEIR_SOURCE=$PWD WEIR_PROGRAM=$build/weir
export WEIR_FAKE_CUDA_MODULE=$build/tests/libweir_fake_cuda.so WEIR_MOTION_DUMP=$build/tests/motion_dump

wheel=$(.ci/wheel.sh | tail -1)
python3 tests/python/check_wheel.py "$wheel"

# in_venv NAME OPTION...: a new one, with the wheel and pip's packages of $packages in it. A space in its path is no
# reason to fail.
in_venv() {
    venv="$work/$1 venv"
    rm -rf "$venv"
    /usr/bin/python3 -m venv "${@:2}" "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel" "${packages[@]}"
    "$venv/bin/python" -c 'import os, weir; helper = os.path.join(os.path.dirname(weir.__file__), "weir-hdf5")
assert os.access(helper, os.X_OK), helper; print(helper)'
}

# The package's own, and those of the extras that have some.
run_tests() {
    "$venv/bin/python" tests/python/run.py
    local folder
    for folder in extras/*/tests/python; do
        [ ! -d "$folder" ] || "$venv/bin/python" tests/python/run.py --folder "$folder"
    done
}

echo "-- NumPy, h5py and Pillow of PyPI"
packages=(numpy h5py pillow mypy)
in_venv pypi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check jax || echo "jax cannot be installed: its test is left out"
run_tests
echo "-- mypy: the stubs, and what uses them"
"$venv/bin/python" -m mypy.stubtest weir --ignore-missing-stub --ignore-disjoint-bases --ignore-unused-allowlist \
    --allowlist tests/python/stubs.allow --mypy-config-file tests/python/mypy.ini
"$venv/bin/python" -m mypy --strict "$build/python/weir/__init__.pyi"
for use in tests/python/typed_use.py extras/*/tests/python/typed_*.py; do
    [ ! -f "$use" ] || "$venv/bin/python" -m mypy --strict --warn-unused-ignores "$use"
done

echo "-- torch and NumPy of Debian"
packages=()
in_venv debian --system-site-packages
run_tests
