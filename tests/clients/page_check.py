"""Opens pages of --html in headless Chromium, light and dark, wide and narrow: no message on the console, no request
besides the page, nothing wider than the window, no finding of the accessibility checker axe, and timelines that the
buttons and keys enlarge.

    page_check.py PAGE.html... [--pictures FOLDER]
"""
import argparse
import importlib.util
import json
import os
import pathlib
import tempfile

from tb_screenshot import Page, chromium_command, running, wait_for

AXE = pathlib.Path(importlib.util.find_spec("axe_playwright_python").submodule_search_locations[0]) / "axe.min.js"
ZOOM = """(() => {
    const figure = document.querySelector("figure.timeline");
    if (!figure) return null;
    const width = () => figure.querySelector(".plot").viewBox.baseVal.width;
    const widths = [width()];
    figure.querySelector("button[aria-label='zoom in']").click();
    widths.push(width());
    figure.querySelector("button").dispatchEvent(new KeyboardEvent("keydown", {key: "+", bubbles: true}));
    widths.push(width());
    figure.querySelector("button[aria-label='whole window']").click();
    widths.push(width());
    return widths;
})()"""


def evaluate(page, expression, **options):
    answer = page.call("Runtime.evaluate", expression=expression, returnByValue=True, **options)
    assert "exceptionDetails" not in answer, answer
    return answer["result"].get("value")


def messages(page, url):
    """What the page must not cause: lines on the console, exceptions, dialogs and requests."""
    found = []
    for event in page.events:
        method, params = event.get("method", ""), event.get("params", {})
        if method in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown",
                      "Page.javascriptDialogOpening"):
            found.append(json.dumps(params)[:500])
        if method == "Network.requestWillBeSent" and params["request"]["url"] not in (url, "data:,"):
            found.append(f"requests {params['request']['url'][:200]}")
    return found


def look(page, path, scheme, width, pictures):
    url = pathlib.Path(path).resolve().as_uri()
    page.events.clear()
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    page.open(url, 20)
    if pictures:
        size = page.call("Page.getLayoutMetrics")["cssContentSize"]
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=int(size["height"]), deviceScaleFactor=1,
                  mobile=False)
        page.save(f"{pictures}/{pathlib.Path(path).stem}-{scheme}-{width}.png")
    widths = evaluate(page, ZOOM)
    evaluate(page, "document.querySelectorAll('details').forEach(part => { part.open = true; })")
    wide = evaluate(page, "document.documentElement.scrollWidth - innerWidth")
    evaluate(page, AXE.read_text() + ";0")
    findings = evaluate(page, "axe.run().then(result => result.violations.map("
                              "v => v.id + ': ' + v.nodes.map(n => n.html.slice(0, 200)).join(' | ')))", awaitPromise=True)
    problems = messages(page, url) + findings
    if wide > 0:
        problems.append(f"{wide} pixels wider than the window")
    if widths and not (widths[0] == 2 * widths[1] == 4 * widths[2] == widths[3]):
        problems.append(f"the timeline's widths are {widths}")
    return [f"{os.path.basename(path)}, {scheme}, {width} pixels: {problem}" for problem in problems]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="+")
    parser.add_argument("--pictures")
    given = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        log = f"{work}/chromium.log"
        with running(chromium_command(f"{work}/profile"), log) as chromium:
            port = wait_for(chromium, log, r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", 30)[1]
            page = Page(port)
            for domain in ("Log", "Runtime", "Network", "Page"):
                page.call(f"{domain}.enable")
            views = [("light", 1000), ("dark", 400)]
            for i, path in enumerate(given.pages):  # the first page both ways, the others in turns
                for scheme, width in views if i == 0 or given.pictures else [views[i % 2]]:
                    problems += look(page, path, scheme, width, given.pictures)
    if problems:
        raise SystemExit("\n".join(problems))
    print(f"{len(given.pages)} pages in Chromium: no messages, requests or findings")


if __name__ == "__main__":
    main()
