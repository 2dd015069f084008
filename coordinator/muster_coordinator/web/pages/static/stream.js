// The fleet from the coordinator: a snapshot, and then what changes.

const RETRY_MS = 3_000;
const LOOK_MS = 1_000;

/** Calls `onSnapshot` and `onChange` with what arrives, and `onStale` with whether and how long nothing can arrive. */
export function openStream({ onSnapshot, onChange, onStale }) {
  let source = null, version = 0, lostAt = null;

  async function begin() {
    source?.close();
    try {
      const response = await fetch("api/v1/snapshot");
      if (!response.ok) throw new TypeError(response.statusText);
      const snapshot = await response.json();
      version = snapshot.version;
      onSnapshot(snapshot);
      listen(snapshot.epoch);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      lostAt ??= Date.now();
      setTimeout(begin, RETRY_MS);
    }
  }

  function listen(epoch) {
    source = new EventSource(`api/v1/changes?since=${epoch}-${version}`);
    source.addEventListener("reset", begin);
    source.addEventListener("change", event => {
      const change = JSON.parse(event.data);
      if (change.version > version) {
        version = change.version;
        onChange(change);
      }
    });
    source.addEventListener("open", () => {
      lostAt = null;
      onStale(false, 0);
    });
    source.addEventListener("error", () => {
      lostAt ??= Date.now();
      if (source.readyState === EventSource.CLOSED) setTimeout(begin, RETRY_MS);
    });
  }

  setInterval(() => {
    if (lostAt !== null) onStale(true, Math.round((Date.now() - lostAt) / 1000));
  }, LOOK_MS);
  begin();
}
