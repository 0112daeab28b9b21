#!/usr/bin/env python3
"""Compares the columns of Parquet files that pyarrow writes with the values that pyarrow reads:
compare_parquet.py PARQUET_COLUMNS [FILE...]. FILEs are compared instead. Also checks the errors for columns that cannot
be read. Skipped (77) without pyarrow from tests/readers/setup.sh; WEIR_READERS_PYTHON names a Python that has it."""
import itertools
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PYTHON = os.environ.get("WEIR_READERS_PYTHON", os.path.join(ROOT, "build", "readers-venv", "bin", "python"))
if os.path.exists(PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.join(os.path.dirname(PYTHON), "..")):
    os.execv(PYTHON, [PYTHON, os.path.abspath(__file__)] + sys.argv[1:])
try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as e:
    print(f"skipped: {e}; tests/readers/setup.sh installs what is needed")
    sys.exit(77)

TOOL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
NUMBERS, BYTES, OTHER = "0", "1", "2"
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
RANGES = ((0, None), (0, 1), (136, 3), (50, 120), (-1, 1))
ROWS = 300


def columns(path, first, n):
    """Returns {(name, leaf, kind, list depth): rows, or the error} as our reader sees them."""
    done = subprocess.run([TOOL, path, str(first), str(n)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{path}: {done.stderr or done.returncode}")
    found = {}
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word == "column":
            name, leaf, kind, _, depth, _ = rest.split("|")
            rows = found.setdefault((name, leaf, kind, int(depth)), [])
        elif word == "error":
            found[name, leaf, kind, int(depth)] = rest
        else:
            rows.append(rest.split())
    return found


def flat(value):
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, list) else [value]


def printed(value, kind):
    if kind == BYTES:
        return "=" + (b"" if value is None else value.encode() if isinstance(value, str) else value).hex()
    return "nan" if value is None or value != value else value


def parsed(word, kind, value):
    """A number that our tool printed, in the type of the expected one."""
    if kind == BYTES or word in ("nan", "-nan"):
        return word.lstrip("-")
    return float(word) if isinstance(value, float) else int(word)


def compare(path, first=0, n=None):
    table = pq.read_table(path)
    first = first if first >= 0 else len(table) + first
    n = len(table) - first if n is None else n
    compared = 0
    for (name, leaf, kind, depth), rows in columns(path, first, n).items():
        if kind == OTHER:
            continue
        where = f"{path}: column {name}, {leaf}"
        if isinstance(rows, str):
            raise AssertionError(f"{where}: {rows}")
        expected = table.column(name).slice(first, n).to_pylist()
        if pa.types.is_struct(table.column(name).type):
            expected = [None if value is None else value[leaf] for value in expected]
        if len(rows) != n:
            raise AssertionError(f"{where}: {len(rows)} rows of {n}")
        for i, (row, value) in enumerate(zip(rows, expected)):
            wanted = [printed(item, kind) for item in ([] if depth and value is None else flat(value))]
            if len(row) != len(wanted) or [parsed(a, kind, b) for a, b in zip(row, wanted)] != wanted:
                raise AssertionError(f"{where}, row {first + i}: {row[:20]} instead of {wanted[:20]}")
        compared += 1
    return compared


def random_half(rng):
    """Any finite float16."""
    return struct.unpack("<e", struct.pack("<H", rng.randrange(1 << 10, 31 << 10) | rng.randrange(2) << 15))[0]


def sample(nulls, seed):
    """A table with columns of all supported types."""
    rng = random.Random(seed)
    some = (lambda make: [None if nulls and rng.random() < 0.1 else make() for _ in range(ROWS)])
    every = (lambda make: [make() for _ in range(ROWS)])
    types = {
        "f32": pa.array(some(rng.random), pa.float32()),
        "f64": pa.array(some(rng.random), pa.float64()),
        "half": pa.array(some(lambda: random_half(rng)), pa.float16()),
        "halves": pa.array(every(lambda: [random_half(rng) for _ in range(3)]), pa.list_(pa.float16())),
        "few": pa.array(some(lambda: rng.randrange(3) / 2), pa.float32()),
        "bool": pa.array(every(lambda: rng.random() < 0.5)),
        "text": pa.array(some(lambda: f"t{rng.randrange(20)}é")),
        "bytes": pa.array(some(lambda: rng.randbytes(rng.randrange(300)))),
        "observation.state": pa.array(every(lambda: [rng.random() for _ in range(14)]), pa.list_(pa.float32())),
        "fixed": pa.array(every(lambda: [rng.randrange(9) for _ in range(3)]), pa.list_(pa.int64(), 3)),
        "nested": pa.array(every(lambda: [[1.5, rng.random()], [2, 3]]), pa.list_(pa.list_(pa.float64()))),
        "texts": pa.array(some(lambda: ["a"] * rng.randrange(4))),
        "image": pa.array(some(lambda: {"bytes": rng.randbytes(200), "path": rng.choice([None, "a.png"])})),
        "category": pa.array(some(lambda: rng.choice(["x", "yy"]))).dictionary_encode(),
        "constant": pa.array([7] * ROWS, pa.int64()),
    }
    for name in INTEGERS:
        bits, low = int(name.lstrip("uint")), 0 if name[0] == "u" else -1
        types[name] = pa.array(every(lambda: rng.randrange(low << bits - 1, 1 << bits + low)), getattr(pa, name)())
    return pa.table(types)


class Parquet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.chdir(cls.folder.name)
        pq.write_table(pa.table({"a": [1]}), "zstd.parquet", compression="zstd")
        (value,) = columns("zstd.parquet", 0, 1).values()
        cls.codecs = ("none", "snappy") if "built without libzstd" in value else ("none", "snappy", "zstd")

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        cls.folder.cleanup()

    def test_every_way_of_writing(self):
        for i, (nulls, version, dictionary, codec, group) in enumerate(itertools.product(
                (False, True), ("1.0", "2.0"), (False, True), self.codecs, (ROWS, 137))):
            table = sample(nulls, i)
            with self.subTest(nulls=nulls, version=version, dictionary=dictionary, codec=codec, group=group):
                pq.write_table(table, "a.parquet", data_page_version=version, use_dictionary=dictionary,
                               compression=codec, row_group_size=group, write_batch_size=50,
                               data_page_size=1 << 20 if group == ROWS else 300)
                for first, n in RANGES:
                    self.assertEqual(compare("a.parquet", first, n), table.num_columns + 1)

    def test_null_and_empty_columns(self):
        for rows, version, codec in itertools.product((0, 1, 40), ("1.0", "2.0"), self.codecs):
            table = pa.table({"f": pa.nulls(rows, pa.float32()), "s": pa.nulls(rows, pa.string()),
                              "no list": pa.nulls(rows, pa.list_(pa.string())),
                              "empty": pa.array([[]] * rows, pa.list_(pa.float32()))})
            pq.write_table(table, "null.parquet", data_page_version=version, compression=codec)
            self.assertEqual(compare("null.parquet"), 4)

    def refuses(self, word, values, **options):
        pq.write_table(pa.table({"a": values}), "refused.parquet", **options)
        (error,) = columns("refused.parquet", 0, len(values)).values()
        self.assertIsInstance(error, str)
        self.assertIn("column a: ", error)
        self.assertIn(word, error)

    def test_refused_by_name(self):
        for codec, name in (("gzip", "GZIP"), ("brotli", "BROTLI"), ("lz4", "LZ4_RAW")):
            self.refuses(f"compressed by {name},", [1, 2], compression=codec)
        for encoding, values in (("BYTE_STREAM_SPLIT", [1.5, 2]), ("DELTA_BINARY_PACKED", [1, 2]),
                                 ("DELTA_LENGTH_BYTE_ARRAY", ["a"]), ("DELTA_BYTE_ARRAY", ["a"])):
            self.refuses(f"encoding is {encoding},", values, use_dictionary=False, column_encoding={"a": encoding})
        self.refuses("row 1 is null", [1, None])
        self.refuses("row 1 has a list of 1 values, the rows before it have 2", [[1, 2], [1]])

    def test_types_that_cannot_be_read(self):
        table = pa.table({"fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
                          "texts": pa.array([[["a"]], []], pa.list_(pa.list_(pa.string())))})
        pq.write_table(table, "other.parquet")
        self.assertEqual([kind for _, _, kind, _ in columns("other.parquet", 0, 2)], [OTHER] * 2)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(sum(compare(path) for path in sys.argv[1:]), "columns, 0 differences")
    else:
        unittest.main()
