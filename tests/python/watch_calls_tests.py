"""weir.watch runs no code of the program that the loop would not run."""
import collections
import functools
import os
import subprocess
import sys
import tempfile
import unittest

from watch_tests import HERE, environment, needs_torch, side_by_side

PROGRAM = os.path.join(HERE, "watch_calls.py")


def calls(mode):
    """(output, {case: {(process, object, name): times}}) of loops over objects that log the calls of their methods."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, PROGRAM, mode, folder], env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True)
        if done.returncode:
            raise AssertionError(mode + done.stdout + done.stderr)
        found = {}
        for case in os.listdir(folder):
            with open(os.path.join(folder, case), "rb") as file:
                found[case] = collections.Counter(file.read().split(b"\n")) if case != "opened" else None
    return done.stdout, found


@needs_torch
class Calls(unittest.TestCase):
    def test_equal_with_and_without_a_watch(self):
        """Also that each worker opens a file itself which the first read of an attribute opens."""
        (_, plain), (out, watched) = side_by_side([functools.partial(calls, mode) for mode in ("plain", "watch")], 2)
        self.assertIn("WRONG 0\n", out)
        self.assertGreaterEqual(len(plain), 24)
        for case in {*plain, *watched} - {"opened"}:
            one, two = plain[case], watched[case]
            with self.subTest(case):
                self.assertEqual({call: (one[call], two[call]) for call in {*one, *two} if one[call] != two[call]}, {})


if __name__ == "__main__":
    unittest.main()
