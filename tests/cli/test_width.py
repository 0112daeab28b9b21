#!/usr/bin/env python3
"""Checks that the output of `weir run`, `report`, `whatif`, `bench`, `tune` fits the width of a terminal or of $COLUMNS, that the verdict
comes first and is the only coloured part, and that logs of any width can be read back. Usage:
WEIR_PROGRAM=build/release/weir tests/cli/test_width.py"""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata
import unittest

PROGRAM = os.environ["WEIR_PROGRAM"]
CAMERAS = "cam_high_with_a_long_name,cam_low,observation_images_cam_left_wrist"
STAGES = ["stage", "kind", "calls", "total", "mean", "p50", "p90", "p99", "max", "CPU/wall", "share"]
WORKERS = ["worker", "wall", "work", "work_s", "waits", "wait_s", "unattributed", "unattributed_s", "CPU", "on-CPU",
           "throttled", "core-wait", "blocked", "steal"]


def environment(**changes):
    made = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    return dict(made, **changes)


def piped(*arguments, **variables):
    done = subprocess.run([PROGRAM, *arguments], env=environment(**variables), text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout


def on_terminal(columns, *arguments, **variables):
    """Returns the program's output on a terminal, without the progress that a slow run shows and erases."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([PROGRAM, *arguments], env=environment(**{"TERM": "xterm", **variables}), stdout=its,
                               stderr=its, stdin=subprocess.DEVNULL)
    os.close(its)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # the program has closed its end
        pass
    os.close(ours)
    if process.wait() != 0:
        raise AssertionError(b"".join(parts).decode())
    return re.sub(r"[^\n]*\r\x1b\[K", "", b"".join(parts).decode().replace("\r\n", "\n"))


def width(line):
    return sum(0 if unicodedata.combining(c) or c == "\ufe0f" else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in line)


class Width(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.work.cleanup)
        cls.data, cls.log = os.path.join(cls.work.name, "data"), os.path.join(cls.work.name, "log")
        subprocess.run([PROGRAM, "synth", cls.data, *"--format act-jpeg --episodes 4 --steps 12 --size 96x64".split(),
                        "--cameras", CAMERAS], check=True, stdout=subprocess.DEVNULL)
        cls.run_arguments = ["run", cls.data, *"--num-workers 2 --num-epochs 3 --every 2 --step-ms 8".split()]
        piped(*cls.run_arguments, "--log", cls.log)

    def check_fits(self, text, columns, piped=False):
        for line in re.sub(r"\x1b\[\d*[A-Za-z]", "", text).splitlines():
            if self.data in line or "| 总计:" in line:  # a path to copy; the stage table that users' scripts read
                continue
            if piped and re.match("[Ee]poch ", line):  # whole where the width is unknown
                continue
            self.assertLessEqual(width(line), columns, line)

    def headings(self, text, first):
        (line,) = {tuple(line.split()) for line in re.findall(rf"(?m)^{first} .*\b(?:total|wall)\b.*$", text)}
        return list(line)

    def test_every_width(self):
        """The same widths give the same columns on a terminal and through a pipe."""
        counts = []
        for columns in (80, 120, 200):
            for lang in ("en", "zh"):
                more = ["--lang", lang]
                texts = [on_terminal(columns, *self.run_arguments, *more),
                         piped(*self.run_arguments, *more, COLUMNS=str(columns)),
                         on_terminal(columns, "report", self.log, *more),
                         piped("report", self.log, *more, COLUMNS=str(columns))]
                bare = [piped(*self.run_arguments, *more), piped("report", self.log, *more)] if columns == 80 else []
                for text in texts + bare:
                    self.check_fits(text, columns, text in bare)
                    counts.append((columns, lang, self.headings(text, "worker")))
                    if lang == "en":
                        self.check_stages(text, columns)
        for columns, _, headings in counts:
            self.assertEqual(headings == WORKERS, columns == 200, headings)
            self.assertEqual([name for name in WORKERS if name in headings], headings, "the order is the same")
            self.assertLessEqual({"worker", "wall", "work", "waits", "core-wait"}, set(headings))

    def check_stages(self, text, columns):
        headings, text = self.headings(text, "stage"), text.replace("\r\x1b[K", "\n")
        self.assertEqual([name for name in STAGES if name in headings], headings)
        self.assertLessEqual({"stage", "calls", "total", "mean", "p99", "share"}, set(headings))
        if columns >= 120:
            self.assertIn("kind", headings)
        if columns == 200:
            self.assertEqual(headings, STAGES)
        for grep in (r"(?m)^03b_image_decode .*%$", r"(?m)^08_wait_for_data ", r"(?m)^epoch 3/3 .*\| data wait \d+\.\d %"):
            self.assertRegex(text, grep)

    def test_greps_find_whole_lines(self):
        """A pipe without $COLUMNS has no width, so the line of an epoch, or of a measurement, is not wrapped."""
        for lang, epoch in (("en", r"epoch \d/3 total .* \| peak memory [^|]*( \| .* cached)?"),
                            ("zh", r"Epoch \d/3 总耗时: .* \| 峰值内存: [^|]*( \| 页缓存: .*)?")):
            for arguments in (self.run_arguments, ["report", self.log]):
                text = piped(*arguments, "--lang", lang)
                self.assertEqual(len(re.findall(f"(?m)^{epoch}$", text)), 3, text)
                for wrapped in (on_terminal(80, *arguments, "--lang", lang),
                                piped(*arguments, "--lang", lang, COLUMNS="80")):
                    self.check_fits(wrapped, 80)
        text = piped("run", self.data, *"--seconds 0.05 --step-ms 1 --num-workers 1".split())
        self.assertRegex(text, r"(?m)^measured .* \| data wait .* \| peak memory .*$")

    def test_the_classic_table_is_sorted_and_near_the_end(self):
        """Largest total first, from a run and from its log, and tail -100 has all of it, however many workers ran."""
        log = os.path.join(self.work.name, "many")
        text = piped("run", self.data, "--num-workers", "120", "--lang", "zh", "--log", log)
        for lines in (text.splitlines(), piped("report", log, "--lang", "zh").splitlines()):
            title = max(i for i, line in enumerate(lines) if "性能分析统计" in line)
            totals = [float(total) for total in re.findall(r"(?m)^\S+ +\| 总计: +([\d.]+)s \|", "\n".join(lines[title:]))]
            self.assertGreater(len(totals), 8)
            self.assertEqual(totals, sorted(totals, reverse=True))
        tail = text.splitlines()[-100:]
        self.assertEqual(sum("性能分析统计" in line for line in tail), 1, text)
        workers = [line.split()[0] for line in tail if line.startswith("weir-w")]
        self.assertEqual((len(workers), workers), (16, sorted(workers, key=lambda name: int(name[6:]))))
        self.assertIn("104 more workers, which worked less: --wide", tail)
        self.assertEqual(len(re.findall(r"(?m)^weir-w\d+ ", piped("report", log, "--wide"))), 120)

    def test_wide(self):
        for text in (piped(*self.run_arguments, "--wide"), on_terminal(80, "report", self.log, "--wide")):
            self.assertEqual((self.headings(text, "stage"), self.headings(text, "worker")), (STAGES, WORKERS))
            self.assertRegex(text, r"(?m)^02_read_qpos ")
            self.assertNotIn("more stages", text)
            self.assertRegex(text, r"(?m)^epoch 1/3 total .* images/s \| peak memory .*$")
            self.assertRegex(text, r"(?m)^profiler: .* CPU time .*$")

    def test_small_rows_are_folded(self):
        """Rows under 0.1 % are folded, but not a single one. How large they are in the log is set here, because under
        sanitizers no stage is small."""
        names = ["01_file_cache", "02_read_qpos", "03b_image_decode"]
        with open(self.log, encoding="utf-8") as file:
            lines = file.readlines()
        changed = os.path.join(self.work.name, "shares")
        for n_small in range(len(names) + 1):
            last = json.loads(lines[-1])
            for row in last["stages"]:
                if row["share"] is None:
                    row["total_s"] = 1.0
                else:
                    row["share"] = 0.0009 if row["name"] in names[:n_small] else 0.2
            with open(changed, "w", encoding="utf-8") as file:
                file.writelines(lines[:-1] + [json.dumps(last)])
            narrow, wide = self.whole_run(changed), self.whole_run(changed, "--wide")
            folded = names[:n_small] if n_small > 1 else []
            self.assertEqual([name for name in self.stages(wide) if name not in self.stages(narrow)], folded)
            self.assertEqual(re.findall(r"(\d+) more stages under 0.1 %: --wide", narrow),
                             [str(n_small)] if folded else [])
            self.assertIn("08_wait_for_data", self.stages(narrow))

    def whole_run(self, log, *arguments):
        text = piped("report", log, *arguments)
        return text[text.rindex("whole run"):text.rindex("\nworker ")]

    def stages(self, text):
        return re.findall(r"(?m)^(\d\d[a-z]?_\w+) ", text)

    def test_the_verdict_comes_first(self):
        for text in (piped(*self.run_arguments), piped("report", self.log)):
            tables = [found.start() for found in re.finditer(r"(?m)^(epochs 1-2 of 3|whole run), |^whole run: ", text)]
            verdicts = [found.start() for found in re.finditer("(?m)^verdict: ", text)]
            self.assertEqual((len(tables), len(verdicts)), (2, 2), text)
            self.assertTrue(verdicts[0] < tables[0] < verdicts[1] < tables[1], text)
            self.assertRegex(text[verdicts[1]:tables[1]], r"^verdict: .*\n(?:  .*\n)+\n$")

    def test_colour(self):
        verdict = re.compile(r"\x1b\[1mverdict: .*\x1b\[0m\n(?:  \x1b\[1m.*\x1b\[0m\n)*")
        for arguments, found in ((self.run_arguments, 2), (["report", self.log], 2)):
            text = on_terminal(80, *arguments)
            self.assertEqual(len(verdict.findall(text)), found, text)
            self.assertNotRegex(verdict.sub("", text), r"\x1b\[\d*m")
            for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
                self.assertNotRegex(on_terminal(80, *arguments, **variables), r"\x1b\[\d*m")
            self.assertNotIn("\x1b", piped(*arguments, TERM="xterm"))

    def test_a_narrow_log_is_read_back(self):
        """`weir report` reads the same epochs and stages from what a narrow and a wide run printed."""
        for columns in ("80", "200"):
            log = os.path.join(self.work.name, "train.log")
            with open(log, "w", encoding="utf-8") as file:
                file.write(piped(*self.run_arguments, "--lang", "zh", COLUMNS=columns))
            read = json.loads(piped("report", log, "--json"))
            self.assertEqual([(epoch["epoch"], epoch["epoch_count"]) for epoch in read["epochs"]], [(1, 3), (2, 3), (3, 3)])
            for epoch in read["epochs"]:
                self.assertAlmostEqual(epoch["total_s"], epoch["train_s"] + epoch["val_s"], delta=0.02)
                self.assertGreater(epoch["train_s"], 0)
            self.assertEqual(read["times_left"] + read["rows_cut"], 0)
            self.assertIsNotNone(read["verdict"]["data_wait_fraction"])
            self.check_fits(piped("report", log), 80)

    def test_json_is_complete(self):
        self.assertEqual(piped("report", self.log, "--json", COLUMNS="40"), piped("report", self.log, "--json", "--wide"))
        with open(self.log, encoding="utf-8") as file:
            names = [row["name"] for row in json.loads(file.readlines()[-1])["stages"]]
        self.assertIn("02_read_qpos", names)

    def test_whatif(self):
        """A small dataset and little time: the findings differ between runs, so a log is printed in every width."""
        log = os.path.join(self.work.name, "whatif")
        best = r"(?:best change: (?:[^(]+: [\d.]+x \([^)]+\)|none is )|no change helps: )"
        text = on_terminal(80, "whatif", self.data, *"--num-workers 2 --step-ms 1 --check --max-minutes 0.05".split(),
                           "--log", log)
        self.check_fits(text, 80)
        self.assertEqual(len(re.findall(rf"(?m)^(?:.*\r\x1b\[K)?\x1b\[1m{best}", text)), 1, text)
        self.assertNotRegex(re.sub(r"\x1b\[1m(.*)\x1b\[0m", "", text), r"\x1b\[\d*m")
        for columns in (80, 120, 200):
            for text in (on_terminal(columns, "report", log, NO_COLOR="1"), piped("report", log, COLUMNS=str(columns))):
                self.check_fits(text, columns)
                self.assertRegex(text, best)
                headings = re.search(r"(?m)^change .*$", text)[0]
                self.assertEqual(re.split("  +", headings), [
                    name for name in ("change", "predicted", "measured", "error", "the limit is then", "what to type")
                    if columns > 80 or name not in ("error", "the limit is then")])
        self.check_fits(piped("report", log), 80)
        for text in (piped("report", log, "--wide"), on_terminal(200, "report", log, NO_COLOR="1")):
            self.assertIn("\ndecode cache, half of the frames, ", text)
            self.assertRegex(text, r"(?m)^stored as packed:raw .* weir convert SRC DST --to packed --codec raw$")

    def test_bench(self):
        quick = "--formats as-is --cache warm --repeats 1 --min-seconds 0.01 --num-workers 1,2".split()
        names = ["format", "size", "images/s", "least-most", "samp/s", "n", "of as-is", "CPU/1k", "B/img", "p99", "peak",
                 "wait", "limit", "settings"]
        first = r"(?m)^(?:.*\r\x1b\[K)?(?:\x1b\[1m)?(?:Keep|Convert to|No format)\b"
        for columns in (80, 120, 200):
            for text in (on_terminal(columns, "bench", self.data, *quick),
                         piped("bench", self.data, *quick, **{"COLUMNS": str(columns)} if columns > 80 else {})):
                self.check_fits(text, columns)
                headings = re.split("  +", re.search(r"(?m)^format .* images/s .*$", text)[0].strip())
                self.assertEqual([name for name in names if name in headings], headings)
                self.assertLessEqual({"format", "images/s", "of as-is", "settings"}, set(headings))
                if columns != 120:  # depends on the width of the figures
                    self.assertEqual(headings == names, columns == 200, text)
                self.assertRegex(text, r"(?m)^as-is +warm  .*  num-workers 2 *$")
                advice = [found.start() for found in re.finditer(first, text)]
                self.assertEqual(len(advice), 1, text)
                self.assertLess(advice[0], text.index("\nformat "))
        self.assertRegex(text, r"\nweir run \S.*\n\Z")
        text = on_terminal(80, "bench", self.data, *quick, "--wide")
        self.assertEqual(re.split("  +", re.search(r"(?m)^format .* images/s .*$", text)[0].strip()), names)
        self.assertEqual(len(re.findall(r"\x1b\[1m(?:Keep|Convert to|No format) .*\.\x1b\[0m\n", text)), 1, text)
        self.assertEqual(len(re.findall(r"\x1b\[1m", text)), 1, text)

    def test_tune(self):
        """The steps of the search are printed when they end, and the chosen setting before the curve."""
        arguments = ["tune", self.data, *"--min-seconds 0.01 --max-cache 0 --max-minutes 0.05".split()]
        for columns in (80, 120, 200):
            terminal = on_terminal(columns, *arguments)
            texts = [terminal, piped(*arguments, **{"COLUMNS": str(columns)} if columns > 80 else {})]
            for text in texts:
                self.check_fits(text, columns)
                self.assertRegex(text, r"(?s)  1  workers \d.*\n(\x1b\[1m)?chosen: workers .*\nworkers  images/s\n.*\n"
                                       r"\d+ settings, .*\nweir run \S[^\n]*\n\Z")
            self.assertNotRegex(texts[1], "\x1b")
            lit = re.compile(r"\x1b\[1mchosen: .*\x1b\[0m\n(?:  \x1b\[1m.*\x1b\[0m\n)*")
            self.assertEqual((len(lit.findall(terminal)), len(re.findall(r"\x1b\[\d*m", lit.sub("", terminal)))), (1, 0))
        self.assertRegex(piped(*arguments, "--wide"), r"(?m)^  1  workers .*, automatic settings\)$")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
