#!/usr/bin/env python3
"""Checks the text output of the commands that print no run: it fits the width of a terminal or of $COLUMNS, the most
important line comes first and is the only coloured one, and --wide prints whole tables. Usage:
WEIR_PROGRAM=build/release/weir tests/cli/test_texts.py"""
import ctypes
import json
import re
import struct
import subprocess
import sys
import unittest

from test_width import PROGRAM, environment, on_terminal, piped, width

IO_URING_SETUP = 425
COLUMNS = (80, 120, 200)


def without_io_uring():
    """Forbids io_uring to this process, as many containers do."""
    libc = ctypes.CDLL(None, use_errno=True)
    rules = [(0x20, 0, 0, 0), (0x15, 0, 1, IO_URING_SETUP), (0x06, 0, 0, 0x00050000 | 1), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(rules), ctypes.addressof(code)))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):
        raise OSError(ctypes.get_errno(), "prctl")


class Texts(unittest.TestCase):
    def check_fits(self, text, columns, *whole):
        """Lines with any of the texts `whole`, such as paths, may be longer."""
        for line in re.sub(r"\x1b\[\d*[A-Za-z]", "", text).splitlines():
            if not any(part in line for part in whole):
                self.assertLessEqual(width(line), columns, line)

    def every_width(self, *arguments, whole=(), **variables):
        """Yields (columns, text) on terminals and through pipes."""
        for columns in COLUMNS:
            texts = [on_terminal(columns, *arguments, **variables), piped(*arguments, COLUMNS=str(columns), **variables)]
            for text in texts + [piped(*arguments, **variables)] * (columns == 80):
                self.check_fits(text, columns, *whole)
                yield columns, text

    def test_doctor(self):
        rows = [row["name"] for key in ("found", "io", "decoders", "formats", "layouts", "convert")
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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
