#!/usr/bin/env python3
"""Writes weir/loader.h and loader_options.c with an additional option, `more` (7 to 9, default 7): one_more_option.py
SOURCE HEADER TABLE."""
import sys

source, header, table = sys.argv[1:]


def copy(path, out, *pairs):
    with open(f"{source}/{path}", encoding="utf-8") as f:
        text = f.read()
    for after, added in pairs:
        if text.count(after) != 1:
            sys.exit(f"{path}: {after!r} must occur once, to insert text after it; it occurs {text.count(after)}x")
        text = text.replace(after, after + added)
    with open(out, "w", encoding="utf-8") as f:
        f.write(text)


copy("include/weir/loader.h", header, ("    const char *filter_key; /* as in weir_dataset_config */\n", "    int more;\n"))
copy("pipeline/loader_options.c", table, ("const struct weir_opt weir_loader_opts[] = {\n",
     '    {"more", WEIR_OPT_INT, FIELD(more), "N", "7", "one more option", 7, 9, .users = TRAIN},\n'))
