#!/usr/bin/env python3
"""The live line of weir run on a terminal: its figures, its width, and that nothing of it remains; the announcement of a
long run; no live line in a log, on a dumb terminal, or in stdout. The line of the commands that run trials.

    test_live.py WEIR"""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading

import checks
from checks import check

TIMEOUT_S = 240
ERASE = "\r\033[K"


class Run:
    """weir with a terminal of this width as stderr, and as stdout too if both."""

    def __init__(self, weir, arguments, columns=80, both=False, term="xterm"):
        self.text, self.out = "", b""
        self.changed = threading.Condition()
        terminal, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "TERM")}
        self.process = subprocess.Popen([weir, *arguments], stdin=subprocess.DEVNULL, stderr=other,
                                        stdout=other if both else subprocess.PIPE, env={**environment, "TERM": term})
        os.close(other)
        self.threads = [threading.Thread(target=self.read_terminal, args=(terminal,), daemon=True)]
        if not both:
            self.threads.append(threading.Thread(target=self.read_out, daemon=True))
        for thread in self.threads:
            thread.start()

    def read_terminal(self, terminal):
        while True:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # EIO: the last writer has closed it
                data = b""
            with self.changed:
                self.text += data.decode().replace("\r\n", "\n")
                self.changed.notify_all()
            if not data:
                os.close(terminal)
                return

    def read_out(self):
        self.out = self.process.stdout.read()

    def until(self, pattern):
        """Waits until the text of the terminal matches."""
        with self.changed:
            return self.changed.wait_for(lambda: re.search(pattern, self.text), TIMEOUT_S)

    def end(self, number=None):
        """Sends the signal, if any, and returns the exit status."""
        if number:
            self.process.send_signal(number)
        status = self.process.wait(TIMEOUT_S)
        for thread in self.threads:
            thread.join(TIMEOUT_S)
        return status


def screen(text):
    """The lines that a terminal shows after this text."""
    lines, column = [""], 0
    for piece in re.findall(r"\033\[K|\033\[\d*m|[^\033]|\033", text):
        if piece == "\n":
            lines.append("")
            column = 0
        elif piece == "\r":
            column = 0
        elif piece == "\033[K":
            lines[-1] = lines[-1][:column]
        elif not piece.startswith("\033"):
            lines[-1] = lines[-1][:column] + piece + lines[-1][column + 1:]
            column += 1
    return lines


def drawn(text):
    """The live lines in the text."""
    return [line for line in (part.split("\n")[0].split("\r")[0] for part in text.split(ERASE)[1:]) if line.startswith(
        ("epoch ", "measuring ", "warming ")) and " | " not in line]


def live_lines(weir, data):
    run = Run(weir, ["run", data, "--num-epochs", "1000000", "--step-ms", "20", "--every", "0", "--batch-size", "2"])
    everything = r"epoch \d+/1000000 0 %  \d+:\d\d:\d\d left  \d+ images/s  data wait \d+ %  ready \d+/\d+"
    check("a line with all figures", run.until(everything + r"(?s:.*)" + everything), run.text)
    check("the duration is announced", run.until(r"about [\d.e+]+ h: 1000000 epochs of "), run.text)
    status = run.end(signal.SIGINT)
    check(f"Ctrl-C: {status}", status == 130)
    lines = drawn(run.text)
    check("no line is wider than the terminal", lines and all(len(line) < 80 for line in lines), lines)
    check("nothing of it remains", not any(line in shown for line in lines for shown in screen(run.text)),
          screen(run.text)[-8:])
    check("stdout has only the results", b"\033" not in run.out and b"\nepoch " in run.out, run.out[:400])


def both_on_one_terminal(weir, data):
    run = Run(weir, ["run", data, "--num-epochs", "1000000", "--step-ms", "100", "--every", "0", "--batch-size", "3"],
              columns=160, both=True)
    check("longer words where there is room", run.until(r"\d+ of \d+ batches ready  \d+ of \d+ workers busy"), run.text)
    check("and an epoch's line after it", run.until(r"workers busy\r\033\[Kepoch \d+/1000000 total "), run.text)
    run.end(signal.SIGTERM)
    lines, shown = drawn(run.text), screen(run.text)
    check("no results on one line with the live line", not any(line in s for line in lines for s in shown), shown)
    check("the epochs' lines are whole", sum(s.startswith("epoch ") and " total " in s for s in shown) > 0, shown)


def window_and_json(weir, data):
    run = Run(weir, ["run", data, "--seconds", "3", "--json"])
    check("a window has its own progress", run.until(r"measuring \d+ %  \d:\d\d left  \d+ images/s  ready "), run.text)
    status = run.end()
    check(f"the run ends: {status}", status == 0, run.text)
    check("no data wait without a step", not any("data wait" in line for line in drawn(run.text)), run.text)
    check("the JSON is not disturbed", json.loads(run.out)["measured"]["images"] > 0)
    check("nothing of the line remains", not screen(run.text)[-1], screen(run.text)[-3:])


def no_live_line(weir, data):
    arguments = ["run", data, "--num-epochs", "1000000", "--step-ms", "20", "--every", "0", "--batch-size", "2"]
    run = Run(weir, arguments, term="dumb")
    check("a dumb terminal gets the announcement", run.until("about "), run.text)
    run.end(signal.SIGINT)
    check("and no live line", "\033" not in run.text and " left  " not in run.text, run.text)
    with subprocess.Popen([weir, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("about "):
                break
        process.send_signal(signal.SIGINT)
        lines += process.stderr.readlines()
    check("a log gets the announcement and no live line", any(line.startswith("about ") for line in lines) and
          not any("\r" in line or "\033" in line or " left" in line for line in lines), lines)


def trials(weir, data):
    for arguments, line, announced in (
            (["bench", data, "--formats", "as-is", "--cache", "warm", "--min-seconds", "0.2", "--repeats", "9"],
             r"trial [2-9] of 18, \d:\d\d left: as-is (warm|from memory) \d+ images/s\r",
             r"at least 18 trials, about [\d.]+ s\n"),
            (["whatif", data, "--check", "--max-minutes", "1"],
             r"trial 2, at most \d:\d\d left: measuring the base run and other numbers of workers\r",
             r"at most about 60 s \(--max-minutes\)\n"),
            (["tune", data, "--max-minutes", "1", "--max-cpu", "1"], r"trial 2, at most \d:\d\d left: ",
             r"at most about 60 s \(--max-minutes\)\n")):
        run = Run(weir, arguments, columns=100)
        check(f"{arguments[0]}: a line after each trial", run.until(line), run.text)
        check(f"{arguments[0]}: the duration", re.search(announced, run.text), run.text)
        status = run.end(signal.SIGINT)
        check(f"{arguments[0]}: Ctrl-C: {status}", status == 130, run.text)
        check(f"{arguments[0]}: nothing remains", not any(line.startswith("trial ") for line in screen(run.text)),
              screen(run.text))


def main():
    weir = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        subprocess.run([weir, "synth", data, "--format", "act-jpeg", "--episodes", "4", "--steps", "40", "--size",
                        "64x48"], check=True, stdout=subprocess.DEVNULL)
        for test in live_lines, both_on_one_terminal, window_and_json, no_live_line, trials:
            test(weir, data)
    return checks.failed()


if __name__ == "__main__":
    sys.exit(main())
