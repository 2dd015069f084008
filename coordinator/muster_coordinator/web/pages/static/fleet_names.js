// What only the coordinator can answer about nodes: which ones fit a selection, and how they are sorted.

const LIMIT = 1000;

/** A request that the coordinator refuses; the message says what would be right. */
export class Refused extends Error {}

/** The place of each node that fits `select`, by name, in the order of `sort`. Throws Refused, and TypeError offline. */
export async function askForNames(select, sort, signal) {
  const places = new Map();
  let cursor = null;
  do {
    const query = new URLSearchParams({ limit: LIMIT });
    if (select) query.set("select", select);
    if (sort) query.set("sort", sort);
    if (cursor) query.set("cursor", cursor);
    const response = await fetch(`api/v1/fleet/nodes?${query}`, { signal, headers: { Accept: "application/json" } });
    const answer = await response.json();
    if (!response.ok) throw new Refused(answer.detail);
    for (const { name } of answer.items) places.set(name, places.size);
    cursor = answer.next_cursor;
  } while (cursor);
  return places;
}
