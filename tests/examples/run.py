#!/usr/bin/env python3
"""Tests weir.examples, examples/with_*.py, examples/log_metrics.py and examples/grafana.json. Uses
build/examples-venv (setup.sh) if it exists; otherwise skips the tests that need it. PYTHONPATH contains the Python package, WEIR_PROGRAM is the program. Exit status
77: no torch."""
import importlib.util
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(HERE, "../../build/examples-venv")


def main():
    missing = [name for name in ("numpy", "h5py", "torch", "PIL") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} is not installed")
        sys.exit(77)
    python = os.path.join(VENV, "bin/python")
    if os.path.exists(os.path.join(VENV, "requirements.txt")) and sys.prefix == sys.base_prefix:
        os.execv(python, [python, *sys.argv])
    if sys.prefix == sys.base_prefix:
        print("no build/examples-venv (tests/examples/setup.sh): skipping frameworks and OpenCV")
    sys.path[:0] = [HERE, os.path.join(HERE, "../python")]
    names = sys.argv[1:] or ["test_imitate", "test_frameworks", "test_log_metrics"]
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromNames(names))
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
