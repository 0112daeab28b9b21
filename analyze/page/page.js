"use strict";
// The page is complete without this script, which adds readings under the pointer and the zoom of timelines.

function svg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  return element;
}

function seconds(s) {
  const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const [size, unit] = units.find(([least]) => s >= 0.9995 * least) || units[s > 0 ? 3 : 0];
  const value = s / size;
  return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : value > 0 ? 2 : 0) + " " + unit;
}

// Shows the row of the chart's table that is nearest to the pointer.
for (const chart of document.querySelectorAll("figure.chart")) {
  const plot = chart.querySelector(".plot"), reading = chart.querySelector("output");
  const heads = [...chart.querySelectorAll("thead th")].map((cell) => cell.textContent);
  const rows = chart.querySelectorAll("tbody tr");
  const line = svg("path", { class: "cursor", d: "" });
  plot.append(line);
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect(), at = (event.clientX - box.left) / box.width;
    const row = Math.min(Math.max(Math.round(at * (rows.length - 1)), 0), rows.length - 1);
    const cells = [...rows[row].cells].map((cell) => cell.textContent);
    const range = cells[2] === cells[3] ? "" : ` (${cells[2]} – ${cells[3]})`;
    reading.textContent = `${heads[0]} ${cells[0]}: ${cells[1]}${range}`;
    line.setAttribute("d", `M${(1000 * row) / Math.max(rows.length - 1, 1)} 0v100`);
  });
  plot.addEventListener("pointerleave", () => {
    reading.textContent = "";
    line.setAttribute("d", "");
  });
}

for (const figure of document.querySelectorAll("figure.timeline")) zoomable(figure);

function zoomable(figure) {
  const plot = figure.querySelector(".plot"), labels = figure.querySelectorAll(".x span");
  const whole = plot.viewBox.baseVal.width, height = plot.viewBox.baseVal.height, total = Number(plot.dataset.seconds);
  const names = {}, rows = [...figure.querySelectorAll(".axis text")].map((text) => text.textContent);
  for (const item of figure.querySelectorAll(".legend li")) names[item.querySelector("rect").getAttribute("class")] = item.textContent.trim();
  const ranges = [];
  for (const path of plot.querySelectorAll("path")) {
    const one = /M(\d+) (\d+)h(\d+)/g, d = path.getAttribute("d");
    for (let m; (m = one.exec(d)); ) ranges.push({ from: +m[1], row: Math.floor(+m[2] / 16), width: +m[3], name: names[path.getAttribute("class")] });
  }
  let from = 0, width = whole;

  function show(nextFrom, nextWidth) {
    width = Math.min(Math.max(nextWidth, whole / 5000), whole);
    from = Math.min(Math.max(nextFrom, 0), whole - width);
    plot.setAttribute("viewBox", `${from} 0 ${width} ${height}`);
    labels[0].textContent = seconds((from / whole) * total);
    labels[1].textContent = seconds(((from + width) / whole) * total);
  }
  const zoom = (times, at = 0.5) => show(from + width * at * (1 - 1 / times), width / times);
  const move = (part) => show(from + width * part, width);

  const tools = document.createElement("div"), reading = document.createElement("output");
  tools.className = "tools";
  for (const [text, label, act] of [
    ["+", "zoom in", () => zoom(2)],
    ["−", "zoom out", () => zoom(0.5)],
    ["←", "earlier", () => move(-0.25)],
    ["→", "later", () => move(0.25)],
    ["0", "whole window", () => show(0, whole)],
  ]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.title = label;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    tools.append(button);
  }
  tools.append(reading);
  figure.querySelector(".frame").before(tools);

  const keys = { "+": () => zoom(2), "=": () => zoom(2), "-": () => zoom(0.5), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), 0: () => show(0, whole) };
  tools.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    keys[event.key]();
    event.preventDefault();
  });
  plot.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return; // the page scrolls
    const box = plot.getBoundingClientRect();
    zoom(event.deltaY + event.deltaX < 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
    event.preventDefault();
  }, { passive: false });

  let grip = null;
  plot.addEventListener("pointerdown", (event) => {
    grip = { x: event.clientX, from };
    plot.setPointerCapture(event.pointerId);
  });
  for (const end of ["pointerup", "pointercancel"]) plot.addEventListener(end, () => (grip = null));
  plot.addEventListener("dblclick", (event) => {
    const box = plot.getBoundingClientRect();
    zoom(4, (event.clientX - box.left) / box.width);
  });
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    if (grip) show(grip.from - ((event.clientX - grip.x) / box.width) * width, width);
    const x = from + ((event.clientX - box.left) / box.width) * width, row = Math.floor((event.clientY - box.top) / 16);
    const under = ranges.filter((r) => r.row === row && r.from <= x && x <= r.from + r.width);
    const best = under.sort((a, b) => a.width - b.width)[0];
    reading.textContent = best ? `${rows[row]}: ${best.name}, ${seconds((best.width / whole) * total)}` : "";
  });
  plot.addEventListener("pointerleave", () => (reading.textContent = ""));
}
