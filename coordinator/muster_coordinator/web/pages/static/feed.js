// The fleet from the coordinator for all tabs of a browser: one stream of changes, and a snapshot for each tab.

const API = new URL("../api/v1/", import.meta.url);
const RETRY_MS = 3_000;
const LOOK_MS = 1_000;
const SILENT_MS = 18_000; // the coordinator sends something every 15 s
const ANSWERED_MS = 15_000;

/** Sends `{snapshot}`, `{change}` and `{lostAt}` (ms since 1970, null while changes arrive) to the ports of tabs.
 *
 * A tab says `begin` to get a snapshot and what changes from then on, and `end` to get nothing more. While no tab wants
 * changes there is no stream.
 */
export class Feed {
  #waiting = new Map(); // by port that has begun: changes that wait for its snapshot, null after that
  #source = null;
  #heardAt = 0;
  #lostAt = null;
  #timer = 0;

  /** Serves a port. */
  add(port) {
    port.onmessage = ({ data }) => (data === "begin" ? this.#begin([port, ...this.#cutOff()]) : this.#end(port));
  }

  async #begin(ports) {
    const begun = new Map(ports.map(port => [port, []]));
    for (const [port, changes] of begun) this.#waiting.set(port, changes);
    this.#timer ||= setInterval(() => this.#look(), LOOK_MS);
    const snapshot = await this.#snapshot();
    if (!snapshot) return setTimeout(() => this.#again(ports), RETRY_MS);
    // A tab that has ended wants no stream. One that has begun again since waits for its later snapshot: the changes
    // that waited for this one are gone.
    const present = [...begun].filter(([port, changes]) => this.#waiting.get(port) === changes);
    if (present.length) this.#listen(snapshot);
    for (const [port, changes] of present) {
      port.postMessage({ snapshot });
      port.postMessage({ lostAt: this.#lostAt });
      this.#waiting.set(port, null);
      for (const change of changes) if (change.version > snapshot.version) port.postMessage({ change });
    }
  }

  /** The tabs that have a snapshot and no stream that follows it: they would miss what a new stream does not send. */
  #cutOff() {
    return this.#source ? [] : [...this.#waiting].filter(([, changes]) => changes === null).map(([port]) => port);
  }

  #again(ports = [...this.#waiting.keys()]) {
    const present = ports.filter(port => this.#waiting.has(port));
    if (present.length) this.#begin(present);
  }

  #end(port) {
    this.#waiting.delete(port);
    if (this.#waiting.size) return;
    this.#close();
    clearInterval(this.#timer);
    this.#timer = 0;
  }

  async #snapshot() {
    try {
      const response = await fetch(new URL("snapshot", API), { signal: AbortSignal.timeout(ANSWERED_MS) });
      if (response.ok) return await response.json();
    } catch (error) {
      if (!["TypeError", "TimeoutError", "AbortError"].includes(error.name)) throw error;
    }
    this.#lose(Date.now());
    return null;
  }

  #listen({ epoch, version }) {
    if (this.#source) {
      // A snapshot for one tab is no news for the others: while the stream is lost, they are not up to date.
      if (this.#source.readyState === EventSource.OPEN) this.#tell(null);
      return;
    }
    this.#hear();
    this.#source = new EventSource(new URL(`changes?since=${epoch}-${version}`, API));
    for (const kind of ["open", "alive"]) this.#source.addEventListener(kind, () => this.#hear());
    this.#source.addEventListener("change", event => this.#pass(JSON.parse(event.data)));
    this.#source.addEventListener("reset", () => this.#restart());
    this.#source.addEventListener("error", ({ target }) => {
      this.#lose(Date.now());
      if (target.readyState === EventSource.CLOSED) this.#restart(RETRY_MS);
    });
  }

  #pass(change) {
    this.#hear();
    for (const [port, waiting] of this.#waiting) waiting ? waiting.push(change) : port.postMessage({ change });
  }

  /** Begins again for every tab, because what it has may be too old. */
  #restart(delay = 0) {
    this.#close();
    setTimeout(() => this.#again(), delay);
  }

  #close() {
    this.#source?.close();
    this.#source = null;
  }

  #look() {
    if (this.#source && Date.now() - this.#heardAt > SILENT_MS) {
      this.#lose(this.#heardAt);
      this.#restart(); // the connection may be gone without anybody having said so
    }
  }

  #hear() {
    this.#heardAt = Date.now();
    this.#tell(null);
  }

  #lose(at) {
    this.#tell(this.#lostAt ?? at);
  }

  #tell(lostAt) {
    if (lostAt === this.#lostAt) return;
    this.#lostAt = lostAt;
    for (const port of this.#waiting.keys()) port.postMessage({ lostAt });
  }
}
