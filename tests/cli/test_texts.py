#!/usr/bin/env python3
"""Checks the text output of the commands that print no run: it fits the width of a terminal or of $COLUMNS, the most
important line comes first and is the only coloured one, and --wide prints whole tables. Usage:
WEIR_PROGRAM=build/release/weir tests/cli/test_texts.py"""
import ctypes
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from test_width import PROGRAM, environment, on_terminal, piped, width

IO_URING_SETUP = 425
COLUMNS = (80, 120, 200)
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SHARED = os.environ.get("WEIR_DATA", os.path.join(os.path.dirname(__file__), "../../../shared/data"))
CAMERAS = "cam_high_with_a_long_name,observation_images_cam_left_wrist"
AVERAGES = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "Self CUDA", "Self CUDA %",
            "CUDA total", "CUDA time avg", "CPU Mem", "Self CPU Mem", "CUDA Mem", "Self CUDA Mem", "# of Calls"]


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
        cls.data = os.path.join(cls.work.name, "data")
        subprocess.run([PROGRAM, "synth", cls.data, *"--format act-jpeg --episodes 3 --steps 12 --size 320x240".split(),
                        "--cameras", CAMERAS], check=True, stdout=subprocess.DEVNULL)

    def check_fits(self, text, columns, *whole):
        """Lines with any of the texts `whole`, such as paths, may be longer."""
        for line in re.sub(r"\x1b\[\d*[A-Za-z]", "", text).splitlines():
            if not any(part in line for part in whole):
                self.assertLessEqual(width(line), columns, line)

    def every_width(self, *arguments, whole=(), **variables):
        """Yields (columns, text) on terminals and through pipes."""
        for columns in COLUMNS:
            texts = [on_terminal(columns, *arguments, **variables), piped(*arguments, COLUMNS=str(columns), **variables)]
            bare = [piped(*arguments, **variables)] * (columns == 80)
            for text in texts + bare:
                self.check_fits(text, columns, *whole, *["epoch "] * (text in bare))  # whole in a pipe without a width
                yield columns, text

    def test_doctor(self):
        rows = [row["name"] for key in ("found", "io", "decoders", "video", "formats", "layouts", "convert")
                for row in json.loads(piped("doctor", "--json"))[key]]
        for _, text in self.every_width("doctor", whole=("/",)):
            names = re.findall(r"(?m)^  (\S+(?: \S+)*) +(?:yes|no) +\S", text)
            self.assertEqual(names, rows)
            for line in text.splitlines():
                self.assertRegex(line, r"^$|^[A-Zw]|^  [a-zA-Z]|^ {17}\S|^ {22}\S")

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
        wheel = glob.glob(os.path.join(SOURCE, "build/nvjpeg-venv/lib/python3*/site-packages/nvidia/*/lib/libnvjpeg.so.*"))
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

    def test_info(self):
        folder = os.path.join(self.work.name, "several")
        subprocess.run([PROGRAM, "synth", os.path.join(folder, "demos"), *"--format robomimic-gzip --episodes 2".split(),
                        *"--steps 24 --size 96x64".split()], check=True, stdout=subprocess.DEVNULL)
        shutil.copytree(self.data, os.path.join(folder, "act"), dirs_exist_ok=True)
        for data in (self.data, folder):
            rows = []
            for _, text in self.every_width("info", data, whole=(self.work.name,)):
                self.assertEqual(text.splitlines()[0], data)
                rows.append(re.sub(r"[\d.]+", "N", text).split())  # some numbers are times
                for name in CAMERAS.split(","):
                    self.assertRegex(text, rf"(?m)^  {name} +320x240 ")
                self.assertRegex(text, r"(?m)^(actions: .*\n)  mean(( +-?[\d.e+-]+)+\n)+  std")
            self.assertTrue(all(row == rows[0] for row in rows), "only the line breaks differ")

    def test_report_of_a_folder(self):
        """The newest trace in it, by name; without one, what to type. Names never reach the terminal as they are."""
        folder = os.path.join(self.work.name, "traces")
        os.mkdir(folder)
        traces = glob.glob(os.path.join(SHARED, "traces/*.pt.trace.json*"))
        if not traces:
            self.skipTest("no shared data")
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

    def test_synth_and_convert(self):
        copies = iter(range(100))
        for columns in COLUMNS:
            for call in (on_terminal, lambda columns, *rest: piped(*rest, COLUMNS=str(columns))):
                made, copy = (os.path.join(self.work.name, f"{name}{next(copies)}") for name in ("made", "copy"))
                cameras = ",".join(f"observation_images_camera_{i}" for i in range(4))
                text = call(columns, "synth", made, *"--episodes 1 --steps 2 --size 32x32 --cameras".split(), cameras)
                self.check_fits(text, columns, made)
                self.assertRegex(text, r"(?m)^folder     /.*\n(.*\n)*cameras    observation_.*(\n {11}\S.*)* 32x32$")
                text = call(columns, "convert", made, copy, *"--to hdf5 --codec jpeg --image-size 24x24".split())
                self.check_fits(text, columns, made, copy)
                self.assertRegex(text, r"(?m)^PSNR       mean [\d.]+ dB")

    def test_verify(self):
        sound = re.compile(r"(?m)^findings: 1 range of constant dimensions; 0 frames are unusable\n"
                           r"lengths: .*\nchecked: 3 episodes, ")
        texts = [(columns, on_terminal(columns, "verify", self.data)) for columns in COLUMNS]
        for columns, text in texts + [(columns, piped("verify", self.data, COLUMNS=str(columns))) for columns in COLUMNS]:
            self.check_fits(text, columns)
            self.assertRegex(re.sub(r"\x1b\[\d*[A-Za-z]", "", text), sound)
        self.assertEqual(on_terminal(40, "verify", self.data, "--wide").count("\n"), piped("verify", self.data).count("\n"))
        bad = shutil.copytree(self.data, os.path.join(self.work.name, "bad"))
        with open(os.path.join(bad, "episode_1.hdf5"), "r+b") as file:
            start = file.read().index(b"\xff\xd8\xff")
            file.seek(start)
            file.write(b"damaged!")
        for columns in (80, 200):
            done = subprocess.run([PROGRAM, "verify", bad], env=environment(COLUMNS=str(columns)), text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 3, done.stdout)
            self.check_fits(done.stdout, columns, bad)
            self.assertRegex(re.sub(r"\n  ", " ", done.stdout), r"(?m)^findings: 1 range of frames, 1 range of constant "
                             r"dimensions; 1 frame is unusable\nlengths: ")
        self.assertIn("\x1b[1mfindings: 1 range of constant dimensions; 0 frames are unusable\x1b[0m\n",
                      on_terminal(80, "verify", self.data))
        self.assertNotIn("\x1b[1m", on_terminal(80, "verify", self.data, NO_COLOR="1"))

    def need(self, command):
        if subprocess.run([PROGRAM, command, "--help"], capture_output=True, check=False).returncode != 0:
            self.skipTest(f"built without {command}")

    def test_motion(self):
        self.need("motion")
        small = "motion --device cpu --num_envs 32 --num_steps 6 --warmup 1 --active 2 --threads 1".split()
        for columns, text in self.every_width(*small, NO_COLOR="1"):
            self.assertEqual("CPU total %" in self.headings(text), columns > 80)
            self.assertRegex(text, r"(?m)^3 steps without the profiler: median [\d.]+ ms per step ")
        self.assertRegex(piped(*small, "--wide"), r"(?m)^ +Name    Self CPU %      Self CPU   CPU total %     CPU total  ")
        text = on_terminal(80, *small)
        self.assertRegex(text, r"(?m)^\x1b\[1m3 steps without .*\x1b\[0m$")
        self.assertEqual(text.count("\x1b[1m"), 2, text)

    def test_train(self):
        self.need("train")
        cnn = "train --num-epochs 2 --hidden-dim 8 --dim-feedforward 8 --image-size 32x24 --kl-weight 10 --amp".split()
        for _, text in self.every_width(cnn[0], self.data, *cnn[1:], whole=(self.data,)):
            self.assertRegex(text, r"(?m)^policy: CNN, \d+ parameters; ")
            self.assertRegex(text, r"(?m)^ignored by CNN: ")
            self.assertRegex(text, r"(?m)^22_optimizer_step ")

    def record(self, *options):
        """Returns the path of a trace of a short run."""
        folder = tempfile.mkdtemp(dir=self.work.name)
        piped("run", self.data, *"--num-epochs 2 --batch-size 4 --step-ms 2 --profile".split(), folder, *options)
        (name,) = os.listdir(folder)
        return os.path.join(folder, name)

    def headings(self, text):
        (line,) = re.findall(r"(?m)^ *Name .*# of Calls.*$", text)
        return [name.strip() for name in re.split(r" {2,}", line.strip())]

    def test_averages_and_steps(self):
        trace = self.record()
        counts = {}
        for columns, text in self.every_width("report", trace):
            headings = self.headings(text)
            self.assertEqual([name for name in AVERAGES if name in headings], headings)
            self.assertLessEqual({"Name", "Self CPU", "Self CPU %", "CPU total", "# of Calls"}, set(headings))
            self.assertEqual(counts.setdefault(columns, headings), headings, "the same through a pipe")
            self.assertRegex(text, r"(?m)^step +time( .*)? +DataLoader ")
            self.assertRegex(text, r"(?m)^03b_image_decode +\d")
            self.assertRegex(text, r"(?m)^mean +\d+\.\d{3}ms ")
        wide = piped("report", trace, "--wide")
        self.assertEqual(counts[200], self.headings(wide))
        self.assertNotIn("CPU total %", counts[80])
        self.assertRegex(wide, r"(?m)^-{20,}  -{12} ")
        for columns, text in self.every_width("report", trace, "--sort-by", "cpu_time"):
            self.assertIn("CPU time avg", self.headings(text))
        piped_rows = re.findall(r"(?m)^(\S+) +\d+\.\d\d% ", piped("report", trace, COLUMNS="300"))
        self.assertEqual(piped_rows, re.findall(r"(?m)^ *(\S+) +\d+\.\d\d% ", wide))

    def test_waits_stand_apart_from_the_operations(self):
        folder = os.path.join(self.work.name, "waits")
        options = "--num-epochs 8 --batch-size 2 --num-workers 2 --step-ms 20 --schedule active=6,repeat=1 --profile".split()
        run = piped("run", self.data, *options, folder)
        (path,) = glob.glob(f"{folder}/*.json.gz")
        for text in (run, piped("report", path), piped("report", path, "--wide")):
            table, waits = re.search(r"(?m)^ *Name .*\n((?:.+\n)+)Self CPU time total: .*\n(?:waiting.*\n)((?:\S.*\n)+)",
                                     text).groups()
            names, shares = zip(*re.findall(r"(?m)^ *(\S+) +(\d+\.\d\d)% ", table))
            self.assertAlmostEqual(sum(map(float, shares)), 100, delta=0.005 * len(shares) + 0.01)
            self.assertFalse([name for name in names if "wait" in name or "WeirLoader.__next__" in name], table)
            rows = re.findall(r"(?m)^(\S+) +(\S+) +(\S+) +(\d+)$", waits)
            self.assertIn("09_wait_for_slot", [name for name, *_ in rows], waits)
            self.assertTrue(any("WeirLoader.__next__" in name for name, *_ in rows), waits)
        (trace,) = json.loads(piped("report", path, "--json"))["traces"]
        waits = [row["wait"] for row in trace["averages"]]
        self.assertEqual(waits, sorted(waits), "the waits come after the work")
        self.assertEqual({row["name"] for row in trace["averages"] if row["wait"]}, {name for name, *_ in rows})

    def test_shapes_and_stacks_of_averages(self):
        shapes, stacks = self.trace_with_shapes(), self.record("--with-stack")
        for options in ([shapes, "--group-by-input-shape"], [stacks, "--group-by-stack", "3"],
                        [stacks, "--top-level-events-only"]):
            for _, text in self.every_width("report", *options):
                headings = self.headings(text)
                self.assertEqual("Input Shapes" in headings, options[1] == "--group-by-input-shape")
                self.assertEqual("Source Location" in headings, options[1] == "--group-by-stack")

    def trace_with_shapes(self):
        path = os.path.join(self.work.name, "shapes.json")
        name = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1> >"
        events = [{"ph": "X", "cat": "cpu_op", "name": f"{name}({i})", "pid": 1, "tid": 1, "ts": 100 * i, "dur": 90,
                   "args": {"Input Dims": [[64, 3, 224, 224], [1000]] * (i + 1), "Python id": i}} for i in range(3)]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "traceEvents": events}, file)
        return path

    def test_gpu_idle_comes_first(self):
        trace = os.path.join(SHARED, "traces/torch_cuda.pt.trace.json.gz")
        if not os.path.exists(trace):
            self.skipTest(f"no {trace}")
        found = re.compile(r"^GPU 0 waits for launches [\d.]+ % of(.*\n)+  what helps +fewer(.*\n)+GPU 0 +time  of total ")
        bold = re.compile(r"^\x1b\[1mGPU 0 waits .*\x1b\[0m\n( +\x1b\[1m.*\x1b\[0m\n)*")
        for columns, text in self.every_width("report", trace, NO_COLOR="1"):
            self.assertRegex(text, found)
            self.assertNotIn("\x1b", text)
            self.assertLessEqual({"Name", "Self CPU", "Self CUDA", "# of Calls"}, set(self.headings(text)))
            self.assertLess(text.index("of total"), text.index("# of Calls"))
        text = on_terminal(80, "report", trace)
        self.assertRegex(text, bold)
        self.assertNotIn("\x1b", bold.sub("", text))
        self.assertEqual(self.headings(piped("report", trace, COLUMNS="250")), AVERAGES)

    def test_the_loop_that_waits_in_docs(self):
        text = piped("report", f"{ROOT}/docs/pictures/waiting_for_data.json.gz", COLUMNS="80")
        block = text[:text.index("\n\n") + 1]
        self.assertRegex(block, r"^GPU 0 waits for data [\d.]+ % of the time \(data-bound\): ")
        with open(f"{ROOT}/docs/trace.md", encoding="utf-8") as file:
            self.assertIn(f"```\n{block}```\n", file.read())
        rows = re.findall(r"(?m)^(?:idle|busy): .* ([\d.]+)ms +([\d.]+)% ", block)
        self.assertEqual(rows, sorted(rows, key=lambda row: -float(row[0])), "the longest first")
        total = re.search(r"(?m)^total +([\d.]+)ms +100.0% ", block)[1]
        self.assertAlmostEqual(sum(float(ms) for ms, _ in rows), float(total), delta=0.001 * len(rows))
        steps = re.search(r"(?m)^mean +([\d.]+)ms ", text)[1]
        waits = re.search(r"(?m)^idle: waiting for data .* ([\d.]+)ms$", block)[1]
        step_ms = re.search(r" --step-ms ([\d.]+) ", block)[1]
        self.assertAlmostEqual(float(step_ms), float(steps) - float(waits), delta=0.1)

    def test_steps_show_kernels_and_name_the_columns_left_out(self):
        trace = f"{ROOT}/docs/pictures/waiting_for_data.json.gz"
        for columns, names, more in ((80, "Kernel Memcpy DataLoader", "4 more columns (Memset, Runtime, CPU Exec, Other)"),
                                     (62, "Kernel DataLoader", "5 more columns (Memcpy, Memset, Runtime, CPU Exec, Other)")):
            text = piped("report", trace, COLUMNS=str(columns))
            heading, left_out = re.search(r"\n(step .*)\n(?:.*\n)*?mean .*\n((?:.+\n)+)\nName ", text).groups()
            self.assertEqual(heading.split(), ["step", "time", *names.split()])
            self.assertEqual(left_out.split(), [*more.split()[:-1], more.split()[-1] + ":", "--wide"])
        wide = piped("report", trace, "--wide", COLUMNS="80")
        self.assertNotIn("more column", wide)
        self.assertRegex(wide, r"\nstep +time +Kernel +Memcpy +Memset +Runtime +DataLoader +CPU Exec +Other\n")

    def test_a_trace_fits_a_screen(self):
        def rows(*options):
            text = piped("report", trace, *options, COLUMNS="80")
            self.assertLess(text.index("\nstep "), text.index("\nName "), "the averages, which are long, come last")
            more = re.search(r"(?m)^(\d+) more rows: --row-limit -1$", text)
            return text[text.index("\nName "):text.index("\nSelf CPU time total")].count("\n") - 1, more and int(more[1])
        trace = f"{ROOT}/docs/pictures/waiting_for_data.json.gz"
        whole, none_left = rows("--row-limit", "-1")
        self.assertIsNone(none_left)
        self.assertEqual(rows(), (20, whole - 20))
        self.assertEqual(rows("--row-limit", "7"), (7, whole - 7))
        report = json.loads(piped("report", trace, "--json"))
        self.assertEqual(len(report["traces"][0]["averages"]), 100)
        self.assertIn(f"\n{whole - 100} more rows: --row-limit -1\n", piped("report", trace, "--wide"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
