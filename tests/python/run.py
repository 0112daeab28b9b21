#!/usr/bin/env python3
"""Runs the tests of the Python package: PYTHONPATH has it, WEIR_PROGRAM is the program. 77 where they cannot run.

A pattern of file names chooses others than test_*.py: cuda_*.py have a GPU, which is the stand-in, in all of their
process. --folder FOLDER takes the tests there, which may import what is here."""
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
        print("torch is not installed: its part is left out")

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    arguments = sys.argv[1:]
    folder = arguments.pop(1) if arguments[:1] == ["--folder"] else here
    pattern = next((argument for argument in arguments if argument != "--folder"), "test_*.py")
    tests = unittest.defaultTestLoader.discover(folder, pattern, folder)
    result = unittest.TextTestRunner(warnings="ignore").run(tests)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":  # what spawns processes imports this file in them
    main()
