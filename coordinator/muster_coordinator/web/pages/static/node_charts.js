// The charts in the section "Measurements" of a node's page. Each loads its points when it comes into view.

import { columnsOf } from "./chart_data.js";
import { draw } from "./chart_drawing.js";

const AT_ONCE = 3;
const MOST_POINTS = 1000;
const NEAR = "200px";
const AGAIN_MS = 300_000;

// The elements with a chart that is drawn, each with its `uplot`.
const drawn = new Set();

/** Makes the charts of a section, once. One that takes its place has to be started, too. */
export function start(section) {
  if (section.classList.contains("started")) return;
  forgetReplaced();
  section.classList.add("started");
  const waiting = new Set();
  let loading = 0;
  const next = async () => {
    if (loading >= AT_ONCE || waiting.size === 0) return;
    const [figure] = waiting;
    waiting.delete(figure);
    observer.unobserve(figure);
    loading += 1;
    await show(section, figure);
    loading -= 1;
    next();
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) entry.isIntersecting ? waiting.add(entry.target) : waiting.delete(entry.target);
      for (let place = 0; place < AT_ONCE; place += 1) next();
    },
    { rootMargin: NEAR },
  );
  for (const figure of section.querySelectorAll("figure.chart")) {
    if (figure.querySelector(".plot") === null) continue;
    figure.querySelector("details").open = false;
    observer.observe(figure);
  }
}

async function show(section, figure) {
  const plot = figure.querySelector(".plot");
  say(plot, "Loading…");
  try {
    const points = await history(section, figure);
    if (!figure.isConnected) return;
    plot.replaceChildren();
    if (points.length === 0) return say(plot, "Nothing was measured in this time.");
    drawPoints(section, figure, plot, points);
  } catch (error) {
    sayFailed(section, figure, plot, error.message);
  }
}

function drawPoints(section, figure, plot, points) {
  const about = JSON.parse(figure.dataset.chart);
  const measured = new Set(points.flatMap((point) => Object.keys(point.values)));
  const keys = [...measured].sort((one, other) => Number(one) - Number(other));
  const { since, until, step } = section.dataset;
  const time = { since: Date.parse(since) / 1000, until: Date.parse(until) / 1000 };
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", `Chart of ${figure.dataset.metric} of ${figure.dataset.check}; see Numbers below it`);
  plot.uplot = draw(plot, columnsOf(points, keys, Number(step)), keys, about, time);
  drawn.add(plot);
}

async function history(section, figure) {
  const { since, until, step } = section.dataset;
  const { check, metric } = figure.dataset;
  const query = new URLSearchParams({ check, metric, since, until, step_s: step, limit: MOST_POINTS });
  let answer;
  try {
    answer = await fetch(`${section.dataset.history}?${query}`, { headers: { Accept: "application/json" } });
  } catch {
    throw new Error("the coordinator cannot be reached");
  }
  if (answer.ok) return (await answer.json()).items;
  const problem = await answer.json().catch(() => ({}));
  throw new Error(problem.detail ?? `the coordinator answered ${answer.status}`);
}

function say(plot, text) {
  const line = document.createElement("p");
  line.className = "empty";
  line.setAttribute("role", "status");
  line.textContent = text;
  plot.replaceChildren(line);
  return line;
}

function sayFailed(section, figure, plot, reason) {
  const line = say(plot, `Not loaded: ${reason}. `);
  const again = line.appendChild(document.createElement("button"));
  again.textContent = "Try again";
  again.addEventListener("click", () => show(section, figure));
}

function forgetReplaced() {
  for (const plot of drawn) {
    if (plot.isConnected) continue;
    plot.uplot.destroy();
    drawn.delete(plot);
  }
}

function redraw() {
  for (const { uplot, clientWidth: width } of drawn) {
    if (width > 0 && width !== uplot.width) uplot.setSize({ width, height: uplot.height });
    else uplot.redraw(false, true);
  }
}

function printing(onPaper) {
  document.getElementById("measurements")?.classList.toggle("on-paper", onPaper);
  redraw();
}

window.addEventListener("resize", redraw);
window.addEventListener("beforeprint", () => printing(true));
window.addEventListener("afterprint", () => printing(false));
for (const media of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
  matchMedia(media).addEventListener("change", redraw);
}

function startNew() {
  const section = document.getElementById("measurements");
  if (section !== null) start(section);
}

/** Asks for newer charts, unless a person reads the numbers of one. */
async function renew() {
  const section = document.getElementById("measurements");
  if (document.hidden || section === null || section.querySelector("details[open]") !== null) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok || answer.redirected) return;
  const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("measurements");
  if (made !== null) section.replaceWith(document.adoptNode(made));
}

startNew();
new MutationObserver(startNew).observe(document.body, { childList: true, subtree: true });
setInterval(renew, AGAIN_MS);
