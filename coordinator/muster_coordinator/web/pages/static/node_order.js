// The order of nodes, as views/node_order.py has it. Keys that the browser does not know are sorted by the server.

import { KEYS } from "./selection.js";

export const URGENCY = "urgency";

const HEALTHS = ["FAILED", "SUSPECT", "DEGRADED", "UNKNOWN", "HEALTHY"];
const SERVICES = ["CORDONED", "HELD", "PROBATION", "ACCEPTING", "IN_SERVICE"];

/** The key of an order, and whether it is backwards: `-rack` is `rack` backwards. */
export function readOrder(sort) {
  const isBackwards = sort.startsWith("-");
  return { key: isBackwards ? sort.slice(1) : sort, isBackwards };
}

/** Whether the browser can sort by this key. */
export function isKnown(key) {
  return key === URGENCY || Object.hasOwn(KEYS, key);
}

/** The nodes in the order of a sort key; `places` are the places of names in an order that the server has made. */
export function inOrder(rows, sort, places = null) {
  const { key, isBackwards } = readOrder(sort);
  const read = places ? row => places.get(row.name) ?? Infinity : key === URGENCY ? urgency : row => least(KEYS[key](row));
  const keyed = rows.map(row => [read(row), row]);
  keyed.sort(([a, one], [b, other]) => compare(a, b) || compare(one.name, other.name));
  if (isBackwards) keyed.reverse();
  return keyed.map(([, row]) => row);
}

function urgency(row) {
  const health = HEALTHS.indexOf(row.health) + (row.left ? HEALTHS.length : 0);
  return (health * 2 + (row.lost ? 0 : 1)) * SERVICES.length + SERVICES.indexOf(row.service);
}

/** The first of the values; null without one, which comes last. */
function least(values) {
  return values.filter(Boolean).sort()[0] ?? null;
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  return a < b ? -1 : 1;
}
