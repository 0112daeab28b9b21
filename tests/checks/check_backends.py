#!/usr/bin/env python3
"""What belongs to a codec, an io engine, a layout, a format or a writer of one is there, and nothing else knows its
name: tests/checks/check_backends.py [ROOT], or --self-test to see every rule fail on a bad tree.

A backend is a struct of functions (weir_decoder_ops, weir_io_ops, weir_layout_ops, weir_format_ops, weir_writer_ops) in a
file of its own. It has
1. one extern, in the header of its family's table of functions,
2. one row in its family's table,
3. one line of CMakeLists.txt (its file),
4. a place in a table of README.md: a line that begins with | and has `name`,
5. one test: a file of tests/ that has its name in quotes, or as a word of a command,
and no file outside tests/ and bench/ but its own compares a text with its name: what others need to know of it is a
flag of the struct.
"""
import os
import re
import sys
import tempfile

from check_layers import without_comments

# kind, struct, folder of the backends, header with the externs, file with the table
FAMILIES = [
    ("codec", "weir_decoder_ops", "decoders", "decoders/decoder_ops.h", "decoders/decoder_table.c"),
    ("io engine", "weir_io_ops", "io", "io/io_ops.h", "io/io_table.c"),
    ("layout", "weir_layout_ops", "datasets/layouts", "datasets/dataset_ops.h", "datasets/layouts/layouts.c"),
    ("format", "weir_format_ops", "datasets", "datasets/format_ops.h", "datasets/formats.c"),
    ("writer", "weir_writer_ops", "convert/writers", "convert/writer_ops.h", "convert/writers.c"),
]
CODE = ["base", "prof", "io", "decoders", "datasets", "pipeline", "analyze", "convert", "cli", "extras"]
NOT_TESTS = {"tests/checks/check_backends.py", "tests/checks/check_layers.py"}
# Texts of files that happen to be what a backend is called, and who compares them.
FORMATS = {("datasets/index_file_check.c", "raw"),  # the codec of an index file's track
           ("datasets/packed/packed_file.c", "raw")}  # of a camera in its header


def read(root, path):
    full = os.path.join(root, path)
    if not os.path.isfile(full):
        return ""
    with open(full, encoding="utf-8", errors="replace") as f:
        return f.read()


def files_below(root, top, endings):
    found = []
    for folder, _, names in os.walk(os.path.join(root, top)):
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(endings)]
    return sorted(found)


def code_of(text):
    """Without comments, strings kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda m: " " if m.group(0).startswith("/") else m.group(0), text)


def definitions(root, struct, folder):
    """symbol -> (path, name) of the backends of a folder. A #else may define one once more."""
    found = {}
    for path in files_below(root, folder, ".c"):
        for symbol, body in re.findall(rf"^const struct {struct} (\w+) = {{(.*?)^}};", code_of(read(root, path)), re.M | re.S):
            name = re.search(r'\.name = "([^"]*)"', body)
            found[symbol] = (path, name[1] if name else "")
    return found


def externs(root, struct, header):
    text = without_comments(read(root, header))
    return [symbol for names in re.findall(rf"extern const struct {struct} ([^;]*);", text) for symbol in re.findall(r"\w+", names)]


def check_family(root, family, readme, tests, code, faults):
    kind, struct, folder, header, table = family
    found, declared = definitions(root, struct, folder), externs(root, struct, header)
    rows = re.findall(r"&(\w+)\b", "".join(re.findall(rf"struct {struct} \*const \w+\[\] = {{(.*?)}};", code.get(table, ""), re.S)))
    cmake = re.sub(r"#.*", "", read(root, "CMakeLists.txt"))
    for symbol, (path, name) in sorted(found.items()):
        def missing(what):
            faults.append(f"{path}: {kind} {name}: {what}")
        if symbol not in declared:
            missing(f"no extern of {symbol} in {header}")
        if rows.count(symbol) != 1:
            missing(f"{rows.count(symbol)} rows in {table}")
        if not re.search(rf"^\s*{re.escape(path)}\s*$", cmake, re.M):
            missing("no line in CMakeLists.txt")
        if not re.search(rf"^\|.*`{re.escape(name)}`.*\|", readme, re.M):
            missing("in no table of README.md")
        if not any(re.search(rf'"{re.escape(name)}"|(?<=[ \'"=]){re.escape(name)}(?=[ \'"])', text) for text in tests.values()):
            missing("no test has its name")
        for other, text in code.items():
            if other != path and (other, name) not in FORMATS and re.search(rf'cmp\([^;]*"{re.escape(name)}"', text):
                faults.append(f"{other}: compares with {name}, a {kind}: make what it wants to know a flag of struct {struct}")
    for symbol in sorted((set(declared) | set(rows)) - set(found)):
        faults.append(f"{header if symbol in declared else table}: {symbol} is no {kind} of {folder}/")
    return len(found)


def check(root):
    """(number of backends, faults)"""
    faults = []
    readme = read(root, "README.md")
    tests = {path: read(root, path) for path in files_below(root, "tests", (".c", ".py", ".sh")) if path not in NOT_TESTS}
    code = {path: code_of(read(root, path)) for top in CODE for path in files_below(root, top, ".c")}
    return sum(check_family(root, family, readme, tests, code, faults) for family in FAMILIES), faults


GOOD = {
    "CMakeLists.txt": "set(lib_sources\n  decoders/jay.c\n  io/slurp.c\n  datasets/layouts/layout_shelf.c\n"
                      "  datasets/crate/crate.c\n  convert/writers/crate_writer.c\n)\n",
    "README.md": "| `jay` | codec |\n| `slurp` | io |\n| Shelf (`shelf`) | `/shelf` |\n| `crate` | format |\n",
    "decoders/jay.c": 'const struct weir_decoder_ops weir_decoder_jay = {\n    .name = "jay",\n};\n',
    "decoders/decoder_ops.h": "extern const struct weir_decoder_ops weir_decoder_jay;\n",
    "decoders/decoder_table.c": "static const struct weir_decoder_ops *const rows[] = {\n    &weir_decoder_jay,\n};\n",
    "io/slurp.c": '#if HAVE\nconst struct weir_io_ops weir_io_slurp = {\n    .name = "slurp",\n};\n#else\n'
                  'const struct weir_io_ops weir_io_slurp = {\n    .name = "slurp",\n};\n#endif\n',
    "io/io_ops.h": "extern const struct weir_io_ops weir_io_slurp;\n",
    "io/io_table.c": "static const struct weir_io_ops *const rows[] = {&weir_io_slurp};\n",
    "datasets/layouts/layout_shelf.c": 'const struct weir_layout_ops weir_layout_shelf = {\n    .name = "shelf",\n};\n',
    "datasets/dataset_ops.h": "extern const struct weir_layout_ops weir_layout_shelf;\n",
    "datasets/layouts/layouts.c": "static const struct weir_layout_ops *const layouts[] = {&weir_layout_shelf};\n",
    "datasets/crate/crate.c": 'const struct weir_format_ops weir_format_crate = {\n    .name = "crate",\n};\n',
    "datasets/format_ops.h": "extern const struct weir_format_ops weir_format_crate;\n",
    "datasets/formats.c": "static const struct weir_format_ops *const formats[] = {&weir_format_crate};\n",
    "convert/writers/crate_writer.c": 'const struct weir_writer_ops weir_writer_crate = {\n    .name = "crate",\n};\n',
    "convert/writer_ops.h": "extern const struct weir_writer_ops weir_writer_crate;\n",
    "convert/writers.c": "static const struct weir_writer_ops *const writers[] = {&weir_writer_crate};\n",
    "pipeline/reader.c": '/* strcmp(name, "slurp") */\nint a(void) { return strcmp(name, "auto"); }\n',
    "tests/unit/test_all.c": 'open("jay");\nopen("slurp");\n',
    "tests/test_shelf.sh": "weir synth DATA --format shelf --episodes 1\nweir convert DATA COPY --to crate \n",
}

# What makes the good tree bad, and the pieces of what must be said about it, one for each fault.
BAD = [
    ({"decoders/decoder_ops.h": ""}, ["decoders/jay.c: codec jay: no extern of weir_decoder_jay"]),
    ({"decoders/decoder_table.c": ""}, ["decoders/jay.c: codec jay: 0 rows in decoders/decoder_table.c"]),
    ({"decoders/decoder_table.c": GOOD["decoders/decoder_table.c"].replace("&", "&weir_decoder_jay, &")}, ["2 rows"]),
    ({"CMakeLists.txt": GOOD["CMakeLists.txt"].replace("  io/slurp.c", "  # io/slurp.c")}, ["io engine slurp: no line in CMake"]),
    ({"README.md": GOOD["README.md"].replace("| Shelf (`shelf`)", "Shelf (`shelf`)")}, ["layout shelf: in no table"]),
    ({"tests/unit/test_all.c": 'open("jay");\n'}, ["io engine slurp: no test"]),
    ({"tests/test_shelf.sh": "weir synth bookshelf\n"}, ["layout shelf: no test", "format crate: no test", "writer crate: no test"]),
    ({"datasets/formats.c": ""}, ["datasets/crate/crate.c: format crate: 0 rows in datasets/formats.c"]),
    ({"convert/writers.c": ""}, ["convert/writers/crate_writer.c: writer crate: 0 rows in convert/writers.c"]),
    ({"io/io_ops.h": "extern const struct weir_io_ops weir_io_slurp, weir_io_gone;\n"}, ["io/io_ops.h: weir_io_gone is no io"]),
    ({"pipeline/reader.c": 'int a(void) { return strcmp(name, "slurp"); }\n'}, ["pipeline/reader.c: compares with slurp"]),
    ({"datasets/layouts/layout_new.c": 'const struct weir_layout_ops weir_layout_new = {\n    .name = "new",\n};\n'},
     ["no extern of weir_layout_new", "0 rows", "no line in CMake", "in no table", "no test"]),
]


def faults_of(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        return check(root)[1]


def self_test():
    failed = 0
    for change, wanted in [({}, [])] + BAD:
        faults = faults_of({**GOOD, **change})
        if len(faults) != len(wanted) or not all(any(w in f for f in faults) for w in wanted):
            print(f"wanted {wanted}, got:", *faults, sep="\n  ")
            failed += 1
    print(f"{1 + len(BAD)} trees, {failed} failures")
    return failed


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    n, faults = check(root)
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{n} codecs, io engines, layouts, formats and writers, {len(faults)} faults")
    sys.exit(1 if faults or not n else 0)


if __name__ == "__main__":
    main()
