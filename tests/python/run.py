#!/usr/bin/env python3
"""Runs the tests of the Python package. PYTHONPATH contains the package, WEIR_PROGRAM is the program. Exit status 77: a
module is missing.

An argument replaces the pattern test_*.py: cuda_*.py use the fake GPU and need a separate process. --folder FOLDER runs
the tests in FOLDER, which may import modules from here."""
import importlib.util
import os
import sys
import unittest


def main():
    missing = [name for name in ("numpy", "h5py", "PIL") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} is not installed")
        sys.exit(77)
    if importlib.util.find_spec("torch") is None:
        print("torch is not installed: its tests are skipped")

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    arguments = sys.argv[1:]
    folder = arguments.pop(1) if arguments[:1] == ["--folder"] else here
    pattern = next((argument for argument in arguments if argument != "--folder"), "test_*.py")
    tests = unittest.defaultTestLoader.discover(folder, pattern, folder)
    result = unittest.TextTestRunner(warnings="ignore").run(tests)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":  # spawned processes import this file
    main()
