#!/usr/bin/env python3
"""Checks the rules of the tree: tests/checks/check_layers.py [ROOT]. --self-test checks that each fails on a bad tree.

1. Includes start at the root, public headers with "weir/" (in include/; PUBLIC maps each to its room). The order is
   base <- prof <- origin <- {io, decoders, datasets} <- pipeline <- {analyze, convert} <- {cli, python} <- extras. Folders in
   braces never include each other, and an extra includes no other extra except extras/common. An extra's library
   includes only public headers and the extras'; its cli/, cuda/ and python/ belong to the program, the CUDA module and the
   Python package, and extras/motion is not separate yet (PART). Rooms inside a folder have an order (ROOMS), which
   docs/internals/architecture.md has too. cuda/ includes base/, the *_ops.h that it implements, cuda_module.h,
   weir/kernel_clock.h and .cuh, and no other folder includes it. tests and bench may include anything.
2. *_ops.h may only be included where they are implemented: in the same top-level folder, and in cuda/. *_priv.h stay in
   their room. tests and bench may include both.
3. No extern declares a symbol that an upper layer defines.
4. Outside tests and bench, only one .c file includes a third-party header (exceptions: PAIRS). Python's header is only
   in python/src/, CUDA's headers are only in cuda/, and cmake/Cuda.cmake lists every file of cuda/.
5. File names are unique in the tree. Only cli/ prints to stdout or exits (and the child processes in CHILD). A header's
   guard is derived from its path (public headers: from its name). Functions have at most 60 lines, files at most 600
   (tests: 1000). Every source file is in a CMake list. A folder has at most 25 .c files (except bench and tests).
   Thresholds of causes (analyze/causes/thresholds.h) are for rules: no output of analyze/ uses one (OUTPUT), and causes/
   itself includes only base/ and weir/base.h, so that a cause knows no source.
6. Names in comments exist: weir_* and WEIR_* in code, a string or a CMake file; other words with an underscore, and
   name(), there, in a script or as the name of a file. FOREIGN lists other projects' names. Paths in comments, of
   Python and shell too, exist from the root or end the path of a file; a path with a name in capitals is a pattern.
   FOREIGN_PATHS lists others.
"""
import glob
import io
import os
import re
import sys
import tempfile
import tokenize

LAYERS = {"base": 0, "prof": 1, "stages": 1.5, "frame kinds": 1.5, "origin": 1.7, "io": 2, "decoders": 2, "datasets": 2, "pipeline": 3, "analyze": 4, "convert": 4,
          "cli": 5, "python": 5, "extras": 6, "cuda": 9}
ARCHITECTURE = "docs/internals/architecture.md"
# The order of the rooms inside a folder: a room includes only rooms with a smaller number.
ROOMS = {"prof/trace": 0, "prof/symbols": 0, "prof/processes": 0, "prof/ranks": 0, "prof/gpu": 1, "prof/record": 2, "prof/report": 3, "prof/watch": 4,
         "decoders": 0, "decoders/gpu": 1, "decoders/video": 1,
         "datasets/chunks": 0, "datasets/video": 0, "datasets/parquet": 0.5, "datasets/helper": 0, "datasets": 1, "datasets/layouts": 2, "datasets/hdf5": 2,
         "datasets/tfrecord": 2, "datasets/zarr": 2, "datasets/packed": 2, "datasets/lmdb": 2, "datasets/lerobot": 2, "datasets/synth": 3,
         "pipeline/gpu": 0, "pipeline/samples": 1, "pipeline/offload": 2, "pipeline/verify": 2, "pipeline/work": 3,
         "pipeline": 4, "pipeline/report": 5,
         "analyze/causes": -1, "analyze/prediction": 0, "analyze/gpu_idle": 0, "analyze/jobs": 1, "analyze/verdict": 1, "analyze/ranks": 2, "analyze/watch": 3, "analyze/logs": 4, "analyze/trials": 5,
         "analyze/tuning": 6, "analyze/compare": 6, "analyze/page": 6, "analyze/live": 7,
         "convert": 0,
         "cli": 0, "cli/report": 1, "cli/run": 1, "cli/bench": 1, "cli/top": 1, "cli/compare": 2,
         "extras/common": 0, "extras/common/cuda": 1, "extras/motion/clips": 1, "extras/motion": 2,
         "extras/motion/cuda": 3, "extras/motion/cli": 3, "extras/motion/python": 3, "extras/train": 1,
         "extras/train/cli": 2, "extras/scenario": 1, "extras/scenario/cli": 2}
# The room that implements each public header: a file that may include the room may include the header. "stages" and
# "frame kinds" are not folders: all rooms above prof/ may include these headers. The lowest room of pipeline/ already
# uses the types of loader.h.
PUBLIC = {"weir/base.h": "base", "weir/trace.h": "prof/trace", "weir/kernel_clock.h": "prof/gpu",
          "weir/kernel_clock.cuh": "prof/gpu", "weir/recorder.h": "prof/record", "weir/profiler.h": "prof/record",
          "weir/stages.h": "stages", "weir/decoder.h": "decoders", "weir/dataset.h": "datasets",
          "weir/loader.h": "pipeline/gpu", "weir/report.h": "pipeline",
          "weir/frames.h": "frame kinds"}
# Headers that lower or neighbouring rooms may include too. With their .c files they have a separate place in the order.
LOW = {"decoders/frame_kind.h": "frame kinds"}
FREE = re.compile(r"(extras/\w+/)?(tests|bench)(/|$)")
CUDA_ROOM = re.compile(r"(extras/\w+/)?cuda$")
CLI_ROOM = re.compile(r"(extras/\w+/)?cli(/|$)")
PART = re.compile(r"extras/\w+/(cli|cuda|python)$|extras/motion(/|$)")
PYTHON_ROOM = re.compile(r"python/src$|extras/\w+/python$")
CUDA = re.compile(r"cuda|nvjpeg|cupti|nvtx|generated_cuda")
PAIRS = {"hdf5.h": 8, "jpeglib.h": 4, "jerror.h": 3, "png.h": 2, "zlib.h": 3, "jansson.h": 21, "lmdb.h": 2, "curl/curl.h": 3}
CHILD = {("helper_spawner_serve.c", "_exit"), ("hdf5_helper_serve.c", "_exit")}
FUNCTION_LINES, FILE_LINES, TEST_LINES, FOLDER_FILES = 60, 600, 1000, 25
NAME = r"\b(?:weir|WEIR)_\w+"
PLAIN_NAME = r"(?<![\w/.-])((?!weir_)[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z]\w*(?=\(\)))(?![\w/*-])"
# Names in comments from libjpeg-turbo, liblmdb, CPython, C, x86, torch, h5py, and programs that write datasets.
FOREIGN = set("""alloc_sarray astrobench_dual_arm decompress_onepass sep_upsample md_pad tp_call iter seq_cst x86_64 ang_vel_from_quat_diff animation_manager
collect_data compress_data create_dataset hdf5_dataset_file_handler humanoid_amp motion_data_manager motion_loader record_episodes
record_sim_episodes imitate_episodes vel_forward_diff max_len in_frame cam_high_depth demo_9 demo_10 group_by_input_shape group_by_stack_n
top_level_events_only key_averages my_kernel load_state_dict start_profiling""".split())
PATH = re.compile(r"(?<![\w./<>$~*{}-])(?:[\w.-]+/)+[\w.-]*\w\.(?:c|h|cu|cuh|in|py|pyi|sh|md|txt|js|css|html|cmake)(?![\w/*-])")
# Build folders, names in capitals, and files of other projects.
FOREIGN_PATHS = re.compile(r"(build|torch|tensorflow|linux)/|([^/]*/)*[A-Z]{3,}(/|\.(?!md))|[^/]*\.net/"
                           r"|(envs/utils/pkl2hdf5|scripts/csv_to_npz|utils/math|managers/motion_data_manager|humanoid_amp/motions/motion_loader"
                           r"|policy/ACT/process_data)\.py$")
GENERATED = {"base/version.h", "base/extras.h"}
CAUSES = "analyze/causes"
OUTPUT = re.compile(r"analyze/(page/|live/|.*_(print|write|text|table|json)\.c$)")

SYSTEM = set("""assert ctype complex errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype alloca cpuid
dirent dlfcn elf endian execinfo fcntl fnmatch ftw getopt glob grp immintrin langinfo libgen link malloc poll pthread pwd regex sched
semaphore spawn strings syslog termios ucontext unistd utime x86intrin""".split())
SYSTEM_FOLDERS = {"sys", "linux", "gnu", "bits", "arpa", "net", "netinet", "asm"}


def without_comments(text):
    """Blanks comments, and the contents of strings except on #include lines; keeps line numbers."""
    def blank(match):
        token = match.group(0)
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + " " * (len(token) - 2) + token[-1]
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    kept = pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)) if m.group(0).startswith("/") else m.group(0), text)
    return "\n".join(line if re.match(r"\s*#\s*include", line) else pattern.sub(blank, line)
                     for line in kept.split("\n"))


def rooms_of(top):
    """The rooms of a folder, one list per number, with the names that ARCHITECTURE has."""
    rooms = {room: number for room, number in ROOMS.items() if room.split("/")[0] == top}
    return [sorted(room.removeprefix(top + "/") + "/" for room in rooms if rooms[room] == number)
            for number in sorted(set(rooms.values()))]


def text_of(groups):
    return " < ".join(" ".join(group) for group in groups if group) or "none"


class Tree:
    def __init__(self, root):
        self.root = root
        self.faults = []
        self.third_party = {}
        self.names = set()
        self.commented = []
        self.commented_paths = []
        self.words = set()
        self.externs = []
        self.defined = {}
        self.files = []
        for top in sorted(LAYERS.keys() | {"tests", "bench", "include"}):
            for folder, _, names in sorted(os.walk(os.path.join(root, top))):
                folder = os.path.relpath(folder, root)
                self.files += [(folder, name) for name in sorted(names) if name.endswith((".c", ".h", ".cu", ".cuh", ".h.in"))]
        self.thresholds = set()
        thresholds = os.path.join(root, CAUSES, "thresholds.h")
        if os.path.isfile(thresholds):
            with open(thresholds, encoding="utf-8") as f:
                self.thresholds = set(re.findall(r"#define (WEIR_\w+) +[0-9]", f.read()))
        self.paths = set()
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in ("build", ".git")]
            self.paths.update(os.path.relpath(os.path.join(folder, name), root) for name in names)

    def fault(self, path, line, text):
        self.faults.append(f"{path}:{line}: {text}" if line else f"{path}: {text}")

    def check_own_include(self, folder, path, line, target):
        public = target in PUBLIC
        if ".." in target or "/" not in target or not (
                target in GENERATED or os.path.isfile(os.path.join(self.root, "include" if public else "", target))):
            self.fault(path, line, f'"{target}" is no header from the root of the tree')
            return
        if path.startswith("include/") and not public:
            self.fault(path, line, f"includes {target}: public headers include public headers only")
            return
        top, room = folder.split("/")[0], PUBLIC.get(target) or LOW.get(target) or os.path.dirname(target)
        other = room.split("/")[0]
        if FREE.match(folder) or room == folder:
            return
        if folder == CAUSES and target != "weir/base.h" and other != "base":
            self.fault(path, line, f"includes {target}: a cause knows no source, so {CAUSES}/ includes base/ only")
            return
        private = re.search(r"_(ops|priv)\.h$", target)
        if top == "cuda":
            if other != "base" and not target.endswith(("_ops.h", "/cuda_module.h", "/kernel_clock.h", "/kernel_clock.cuh")):
                self.fault(path, line, f"includes {target}: cuda/ includes base/ and the *_ops.h that it implements")
        elif other == "cuda" and CUDA_ROOM.match(folder):
            return
        elif other not in LAYERS or other == "cuda":
            self.fault(path, line, f"includes {target}: nothing includes {other}/")
        elif other == top == "extras" and room.split("/")[1] not in (folder.split("/")[1], "common"):
            self.fault(path, line, f"includes {target}: an extra includes no other one, so that each can be deleted")
        elif top == "extras" != other and not public and not PART.match(folder):
            self.fault(path, line, f"includes {target}: an extra's library includes public headers only")
        elif other != top and LAYERS[other] >= LAYERS[top]:
            self.fault(path, line, f"includes {target}: {top}/ lies below or beside {other}/")
        elif private and (other != top or private[1] == "priv"):
            self.fault(path, line, f"includes {target}, which is private to {room if private[1] == 'priv' else other}/")
        elif other == top and (room not in ROOMS or folder not in ROOMS):
            self.fault(path, line, f"includes {target}: {folder}/ or {room}/ is not in ROOMS of tests/checks/check_layers.py")
        elif other == top and ROOMS[room] >= ROOMS[folder]:
            self.fault(path, line, f"includes {target}: {folder}/ lies below or beside {room}/")

    def check_system_include(self, folder, path, line, target):
        if target.split("/")[0] in SYSTEM_FOLDERS or ("/" not in target and target[:-2] in SYSTEM):
            return
        if not FREE.match(folder):
            if target == "Python.h":
                if not PYTHON_ROOM.match(folder):
                    self.fault(path, line, "includes Python's header, which only python/src/ and an extra's python/ do")
                return
            if CUDA.match(target):
                if not CUDA_ROOM.match(folder):
                    self.fault(path, line, "includes a header of CUDA's, which only cuda/ and an extra's cuda/ do")
                return
            if not path.endswith(".c"):
                self.fault(path, line, f"<{target}> is third-party: it belongs in one .c file, not in a header")
            self.third_party.setdefault(target, set()).add(path)

    def check_text(self, folder, path, code):
        if not FREE.match(folder) and not CLI_ROOM.match(folder):
            for number, line in enumerate(code, 1):
                found = re.search(r"\b(stdout|exit|_exit|abort|quick_exit|printf|vprintf|puts|putchar|perror)\b", line)
                if found and (os.path.basename(path), found[1]) in CHILD:
                    continue
                if found and (found[1] == "stdout" or re.search(rf"\b{found[1]}\s*\(", line)):
                    self.fault(path, number, f"{found[1]}: only cli/ prints results or exits")
        for number, line in enumerate(code, 1):
            for name in set(re.findall(r"\bWEIR_\w+", line)) & self.thresholds if OUTPUT.match(path) else ():
                self.fault(path, number, f"{name}: an output knows no rule; the rule decides")
        most = TEST_LINES if "tests" in folder.split("/") else FILE_LINES
        if len(code) > most:
            self.fault(path, 0, f"{len(code)} lines; {most} are the most: make it two")
        start = None
        for number, line in enumerate(code, 1):
            if line.startswith("{") and not re.match(r"(template .*)?class\b", code[number - 2]):
                start = number
            elif line.startswith("}") and start:
                if number - start - 1 > FUNCTION_LINES:
                    self.fault(path, start, f"a function of {number - start - 1} lines; {FUNCTION_LINES} are the most")
                start = None

    def check_file(self, folder, name):
        path = f"{folder}/{name}"
        if folder == "include/weir":
            folder = PUBLIC.get("weir/" + name, "base")
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            text = f.read()
        self.note_names(path, text)
        code = without_comments(text).rstrip("\n").split("\n")
        for number, line in enumerate(code, 1):
            include = re.match(r'\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>)', line)
            if include and include[1] is not None:
                self.check_own_include(folder, path, number, include[1])
            elif include:
                self.check_system_include(folder, path, number, include[2])
        self.note_externs(folder, path, code)
        self.check_text(folder, path, code)
        if name.endswith((".h", ".cuh")):
            guard = guard_of(path)
            if f"#ifndef {guard}" not in code or f"#define {guard}" not in code:
                self.fault(path, 0, f"has no guard {guard}")

    def note_names(self, path, text):
        """Collects names in comments and elsewhere, to compare after reading all files."""
        pattern = re.compile(r'(/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
        for match in pattern.finditer(text):
            if not match[1]:
                continue
            line = text.count("\n", 0, match.start()) + 1
            self.note_paths(path, line, match[1])
            self.commented += [(path, line, name) for name in re.findall(NAME, match[1])]
            if not FREE.match(path):
                self.commented += [(path, line, name) for name in re.findall(PLAIN_NAME, match[1])]
        code = pattern.sub(lambda m: " " if m[1] else m[0], text)
        self.names.update(re.findall(NAME, code))
        self.words.update(re.findall(r"[a-z]\w*", code))

    def note_paths(self, path, line, comment):
        self.commented_paths += [(path, line + comment.count("\n", 0, found.start()), found[0])
                                 for found in PATH.finditer(comment)]

    def check_paths(self):
        """Checks the paths in comments: of the files read before, and of Python and the shell."""
        for path in sorted(self.paths):
            if path.endswith((".py", ".pyi", ".sh")) or path.startswith(".ci/"):
                with open(os.path.join(self.root, path), encoding="utf-8") as f:
                    text = f.read()
                if path.endswith((".py", ".pyi")):
                    for token in tokenize.generate_tokens(io.StringIO(text).readline):
                        if token.type == tokenize.COMMENT or token.string.startswith('"""'):
                            self.note_paths(path, token.start[0], token.string)
                else:
                    for match in re.finditer(r"(?<!\S)#.*", text):
                        self.note_paths(path, text.count("\n", 0, match.start()) + 1, match[0])
        ends = {path.split("/", n)[-1] for path in self.paths for n in range(path.count("/") + 1)} | GENERATED
        for path, line, name in self.commented_paths:
            extra = re.match(r"extras/\w+", name)
            deleted = extra and not os.path.isdir(os.path.join(self.root, extra[0]))
            if name not in ends and not deleted and not FOREIGN_PATHS.match(name):
                self.fault(path, line, f"a comment names {name}, which does not exist")

    def check_names(self):
        self.words.update(os.path.splitext(name)[0] for _, name in self.files)
        self.words |= FOREIGN
        for path, line, name in self.commented:
            if not re.match(NAME, name):
                known = name in self.words
            else:
                known = name in self.names or (name.endswith("_") and any(n.startswith(name) for n in self.names))
            if not known:
                self.fault(path, line, f"a comment names {name}, which does not exist")

    def note_externs(self, folder, path, code):
        """Collects extern declarations, and definitions in the first column, to compare after reading all files."""
        for number, line in enumerate(code, 1):
            declared = re.match(r"\s*extern\s[^(]*;", line)
            if declared and not FREE.match(folder):
                self.externs += [(folder, path, number, name) for name in
                                 re.findall(r"(\w+)(?:\[\w*\])?\s*[,;]", re.sub(r"__attribute__.*;", ";", line))]
            defined = re.match(r"(?!extern|static|typedef)[A-Za-z_][\w ]*[\w*] \**(\w+)(?:\[\w*\])?(?: =|;)", line)
            if defined and path.endswith((".c", ".cu")):
                self.defined.setdefault(defined[1], folder)

    def check_externs(self):
        for folder, path, line, name in self.externs:
            other = self.defined.get(name, folder)
            if LAYERS.get(other.split("/")[0], 0) > LAYERS[folder.split("/")[0]]:
                self.fault(path, line, f"extern {name}, which {other}/ defines: what is below is handed what it needs")

    def check_build(self):
        """Checks that a CMake list contains every file."""
        listed = ""
        module = ""
        lists = [os.path.relpath(full, self.root) for full in
                 sorted(glob.glob(os.path.join(self.root, "extras/**/CMakeLists.txt"), recursive=True))]
        for path in [*lists, "CMakeLists.txt", "tests/CMakeLists.txt", "bench/CMakeLists.txt", "python/CMakeLists.txt",
                     "python/watch/CMakeLists.txt", "cmake/Cuda.cmake"]:
            full = os.path.join(self.root, path)
            if os.path.isfile(full):
                with open(full, encoding="utf-8") as f:
                    module = re.sub(r"#.*", "", f.read())
                    listed += module
        self.names.update(re.findall(NAME, listed))
        for folder, name in self.files:
            path = f"{folder}/{name}"
            if folder == "cuda" and name.endswith((".c", ".cu")) and path not in module:
                self.fault(path, 0, "is not in cmake/Cuda.cmake: cuda/ is what libweir_cuda.so is made of")
            elif name.endswith((".c", ".cu")) and not re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", listed):
                self.fault(path, 0, "is in no CMakeLists.txt")
        folders = [folder for folder, name in self.files if name.endswith(".c")]
        for folder in sorted(set(folders)):
            if not FREE.match(folder) and folders.count(folder) > FOLDER_FILES:
                self.fault(folder, 0, f"{folders.count(folder)} .c files; {FOLDER_FILES} are the most: make rooms in it")

    def check_rooms(self):
        """Checks that the table in ARCHITECTURE has the rooms of ROOMS, in their order."""
        with open(os.path.join(self.root, ARCHITECTURE), encoding="utf-8") as f:
            table = re.search(r"rooms, lowest first \|\n.*\n((?:\|.*\n)*)", f.read())[1]
        rows = dict(re.findall(r"^\| `(\w+)/` \| (.*) \|$", table, re.M))
        for top in sorted(rows.keys() | {room.split("/")[0] for room in ROOMS if "/" in room}):
            groups = [sorted(re.findall(r"`((?:\w+/)+)`", group)) for group in rows.get(top, "").split(" < ")]
            printed, known = text_of(groups), text_of(rooms_of(top))
            if printed != known:
                self.fault(ARCHITECTURE, 0, f"{top}/ has the rooms {printed}; in ROOMS of tests/checks/check_layers.py: {known}")

    def check(self):
        seen = {}
        for folder, name in self.files:
            if name in seen:
                self.fault(f"{folder}/{name}", 0, f"has the name of {seen[name]}/{name}")
            seen[name] = folder
            self.check_file(folder, name)
        self.check_externs()
        for header, users in sorted(self.third_party.items()):
            if len(users) > PAIRS.get(header, 1):
                self.fault(", ".join(sorted(users)), 0, f"<{header}> may be included by {PAIRS.get(header, 1)} only")
        self.check_build()
        self.check_rooms()
        self.check_names()
        self.check_paths()
        return self.faults


def guard_of(path):
    return "WEIR_" + re.sub(r"\W", "_", path.removeprefix("include/weir/")).upper()


def header(path, text=""):
    guard = guard_of(path)
    return {path: f"#ifndef {guard}\n#define {guard}\n{text}#endif\n"}


def room_table(tops=("prof", "decoders", "datasets", "pipeline", "analyze", "cli", "extras")):
    return "| folder | rooms, lowest first |\n|---|---|\n" + "".join(
        f"| `{top}/` | {' < '.join('; '.join(f'`{room}` text' for room in group) for group in rooms_of(top))} |\n" for top in tops)


GOOD = {
    ARCHITECTURE: room_table(),
    "CMakeLists.txt": "add_library(x low.c pen.c paper.c mid.c store.c keep.c scan.c pass.c act.c top.c)\n",
    **header("base/low.h", "/* exit(1) in a comment */\n"),
    "tests/tools/low.sh": "true # tools/low.sh, base/low.h; torch/lost.py, FOLDER/lost.txt, ~/lost.txt\necho base/lost.c\n",
    "base/low.c": '#include "base/low.h"\n#include "weir/base.h"\n#include <stdio.h>\nconst char *const text = "printf(stdout)";\n',
    **header("prof/trace/paper.h"),
    "prof/trace/paper.c": '#include "prof/trace/paper.h"\n',
    **header("prof/record/pen_priv.h"),
    "prof/record/pen.c": '#include "prof/trace/paper.h"\n#include "prof/record/pen_priv.h"\n',
    **header("io/mid_ops.h", "extern const struct ops mid_first, mid_table[];\n"),
    **header("io/mid.h"),
    "io/mid.c": '#include "io/mid_ops.h"\n#include "base/low.h"\n#include <sys/stat.h>\nconst struct ops mid_first = {0};\n',
    **header("datasets/store_ops.h"),
    "datasets/store.c": "#include <jpeglib.h>\n",
    "datasets/scan.c": "#include <jpeglib.h>\n",
    "datasets/pass.c": "#include <jpeglib.h>\n",
    "datasets/keep.c": "#include <jpeglib.h>\n",
    "datasets/layouts/act.c": '#include "datasets/store_ops.h"\n',
    "cmake/Cuda.cmake": "add_library(m cuda/gpu.c cuda/kernels.cu)\n",
    "cuda/gpu.c": '#include "io/mid_ops.h"\n#include "base/low.h"\n#include <cuda_runtime_api.h>\n',
    "cuda/kernels.cu": '#include "cuda/clock.cuh"\n#include <cuda_runtime_api.h>\n',
    **header("include/weir/base.h"),
    **header("include/weir/kernel_clock.h", '#include "weir/base.h"\n'),
    **header("cuda/clock.cuh", '#include "weir/kernel_clock.h"\nclass clock\n{\n' + "    int a;\n" * 61 + "};\n"),
    **header("extras/motion/cuda/stage_priv.h", '#include "extras/common/team.h"\n#include <cuda_runtime_api.h>\n'),
    **header("extras/common/team.h"),
    "cli/top.c": '#include "io/mid.h"\n#include <liburing.h>\nconst struct ops top_table[] = {{0}};\nint main(void)\n{\n    exit(0);\n}\n',
}

# Changes that make the good tree bad, and a part of the expected message.
BAD = [
    ({"base/low.c": '#include "io/mid.h"\n'}, "base/low.c:1: includes io/mid.h"),
    ({"datasets/store.c": '#include "io/mid.h"\n'}, "datasets/store.c:1: includes io/mid.h"),
    ({"io/mid.c": '#include "weir/loader.h"\n', **header("include/weir/loader.h")}, "io/mid.c:1: includes weir/loader.h"),
    ({**header("include/weir/base.h", '#include "base/low.h"\n')}, "public headers include public headers only"),
    ({**header("include/weir/base.h", '#include "weir/kernel_clock.h"\n')}, "base.h:3: includes weir/kernel_clock.h"),
    ({"datasets/layouts/act.c": '#include "decoders/frame_kind.h"\n', **header("decoders/frame_kind.h"),
      "io/mid.c": '#include "decoders/pixels.h"\n', **header("decoders/pixels.h")}, "io/mid.c:1: includes decoders/pixels.h"),
    ({"prof/record/pen.c": '#include "decoders/frame_kind.h"\n', **header("decoders/frame_kind.h")},
     "prof/record/pen.c:1: includes decoders/frame_kind.h"),
    ({"datasets/layouts/act.c": '#include "io/mid.h"\n'}, "datasets/layouts/act.c:1: includes io/mid.h"),
    ({"io/mid.c": '#include "cli/top.h"\n', **header("cli/top.h")}, "io/mid.c:1: includes cli/top.h"),
    ({"prof/trace/paper.c": '#include "prof/record/pen.h"\n', **header("prof/record/pen.h")},
     "prof/trace/paper.c:1: includes prof/record/pen.h: prof/trace/ lies below"),
    ({"prof/trace/paper.c": '#include "prof/symbols/name.h"\n', **header("prof/symbols/name.h")},
     "prof/trace/ lies below or beside prof/symbols/"),
    ({"prof/record/pen.c": '#include "prof/attic/name.h"\n', **header("prof/attic/name.h")}, "is not in ROOMS"),
    ({"datasets/layouts/act.c": '#include "datasets/hdf5/tree.h"\n', **header("datasets/hdf5/tree.h")},
     "datasets/layouts/ lies below or beside datasets/hdf5/"),
    ({"datasets/layouts/act.c": '#include "datasets/keep_priv.h"\n', **header("datasets/keep_priv.h")},
     "private to datasets/"),
    ({"cli/top.c": '#include "io/mid_ops.h"\n'}, "private to io/"),
    ({"cuda/gpu.c": '#include "io/mid.h"\n'}, "cuda/gpu.c:1: includes io/mid.h: cuda/ includes base/"),
    ({**header("cuda/clock.cuh", '#include "prof/trace/paper.h"\n')}, "cuda/clock.cuh:3: includes prof/trace/paper.h"),
    ({"io/mid.c": '#include "cuda/gpu_ops.h"\n', **header("cuda/gpu_ops.h")}, "nothing includes cuda/"),
    ({"cli/top.c": '#include "extras/act/play.h"\n', **header("extras/act/play.h")}, "cli/ lies below or beside extras/"),
    ({"extras/act/play.c": '#include "base/low.h"\n', "extras/act/CMakeLists.txt": "add_library(p play.c)\n"},
     "an extra's library includes public headers only"),
    ({"extras/act/play.c": '#include "extras/war/siege.h"\n', **header("extras/war/siege.h"),
      "extras/act/CMakeLists.txt": "add_library(p play.c)\n"}, "an extra includes no other one"),
    ({**header("io/mid.h", "extern const struct ops top_table[];\n")}, "io/mid.h:3: extern top_table, which cli/ defines"),
    ({**header("base/low.h", "extern const struct ops a, mid_first;\n")}, "base/low.h:3: extern mid_first, which io/"),
    ({"io/mid.c": '#include "mid.h"\n'}, "no header from the root"),
    ({"io/mid.c": '#include "io/../base/low.h"\n'}, "no header from the root"),
    ({"io/mid.c": "#  include <liburing.h>\n"}, "cli/top.c, io/mid.c: <liburing.h> may be included by 1 only"),
    ({"io/mid.c": "#include <jpeglib.h>\n"}, "<jpeglib.h> may be included by 4 only"),
    ({**header("io/mid.h", "#include <png.h>\n")}, "io/mid.h:3: <png.h> is third-party"),
    ({"io/low.c": "\n", "CMakeLists.txt": GOOD["CMakeLists.txt"] + "io/low.c\n"}, "io/low.c: has the name of base/low.c"),
    ({"io/mid.c": "void f(void)\n{\n    exit(1);\n}\n"}, "io/mid.c:3: exit"),
    ({"datasets/layouts/act.c": "void f(void)\n{\n    fputs(text, stdout);\n}\n"}, "datasets/layouts/act.c:3: stdout"),
    ({"analyze/rank_table.c": "int few = WEIR_FEW;\n", "CMakeLists.txt": GOOD["CMakeLists.txt"] + "analyze/rank_table.c\n",
      **header("analyze/causes/thresholds.h", "#define WEIR_FEW 3\n")}, "analyze/rank_table.c:1: WEIR_FEW: an output knows no rule"),
    ({"analyze/causes/cores.c": '#include "prof/record/pen.h"\n', **header("prof/record/pen.h"),
      "CMakeLists.txt": GOOD["CMakeLists.txt"] + "analyze/causes/cores.c\n"}, "includes prof/record/pen.h: a cause knows no source"),
    ({"io/mid.h": "#pragma once\n"}, "io/mid.h: has no guard WEIR_IO_MID_H"),
    ({"io/mid.c": "int a;\n" * 601}, "601 lines"),
    ({"io/mid.c": "void f(void)\n{\n" + "    g();\n" * 61 + "}\n"}, "a function of 61 lines"),
    ({"io/lost.c": "int a;\n"}, "io/lost.c: is in no CMakeLists.txt"),
    ({"datasets/layouts/lost.c": "int a;\n"}, "datasets/layouts/lost.c: is in no CMakeLists.txt"),
    ({"cuda/lost.c": "int a;\n", "CMakeLists.txt": GOOD["CMakeLists.txt"] + "cuda/lost.c\n"}, "cuda/lost.c: is not in cmake"),
    ({"io/mid.c": "#include <Python.h>\n"}, "io/mid.c:1: includes Python's header"),
    ({"io/mid.c": "#include <cuda_runtime_api.h>\n"}, "io/mid.c:1: includes a header of CUDA's"),
    ({**header("io/mid.h", "#include <nvtx3/nvToolsExt.h>\n")}, "io/mid.h:3: includes a header of CUDA's"),
    ({"io/mid.c": "/* weir_lost: as weir_low_ has it */\nint weir_low_a;\n"}, "io/mid.c:1: a comment names weir_lost"),
    ({"io/mid.c": "/* as mid_lost does */\nint mid_kept;\n"}, "io/mid.c:1: a comment names mid_lost"),
    ({"io/mid.c": "/* lost() frees it */\nint kept;\n"}, "io/mid.c:1: a comment names lost"),
    ({"io/mid.c": "/* as mid.c does,\n * see io/lost.h */\n"}, "io/mid.c:2: a comment names io/lost.h"),
    ({"tests/tools/mid.sh": "# docs/LOST.md has more\n"}, "tests/tools/mid.sh:1: a comment names docs/LOST.md"),
    ({"python/mid.py": 'def mid():\n    """As tools/lost.sh."""\n'}, "python/mid.py:2: a comment names tools/lost.sh"),
    ({ARCHITECTURE: room_table(("prof", "decoders", "datasets", "pipeline", "analyze", "extras"))}, "cli/ has the rooms none; in"),
    ({ARCHITECTURE: room_table() + "| `io/` | `attic/` text |\n"}, "io/ has the rooms attic/; in ROOMS of"),
    ({ARCHITECTURE: room_table().replace("`symbols/`", "")}, "prof/ has the rooms processes/ ranks/ trace/ < gpu/"),
    ({ARCHITECTURE: room_table().replace("`record/` text < `report/`", "`report/` text < `record/`")}, "gpu/ < report/ < record/"),
    ({**{f"io/many_{i}.c": "int a;\n" for i in range(25)}, "CMakeLists.txt": GOOD["CMakeLists.txt"] +
      " ".join(f"many_{i}.c" for i in range(25)) + "\n"}, "io: 26 .c files"),
]


def faults_of(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        return Tree(root).check()


def self_test():
    failed = 0
    faults = faults_of(GOOD)
    if faults:
        print("the good tree is refused:", *faults, sep="\n  ")
        failed += 1
    for change, wanted in BAD:
        faults = faults_of({**GOOD, **change})
        if len(faults) != 1 or wanted not in faults[0]:
            print(f"wanted one fault with '{wanted}', got:", *faults, sep="\n  ")
            failed += 1
    print(f"{1 + len(BAD)} trees, {failed} failures")
    return failed


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    tree = Tree(root)
    faults = tree.check()
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(tree.files)} files, {len(faults)} faults")
    sys.exit(1 if faults or not tree.files else 0)


if __name__ == "__main__":
    main()
