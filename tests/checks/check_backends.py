#!/usr/bin/env python3
"""Checks that every codec, video codec, I/O engine, layout, format and writer is complete, and that no other code uses its name:
tests/checks/check_backends.py [ROOT]. --self-test checks that every rule fails on a bad tree.

A backend is a struct of functions (weir_decoder_ops, weir_video_ops, weir_io_ops, weir_layout_ops, weir_format_ops, weir_writer_ops) in a
separate file. It has
1. one extern, in the header of its family's table of functions,
2. one row in its family's table,
3. one line of CMakeLists.txt (its file),
4. an entry in a table of README.md: a line that begins with | and contains `name`,
5. one test: a file in tests/ that contains its name in quotes, or as a word of a command.
Flags in its struct describe a backend to other code. So outside tests/, bench/ and its own file no code
6. compares a string with its name,
7. lists it: an initialiser with two names of a family, or a switch with two of its cases.
Rules 6 and 7 also apply to the names, titles and enumerators of frame kinds (one table, in decoders/frame_kind.c); an
expression with three kinds is also a list.
"""
import os
import re
import sys
import tempfile

from check_layers import without_comments

# kind, struct, folder of the backends, header with the externs, file with the table
FAMILIES = [
    ("codec", "weir_decoder_ops", "decoders", "decoders/decoder_ops.h", "decoders/decoder_table.c"),
    ("video codec", "weir_video_ops", "decoders/video", "decoders/video/video_ops.h", "decoders/video/video.c"),
    ("io engine", "weir_io_ops", "io", "io/io_ops.h", "io/io_table.c"),
    ("layout", "weir_layout_ops", "datasets/layouts", "datasets/dataset_ops.h", "datasets/layouts/layouts.c"),
    ("format", "weir_format_ops", "datasets", "datasets/format_ops.h", "datasets/formats.c"),
    ("writer", "weir_writer_ops", "datasets", "datasets/writer.h", "convert/writers.c"),
]
CODE = ["base", "prof", "origin", "io", "decoders", "datasets", "pipeline", "analyze", "convert", "cli", "extras"]
NOT_TESTS = {"tests/checks/check_backends.py", "tests/checks/check_layers.py"}
KINDS = "decoders/frame_kind.c"
KIND = r"\bWEIR_FRAME_([A-Z0-9]+)\b(?!\s*\()"
# Allowed lists, with the reason.
LISTS = {("datasets/synth/synth_formats.c", "layout")}  # what each recorder writes


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
    """The text without comments; strings remain."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda m: " " if m.group(0).startswith("/") else m.group(0), text)


def definitions(root, struct, folder):
    """symbol -> (path, name) of the backends in a folder. #else may define a symbol again."""
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
            if other != path and re.search(rf'cmp\((?:[^;()]|\([^()]*\))*"{re.escape(name)}"', text):
                faults.append(f"{other}: compares with {name}, a {kind}: make what it wants to know a flag of struct {struct}")
    check_lists(kind, {name: path for path, name in found.values()}, code, faults)
    for symbol in sorted((set(declared) | set(rows)) - set(found)):
        faults.append(f"{header if symbol in declared else table}: {symbol} is no {kind} of {folder}/")
    return len(found)


def texts_in(text):
    return set(re.findall(r'"([^"\\]*)"', text))


def initialisers(text):
    """The outermost braces of each definition and of each compound literal of an array."""
    for match in re.finditer(r"(?:=|\]\))\s*{", text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield text[match.end():end]


def switches(text):
    """The case labels of each switch, up to the next one."""
    for part in re.split(r"\bswitch\b", text)[1:]:
        yield " ".join(re.findall(r"\bcase\s+([^:;]*):", part))


def check_lists(kind, names, code, faults):
    """Finds lists of a family's backends in the code. names: backend -> its file."""
    for path, text in sorted(code.items()):
        for initialiser in initialisers(text):
            listed = sorted(name for name in texts_in(initialiser) if name in names)
            if len(listed) > 1 and path not in {KINDS, *(names[name] for name in listed)} and (path, kind) not in LISTS:
                faults.append(f"{path}: lists {', '.join(listed)}: the table has every {kind}, walk it")


def check_kinds(root, code, faults):
    """Checks that only the table lists frame kinds. Returns the number of kinds."""
    table = code.get(KINDS, "")
    rows = re.findall(rf"\[{KIND}\]\s*=", table)
    names = {name or title for name, title in re.findall(r'\.name = "([^"]*)"|\.title = "([^"]*[A-Z][^"]*)"', table)}
    codecs = {path for path, _ in definitions(root, "weir_decoder_ops", "decoders").values()}
    for path, text in sorted(code.items()):
        if path == KINDS or path in codecs:
            continue
        for name in sorted(names):
            if re.search(rf'cmp\((?:[^;()]|\([^()]*\))*"{re.escape(name)}"', text):
                faults.append(f"{path}: compares with {name}, a kind of frame: compare enum weir_frame_kind, or ask the table")
        check_lists("kind of frame", dict.fromkeys(names, KINDS), {path: text}, faults)
        for what, least, parts in (("initialiser", 2, initialisers(text)), ("switch", 2, switches(text)),
                                   ("expression", 3, re.split(r"[;{}]", text))):
            for part in parts:
                kinds = sorted(set(re.findall(KIND, part)) & set(rows))
                if len(kinds) >= least and (path, what) not in LISTS:
                    faults.append(f"{path}: {what} names {', '.join(kinds)}: make it a member of the rows of {KINDS}")
    return len(rows)


def check(root):
    """(number of backends, faults)"""
    faults = []
    readme = read(root, "README.md")
    tests = {path: read(root, path) for path in files_below(root, "tests", (".c", ".py", ".sh")) if path not in NOT_TESTS}
    code = {path: code_of(read(root, path)) for top in CODE for path in files_below(root, top, ".c")}
    n = sum(check_family(root, family, readme, tests, code, faults) for family in FAMILIES)
    check_kinds(root, code, faults)
    return n, faults


GOOD = {
    "CMakeLists.txt": "set(lib_sources\n  decoders/jay.c\n  io/slurp.c\n  datasets/layouts/layout_shelf.c\n"
                      "  datasets/crate/crate.c\n  datasets/crate/crate_writer.c\n)\n",
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
    "datasets/crate/crate_writer.c": 'const struct weir_writer_ops weir_writer_crate = {\n    .name = "crate",\n};\n',
    "datasets/writer.h": "extern const struct weir_writer_ops weir_writer_crate;\n",
    "convert/writers.c": "static const struct weir_writer_ops *const writers[] = {&weir_writer_crate};\n",
    "decoders/frame_kind.c": 'static const struct row rows[] = {\n    [WEIR_FRAME_JAY] = {.name = "jay", .title = "JAY"},\n'
                             '    [WEIR_FRAME_KAY] = {.name = "kay", .title = "KAY"},\n'
                             '    [WEIR_FRAME_ELL] = {.name = "ell", .title = "ELL"},\n};\n',
    "pipeline/reader.c": '/* strcmp(name, "slurp") */\nint a(void) { return strcmp(name, "auto"); }\n'
                         'const char *b[] = {"auto", "slurp"};\nbool c(int k) { return k == WEIR_FRAME_JAY || k == WEIR_FRAME_KAY; }\n',
    "tests/unit/test_all.c": 'open("jay");\nopen("slurp");\n',
    "tests/test_shelf.sh": "weir synth DATA --format shelf --episodes 1\nweir convert DATA COPY --to crate \n",
}

# Changes that make the good tree bad, and parts of the expected messages, one per fault.
BAD = [
    ({"decoders/decoder_ops.h": ""}, ["decoders/jay.c: codec jay: no extern of weir_decoder_jay"]),
    ({"decoders/decoder_table.c": ""}, ["decoders/jay.c: codec jay: 0 rows in decoders/decoder_table.c"]),
    ({"decoders/decoder_table.c": GOOD["decoders/decoder_table.c"].replace("&", "&weir_decoder_jay, &")}, ["2 rows"]),
    ({"CMakeLists.txt": GOOD["CMakeLists.txt"].replace("  io/slurp.c", "  # io/slurp.c")}, ["io engine slurp: no line in CMake"]),
    ({"README.md": GOOD["README.md"].replace("| Shelf (`shelf`)", "Shelf (`shelf`)")}, ["layout shelf: in no table"]),
    ({"tests/unit/test_all.c": 'open("jay");\n'}, ["io engine slurp: no test"]),
    ({"tests/test_shelf.sh": "weir synth bookshelf\n"}, ["layout shelf: no test", "format crate: no test", "writer crate: no test"]),
    ({"datasets/formats.c": ""}, ["datasets/crate/crate.c: format crate: 0 rows in datasets/formats.c"]),
    ({"convert/writers.c": ""}, ["datasets/crate/crate_writer.c: writer crate: 0 rows in convert/writers.c"]),
    ({"io/io_ops.h": "extern const struct weir_io_ops weir_io_slurp, weir_io_gone;\n"}, ["io/io_ops.h: weir_io_gone is no io"]),
    ({"pipeline/reader.c": 'int a(void) { return strcmp(name, "slurp"); }\n'}, ["pipeline/reader.c: compares with slurp"]),
    ({"pipeline/reader.c": 'int a(void) { return strcmp(name, "kay"); }\n'}, ["pipeline/reader.c: compares with kay, a kind"]),
    ({"pipeline/reader.c": 'static const char *const codecs[] = {"jay", "raw", "ell"};\n'}, ["lists ell, jay: the table has every kind"]),
    ({"pipeline/reader.c": 'int a(void) { return find((const char *const[]){"kay", "ell"}, 2); }\n'}, ["lists ell, kay: the table"]),
    ({"pipeline/reader.c": 'static const char *const names[][2] = {\n    {"jay", "Jay "},\n    {"kay", "Kay "},\n};\n'},
     ["pipeline/reader.c: lists jay, kay"]),
    ({"pipeline/reader.c": 'static const char *const titles[] = {[0] = "JAY", [2] = "KAY"};\n'}, ["pipeline/reader.c: lists JAY, KAY"]),
    ({"pipeline/reader.c": 'static const int bits[] = {[WEIR_FRAME_JAY] = 8, [WEIR_FRAME_ELL] = 16};\n'},
     ["pipeline/reader.c: initialiser names ELL, JAY"]),
    ({"pipeline/reader.c": 'int a(int k)\n{\n    switch (k) {\n    case WEIR_FRAME_JAY:\n    case WEIR_FRAME_KAY:\n        return 1;\n'
                           '    default:\n        return 0;\n    }\n}\n'}, ["pipeline/reader.c: switch names JAY, KAY"]),
    ({"pipeline/reader.c": 'bool a(int k)\n{\n    return k == WEIR_FRAME_JAY || k == WEIR_FRAME_KAY || k == WEIR_FRAME_ELL;\n}\n'},
     ["pipeline/reader.c: expression names ELL, JAY, KAY"]),
    ({"io/sip.c": 'const struct weir_io_ops weir_io_sip = {\n    .name = "sip",\n};\n',
      "CMakeLists.txt": GOOD["CMakeLists.txt"].replace("  io/slurp.c", "  io/sip.c\n  io/slurp.c"),
      "io/io_ops.h": "extern const struct weir_io_ops weir_io_slurp, weir_io_sip;\n",
      "io/io_table.c": "static const struct weir_io_ops *const rows[] = {&weir_io_slurp, &weir_io_sip};\n",
      "README.md": GOOD["README.md"] + "| `sip` | io |\n", "tests/unit/test_all.c": 'open("jay");\nopen("slurp");\nopen("sip");\n',
      "pipeline/reader.c": 'static const char *const engines[] = {"sip", "slurp"};\n'}, ["pipeline/reader.c: lists sip, slurp"]),
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
