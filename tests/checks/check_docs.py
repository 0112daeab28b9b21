#!/usr/bin/env python3
"""Checks README.md and docs/: tests/checks/check_docs.py SOURCE BUILD.

README has at most 10 KB, the users' pages of the loader (docs/*.md) together at most 120 KB; the extras' pages are in
their own folders. Links lead to existing files and
headings, C files named in a page exist, and the program accepts the options and commands in README and the users'
pages. The first C program of docs/library.md compiles as printed with the shared
library, runs, and fails with one line."""
import fnmatch
import glob
import os
import re
import subprocess
import sys
import tempfile

README_BYTES = 10 * 1024
USER_PAGES_BYTES = 120 * 1024
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../cmake/Extras.cmake"), encoding="utf-8") as f:
    EXTRAS = re.search(r"foreach\(extra (.*)\)", f.read())[1].split()
# The reader's file; options of srun, torchrun, TensorBoard and training scripts
FOREIGN = {"loop.c", "--cpus-per-task", "--nproc-per-node", "--ntasks-per-node", "--no-python", "--logdir", "--lr"}
failed = 0


def check(what, fine):
    global failed
    if not fine:
        print("FAIL:", what)
        failed += 1


def anchors(text):
    """The anchors that GitHub creates for headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", h.replace("`", "").lower()).replace(" ", "-") for h in headings}


def is_deleted(source, path):
    """Whether a path from the root is in a deleted extra's folder."""
    found = re.match(r"extras/\w+", path)
    return found and not os.path.isdir(os.path.join(source, found[0]))


def extra_pages(source):
    return sorted(glob.glob(f"{source}/extras/*/README.md"))


def all_pages(source):
    return [f"{source}/README.md", f"{source}/CONTRIBUTING.md", *sorted(glob.glob(f"{source}/docs/**/*.md", recursive=True)), *extra_pages(source)]


def check_links(source):
    pages = all_pages(source)
    texts = {os.path.realpath(page): open(page, encoding="utf-8").read() for page in pages}
    for page, text in texts.items():
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"https?:", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.realpath(os.path.join(os.path.dirname(page), path)) if path else page
            name = f"{os.path.basename(page)}: {link}"
            if is_deleted(source, os.path.relpath(target, source)):
                continue
            check(f"{name} does not lead to a file", os.path.exists(target))
            if anchor and target in texts:
                check(f"{name} does not lead to a heading", anchor in anchors(texts[target]))


def check_files(source):
    """Checks names like `slot.c` and `cupti*.c`, in backquotes or code blocks."""
    names = set()
    for folder, folders, files in os.walk(source):
        folders[:] = [f for f in folders if f not in ("build", ".git")]
        names.update("/" + os.path.relpath(os.path.join(folder, name), source) for name in files)
    for page in all_pages(source):
        with open(page, encoding="utf-8") as f:
            text = f.read()
        extra = os.path.basename(page)[:-3]
        if extra in EXTRAS and is_deleted(source, f"extras/{extra}"):
            continue
        for name in sorted(set(re.findall(r"(?<![\w<.])((?:[\w*]+/)*[\w*]+\.(?:c|h|cu))(?![\w>.])", text))):
            known = name in FOREIGN or is_deleted(source, name) or fnmatch.filter(names, f"*/{name}")
            check(f"{os.path.basename(page)} names {name}, which does not exist", known)


def check_names(source, texts, weir):
    commands = subprocess.run([weir, "--help"], capture_output=True, text=True, check=True).stdout
    known = "".join(subprocess.run([weir, command, "--help-all"], capture_output=True, text=True, check=True).stdout
                    for command in set(re.findall(r"^  ([a-z]+) ", commands, re.M)) - {"help"})
    with open(os.path.join(source, "python/weir/_watch_main.py"), encoding="utf-8") as file:
        known += re.search(r'^HELP = """(.*?)^"""', file.read(), re.M | re.S)[1]  # python -m weir watch
    with open(os.path.join(source, "python/weir/examples/imitate_episodes.py"), encoding="utf-8") as file:
        for typed, refused in re.findall(r'"--(\w+)"|"(\w+)": (?:[A-Z]|")', file.read()):
            known += f" --{(typed or refused).replace('_', '-')} "
    deleted = [extra for extra in EXTRAS if is_deleted(source, f"extras/{extra}")]
    for page, text in texts.items():
        text = re.sub("|".join(rf".*weir {extra}\b.*" for extra in deleted), "", text) if deleted else text
        for option in sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z_-]+", re.sub(r"`?\b(?:cc|docker|h5repack|pkg-config) [^`\n]*", "", text)))):
            check(f"{page}: no command has {option}", option in FOREIGN or re.search(rf"{option.replace('_', '-')}(?![\w-])", known))
        for command in sorted(set(re.findall(r"(?:^|`|(?<!-m)(?<!-m --)\s|release/)weir ([a-z]+)", "".join(re.findall(r"`[^`]+`|^```.*?^```", text, re.M | re.S))))):
            check(f"{page}: weir {command} does not exist", re.search(rf"^\s+{command}\b", commands, re.M))


def check_program(source, build):
    with open(f"{source}/docs/library.md", encoding="utf-8") as f:
        program = re.search(r"^```c\n(.*?)^```", f.read(), re.M | re.S)[1]
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/loop.c", "w", encoding="utf-8") as f:
            f.write(program)
        compiled = subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", f"-I{source}/include", "loop.c", "-o", "loop", f"{build}/libweir.so"],
                                  cwd=work, capture_output=True, text=True)
        check(f"library.md's program does not compile: {compiled.stderr}", compiled.returncode == 0)
        if compiled.returncode:
            return
        subprocess.run([f"{build}/weir", "synth", f"{work}/data", "--episodes", "2", "--steps", "4", "--size", "32x32"], check=True,
                       capture_output=True)
        env = {**os.environ, "LD_LIBRARY_PATH": build}
        run = subprocess.run([f"{work}/loop", f"{work}/data"], env=env, capture_output=True, text=True)
        check(f"library.md's program fails: {run.stderr}", run.returncode == 0)
        run = subprocess.run([f"{work}/loop", f"{work}/none"], env=env, capture_output=True, text=True)
        check("library.md's program does not report a missing folder", run.returncode == 1 and "none" in run.stderr)


def main():
    source, build = map(os.path.realpath, sys.argv[1:3])
    with open(f"{source}/README.md", encoding="utf-8") as f:
        readme = f.read()
    check(f"README.md has {len(readme.encode())} bytes, more than {README_BYTES}", len(readme.encode()) <= README_BYTES)
    check_links(source)
    check_files(source)
    pages = {os.path.basename(page): open(page, encoding="utf-8").read() for page in sorted(glob.glob(f"{source}/docs/*.md"))}
    size = sum(len(text.encode()) for text in pages.values())
    check(f"docs/*.md have {size} bytes, more than {USER_PAGES_BYTES}: details belong in docs/internals/", size <= USER_PAGES_BYTES)
    extras = {os.path.relpath(page, source): open(page, encoding="utf-8").read() for page in extra_pages(source)}
    check_names(source, {**pages, **extras, "docs/README.md": pages["README.md"], "README.md": readme}, f"{build}/weir")
    check_program(source, build)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
