// Points of the API as columns for a chart. Pure.

// Points that are further apart than this many steps are not joined: nothing was measured in between.
const MOST_STEPS_APART = 3;

/** The columns of points that come the latest first: times in seconds, then the values of each key, null where absent. */
export function columnsOf(points, keys, stepSeconds) {
  const rows = [...points].reverse().map((point) => ({ at: Date.parse(point.at) / 1000, values: point.values }));
  const joined = MOST_STEPS_APART * Math.max(stepSeconds, usualDistance(rows));
  const columns = [[], ...keys.map(() => [])];
  rows.forEach((row, place) => {
    const before = place > 0 ? rows[place - 1].at : row.at;
    if (row.at - before > joined) append(columns, (before + row.at) / 2, keys.map(() => null));
    append(columns, row.at, keys.map((key) => row.values[key] ?? null));
  });
  return columns;
}

/** The lowest and highest of all numbers that the chart must show, with some room around them. */
export function valueRange(columns, others) {
  const numbers = [...columns.slice(1).flat().filter((value) => value !== null), ...others];
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  const room = high > low ? (high - low) * 0.08 : Math.abs(high) * 0.05 || 1;
  return [low - room, high + room];
}

function append(columns, at, values) {
  columns[0].push(at);
  values.forEach((value, place) => columns[place + 1].push(value));
}

function usualDistance(rows) {
  const distances = rows.slice(1).map((row, place) => row.at - rows[place].at).sort((one, other) => one - other);
  return distances.length ? distances[Math.floor(distances.length / 2)] : 0;
}
