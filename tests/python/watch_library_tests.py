"""The calls that weir.watch times in workers: each library's real functions on real files, which it writes itself."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import watch_libraries
except ImportError:  # without torch
    watch_libraries = None

HERE = os.path.dirname(os.path.abspath(__file__))
SIDE_BY_SIDE = 2


def run_all(folder):
    """Runs all rows in a few processes at once. Returns {name: why it was skipped}."""
    names, skipped, running = list(watch_libraries.ROWS), {}, []
    for first in range(SIDE_BY_SIDE):
        running.append(subprocess.Popen(
            [sys.executable, os.path.join(HERE, "watch_libraries.py"), folder, *names[first::SIDE_BY_SIDE]],
            env=dict(os.environ, OMP_NUM_THREADS="1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True))
    for each in running:
        out, err = each.communicate(timeout=600)
        if each.returncode:
            raise AssertionError(out + err)
        skipped.update(line.split(" ", 1) for line in out.split("\n") if line.split(" ", 1)[0] in watch_libraries.ROWS)
    return skipped


def last_stages(path):
    """(stage -> calls, names of the slowest files), from the log of one epoch."""
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    line = [line for line in lines if line["type"] == "stages"][0]
    return ({stage["name"]: stage["count"] for stage in line["stages"]},
            [os.path.basename(file["name"]) for file in line["watch"]["slowest_files"]])


@unittest.skipIf(watch_libraries is None, "torch is not installed")
class Libraries(unittest.TestCase):
    def test_calls_and_files(self):
        with tempfile.TemporaryDirectory() as folder:
            skipped = run_all(folder)
            for name, why in sorted(skipped.items()):
                print("skipped:", name, why)
            self.assertNotEqual(len(skipped), len(watch_libraries.ROWS))
            for name in [name for name in watch_libraries.ROWS if name not in skipped]:
                row, (stages, files) = watch_libraries.ROWS[name], last_stages(os.path.join(folder, name + ".jsonl"))
                with self.subTest(name):
                    self.assertEqual({stage: stages.get(stage) for stage in row.stages},
                                     {stage: each * watch_libraries.ITEMS for stage, each in row.stages.items()}, stages)
                    self.assertEqual(files, [row.file] if row.file else [])


if __name__ == "__main__":
    unittest.main()
