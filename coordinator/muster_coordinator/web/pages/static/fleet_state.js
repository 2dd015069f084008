// The fleet as the coordinator sends it in columns (model/fleet_columns.py), row by row.

const OUT = new Set(["CORDONED", "PROBATION"]);
const OF_HEALTH = { FAILED: "failed", SUSPECT: "suspect", DEGRADED: "degraded", UNKNOWN: "unknown" };
/** The conditions of nodes that something is wrong with. */
export const BAD = new Set(["failed", "suspect", "silent", "degraded"]);

/** The nodes of the fleet, and `at`, the time of the coordinator in seconds. A row that changes is another object. */
export class FleetState {
  #rows = new Map();
  #isCurrent = true;

  /** The numbers about the fleet as a whole. */
  numbers = null;

  constructor(snapshot) {
    this.apply(snapshot);
  }

  /** Every node. */
  get rows() {
    return [...this.#rows.values()];
  }

  /** Whether the coordinator hears the nodes. */
  get isCurrent() {
    return this.#isCurrent;
  }

  get at() {
    return this.#at + (performance.now() - this.#received) / 1000;
  }

  #at = 0;
  #received = 0;

  /** Takes the nodes that have changed, and forgets those that are gone. */
  apply({ at, fleet, names, nodes, gone = [] }) {
    this.#at = Date.parse(at) / 1000;
    this.#received = performance.now();
    this.numbers = fleet;
    for (const name of gone) this.#rows.delete(name);
    if (fleet.is_connected !== this.#isCurrent) {
      this.#isCurrent = fleet.is_connected;
      for (const row of this.#rows.values()) this.#keep(row);
    }
    for (let index = 0; index < nodes.name.length; index++) this.#keep(this.#row(names, nodes, index));
  }

  #row(names, nodes, index) {
    const place = nodes.place[index], age = nodes.changed_s[index], worst = nodes.worst[index];
    return {
      name: nodes.name[index],
      health: names.health[nodes.health[index]],
      service: names.service[nodes.service[index]],
      lost: nodes.lost[index] === 1,
      left: nodes.left[index] === 1,
      dryRun: nodes.dry_run[index] === 1,
      block: names.place.block[place],
      rack: names.place.rack[place],
      leaf: names.place.leaf[place],
      worst: worst === null ? null : names.worst[worst],
      findings: nodes.findings[index],
      changedAt: age === null ? null : this.#at - age,
    };
  }

  #keep(row) {
    const found = condition(row);
    const shown = { ...row, condition: this.#isCurrent || BAD.has(found) ? found : "unknown" };
    this.#rows.set(row.name, { ...shown, isOut: OUT.has(row.service), stateText: stateText(shown) });
  }
}

/** The condition, and the service state where that adds something, as views/pages/page_row.py has it. */
function stateText({ condition, service, lost, left, dryRun }) {
  const parts = [condition];
  if (lost && condition !== "silent") parts.push("silent");
  if (service !== "IN_SERVICE") parts.push(service + (dryRun ? " (dry run)" : ""));
  if (left) parts.push("left the fleet");
  return parts.join(", ");
}

/** The condition of a node, as views/pages/page_row.py has it. */
function condition({ health, service, lost }) {
  const found = OF_HEALTH[health];
  if (found === "failed" || found === "suspect") return found;
  if (lost) return "silent";
  if (found) return found;
  if (OUT.has(service)) return "out";
  return service === "ACCEPTING" ? "new" : "healthy";
}
