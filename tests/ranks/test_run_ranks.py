#!/usr/bin/env python3
"""The table over ranks: weir run with logs alone, and under torchrun, weir.Loader in a loop with DistributedDataParallel,
and the client against the stores of other versions of torch. WEIR_PROGRAM is the program, WEIR_PYTHON_PATH the folder of
the package, TEST_STORE the program test_store_client.

What needs torch runs with the Python named by WEIR_TORCH_PYTHON, else with this one, and is skipped without torch.
WEIR_TORCH_PYTHONS can name further ones, separated by colons, whose stores are tried."""
import glob
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
WEIR = os.environ["WEIR_PROGRAM"]
TORCH = os.environ.get("WEIR_TORCH_PYTHON") or (sys.executable if importlib.util.find_spec("torch") else None)
NO_STORE = {name: "" for name in ("MASTER_ADDR", "MASTER_PORT")}
STORE = """import sys, datetime, torch, torch.distributed as distributed
options = {} if sys.argv[1] == "default" else {"use_libuv": sys.argv[1] == "libuv"}
try:
    store = distributed.TCPStore("localhost", 0, None, True, datetime.timedelta(seconds=60), wait_for_workers=False, **options)
except (TypeError, RuntimeError) as error:
    print("none", torch.__version__, type(error).__name__, flush=True)
    sys.exit()
store.set("theirs", "kept")
print(store.port, torch.__version__, flush=True)
sys.stdin.read()
print(store.get("theirs").decode(), store.get("after").decode(), flush=True)
"""


def launches():
    """Whether this torch's launcher works with its Python."""
    code = "import sys, torch; sys.exit(torch.__version__ < '2' and sys.version_info >= (3, 11))"
    return subprocess.run([TORCH, "-c", code], check=False).returncode == 0


def environment(**changes):
    """This process's environment without that of a launcher."""
    kept = {name: value for name, value in os.environ.items()
            if not re.match(r"(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)$|MASTER_|OMPI_|PMI_|SLURM_|TORCHELASTIC_", name)}
    return dict(kept, COLUMNS="400", **changes)


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="weir-ranks-")
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.fast, cls.medium, cls.slow = (os.path.join(cls.work, name) for name in ("fast", "medium", "slow"))
        for folder, size in ((cls.fast, "64x48"), (cls.medium, "320x240"), (cls.slow, "1920x1440")):
            subprocess.run([WEIR, "synth", folder, "--episodes", "6", "--steps", "20", "--cameras", "top", "--size", size],
                           check=True, capture_output=True)

    def path(self, name):
        return os.path.join(self.work, name)

    def start(self, name, rank, world, data=None, options=()):
        """Starts a rank without a store, with a log."""
        return subprocess.Popen([WEIR, "run", data or self.fast, "--batch-size", "2", "--num-workers", "1", "--num-epochs", "2",
                                 "--step-ms", "2", "--log", self.path(name + ".jsonl"), *options], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env=environment(OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE=str(world)))

    def run_ranks(self, name, world=4, data=None, options=()):
        """Runs ranks. Returns their stderr."""
        ranks = [self.start(name, rank, world, (data or {}).get(rank), options) for rank in range(world)]
        done = [rank.communicate() for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0] * world, done)
        self.assertNotIn("ranks, epoch", "".join(out for out, _ in done[1:]))
        self.out = done[0][0]
        return [error for _, error in done]

    def report(self, *arguments):
        done = subprocess.run([WEIR, "report", *arguments], capture_output=True, text=True, env=environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done


class Logs(Ranks):
    def test_table(self):
        """Without a store the logs give the table, at the end of the run and afterwards."""
        errors = self.run_ranks("run", data={2: self.slow})
        self.assertIn("no table over ranks during the run: MASTER_ADDR is not set", errors[0])
        self.assertNotIn("no table", "".join(errors[1:]))
        table = self.out[self.out.index("4 ranks, epochs 1-2"):]
        logs = sorted(glob.glob(self.path("run.rank*.jsonl")))
        self.assertEqual(len(logs), 4)
        text = self.report(*logs).stdout
        self.assertRegex(text, r"\n4 ranks, epochs 1-2: rank 2 on \S+ is slow: its step takes")
        self.assertEqual(text[text.index("4 ranks, epochs 1-2"):], table)
        self.assertRegex(text, r"cause: data; 03b_image_decode takes .* per step, the others' median is ")
        self.assertRegex(text, r"\n03b_image_decode +\S+ +\S+ +\S+ +2  \S+\n")
        ranks = json.loads(self.report("--json", *logs).stdout)["ranks"]
        self.assertEqual((ranks["verdict"]["finding"], ranks["verdict"]["rank"], ranks["verdict"]["cause"]),
                         ("slow-rank", 2, "data"))
        self.assertEqual([rank["missing"] for rank in ranks["ranks"]], [None] * 4)
        self.assertTrue(all(rank["host"] and rank["pid"] and rank["record"]["steps"] for rank in ranks["ranks"]))
        # one log, and the logs of ranks with other options, have no table
        self.assertNotIn("ranks, epoch", self.report(logs[0]).stdout)
        self.assertIsNone(json.loads(self.report("--json", logs[0], logs[0]).stdout)["ranks"])
        self.assertIn("are both of rank 0", self.report(logs[0], logs[0]).stderr)

    def test_late_rank(self):
        """Rank 0 ends before another one has begun its log, and waits for it."""
        first, log = self.start("late", 0, 2), self.path("late.rank0.jsonl")
        while first.poll() is None and not (os.path.exists(log) and '"final":true' in open(log, encoding="utf-8").read()):
            time.sleep(0.02)
        self.assertIsNone(first.poll())
        second = self.start("late", 1, 2)
        self.assertIn("\n2 ranks, epochs 1-2", first.communicate()[0])
        self.assertEqual((first.returncode, second.wait()), (0, 0))
        second.communicate()

    def test_damaged_logs(self):
        """A missing log, one that is cut in a line and one without a complete line are named, and the rest compared."""
        self.run_ranks("cut", world=5, options=("--every", "1"))
        logs = [self.path(f"cut.rank{rank}.jsonl") for rank in range(5)]
        with open(logs[1], encoding="utf-8") as file:
            lines = file.read().split("\n")
        tables = [number for number, line in enumerate(lines) if line.startswith('{"type":"stages"')]
        with open(logs[1], "w", encoding="utf-8") as file:
            file.write("\n".join(lines[:tables[0] + 1] + [lines[tables[0] + 1][:40]]))
        os.truncate(logs[2], 60)
        os.remove(logs[3])
        text = self.report(logs[0], logs[1], logs[2], logs[4]).stdout
        self.assertRegex(text, r"\n5 ranks, epochs 1-2: ")
        self.assertRegex(text, r"rank 1 on .*cut\.rank1\.jsonl ends in the middle of a line after epoch 1, without the last")
        self.assertRegex(text, r"rank 2: .*cut\.rank2\.jsonl has no complete line")
        self.assertIn("rank 3: its log is missing", text)
        ranks = json.loads(self.report("--json", logs[0], logs[1], logs[2], logs[4]).stdout)
        self.assertEqual(len(ranks["logs"]), 3)
        self.assertEqual([bool(rank["record"]) for rank in ranks["ranks"]["ranks"]], [True, True, False, False, True])

    def test_other_logs(self):
        """Logs of single runs and of runs of different sizes have no table."""
        subprocess.run([WEIR, "run", self.fast, "--num-epochs", "1", "--log", self.path("one.jsonl")], check=True,
                       capture_output=True, env=environment())
        shutil.copy(self.path("one.jsonl"), self.path("two.jsonl"))
        done = self.report(self.path("one.jsonl"), self.path("two.jsonl"))
        self.assertNotIn("ranks, epoch", done.stdout)
        self.assertNotIn("ranks", done.stderr)
        self.run_ranks("small", world=2)
        self.run_ranks("large", world=3)
        done = self.report(self.path("small.rank0.jsonl"), self.path("large.rank1.jsonl"))
        self.assertIn("no table over ranks", done.stderr)


@unittest.skipUnless(TORCH, "torch is not installed (WEIR_TORCH_PYTHON names a Python with it)")
@unittest.skipUnless(TORCH and launches(), "torchrun of torch 1 fails on Python 3.11")
class Torchrun(Ranks):
    def torchrun(self, *command, **changes):
        return subprocess.Popen([TORCH, "-m", "torch.distributed.run", "--nproc_per_node", "4", *command], cwd=self.work,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment(PYTHONPATH=os.environ["WEIR_PYTHON_PATH"], WEIR=WEIR, FAST=self.fast,
                                                MEDIUM=self.medium, SLOW=self.slow, **changes))

    def run_program(self, script, name="run"):
        path = self.path(name + ".sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\nrun=(--batch-size 2 --num-workers 1 --num-epochs 3 --every 1 --step-ms 4)\n" + script)
        os.chmod(path, 0o755)
        job = self.torchrun("--no-python", path)
        return (*job.communicate(), job.returncode)

    def train(self, what):
        job = self.torchrun(os.path.join(HERE, "train.py"), self.fast, self.slow, what)
        return (*job.communicate(), job.returncode)

    def test_program(self):
        """weir run under torchrun: each table names the rank with the slow dataset."""
        out, error, code = self.run_program('data=$FAST; [ "$RANK" = 2 ] && data=$SLOW\n'
                                            'exec "$WEIR" run "$data" "${run[@]}" --log log.jsonl\n')
        self.assertEqual(code, 0, error)
        tables = re.findall(r"^4 ranks, epochs? (\S+): (.*)", out, re.M)
        self.assertTrue(tables, out + error)
        self.assertEqual(tables[-1][0], "1-3")
        self.assertRegex(tables[-1][1], r"rank 2 on \S+ is slow")
        self.assertIn("cause: data; 03b_image_decode takes", out)
        with open(self.path("log.rank0.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if '"type":"ranks"' in line]
        self.assertEqual(lines[-1]["verdict"]["rank"], 2)
        self.assertEqual(len(lines), len(tables))

    def test_half_a_core(self):
        """A rank whose affinity pins it to a core that busy processes use."""
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("needs two cores")
        out, error, code = self.run_program(
            f'run+=(--step-ms 20 --num-epochs 2)\n'
            f'if [ "$RANK" = 1 ]; then\n'
            f'  for i in 1 2 3 4 5 6; do taskset -c {cores[0]} sh -c "while [ -d /proc/$$ ]; do :; done" & done\n'
            f'  exec taskset -c {cores[0]} "$WEIR" run "$MEDIUM" "${{run[@]}}"\nfi\n'
            f'exec taskset -c {cores[1]} "$WEIR" run "$MEDIUM" "${{run[@]}}"\n', "half")
        self.assertEqual(code, 0, error)
        last = out[out.rindex("4 ranks, epoch"):]
        self.assertRegex(last, r"^4 ranks, epochs 1-2: rank 1 on \S+ is slow", out)
        self.assertRegex(last, r"cause: its host: it waits for a core \d+ % of its working time; other processes use", last)

    def test_killed_program(self):
        """A rank that is killed is named in the last table; torchrun ends the others."""
        out, error, code = self.run_program(
            'if [ "$RANK" = 3 ]; then\n  "$WEIR" run "$FAST" "${run[@]}" --num-epochs 100000 >/dev/null & job=$!\n'
            '  while [ ! -e started ]; do sleep 0.1; done\n  kill -9 $job; wait $job; exit 1\nfi\n'
            'if [ "$RANK" = 0 ]; then\n  exec "$WEIR" run "$FAST" "${run[@]}" --num-epochs 100000 | '
            'while IFS= read -r line; do echo "$line"; case $line in "4 ranks"*) touch started;; esac; done\nfi\n'
            'exec "$WEIR" run "$FAST" "${run[@]}" --num-epochs 100000\n', "killed")
        self.assertNotEqual(code, 0)
        self.assertRegex(out + error, r"rank 3 on \S+ \(PID \d+\) has (died|not reported)")

    def test_loader(self):
        """weir.Loader in a synchronous loop: who holds the others up, and why."""
        for what, rank, cause in (("data", 2, "data; 03b_image_decode takes"),
                                  ("step", 1, "its step; 20_train_forward_pass takes")):
            with self.subTest(what):
                out, error, code = self.train(what)
                self.assertEqual(code, 0, error)
                tables = re.findall(r"^4 ranks, epochs? \d.*\n.*\n.*", out, re.M)
                self.assertEqual(len(tables), 5, out + error)
                named = [table for table in tables if f": rank {rank} on " in table]
                self.assertGreaterEqual(len(named), 3, "\n".join(tables))
                self.assertIn(cause, "".join(named))

    def test_killed_loader(self):
        out, error, code = self.train("killed")
        self.assertNotEqual(code, 0)
        self.assertRegex(out + error, r"rank 3 on \S+ \(PID \d+\) has died; it has not reported since epoch 1")

    def test_stores(self):
        """The client sets, checks and gets keys of real stores, whose other clients are not disturbed."""
        pythons = [TORCH] + [python for python in os.environ.get("WEIR_TORCH_PYTHONS", "").split(":") if python]
        tried = 0
        for python in pythons:
            for backend in ("default", "libuv", "plain"):
                server = subprocess.Popen([python, "-c", STORE, backend], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          text=True, env=environment())
                port, version = server.stdout.readline().split()[:2]
                if port == "none":
                    server.communicate()
                    continue
                for host in ("127.0.0.1", "localhost"):
                    done = subprocess.run([os.environ["TEST_STORE"], host, port], capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), f"{version} {backend} {done.stdout}")
                self.assertEqual(server.communicate("\n")[0].split(), ["kept", "set"], f"{version} {backend}")
                print(f"store of torch {version} ({backend}): {done.stdout.strip()}", file=sys.stderr)
                tried += 1
        self.assertGreater(tried, 0)


if __name__ == "__main__":
    if not TORCH:
        print("torch is not installed: only the tests of logs run (WEIR_TORCH_PYTHON names a Python with it)")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    unittest.main()
