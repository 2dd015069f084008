// Selections of nodes, such as `rack=r1,r2 health!=FAILED`, as topology/selection.py has them.
//
// The browser has no labels, hosts and models of nodes, and does not explain errors: it says what it cannot answer, and
// the server answers that. tests/coordinator/web/pages/selections.json holds both to the same results.

const MOST_TERMS = 32, MOST_PATTERNS = 100, MOST_NAMES = 1 << 17;

/** The values of a node by key, as topology/selection_term.py has them. */
export const KEYS = {
  name: row => [row.name],
  block: row => known(row.block),
  rack: row => known(row.rack),
  leaf: row => known(row.leaf),
  health: row => (row.lost ? [row.health, "LOST"] : [row.health]),
  service: row => [row.service],
};

const STATES = {
  health: new Set(["HEALTHY", "DEGRADED", "SUSPECT", "FAILED", "UNKNOWN", "LOST"]),
  service: new Set(["ACCEPTING", "IN_SERVICE", "HELD", "CORDONED", "PROBATION"]),
};

/** What the browser cannot read. Only the server can say what is wrong with it, if anything is. */
class Unreadable extends Error {}

/** A selection that the browser has read. `remote` is the text of the terms that only the server can answer. */
class Selection {
  constructor(terms, remote) {
    this.terms = terms;
    this.remote = remote;
  }

  /** Whether a node fits every term that the browser can answer. */
  fits(row) {
    return this.terms.every(term => term.fits(row));
  }

  /** Whether every name in the selection exists in the fleet; otherwise the server refuses it. */
  exists(rows) {
    return this.terms.every(term => Object.hasOwn(STATES, term.key) || term.exists(rows));
  }
}

class Term {
  constructor(key, values, isExcluding) {
    this.key = key;
    this.isRemote = !Object.hasOwn(KEYS, key);
    this.isExcluding = isExcluding;
    this.values = new Set(values);
    this.patterns = values.filter(isPattern);
    this.pattern = this.patterns.length ? new RegExp(`^(?:${this.patterns.map(regular).join("|")})$`, "su") : null;
  }

  fits(row) {
    return this.isExcluding !== KEYS[this.key](row).some(value => this.values.has(value) || this.pattern?.test(value));
  }

  exists(rows) {
    const existing = new Set(rows.flatMap(KEYS[this.key]));
    const matches = pattern => [...existing].some(value => new RegExp(`^${regular(pattern)}$`, "su").test(value));
    return [...this.values].every(value => existing.has(value) || (isPattern(value) && matches(value)));
  }
}

/** The selection in a text; null if the browser cannot read it. An empty text selects every node. */
export function readSelection(text) {
  try {
    const read = words(text).map(([raw, word]) => [raw, readTerm(word)]);
    require(read.length <= MOST_TERMS);
    require(read.reduce((count, [, term]) => count + term.patterns.length, 0) <= MOST_PATTERNS);
    const remote = read.filter(([, term]) => term.isRemote).map(([raw]) => raw);
    return new Selection(read.map(([, term]) => term).filter(term => !term.isRemote), remote.join(" "));
  } catch (error) {
    if (error instanceof Unreadable) return null;
    throw error;
  }
}

/** Each word as it is written, and without its quotes. */
function words(text) {
  const compact = text.trim().replace(/\s*,\s*/g, ",");
  const found = [...compact.matchAll(/[ \t\r\n;]+|(?:[^ \t\r\n;'"\\]|'[^']*'|"[^"\\]*")+|./gs)].map(([word]) => word);
  const wanted = found.filter(word => !/^[ \t\r\n;]+$/.test(word));
  require(!wanted.some(word => /^['"\\]$/.test(word)) && !(compact && !wanted.length));
  return wanted.map(word => [word, word.replace(/'([^']*)'|"([^"]*)"/g, (_, one, two) => one ?? two)]);
}

function readTerm(word) {
  const [, key, not, text] = word.match(/^([^=!]*)(!?)=(.*)$/s) ?? [word, "name", "", word];
  const values = expand(text), isExcluding = not === "!";
  if (!Object.hasOwn(STATES, key)) return new Term(key, values, isExcluding);
  const states = values.map(value => value.toUpperCase());
  require(states.every(state => STATES[key].has(state)));
  return new Term(key, states, isExcluding);
}

/** The names in a list with ranges, such as `node-[001-032,040],login1`, as topology/hostlist.py has them. */
function expand(text) {
  require(/^(?:[^[\]]|\[[^[\]]*\])*$/s.test(text));
  const names = [];
  for (const item of text.split(/,(?![^[\]]*\])/)) {
    require(item.trim());
    for (const name of expandItem(item.trim(), MOST_NAMES - names.length)) names.push(name);
  }
  return names;
}

function expandItem(item, room) {
  let names = [""];
  for (const [place, part] of item.split(/\[([^[\]]*)\]/).entries()) {
    const choices = place % 2 ? part.split(",").map(bounds) : [{ texts: [part], count: 1 }];
    require(names.length * choices.reduce((count, choice) => count + choice.count, 0) <= room);
    const texts = choices.flatMap(choice => choice.texts ?? numbers(choice));
    names = names.flatMap(name => texts.map(more => name + more));
  }
  return names;
}

function bounds(text) {
  const found = text.trim().match(/^([0-9]{1,15})(?:-([0-9]{1,15}))?$/);
  require(found);
  const low = Number(found[1]), high = Number(found[2] ?? found[1]);
  require(low <= high);
  return { low, count: high - low + 1, width: found[1].length };
}

function numbers({ low, count, width }) {
  return Array.from({ length: count }, (_, place) => String(low + place).padStart(width, "0"));
}

function isPattern(value) {
  return /[*?]/.test(value);
}

function regular(pattern) {
  return pattern.replace(/[.+^${}()|[\]\\/]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
}

function known(name) {
  return name == null ? [] : [name];
}

function require(isRight) {
  if (!isRight) throw new Unreadable();
}
