#!/usr/bin/env python3
"""Compares the members of log lines in docs/internals/log-format.md with the field tables that write and read them:
check_log_format.py LOG_KEYS DOCUMENT. LOG_KEYS is the program that prints the tables' keys. --self-test: a bad document."""
import re
import subprocess
import sys

# Members that no table has, because functions write them.
WRITTEN = {"stages": {"verdict", "watch"}, "whatif": {"weir", "git", "machine", "config", "verdict", "ladder", "changes", "errors"}}


def sections(text):
    """Name of a line -> its section, from "## `name`" to the next heading of this level."""
    return {match[1]: match[2] for match in re.finditer(r"^## `(\w+)`(.*?)(?=^##? |\Z)", text, re.M | re.S)}


def words_of(text):
    return set(re.findall(r"`([a-z]\w*(?:\.\.\.)?)`", text))


def faults(keys, text):
    """Lines that name each key which either side lacks. keys: line -> set of dotted keys."""
    every = {part for dotted in keys.values() for key in dotted for part in key.split(".")}
    for line, section in sections(text).items():
        if line not in keys:
            continue
        words, parts = words_of(section), {part for key in keys[line] for part in key.split(".")}
        begins = tuple(word[:-3] for word in words if word.endswith("..."))
        for key in sorted(keys[line]):
            if key.split(".")[-1] not in words and not key.split(".")[-1].startswith(begins or ("\0",)):
                yield f"section `{line}` lacks {key}, which the table has"
        for row in re.findall(r"^\| (`.*?) \| (.*)\|$", section, re.M):
            first = words_of(row[0])
            for word in sorted(first - parts - WRITTEN.get(line, set())):
                yield f"section `{line}` has {word}, which the table lacks"
            if not first & WRITTEN.get(line, set()):
                for word in sorted(word for word in words_of(row[1]) if "_" in word and not word.endswith("...")):
                    if word not in every:
                        yield f"section `{line}`, {', '.join(sorted(first))}: has {word}, which no table has"
    for line in sorted(set(keys) - set(sections(text))):
        yield f"there is no section `{line}`"


def self_test():
    found = list(faults({"a": {"x", "y", "y.deep_s"}, "b": {"z"}}, "## `a`: first\n| `x`, `old` | and `gone_s` |\n# end\n"))
    wanted = ["section `a` lacks y, which the table has", "section `a` lacks y.deep_s, which the table has",
              "section `a` has old, which the table lacks", "section `a`, old, x: has gone_s, which no table has",
              "there is no section `b`"]
    if found != wanted:
        sys.exit("\n".join(found))


def main(program, document):
    keys = {}
    for row in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
        line, key = row.split()
        keys.setdefault(line, set()).add(key)
    with open(document, encoding="utf-8") as file:
        found = list(faults(keys, file.read()))
    for fault in found:
        print(f"{document}: {fault}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    self_test() if sys.argv[1:] == ["--self-test"] else main(*sys.argv[1:])
