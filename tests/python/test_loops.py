"""Training loops with a known slowest part: the verdict names it, or says that no stage covers it, and the parts of the
loop's time add up."""
import contextlib
import importlib.util
import io
import os
import queue
import re
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import common
import weir

SLOW, QUICK, STEPS = 0.04, 0.001, 5
LEGEND = "环节名称                                  | 总计:    XXXs | 调用:  XXX次 | 平均: XXXms\n"
HAS_TORCH = importlib.util.find_spec("torch") is not None


def timed(name, seconds):
    with weir.stage(name):
        time.sleep(seconds)


def step(seconds=QUICK):
    timed("20_train_forward_pass", seconds)


class Loop(common.Data):
    """Runs a training loop and checks the figures of its verdict."""

    def run_loop(self, loop):
        before = time.perf_counter()
        weir.reset()
        after = time.perf_counter()
        loop()
        least = time.perf_counter() - after
        text = weir.verdict()
        most = time.perf_counter() - before
        if "parts of the loop" in text:
            self.check_parts(text, least, most)
        # on a busy machine the first sentence is about the cores
        return re.sub(r"verdict: The .*?\. (?=\S+ takes |No stage covers )", "verdict: ", text)

    def check_parts(self, text, least, most):
        wall, parts = re.search(r"parts of the loop's (\S+) s: (.*)", text).groups()
        shares = [float(share) for share in re.findall(r" (\S+) %", parts)]
        self.assertAlmostEqual(sum(shares), 100, delta=1, msg=text)
        self.assertGreaterEqual(float(wall), 0.99 * least, text)
        self.assertLessEqual(float(wall), 1.01 * most, text)


class OfTheirOwn(Loop):
    def slowest(self, loop):
        text = self.run_loop(loop)
        return re.search(r"verdict: (.*?) takes", text)[1], text

    def test_plain(self):
        def loop():
            for _ in range(STEPS):
                timed("load", QUICK)
                step(SLOW)
        self.assertEqual(self.slowest(loop)[0], "20_train_forward_pass")

    def test_nested(self):
        def loop():
            for _ in range(STEPS):
                timed("load", QUICK)
                with weir.stage("model"):
                    timed("embed", QUICK)
                    with weir.stage("block"):
                        timed("attention", SLOW)
                        timed("mlp", SLOW / 4)
        name, text = self.slowest(loop)
        self.assertEqual(name, "attention")
        self.assertIn(", inside model, which takes ", text)
        self.assertIn("model itself", text)

    def test_a_part_is_slow_where_nothing_is_timed(self):
        def loop():
            for _ in range(STEPS):
                with weir.stage("model"):
                    timed("embed", QUICK)
                    time.sleep(SLOW)
        name, text = self.slowest(loop)
        self.assertEqual(name, "model")
        self.assertIn("the slowest stage inside it is embed", text)

    def test_accumulated_gradients(self):
        def loop():
            for _ in range(2):
                for _ in range(4):
                    step(QUICK)
                    timed("21_backward", SLOW / 2)
                timed("22_optimizer_step", SLOW / 2)
        self.assertEqual(self.slowest(loop)[0], "21_backward")

    def evaluates(self, evaluate):
        for i in range(2 * STEPS):
            step()
            if i % 5 == 4:
                evaluate()

    def test_evaluation_every_n_steps(self):
        name, _ = self.slowest(lambda: self.evaluates(lambda: timed("10_val_forward_pass", 6 * SLOW)))
        self.assertEqual(name, "10_val_forward_pass")

    def test_the_table_wraps_the_verdict(self):
        self.evaluates(lambda: timed("10_val_forward_pass_of_a_long_name", SLOW))
        for columns in ("80", "60"):
            before = weir.verdict()
            with mock.patch.dict(os.environ, COLUMNS=columns):
                lines = weir.table(whole=True).split("\n\n")[0].splitlines()
            self.assertLessEqual(max(map(len, lines)), int(columns), lines)
            self.assertGreater(len(lines), 2)
            plain = [re.sub(r"[\d.]+", "0", " ".join(text.split())) for text in (" ".join(lines), before, weir.verdict())]
            self.assertIn(plain[0], plain[1:], "only its lines are shorter")  # a figure can cross a threshold meanwhile

    def test_evaluation_that_no_stage_times(self):
        text = self.run_loop(lambda: self.evaluates(lambda: time.sleep(6 * SLOW)))
        self.assertIn("verdict: No stage covers ", text)
        self.assertIn("of the stages 20_train_forward_pass takes most", text)

    def test_a_thread_that_loads(self):
        def loop():
            batches = queue.Queue(1)

            def load():
                for _ in range(STEPS):
                    timed("03b_image_decode", SLOW)
                    batches.put(1)
            loader = threading.Thread(target=load)
            loader.start()
            for _ in range(STEPS):
                with weir.stage("08_wait_for_data"):
                    batches.get()
                step()
            loader.join()
        name, text = self.slowest(loop)
        self.assertEqual(name, "08_wait_for_data")
        self.assertIn("no stage inside it was timed", text)

    def test_logged_where_each_part_ends(self):
        def loop():
            for _ in range(STEPS):
                start = time.perf_counter()
                time.sleep(QUICK)
                timed("03b_image_decode", SLOW)
                timed("03c_read_bytes", QUICK)
                end = time.perf_counter()
                weir.log_timing("08_wait_for_data", end - start)
                late.append(time.perf_counter() - end)  # a busy machine: logged as if it had begun later
                start = time.perf_counter()
                time.sleep(QUICK)
                weir.log_timing("20_train_forward_pass", time.perf_counter() - start)
        late = []
        name, text = self.slowest(loop)
        self.assertEqual(name, "03b_image_decode")
        self.assertIn("inside 08_wait_for_data", text)
        stats = {row.stage: row for row in weir.stats()}
        wait = stats["08_wait_for_data"]
        self.assertEqual(wait.calls, STEPS)
        inside = stats["03b_image_decode"].total + stats["03c_read_bytes"].total
        self.assertAlmostEqual(wait.own + inside, wait.total, delta=0.01 * wait.total + sum(late))
        line = re.search(r"^consumer +(\S+)s +\S+% +(\S+)s +\S+% +(\S+)s +\S+% +(\S+)s", weir.table(), re.M)
        wall, work, waits, unattributed = map(float, line.groups())
        self.assertLessEqual(waits, wait.own + 0.011)
        self.assertAlmostEqual(work + waits + unattributed, wall, delta=0.01 * wall + 0.02)

    def test_logged_together_at_the_end(self):
        def loop():
            for _ in range(STEPS):
                marks = [time.perf_counter()]
                for seconds in (SLOW / 8, SLOW / 4, SLOW):
                    time.sleep(seconds)
                    marks.append(time.perf_counter())
                for i, name in enumerate(("08_wait_for_data", "20_train_forward_pass", "21_backward")):
                    weir.log_timing(name, marks[i + 1] - marks[i])
        self.assertEqual(self.slowest(loop)[0], "21_backward")

    def test_shares_are_those_of_the_verdict(self):
        """Shares refer to the loop's time, for all names; another thread's stages have none."""
        def loop():
            other = threading.Thread(target=timed, args=("of another thread", SLOW))
            other.start()
            for _ in range(STEPS):
                with weir.stage("wait"):
                    timed("03b_image_decode", SLOW)
                    timed("my own", SLOW / 2)
                step()
            other.join()
        text = self.run_loop(loop)
        parts = {name: float(share) for name, share in
                 re.findall(r"(?:: |\| )([^|]+?)(?: itself)? (\S+) %", re.search("parts of .*", text)[0])}
        shares = dict(re.findall(r"^(\S+(?: \S+)*) +(?:\S+-)?work .* (\S+)$", weir.table(), re.M))
        self.assertEqual(shares.pop("of another thread"), "-")
        self.assertEqual(set(parts) - {"in no stage"}, set(shares), text)
        shares = {name: float(share.rstrip("%")) for name, share in shares.items()}
        self.assertLess(sum(shares.values()), 100.5)
        by = shares["03b_image_decode"] / parts["03b_image_decode"]  # below 1: the table covers a little more time
        for name, share in shares.items():
            self.assertAlmostEqual(share, by * parts[name], delta=0.3, msg=(text, shares))

    def test_a_loader_that_computes_in_the_wait(self):
        """A DataLoader without workers computes in the loop's wait, which is work; asleep there, it waits."""
        def figures(inside):
            weir.reset()
            for _ in range(STEPS):
                with weir.stage("08_wait_for_data"):
                    inside()
            (row,) = weir.stats()
            line = re.search(r"^consumer +\S+s +(\S+)% +\S+ +(\S+)%", weir.table(), re.M)
            return row.cpu, *map(float, line.groups())

        def compute():
            end = time.thread_time() + SLOW
            while time.thread_time() < end:
                pass
        cpu, work, waits = figures(compute)
        if cpu is not None:
            self.assertGreater(work, 60)
            self.assertLess(waits, 25)
        self.assertGreater(figures(lambda: time.sleep(SLOW))[2], 25)

    def test_timed_elsewhere(self):
        def loop():
            step(5 * SLOW)
            weir.log_timing("on a GPU", 1000)
            time.sleep(SLOW / 8)
            weir.log_timing("20_train_forward_pass", SLOW / 16, elsewhere=True)
        name, text = self.slowest(loop)
        self.assertEqual(name, "20_train_forward_pass")
        stats = {row.stage: row for row in weir.stats()}
        self.assertEqual(stats["on a GPU"].own, 0)
        self.assertAlmostEqual(stats["20_train_forward_pass"].total - stats["20_train_forward_pass"].own, SLOW / 16)


BUSY = """import os, sys, time, multiprocessing, weir
def burn(seconds, done):
    while time.process_time() < seconds: pass
    done.set()
    time.sleep(100)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
weir.reset()
"""


class ShortOfCores(unittest.TestCase):
    """A loop whose only core is taken by others, by its own children, or by a quota, and what helps."""

    def run_code(self, code):
        done = subprocess.run([sys.executable, "-c", BUSY + code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def shortage(self, text):
        return map(float, re.search(r"verdict: The loop waits for a core (\S+) % of its time: of 1 core, other processes use "
                                    r"(\S+) and this one uses (\S+)\. decode takes ", text).groups())

    def test_others(self):
        text = self.run_code("""import subprocess
other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
end = time.thread_time() + 0.4
with weir.stage("decode"):
    while time.thread_time() < end: pass
print(weir.table())
other.kill()
""")
        waits = re.search(r"^consumer .*", text, re.M)[0].split()[-3]
        if waits == "-":  # without the kernel's run delays
            self.skipTest("waits for a core are unknown")
        share, others, used = self.shortage(text)
        self.assertGreater(share, 5)
        self.assertGreater(others, 0.1)
        self.assertLess(used, 1.1)
        self.assertAlmostEqual(float(waits.rstrip("%")), share, delta=3)
        self.assertIn("  what helps      stop other processes", text)
        self.assertRegex(text, r"(?m)^machine: 1 of \d+ cores.*; others used \S+ cores, \S+ stolen; load average ")

    def test_children_are_not_others(self):
        text = self.run_code("""
context = multiprocessing.get_context("fork")
done = context.Event()
child = context.Process(target=burn, args=(0.4, done), daemon=True)
with weir.stage("decode"):
    child.start()
    while not done.is_set(): pass
loop = weir._weir._loop(True)
child.kill()
print(loop[0], *(loop[3] or ["none"]))
""")
        wall, who, *figures = text.split()
        if who == "none":
            self.skipTest("waits for a core are unknown")
        share, others, used, cores, _ = map(float, figures)
        self.assertGreaterEqual(used * float(wall), 0.35, text)
        self.assertLessEqual(others + used, 1.2, text)

    def verdict(self, *parts, shortage=None, unattributed=0.1, workers=0, had_loader=False):
        wall = unattributed + sum(part[2] for part in parts)
        return weir._loops.verdict(weir._loops.Loop(wall, unattributed, parts, shortage), workers, had_loader)

    def helps(self, *parts, **keywords):
        text = self.verdict(*parts, **keywords)
        found = re.findall(r"^  (?:what helps|also)  +(.*)", text, re.M)
        self.assertEqual("docs/trace.md" in text, bool(found), text)
        self.assertLessEqual(len(found), 3)
        return "\n".join(found)

    def test_who_takes_cores(self):
        part = ("decode", "work", 2, None, "other", 0.9)
        for shortage, sentence, helps in (
                (("others", 0.516, 1.51, 0.42, 2, 0), "of 2 cores, other processes use 1.51 and this one uses 0.42", "stop "),
                (("others", 0.516, -1, 0.42, 2, 0), "of 2 cores, this process gets 0.42", "stop "),
                (("own", 0.516, 0.01, 1.99, 2, 0), "of 2 cores, this process and its children use 1.99", "fewer threads")):
            text = self.verdict(part, shortage=shortage)
            self.assertTrue(text.startswith(f"verdict: The loop waits for a core 51.6 % of its time: {sentence}. decode takes "))
            self.assertIn("what helps      " + helps, text)
        text = self.verdict(part, shortage=("quota", 0.301, 0, 1, 8, 1.5))
        self.assertTrue(text.startswith("verdict: The CPU quota, 1.5 cores, stops the loop 30.1 % of its time. decode "))
        self.assertIn("what helps      a larger CPU quota", text)

    def test_what_helps(self):
        wait = ("08_wait_for_data", "wait", 0.5, None, "loading", 0.9)
        step = ("20_train_forward_pass", "work", 0.5, None, "step", 0)

        def inside(ready, around="08_wait_for_data", purpose="loading"):
            return "decode", "work", 2, around, purpose, ready
        self.assertRegex(self.helps(inside(0.9), wait, step), "^more DataLoader workers.*\nless work per sample")
        self.assertRegex(self.helps(inside(-1), wait, step), "^more DataLoader workers")
        self.assertRegex(self.helps(inside(0.1), wait, step), "^keep files open.* local disk\nmore DataLoader workers, so ")
        self.assertRegex(self.helps(inside(0.9, None, "other"), step), "^if decode is part of loading: more DataLoader workers")
        self.assertRegex(self.helps(inside(0.1, None, "other"), step, workers=2), "^if decode is part of loading: python -m weir watch")
        slow_wait = ("08_wait_for_data", "wait", 3, None, "loading", 0.9)
        self.assertRegex(self.helps(inside(0.9), slow_wait), "^more DataLoader workers.*\nfewer bytes to collate")
        self.assertRegex(self.helps(slow_wait, step), "^python -m weir watch shows the slow part of a DataLoader")
        self.assertRegex(self.helps(slow_wait, step, workers=2), "^python -m weir watch shows the slow part inside the workers")
        self.assertEqual(self.helps(slow_wait, step, had_loader=True), "")
        self.assertRegex(self.helps(("20_train_forward_pass", "work", 3, None, "step", 0), wait), "^the largest part is the training")
        self.assertEqual(self.helps(step, unattributed=5), "", "the sentence says it")

    def test_a_long_step_gets_the_advice_of_weir_report(self):
        for name, helps in (("20_train_forward_pass", r"hidden_dim, dim_feedforward.*AMP.*batch_size.*MobileNet"),
                            ("21_backward", "chunk_size.*gradient accumulation.*gradient checkpointing")):
            text = self.helps((name, "work", 3, None, "step", 0.9), ("08_wait_for_data", "wait", 0.5, None, "loading", 0.9))
            self.assertRegex(text, f"^the largest part is the training step, not loading: .*\n.*{helps}")
        self.assertNotIn("hidden_dim", self.helps(("22_optimizer_step", "work", 3, None, "step", 0.9)))


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class WithADataLoader(Loop):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import torch.utils.data  # so that the first loop does not include the import

    def batches(self, workers, seconds=SLOW / 2):
        import torch
        import torch.utils.data

        class Slow(torch.utils.data.Dataset):
            def __len__(self):
                return 2 * STEPS

            def __getitem__(self, i):
                timed("03b_image_decode", seconds)
                return torch.zeros(3)
        return torch.utils.data.DataLoader(Slow(), batch_size=2, num_workers=workers)

    def waits(self, workers):
        with weir.stage("08_wait_for_data"):
            batches = iter(self.batches(workers))
        while True:
            with weir.stage("08_wait_for_data"):
                batch = next(batches, None)
            if batch is None:
                return
            step()

    def test_no_workers(self):
        text = self.run_loop(lambda: self.waits(0))
        self.assertRegex(text, r"verdict: 03b_image_decode takes \S+ % of the loop's time \(.*\), inside 08_wait_for_data")

    def test_no_workers_and_no_wait_timed(self):
        def loop():
            for _ in self.batches(0):
                step()
        self.assertRegex(self.run_loop(loop), "verdict: 03b_image_decode takes [5-9]")

    def test_no_workers_and_the_wait_logged(self):
        def loop():
            start = time.perf_counter()
            for _ in self.batches(0):
                weir.log_timing("08_wait_for_data", time.perf_counter() - start)
                step()
                start = time.perf_counter()
        self.assertRegex(self.run_loop(loop), r"verdict: 03b_image_decode takes .* inside 08_wait_for_data")

    def test_two_workers(self):
        text = self.run_loop(lambda: self.waits(2))
        self.assertIn("verdict: 08_wait_for_data takes ", text)
        self.assertIn("DataLoader's worker processes keep their stages to themselves", text)

    def test_two_workers_and_no_wait_timed(self):
        def loop():
            for _ in self.batches(2):
                step()
        self.assertIn("verdict: No stage covers ", self.run_loop(loop))

    def test_workers_warn_once(self):
        code = """import weir, torch, torch.utils.data as data
class Some(data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        with weir.stage("03b_image_decode"): return torch.zeros(1)
for epoch in range(2):
    for _ in data.DataLoader(Some(), batch_size=1, num_workers=2): pass
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("RuntimeWarning"), 1, done.stderr)
        self.assertIn("weir.watch" if hasattr(weir, "watch") else "num_workers=0", done.stderr)


class WithLoaders(Loop):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.many = cls.synth("many", "--format", "act-jpeg", "--episodes", "4", "--steps", "30", "--cameras", "top",
                             "--size", "640x480")

    def two(self, train_s, val_s):
        options = {"batch_size": 4, "train_split": 0.5, "num_workers": 1}
        with weir.Loader(self.many, **options) as train, weir.Loader(self.many, split="val", **options) as val:
            def loop():
                for _ in range(2):
                    for _ in train:
                        step(train_s)
                    for _ in val:
                        timed("10_val_forward_pass", val_s)
            text = self.run_loop(loop)
            return text, weir.verdict(all_loaders=True), weir.table(), weir.table("zh", whole=True, all_loaders=True)

    def test_the_loop_waits_for_training(self):
        text, both, table, classic = self.two(0, SLOW)
        self.assertIn("split='train', one of 2 open loaders, the one that the loop waits for most", text)
        self.assertNotIn("split='val'", text)
        self.assertIn("split='train', one of 2 open loaders, the one", table)
        self.assertNotRegex(table, "(?m)^weir1-w0 ", "the workers of the other loader")
        self.assertLess(both.index("split='train'"), both.index("split='val'"))
        self.assertNotRegex(both, r"\b0 training batches")
        self.assertIn("split='train', one of 2 open loaders:", classic)

    def test_the_loop_waits_for_validation(self):
        text, _, _, _ = self.two(SLOW, 0)
        self.assertIn("split='val', one of 2 open loaders, the one that the loop waits for most", text)
        self.assertRegex(text, "Validation waited for data|validation batches")

    def test_a_loader_that_is_open_and_not_used(self):
        with weir.Loader(self.many, num_workers=1):
            self.assertIn("verdict: 20_train_forward_pass takes", self.run_loop(lambda: step(20 * SLOW)))


class Periods(common.Data):
    def calls(self, text):
        row = re.search(r"^20_train_forward_pass +\S+ +(\d+) ", text, re.M)
        return int(row[1]) if row else 0

    def test_a_table_covers_the_time_since_the_last_one(self):
        weir.reset()
        found = []
        for n in (1, 2):
            for _ in range(n):
                step()
            found += [self.calls(weir.table(whole=True)), self.calls(weir.table())]
        self.assertEqual(found + [self.calls(weir.table())], [1, 1, 3, 2, 0])
        self.assertEqual([row.calls for row in weir.stats()], [3])
        weir.reset()
        self.assertEqual((weir.stats(), self.calls(weir.table(whole=True))), ([], 0))
        with self.assertRaises(weir.Error):
            weir.verdict()

    def test_with_a_loader(self):
        with weir.Loader(self.data, batch_size=13, num_workers=1) as loader:
            found = []
            for _ in range(2):
                for _ in loader:
                    step()
                found += [self.calls(weir.table(whole=True)), self.calls(loader.table())]
            self.assertEqual(found + [self.calls(weir.table(whole=True))], [3, 3, 6, 3, 6])
            self.assertIn("since the last table", loader.table())
            weir.reset()
            for _ in loader:
                step()
            self.assertEqual(self.calls(loader.table(whole=True)), 3)
        self.assertEqual([self.calls(weir.table()) for _ in range(2)], [3, 0])

    def test_a_loader_prints_by_itself(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), weir.Loader(self.data, batch_size=13, num_workers=1, every=2) as loader:
            for _ in range(5):
                for _ in loader:
                    step()
        self.assertEqual([self.calls(text) for text in printed.getvalue().split("since the last table")[1:]], [6, 6])
        for every in (-1, 1.5):
            with self.assertRaisesRegex(ValueError, "every"):
                weir.Loader(self.data, every=every)

    def test_in_a_child_of_fork(self):
        with weir.Loader(self.data, num_workers=1):
            code = os.fork()
            if code == 0:
                weir.reset()
                step()
                good = self.calls(weir.table()) == 1 and "20_train_forward_pass takes" in weir.verdict()
                os._exit(0 if good else 1)
            self.assertEqual(os.waitpid(code, 0)[1], 0)

    def test_after_a_loader(self):
        """Workers that have ended do not change the table of a later loop."""
        with weir.Loader(self.data, batch_size=13, num_workers=2) as loader:
            for _ in loader:
                step()
        weir.reset()
        timed("my own", SLOW)
        self.assertRegex(weir.table(), r"(?m)^my own .* \S+%$")

    def test_stats(self):
        weir.reset()
        for seconds in (QUICK, SLOW):
            step(seconds)
        (row,) = weir.stats()
        self.assertEqual((row.stage, row.kind, row.side, row.calls), ("20_train_forward_pass", "work", "consumer", 2))
        self.assertLessEqual(row.min, row.p50)
        self.assertLessEqual(row.p50, row.p90)
        self.assertLessEqual(row.p99, row.max)
        self.assertAlmostEqual(row.mean * 2, row.total)
        self.assertGreaterEqual(row.total, SLOW + QUICK)
        self.assertTrue(row.cpu is None or row.cpu <= row.own)

    def test_languages(self):
        weir.reset()
        timed("08_wait_for_data", SLOW)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            weir.print_timing_stats(whole=True)
        self.assertTrue(printed.getvalue().isascii(), printed.getvalue())
        self.check_classic(weir.table("zh", whole=True))
        with weir.Loader(self.data, batch_size=2, num_workers=1) as loader:
            for _ in loader:
                step()
            self.check_classic(weir.table("zh").replace(self.data, ""))

    def check_classic(self, text):
        """The table is Chinese except for names of stages and units; lines below it are English."""
        table, below = re.search(r"={60}\n⏱️  性能分析统计\n={60}\n(.*?)={60}\n(.*)", text, re.S).groups()
        self.assertRegex(table, re.escape(LEGEND) + r"-{60}\n(.* \| 总计: .*\n)+$")
        for line in table.replace(LEGEND, "").splitlines():
            self.assertNotRegex(re.sub(r"weir\.\w+(\(\))?|\b\d\d[a-z]?_\w+|(?<=[\d ])m?s\b", "", line), "[A-Za-z]{2}", line)
        self.assertRegex(below, r"(?m)^worker +wall +work +work_s +waits +wait_s +unattributed ")


if __name__ == "__main__":
    unittest.main()
