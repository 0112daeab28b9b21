#!/usr/bin/env python3
"""Checks the symbols of the library's compiled files: no file calls an upper layer, no cycle has more than three files,
and the files of a room in FLOORS call only files before them. tests/checks/check_circles.py ROOT ARCHIVE...;
--self-test checks that the rules fail on bad archives."""
import os
import re
import subprocess
import sys
import tempfile

from check_layers import LAYERS, LOW, ROOMS

MOST = 3
# Rooms whose files have one direction, lowest file first. They call no room above theirs, except from a table of
# implementations.
FLOORS = {"datasets": """
    json_object path_list columns blocks frame parts episode_texts index
    builder user_keys state_columns describe_episode layouts/layouts episode_bytes
    formats dataset_files fit_episodes index_file scan scan_remote open_files dataset video_facts writer
    """.split()}
TABLES = {"datasets/formats.c", "datasets/layouts/layouts.c"}


def sources(root):
    """File name -> path; names are unique in the tree (check_layers.py)."""
    found = {}
    for top in LAYERS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            found.update((name, os.path.relpath(os.path.join(folder, name), root)) for name in names if name.endswith(".c"))
    return found


def calls(root, archives):
    """path -> {path of a called file: symbol}"""
    paths, defined, used = sources(root), {}, {}
    for archive in archives:
        text = subprocess.run(["nm", "-A", archive], capture_output=True, text=True, check=True).stdout
        for member, kind, symbol in re.findall(r"^[^:]+:([^:]+\.c)(?:\.c)?\.o:[0-9a-f ]*([A-Za-z]) (\S+)$", text, re.M):
            path = paths.get(member)
            if path and kind == "U":
                used.setdefault(path, set()).add(symbol)
            elif path and kind in "TDBRC":
                defined[symbol] = path
    return {path: {defined[s]: s for s in sorted(symbols) if defined.get(s, path) != path} for path, symbols in used.items()}


def circles(graph):
    """Strongly connected components of more than one file (Tarjan's algorithm)."""
    index, low, stack, found = {}, {}, [], []

    def visit(path):
        index[path] = low[path] = len(index)
        stack.append(path)
        for other in graph.get(path, {}):
            if other not in index:
                visit(other)
                low[path] = min(low[path], low[other])
            elif other in stack:
                low[path] = min(low[path], index[other])
        if low[path] == index[path]:
            circle = stack[stack.index(path):]
            del stack[stack.index(path):]
            if len(circle) > 1:
                found.append(sorted(circle))

    sys.setrecursionlimit(10000)
    for path in sorted(graph):
        if path not in index:
            visit(path)
    return found


def floor_faults(graph, floors, tables):
    """Calls in a room against the order of its files, and calls of rooms above it."""
    place = {f"{room}/{name}.c": i for room, names in floors.items() for i, name in enumerate(names)}
    faults = [f"{path}: is not in FLOORS of tests/checks/check_circles.py"
              for path in sorted(graph) if os.path.dirname(path) in floors and path not in place]
    for path, others in sorted(graph.items()):
        for other, symbol in sorted(others.items()):
            room, over = os.path.dirname(path), os.path.dirname(other)
            if path in place and other in place and place[other] > place[path]:
                faults.append(f"{path}: uses {symbol} of {other}, which stands above it in FLOORS")
            elif path in place and other not in place and path not in tables and ROOMS.get(over, 0) > ROOMS[room] and \
                    over.split("/")[0] == room.split("/")[0]:
                faults.append(f"{path}: uses {symbol} of {other}: {room}/ lies below {over}/")
    return faults


def faults_of(root, archives, floors=FLOORS, tables=TABLES):
    graph = calls(root, archives)
    faults = floor_faults(graph, floors, tables)
    for path, others in sorted(graph.items()):
        top = path.split("/")[0]
        for other, symbol in sorted(others.items()):
            over = LOW.get(other.removesuffix(".c") + ".h") or other.split("/")[0]
            if (path, over) == ("cli/commands.c", "extras") and symbol.startswith("weir_cmd_"):
                continue  # a row that exists only with the extra
            if over != top and LAYERS[over] >= LAYERS[top]:
                faults.append(f"{path}: uses {symbol} of {other}: {top}/ lies below or beside {over}/")
    for circle in circles(graph):
        if len(circle) > MOST:
            uses = [f"{path} -> {other} ({graph[path][other]})" for path in circle for other in circle if other in graph.get(path, {})]
            faults.append(f"{len(circle)} files in a circle; {MOST} are the most: " + ", ".join(uses))
    return graph, faults


def self_test():
    chain = {f"io/c{i}.c": f"void c{(i + 1) % 4}(void); void c{i}(void) {{ c{(i + 1) % 4}(); }}" for i in range(4)}
    cases = [
        ({"base/low.c": "void low(void) {}", "io/mid.c": "void low(void); void mid(void) { low(); }"}, None),
        ({"base/low.c": "void mid(void); void low(void) { mid(); }", "io/mid.c": "void mid(void) {}"}, "uses mid of io/mid.c"),
        ({"io/mid.c": "extern int size; int mid(void) { return size; }", "datasets/s.c": "int size = 1;"}, "uses size of"),
        (chain, "4 files in a circle"),
        ({**chain, "io/c3.c": "void c3(void) {}"}, None),
        ({"datasets/a.c": "void a(void) {}", "datasets/b.c": "void a(void); void b(void) { a(); }",
          "datasets/zarr/z.c": "void b(void); void z(void) { b(); }"}, None),
        ({"datasets/a.c": "void b(void); void a(void) { b(); }", "datasets/b.c": "void b(void) {}"}, "uses b of datasets/b.c, which stands above"),
        ({"datasets/a.c": "void z(void); void a(void) { z(); }", "datasets/zarr/z.c": "void z(void) {}"}, "datasets/ lies below datasets/zarr/"),
        ({"datasets/t.c": "void z(void); void t(void) { z(); }", "datasets/zarr/z.c": "void z(void) {}"}, None),
        ({"datasets/new.c": "void far(void); void n(void) { far(); }"}, "datasets/new.c: is not in FLOORS"),
    ]
    floors, tables = {"datasets": ["a", "b", "t"]}, {"datasets/t.c"}
    failed = 0
    for files, wanted in cases:
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
                subprocess.run(["cc", "-c", path, "-o", os.path.basename(path) + ".o"], cwd=root, check=True)
            objects = [os.path.basename(path) + ".o" for path in files]
            subprocess.run(["ar", "rc", "x.a", *objects], cwd=root, check=True)
            faults = faults_of(root, [os.path.join(root, "x.a")], floors, tables)[1]
            if len(faults) != (1 if wanted else 0) or (wanted and wanted not in faults[0]):
                print(f"wanted {wanted}, got {faults}")
                failed += 1
    print(f"{len(cases)} archives, {failed} failures")
    return failed


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    graph, faults = faults_of(sys.argv[1], sys.argv[2:])
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(graph)} files, {len(faults)} faults")
    sys.exit(1 if faults or len(graph) < 100 else 0)


if __name__ == "__main__":
    main()
