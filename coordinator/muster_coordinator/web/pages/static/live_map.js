// The map of the fleet: its cells follow the nodes, and arrow keys move between them.

import { BAD } from "./fleet_state.js";
import { symbol } from "./node_row.js";

const CELLS = "svg.rack a";

export class LiveMap {
  #cells = new Map(); // by the name of the node

  /** The map in this element. */
  constructor(map) {
    for (const cell of map.querySelectorAll(CELLS)) this.#cells.set(nameOf(cell), cell);
    for (const rack of map.querySelectorAll("svg.rack")) rove(rack);
  }

  /** Shows these nodes as they are. Returns whether the map has a cell for exactly the nodes of the fleet. */
  show(state) {
    const present = state.rows.filter(row => !row.left);
    const racks = new Set();
    for (const row of present) if (this.#paint(row)) racks.add(this.#cells.get(row.name).closest("figure"));
    for (const figure of racks) countBad(figure);
    return present.length === this.#cells.size && present.every(row => this.#cells.has(row.name));
  }

  #paint(row) {
    const cell = this.#cells.get(row.name), form = formOf(row);
    if (!cell) return false;
    const use = cell.querySelector("use");
    if (use.getAttribute("href") === `#${form}`) return false;
    use.setAttribute("href", `#${form}`);
    cell.querySelector("title").textContent = `${row.name}: ${row.stateText}`;
    return true;
  }
}

/** The numbers of nodes by condition in the legend. */
export function showCounts(legend, state) {
  const counts = new Map();
  for (const row of state.rows) if (!row.left) counts.set(row.condition, (counts.get(row.condition) ?? 0) + 1);
  for (const item of legend.querySelectorAll("[data-condition]")) {
    const number = counts.get(item.dataset.condition) ?? 0;
    item.hidden = number === 0;
    if (number && !item.querySelector("svg")) item.prepend(symbol(item.dataset.condition), " ");
    item.querySelector("b").textContent = number.toLocaleString("en");
  }
}

function nameOf(cell) {
  return decodeURIComponent(cell.getAttribute("href").split("/").pop());
}

/** The name of the symbol, as MapCell has it in views/pages/fleet_map.py. */
function formOf({ condition, isOut }) {
  return condition + (isOut && condition !== "out" ? "-out" : "");
}

function countBad(figure) {
  const bad = [...figure.querySelectorAll("use")].filter(use => BAD.has(use.getAttribute("href").slice(1).split("-")[0]));
  const label = figure.querySelector("figcaption .bad");
  if (label) label.textContent = bad.length ? `${bad.length} bad` : "";
}

/** Makes a rack one stop of the tab key; arrow keys, Home and End move between its cells. */
function rove(rack) {
  const rows = [...rack.querySelectorAll("g")].map(row => [...row.querySelectorAll("a")]).filter(row => row.length);
  const all = rows.flat();
  const stop = cell => all.forEach(other => other.setAttribute("tabindex", other === cell ? "0" : "-1"));
  const isHealthy = cell => cell.querySelector("use").getAttribute("href") === "#healthy";
  stop(all.find(cell => !isHealthy(cell)) ?? all[0]);
  rack.addEventListener("focusin", event => stop(event.target.closest("a")));
  rack.addEventListener("keydown", event => {
    const next = neighbour(rows, event.target.closest("a"), event.key);
    if (!next || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    stop(next);
    next.focus();
  });
}

function neighbour(rows, cell, key) {
  const row = rows.findIndex(cells => cells.includes(cell)), column = rows[row]?.indexOf(cell);
  switch (key) {
    case "ArrowRight": return rows[row][column + 1] ?? rows[row + 1]?.[0];
    case "ArrowLeft": return rows[row][column - 1] ?? rows[row - 1]?.at(-1);
    case "ArrowDown": return rows[row + 1]?.[Math.min(column, rows[row + 1].length - 1)];
    case "ArrowUp": return rows[row - 1]?.[Math.min(column, rows[row - 1].length - 1)];
    case "Home": return rows[0][0];
    case "End": return rows.at(-1).at(-1);
  }
}
