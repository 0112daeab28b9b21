"""Starts TensorBoard on a folder of runs, opens the PYTORCH_PROFILER plugin in headless Chromium, waits until its
Overview shows the run with the parts of a step, and saves a screenshot:

    tb_screenshot.py LOGDIR PICTURE.png [--expect TEXT]... [--seconds 90]
"""
import argparse
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import websocket

# All visible text on the page, including frames and shadow trees.
TEXT = """(function read(node) {
    if (!node) return "";
    if (node.nodeType === 3) return node.textContent + "\\n";
    if (node.nodeType === 1 && ["SCRIPT", "STYLE", "TITLE"].includes(node.nodeName.toUpperCase())) return "";
    let text = "";
    if (node.nodeName === "IFRAME") { try { text += read(node.contentDocument.body); } catch (e) {} }
    if (node.shadowRoot) text += read(node.shadowRoot);
    for (const child of node.childNodes) text += read(child);
    return text;
})(document.body)"""
# The plugin loads Google's chart library from the network and would wait forever without it. Offline it gets this
# replacement, which only records the charts.
CHARTS = """
const lenient = object => new Proxy(object, {get: (o, name) => name in o ? o[name] : () => 0});
class Table {
    constructor(rows) { this.rows = rows || []; return lenient(this); }
    addRow(row) { this.rows.push(row); }
    addRows(rows) { this.rows.push(...rows); }
    getNumberOfRows() { return this.rows.length; }
}
class Chart {
    constructor(element) { this.element = element; return lenient(this); }
    draw(table) {
        const lines = (table.rows || []).map(row => row.filter(cell => !/^<|object Object/.test(cell)).join("  "));
        this.element.innerHTML = "<pre style='overflow: hidden'>[drawn without Google's charts]</pre>";
        this.element.firstChild.append("\\n" + lines.join("\\n"));
    }
}
const kinds = ["Pie", "Column", "Area", "Bar", "Line", "SteppedArea", "Combo"].map(kind => [kind + "Chart", Chart]);
window.google = {
    charts: {load: async () => {}, setOnLoadCallback: f => setTimeout(f, 0)},
    visualization: lenient({DataTable: Table, DataView: Table, arrayToDataTable: rows => new Table(rows),
        Table: Chart, Timeline: Chart, events: lenient({}), ...Object.fromEntries(kinds)})
};
"""


@contextlib.contextmanager
def running(command, log):
    """Runs a process; kills it and its children when the block ends."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(process, log, pattern, seconds):
    """Waits until the pattern matches in the log of a starting process; returns the match."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with open(log, errors="replace") as f:
            text = f.read()
        found = re.search(pattern, text)
        if found:
            return found
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"{process.args[0]} did not start; its log:\n{text[-3000:]}")


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


class Page:
    """One tab, controlled through Chromium's DevTools protocol."""

    def __init__(self, port, seconds=30):
        tabs = json.loads(fetch(f"http://127.0.0.1:{port}/json/list"))
        url = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
        self.socket = websocket.create_connection(url, timeout=seconds, suppress_origin=True)
        self.number = 0
        self.charts = "Google's"
        self.events = []

    def call(self, method, **params):
        self.number += 1
        wanted = self.number
        self.socket.send(json.dumps({"id": wanted, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == wanted:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            if message.get("method") == "Fetch.requestPaused":
                self.answer(message["params"])
            else:
                self.events.append(message)

    def answer(self, request):
        """Serves a request for Google's chart library: the original if reachable, else CHARTS."""
        number = {"requestId": request["requestId"]}
        try:
            fetch(request["request"]["url"])
            reply = {"method": "Fetch.continueRequest", "params": number}
        except OSError:
            self.charts = "a replacement for Google's"
            script = base64.b64encode(CHARTS.encode()).decode()
            headers = [{"name": "Content-Type", "value": "text/javascript"}]
            reply = {"method": "Fetch.fulfillRequest",
                     "params": {**number, "responseCode": 200, "responseHeaders": headers, "body": script}}
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, **reply}))

    def open(self, url, seconds):
        """Opens url and waits until it is loaded."""
        self.call("Page.navigate", url=url)
        until = time.monotonic() + seconds
        loaded = f"document.readyState === 'complete' && location.href === {json.dumps(url)}"
        while not self.call("Runtime.evaluate", expression=loaded)["result"].get("value"):
            assert time.monotonic() < until, f"{url} does not load"
            time.sleep(0.05)

    def text(self):
        return self.call("Runtime.evaluate", expression=TEXT, returnByValue=True)["result"].get("value", "")

    def save(self, path):
        picture = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(picture))


def show(page, url, wanted, seconds):
    """Opens the page and waits until it shows all wanted texts."""
    page.call("Fetch.enable", patterns=[{"urlPattern": "*://www.gstatic.com/charts/loader.js*"}])
    page.call("Page.enable")
    page.call("Page.navigate", url=url)
    until = time.monotonic() + seconds
    while True:
        text = re.sub(r"\s+", " ", page.text())
        missing = [part for part in wanted if part not in text]
        if not missing or time.monotonic() > until:
            return text, missing
        time.sleep(0.3)


def chromium_command(profile):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        raise SystemExit("no Chromium here: install the package chromium (.ci/packages.sh ci)")
    return [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
            "--window-size=1800,1400", f"--user-data-dir={profile}", "about:blank"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("logdir")
    parser.add_argument("picture")
    parser.add_argument("--expect", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=90)
    given = parser.parse_args()
    wanted = ["Execution Summary", "Step Time Breakdown", "Average Step Time", "CPU Exec", *given.expect]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        board = [sys.executable, "-m", "tensorboard.main", "--logdir", given.logdir, "--port", "0", "--host", "127.0.0.1",
                 "--load_fast=false"]
        log, browser_log = f"{work}/tensorboard.log", f"{work}/chromium.log"
        with running(board, log) as tensorboard, running(chromium_command(f"{work}/profile"), browser_log) as chromium:
            url = wait_for(tensorboard, log, r"(http://[^ ]+:\d+/)", given.seconds)[1]
            port = wait_for(chromium, browser_log, r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", given.seconds)[1]
            page = Page(port)
            text, missing = show(page, f"{url}#pytorch_profiler", wanted, given.seconds)
            time.sleep(1)  # lets animations finish
            page.save(given.picture)
            if missing:
                with open(log, errors="replace") as f:
                    print(f.read()[-2000:])
                raise SystemExit(f"the page does not show {missing} ({given.picture}); it shows: {text[:2000]}")
    print(f"the Overview shows {', '.join(wanted)}; charts by {page.charts}; picture: {given.picture}")


if __name__ == "__main__":
    main()
