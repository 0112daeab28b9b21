#!/usr/bin/env python3
"""Checks text output on terminals and through pipes: it fits the width of the terminal or of $COLUMNS, and is the same in
both; the most important line comes first and is the only coloured one; lines that users grep for are whole. What the
commands print at 80 and 200 columns is in tests/golden.
Usage: WEIR_PROGRAM=build/release/weir tests/cli/test_texts.py [Texts.TEST...]"""
import ctypes
import fcntl
import glob
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import tempfile
import termios
import unicodedata
import unittest

PROGRAM = os.environ["WEIR_PROGRAM"]
IO_URING_SETUP = 425
COLUMNS = (80, 120, 200)
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
RECORDED = os.path.join(ROOT, "tests/golden/inputs")
TRACE = f"{ROOT}/docs/pictures/waiting_for_data.json.gz"
CAMERAS = "cam_high_with_a_long_name,cam_low,observation_images_cam_left_wrist"
COLOUR = re.compile(r"\x1b\[\d*[A-Za-z]")

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


def without_io_uring():
    """Forbids io_uring to this process, as many containers do."""
    libc = ctypes.CDLL(None, use_errno=True)
    rules = [(0x20, 0, 0, 0), (0x15, 0, 1, IO_URING_SETUP), (0x06, 0, 0, 0x00050000 | 1), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(rules), ctypes.addressof(code)))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):
        raise OSError(ctypes.get_errno(), "prctl")


class Texts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.work.cleanup)
        cls.data, cls.log = os.path.join(cls.work.name, "data"), os.path.join(cls.work.name, "log")
        subprocess.run([PROGRAM, "synth", cls.data, *"--format act-jpeg --episodes 4 --steps 12 --size 96x64".split(),
                        "--cameras", CAMERAS], check=True, stdout=subprocess.DEVNULL)
        cls.run_arguments = ["run", cls.data, *"--num-workers 2 --num-epochs 3 --every 2 --step-ms 8".split()]
        piped(*cls.run_arguments, "--log", cls.log)

    def check_fits(self, text, columns, *whole):
        """Lines with any of the texts `whole`, such as paths, may be longer."""
        for line in COLOUR.sub("", text).splitlines():
            if not any(part in line for part in (*whole, "| 总计:")):  # the table that users' scripts read
                self.assertLessEqual(width(line), columns, line)

    def need(self, command):
        if subprocess.run([PROGRAM, command, "--help"], capture_output=True, check=False).returncode != 0:
            self.skipTest(f"built without {command}")

    def test_a_terminal_shows_what_a_pipe_of_its_width_gets(self):
        """Only bold differs; a pipe without a width has 80 columns, and whole lines of epochs."""
        recorded = [["report", f"{RECORDED}/{name}"] for name in ("run.jsonl", "ranks.rank0.jsonl", "whatif.jsonl",
                                                                  "watch.jsonl", "lerobot.log", "script_decode.log")]
        recorded += [["report", TRACE], ["report", f"{RECORDED}/run_trace.json.gz", "--sort-by", "cpu_time"],
                     ["compare", f"{RECORDED}/run.jsonl", f"{RECORDED}/run_errors.jsonl"], ["info", self.data]]
        recorded += [[*arguments, "--lang", "zh"] for arguments in recorded[:1]]
        for arguments in recorded:
            for columns in COLUMNS:
                text = piped(*arguments, COLUMNS=str(columns))
                self.check_fits(text, columns, ROOT, self.work.name)
                self.assertEqual(on_terminal(columns, *arguments, NO_COLOR="1"), text)
                self.assertEqual(COLOUR.sub("", on_terminal(columns, *arguments)), text)
            self.check_fits(piped(*arguments), 80, ROOT, self.work.name, "poch ")
        for arguments in recorded[:2]:
            self.assertEqual(piped(*arguments, "--json", COLUMNS="40"), piped(*arguments, "--json", "--wide"))

    def test_live_output_fits(self):
        """Of commands whose figures differ between runs."""
        copies = iter(range(100))
        quick = "--formats as-is --cache warm --repeats 1 --min-seconds 0.01 --num-workers 1,2".split()
        trial = "--min-seconds 0.01 --max-cache 0 --max-minutes 0.05".split()
        small = "--num_envs 32 --num_steps 6 --warmup 1 --active 2 --threads 1 --device cpu".split()
        cnn = "--num-epochs 2 --hidden-dim 8 --dim-feedforward 8 --image-size 32x24 --kl-weight 10 --amp".split()
        lists = {
            "run": (self.run_arguments, r"(?m)^verdict: "),
            "zh": ([*self.run_arguments, "--lang", "zh"], r"(?m)^verdict: "),
            "verify": (["verify", self.data], r"(?m)^findings: 1 range of constant dimensions; 0 frames are unusable$"),
            "doctor": (["doctor"], r"(?m)^  hdf5 +yes "),
            "bench": (["bench", self.data, *quick], r"(?m)^(?:Keep|Convert to|No format)\b"),
            "tune": (["tune", self.data, *trial], r"(?m)^chosen: "),
            "whatif": (["whatif", self.data, *"--num-workers 2 --step-ms 1 --max-minutes 0.05".split()],
                       r"(?m)^(?:best change: |no change helps: )"),
            "train": (["train", self.data, *cnn], r"(?m)^policy: CNN, \d+ parameters; "),
            "motion": (["motion", *small], r"(?m)^3 steps without the profiler: median [\d.]+ ms per step "),
        }
        for columns in COLUMNS:
            for name, (arguments, first) in lists.items():
                if columns == 120 and name in ("bench", "tune", "whatif"):
                    continue  # take long
                if name in ("train", "motion") and subprocess.run([PROGRAM, name, "--help"], capture_output=True).returncode:
                    continue  # built without it
                terminal = on_terminal(columns, *arguments)
                bold = "".join(re.findall(r"\x1b\[1m(.*)\x1b\[0m\n", terminal))
                if name not in ("doctor", "train"):
                    self.assertRegex(bold, first.replace("(?m)^", "").replace("$", ""), terminal)
                for text in (COLOUR.sub("", terminal), piped(*arguments, COLUMNS=str(columns))):
                    self.check_fits(text, columns, self.work.name, "weir run /", "/")
                    self.assertRegex(text, first)
            made, copy = (os.path.join(self.work.name, f"{name}{next(copies)}") for name in ("made", "copy"))
            for arguments in (["synth", made, *"--episodes 1 --steps 2 --size 32x32 --cameras".split(), CAMERAS],
                              ["convert", made, copy, *"--to hdf5 --codec jpeg --image-size 24x24".split()]):
                self.check_fits(on_terminal(columns, *arguments), columns, made, copy)

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

    def test_the_loop_that_waits_in_docs(self):
        text = piped("report", TRACE, COLUMNS="80")
        with open(f"{ROOT}/docs/trace.md", encoding="utf-8") as file:
            self.assertIn("```\n" + text[:text.index("\n\n") + 1] + "```\n", file.read())

    def test_doctor_tries_the_engines(self):
        """With io_uring forbidden, neither the line of the kernel nor that of the engine says yes."""
        if not any(row["name"] == "uring" and row["present"] for row in json.loads(piped("doctor", "--json"))["io"]):
            self.skipTest("no io_uring here")
        done = subprocess.run([PROGRAM, "doctor"], env=environment(COLUMNS="400"), preexec_fn=without_io_uring, text=True,
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertRegex(done.stdout, r"(?m)^  io_uring +no +.*seccomp")
        self.assertRegex(done.stdout, r"(?m)^  uring +no +.*refuses io_uring \(Operation not permitted\)")
        self.assertRegex(done.stdout, r"(?m)^  pread +yes ")
        done = subprocess.run([PROGRAM, "doctor", "--json"], env=environment(), preexec_fn=without_io_uring, text=True,
                              check=True, stdout=subprocess.PIPE)
        (row,) = [row for row in json.loads(done.stdout)["io"] if row["name"] == "uring"]
        self.assertFalse(row["present"])
        self.assertIn("use --io pread", row["why_not"])

    def test_doctor_finds_nvjpeg_from_pypi(self):
        """The program of a wheel finds nvJPEG in the site-packages of its own virtual environment."""
        module = os.path.join(os.path.dirname(PROGRAM), "libweir_cuda.so")
        wheel = glob.glob(os.path.join(ROOT, "build/nvjpeg-venv/lib/python3*/site-packages/nvidia/*/lib/libnvjpeg.so.*"))
        if not wheel or not os.path.exists(module):
            self.skipTest("no CUDA module, or no nvJPEG from PyPI (make nvjpeg)")
        venv = os.path.join(self.work.name, "venv [*]")
        site = os.path.join(venv, "lib/python3.12/site-packages")
        os.makedirs(os.path.join(venv, "bin"))
        os.makedirs(os.path.join(site, "weir"))
        program = shutil.copy(PROGRAM, os.path.join(venv, "bin"))
        shutil.copy(module, os.path.join(site, "weir"))

        def row(name):
            done = subprocess.run([program, "doctor", "--json"], env=environment(), check=True, stdout=subprocess.PIPE)
            (found,) = [row for row in json.loads(done.stdout)["found"] if row["name"] == name]
            return found["text"] or found["why_not"]
        self.assertIn(site, row("cuda module"))
        self.assertIn("libnvjpeg.so.13 cannot be opened; install it", row("nvjpeg"))
        for folder in ("cu13", "nvjpeg"):  # the folder depends on the version of the package
            path = os.path.join(site, "nvidia", folder)
            shutil.copytree(os.path.dirname(wheel[0]), os.path.join(path, "lib"))
            self.assertRegex(row("nvjpeg"), r"^nvJPEG 13\.\d+\.\d+")
            shutil.rmtree(path)

    def test_tune_tries_engines_that_can_run(self):
        """With io_uring forbidden, the search does not list that engine and spends no trial on it."""
        command = [PROGRAM, "tune", self.data, "--min-seconds", "0.01", "--max-cache", "0"]
        done = subprocess.run(command, env=environment(COLUMNS="400"), preexec_fn=without_io_uring, text=True, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertRegex(done.stdout, r"engines: pread mmap[,;]")
        self.assertNotIn("uring", done.stdout)

    def test_report_of_a_folder(self):
        """The newest trace in it, by name; without one, what to type. Names never reach the terminal as they are."""
        folder = os.path.join(self.work.name, "traces")
        os.mkdir(folder)
        traces = [f"{RECORDED}/run_trace.json.gz"]
        whole = piped("report", traces[0])

        def report(status):
            done = subprocess.run([PROGRAM, "report", folder], env=environment(), capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), done.stderr)
            self.assertNotIn("\x1b", done.stderr)
            return done.stdout, done.stderr.replace(folder, "DIR")
        nothing = ("", "weir report: DIR: this folder contains no trace and no log; record a trace with torch.profiler "
                       "(weir report --help shows how) or weir run --profile\n")
        self.assertEqual(report(1), nothing)
        done = subprocess.run([PROGRAM, "report", "-"], input="{}", env=environment(), capture_output=True, text=True)
        self.assertRegex(done.stderr, "^weir report: -: no table in its 1 line; a log has .*; specify a trace as a file\n$")
        os.mkfifo(os.path.join(folder, "pipe.json"))
        os.mkdir(os.path.join(folder, "inner.json"))
        for name, text in (("pyvenv.cfg", "home = /usr/bin\n"), ("train.py", "print('Epoch', 1)\n"), ("a.json", "{}\n"),
                           ("empty.log", ""), ("model.pt", "PK\0\0" + "Epoch 1/2 总耗时: 1.00s\n" * 9)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.assertEqual(report(1), nothing, "files that are no logs are not suggested")
        for name, text, time in (("older.jsonl", '{"type":"run","weir":"0.1.0"}\n', 1e8),
                                 ("it's a log", "loss: 0.5\n" * 9000 + "Epoch 1/2 总耗时: 1.00s\n", 2e8)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as log:
                log.write(text)
            os.utime(log.name, (time, time))
            self.assertIn("DIR: this folder contains no trace; name a file, such as: weir report ", report(1)[1])
        self.assertIn("DIR: this folder contains no trace; name a file, such as: weir report 'DIR/it'\\''s a log'\n",
                      report(1)[1])
        ending = ".json.gz" if traces[0].endswith(".gz") else ".json"
        for number, name in enumerate(("b", "a", "c\x1b[31m\nred")):
            path = shutil.copy(traces[0], os.path.join(folder, name + ending))
            os.utime(path, (1e9 + number, 1e9 + number))
            out, line = report(0)
            self.assertEqual(out, whole)
            name = name.replace("\x1b", "?").replace("\n", "?")
            self.assertEqual(line, f"weir report: DIR/{name}{ending} is the newest trace in its folder\n")


if __name__ == "__main__":
    unittest.main()
