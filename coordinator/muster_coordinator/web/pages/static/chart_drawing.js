// Draws the chart of one metric with uPlot, and its legend. Lines differ by colour and by dash.

import { valueRange } from "./chart_data.js";

const DASHES = [[], [8, 4], [2, 3], [12, 3, 2, 3], [16, 6], [5, 2], [2, 7], [10, 3, 2, 3, 2, 3]];
const BOUND_DASH = [6, 3];
const HEIGHT = 170;
const WIDE = 2.5;
const NARROW = 1.4;

/** Draws into `plot`. `columns` are those of `columnsOf`; `about` are the lines, the bounds and the band of the chart. */
export function draw(plot, columns, keys, about, time) {
  const colour = colours(plot);
  const entries = legend(plot, keys, about);
  const others = [...about.bounds.map((bound) => bound.value), ...(about.band ? [about.band.low, about.band.high] : [])];
  const [low, high] = valueRange(columns, others);
  const lines = keys.map((key, place) => ({
    label: about.lines[key]?.label ?? `Device ${key}`,
    stroke: () => colour(`--line-${place % DASHES.length}`),
    width: about.lines[key]?.found ? WIDE : NARROW,
    dash: DASHES[place % DASHES.length],
  }));
  const axis = { stroke: () => colour("--soft"), grid: { stroke: () => colour("--grid"), width: 1 } };
  const options = {
    width: plot.clientWidth,
    height: HEIGHT,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { x: { range: [time.since, time.until] }, y: { range: [low, high] } },
    series: [{}, ...lines],
    axes: [{ ...axis, values: timesOf }, { ...axis, size: 64, values: (_, ticks) => ticks.map(shortNumber) }],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, focus: { prox: 24 }, sync: { key: "measurements" } },
    focus: { alpha: 0.35 },
    hooks: {
      drawAxes: [(chart) => about.band && drawBand(chart, about.band, colour)],
      draw: [(chart) => about.bounds.forEach((bound) => drawBound(chart, bound, colour))],
      setCursor: [(chart) => showValues(chart, entries)],
    },
  };
  return new uPlot(options, columns, plot);
}

/** The colour of a variable of the style sheet as it is now: light, dark, forced or on paper. */
function colours(plot) {
  const probe = plot.appendChild(document.createElement("span"));
  probe.className = "probe";
  return (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
}

function drawBand(chart, band, colour) {
  const { left, width } = chart.bbox;
  const [low, centre, high] = [band.low, band.centre, band.high].map((value) => chart.valToPos(value, "y", true));
  const context = chart.ctx;
  context.save();
  context.fillStyle = colour("--band");
  context.fillRect(left, high, width, Math.max(low - high, 1));
  context.strokeStyle = colour("--band-line");
  for (const [y, dash] of [[low, []], [high, []], [centre, [1, 3]]]) stroke(context, left, width, y, dash, 1);
  context.restore();
}

function drawBound(chart, bound, colour) {
  const { left, width, top } = chart.bbox;
  const y = chart.valToPos(bound.value, "y", true);
  const ratio = window.devicePixelRatio || 1;
  const context = chart.ctx;
  context.save();
  context.strokeStyle = context.fillStyle = colour("--bad-text");
  stroke(context, left, width, y, BOUND_DASH.map((part) => part * ratio), 1.5 * ratio);
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  context.textAlign = "right";
  context.textBaseline = y - top > 14 * ratio ? "bottom" : "top";
  context.fillText(bound.text, left + width - 4 * ratio, y);
  context.restore();
}

function stroke(context, left, width, y, dash, lineWidth) {
  context.beginPath();
  context.setLineDash(dash);
  context.lineWidth = lineWidth;
  context.moveTo(left, y);
  context.lineTo(left + width, y);
  context.stroke();
}

/** The legend below the chart. Returns the elements that show the value of each line below the pointer. */
function legend(plot, keys, about) {
  const list = document.createElement("ul");
  list.className = "lines";
  const values = keys.map((key, place) => {
    const line = about.lines[key] ?? { label: `Device ${key}`, uuid: "" };
    const number = place % DASHES.length;
    const entry = list.appendChild(document.createElement("li"));
    entry.title = line.uuid;
    entry.append(sample(`line-${number}`, DASHES[number], line.found ? WIDE : NARROW), line.label);
    const value = entry.appendChild(document.createElement("span"));
    value.className = "value";
    return value;
  });
  if (about.bounds.length) addEntry(list, sample("bound", BOUND_DASH, 1.5), "Reference");
  if (about.band) addEntry(list, sample("band", [], 9), "Fleet band");
  plot.after(list);
  return values;
}

function addEntry(list, picture, text) {
  const entry = list.appendChild(document.createElement("li"));
  entry.append(picture, text);
}

function sample(name, dash, width) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const set = (element, values) => Object.entries(values).forEach(([key, value]) => element.setAttribute(key, value));
  set(svg, { width: 28, height: 10, viewBox: "0 0 28 10", "aria-hidden": "true", focusable: "false" });
  const line = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "line"));
  set(line, { x1: 0, y1: 5, x2: 28, y2: 5, "stroke-width": width, "stroke-dasharray": dash.join(" "), class: name });
  return svg;
}

function showValues(chart, entries) {
  const at = chart.cursor.idx;
  entries.forEach((entry, place) => {
    const value = at == null ? null : chart.data[place + 1][at];
    entry.textContent = value == null ? "" : ` ${shortNumber(value)}`;
  });
}

/** The hours of ticks in UTC; the date where a day begins. */
function timesOf(_, ticks) {
  return ticks.map((seconds) => {
    const text = new Date(seconds * 1000).toISOString();
    return text.slice(11, 16) === "00:00" ? text.slice(5, 10) : text.slice(11, 16);
  });
}

function shortNumber(value) {
  return Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-3)
    ? value.toExponential(2)
    : String(Number(value.toPrecision(6)));
}
