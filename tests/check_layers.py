#!/usr/bin/env python3
"""Keeps the rules of the tree: tests/check_layers.py [ROOT], or --self-test to see every rule fail on a bad tree.

1. Includes are from the root. prof <- {io, decoders, datasets} <- pipeline <- workloads <- cli; the three of layer 1
   never include each other. tests and bench may include anything.
2. Headers named *_ops.h and *_priv.h stay in their folder (and tests).
3. A third-party header is included by one .c file outside tests and bench (libjpeg, libpng, jansson by two: reading and
   writing; zlib by four; HDF5 by six: its errors, its file driver, virtual sources and external files have files of
   their own). CUDA's are of the module: of files that cmake/Cuda.cmake names, and of as many as like.
4. File names are unique in the tree. 5. Only cli/ prints to stdout or exits (and the child processes of fork_server.c and librarian.c). 6. Every header has a guard by its path.
7. Functions are at most 60 lines, files at most 600 (tests 1000). 8. Every source file is in a CMake list.
"""
import os
import re
import sys
import tempfile

LAYERS = {"prof": 0, "io": 1, "decoders": 1, "datasets": 1, "pipeline": 2, "workloads": 3, "cli": 4}
FREE = {"tests", "bench"}
CUDA = re.compile(r"cuda|nvjpeg|cupti|nvtx|generated_cuda")
PAIRS = {"hdf5.h": 6, "jpeglib.h": 2, "jerror.h": 2, "png.h": 2, "zlib.h": 4, "jansson.h": 2}
CHILD = {("fork_server.c", "_exit"), ("librarian.c", "_exit")}
FUNCTION_LINES, FILE_LINES, TEST_LINES = 60, 600, 1000
GENERATED = {"prof/version.h"}

SYSTEM = set("""assert ctype complex errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype alloca cpuid
dirent dlfcn elf endian execinfo fcntl fnmatch ftw getopt glob grp iconv immintrin langinfo libgen link malloc poll pthread pwd regex sched
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


class Tree:
    def __init__(self, root):
        self.root = root
        self.faults = []
        self.third_party = {}
        self.cuda = {}
        self.files = []
        for folder in sorted(LAYERS.keys() | FREE):
            path = os.path.join(root, folder)
            for name in sorted(os.listdir(path)) if os.path.isdir(path) else []:
                if name.endswith((".c", ".h", ".cu", ".h.in")):
                    self.files.append((folder, name))

    def fault(self, path, line, text):
        self.faults.append(f"{path}:{line}: {text}" if line else f"{path}: {text}")

    def check_own_include(self, folder, path, line, target):
        parts = target.split("/")
        if len(parts) != 2 or not (target in GENERATED or os.path.isfile(os.path.join(self.root, target))):
            self.fault(path, line, f'"{target}" is no header from the root of the tree')
            return
        other = parts[0]
        if folder in FREE:
            return
        if other not in LAYERS:
            self.fault(path, line, f"includes {target}: nothing includes {other}/")
        elif other != folder and LAYERS[other] >= LAYERS[folder]:
            self.fault(path, line, f"includes {target}: {folder}/ lies below or beside {other}/")
        elif other != folder and re.search(r"_(ops|priv)\.h$", target):
            self.fault(path, line, f"includes {target}, which is private to {other}/")

    def check_system_include(self, folder, path, line, target):
        if target.split("/")[0] in SYSTEM_FOLDERS or ("/" not in target and target[:-2] in SYSTEM):
            return
        if folder not in FREE:
            if CUDA.match(target):
                self.cuda.setdefault(path, line)
                return
            if not path.endswith(".c"):
                self.fault(path, line, f"<{target}> is third-party: it belongs in one .c file, not in a header")
            self.third_party.setdefault(target, set()).add(path)

    def check_text(self, folder, path, code):
        if folder in LAYERS and folder != "cli":
            for number, line in enumerate(code, 1):
                found = re.search(r"\b(stdout|exit|_exit|abort|quick_exit|printf|vprintf|puts|putchar|perror)\b", line)
                if found and (os.path.basename(path), found[1]) in CHILD:
                    continue
                if found and (found[1] == "stdout" or re.search(rf"\b{found[1]}\s*\(", line)):
                    self.fault(path, number, f"{found[1]}: only cli/ prints results or exits")
        most = TEST_LINES if folder == "tests" else FILE_LINES
        if len(code) > most:
            self.fault(path, 0, f"{len(code)} lines; {most} are the most: make it two")
        start = None
        for number, line in enumerate(code, 1):
            if line.startswith("{"):
                start = number
            elif line.startswith("}") and start:
                if number - start - 1 > FUNCTION_LINES:
                    self.fault(path, start, f"a function of {number - start - 1} lines; {FUNCTION_LINES} are the most")
                start = None

    def check_file(self, folder, name):
        path = f"{folder}/{name}"
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            code = without_comments(f.read()).rstrip("\n").split("\n")
        for number, line in enumerate(code, 1):
            include = re.match(r'\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>)', line)
            if include and include[1] is not None:
                self.check_own_include(folder, path, number, include[1])
            elif include:
                self.check_system_include(folder, path, number, include[2])
        self.check_text(folder, path, code)
        if name.endswith(".h"):
            guard = "WEIR_" + re.sub(r"\W", "_", path).upper()
            if f"#ifndef {guard}" not in code or f"#define {guard}" not in code:
                self.fault(path, 0, f"has no guard {guard}")

    def check_build(self):
        """A file that no list names is a file that nobody compiles."""
        listed = ""
        module = ""
        for path in ("CMakeLists.txt", "tests/CMakeLists.txt", "bench/CMakeLists.txt", "cmake/Cuda.cmake"):
            full = os.path.join(self.root, path)
            if os.path.isfile(full):
                with open(full, encoding="utf-8") as f:
                    module = re.sub(r"#.*", "", f.read())
                    listed += module
        for path, line in sorted(self.cuda.items()):
            if path not in module:
                self.fault(path, line, "includes a header of CUDA's and is not in cmake/Cuda.cmake")
        for folder, name in self.files:
            if name.endswith((".c", ".cu")) and not re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", listed):
                self.fault(f"{folder}/{name}", 0, "is in no CMakeLists.txt")

    def check(self):
        seen = {}
        for folder, name in self.files:
            if name in seen:
                self.fault(f"{folder}/{name}", 0, f"has the name of {seen[name]}/{name}")
            seen[name] = folder
            self.check_file(folder, name)
        for header, users in sorted(self.third_party.items()):
            if len(users) > PAIRS.get(header, 1):
                self.fault(", ".join(sorted(users)), 0, f"<{header}> may be included by {PAIRS.get(header, 1)} only")
        self.check_build()
        return self.faults


GOOD = {
    "CMakeLists.txt": "add_library(x prof/low.c io/mid.c datasets/store.c datasets/keep.c datasets/look.c cli/top.c)\n",
    "prof/low.h": "#ifndef WEIR_PROF_LOW_H\n#define WEIR_PROF_LOW_H\n/* exit(1) in a comment */\n#endif\n",
    "prof/low.c": '#include "prof/low.h"\n#include <stdio.h>\nconst char *const text = "printf(stdout)";\n',
    "io/mid_ops.h": "#ifndef WEIR_IO_MID_OPS_H\n#define WEIR_IO_MID_OPS_H\n#endif\n",
    "io/mid.h": "#ifndef WEIR_IO_MID_H\n#define WEIR_IO_MID_H\n#endif\n",
    "io/mid.c": '#include "io/mid_ops.h"\n#include "prof/low.h"\n#include <sys/stat.h>\n',
    "datasets/store.c": "#include <jpeglib.h>\n",
    "datasets/keep.c": "#include <jpeglib.h>\n",
    "cmake/Cuda.cmake": "add_library(m io/gpu.c io/gpu.cu)\n",
    "io/gpu.c": "#include <cuda_runtime_api.h>\n",
    "io/gpu.cu": "#include <cuda_runtime_api.h>\n",
    "cli/top.c": '#include "io/mid.h"\n#include <liburing.h>\nint main(void)\n{\n    exit(0);\n}\n',
}

# What makes the good tree bad, and a piece of what must be said about it.
BAD = [
    ({"prof/low.c": '#include "io/mid.h"\n'}, "prof/low.c:1: includes io/mid.h"),
    ({"datasets/store.c": '#include "io/mid.h"\n'}, "datasets/store.c:1: includes io/mid.h"),
    ({"io/mid.c": '#include "cli/top.h"\n', "cli/top.h": GOOD["io/mid.h"].replace("IO_MID", "CLI_TOP")},
     "io/mid.c:1: includes cli/top.h"),
    ({"cli/top.c": '#include "io/mid_ops.h"\n'}, "private to io/"),
    ({"io/mid.c": '#include "mid.h"\n'}, "no header from the root"),
    ({"io/mid.c": '#include "io/../prof/low.h"\n'}, "no header from the root"),
    ({"io/mid.c": "#  include <liburing.h>\n"}, "cli/top.c, io/mid.c: <liburing.h> may be included by 1 only"),
    ({"io/mid.c": "#include <jpeglib.h>\n"}, "<jpeglib.h> may be included by 2 only"),
    ({"io/mid.h": GOOD["io/mid.h"] + "#include <png.h>\n"}, "io/mid.h:4: <png.h> is third-party"),
    ({"io/low.c": "\n", "CMakeLists.txt": GOOD["CMakeLists.txt"] + "io/low.c\n"}, "prof/low.c: has the name of io/low.c"),
    ({"io/mid.c": "void f(void)\n{\n    exit(1);\n}\n"}, "io/mid.c:3: exit"),
    ({"io/mid.c": "void f(void)\n{\n    fputs(text, stdout);\n}\n"}, "io/mid.c:3: stdout"),
    ({"io/mid.h": "#pragma once\n"}, "io/mid.h: has no guard WEIR_IO_MID_H"),
    ({"io/mid.c": "int a;\n" * 601}, "601 lines"),
    ({"io/mid.c": "void f(void)\n{\n" + "    g();\n" * 61 + "}\n"}, "a function of 61 lines"),
    ({"io/lost.c": "int a;\n"}, "io/lost.c: is in no CMakeLists.txt"),
    ({"io/mid.c": "#include <cuda_runtime_api.h>\n"}, "io/mid.c:1: includes a header of CUDA's"),
    ({"io/mid.h": GOOD["io/mid.h"] + "#include <nvtx3/nvToolsExt.h>\n"}, "io/mid.h:4: includes a header of CUDA's"),
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
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    tree = Tree(root)
    faults = tree.check()
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(tree.files)} files, {len(faults)} faults")
    sys.exit(1 if faults or not tree.files else 0)


if __name__ == "__main__":
    main()
