// The document, kept up to date: fetched whole once, then by server-sent events. Says how long ago it was heard of, and goes on
// trying when the connection is lost.

const first_wait_ms = 500;
const longest_wait_ms = 10000;
// Weir sends at least once a second; the factor is for a busy network.
const stale_after_ms = 4000;
// A connection may be dead without anybody having said so.
const given_up_after_ms = 15000;

export class Connection {
  /** `changed(document)` is called with each new document, `heard({state, seconds})` when there is something else to say of the
   * connection; state is one of never, live, stale, lost. */
  constructor(changed, heard) {
    this.changed = changed;
    this.heard = heard;
    this.document = null;
    this.lastMs = null;
    this.lost = false;
    this.waitMs = first_wait_ms;
    setInterval(() => this.tell(), 1000);
    this.begin();
  }

  async begin() {
    try {
      const answer = await fetch('/api/0.1/weir', {headers: {Accept: 'application/json'}, cache: 'no-store'});
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      this.take(await answer.json());
      this.listen();
    } catch {
      this.tryAgain();
    }
  }

  listen() {
    this.events = new EventSource('/events');
    this.events.addEventListener('state', (event) => {
      try {
        this.take(JSON.parse(event.data));
      } catch {
        this.tryAgain();
      }
    });
    // The browser would reconnect by itself, but not after every error, and the history in between would be missing.
    this.events.addEventListener('error', () => this.tryAgain());
  }

  tryAgain() {
    this.events?.close();
    this.events = null;
    this.lost = true;
    this.tell();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.begin(), this.waitMs);
    this.waitMs = Math.min(longest_wait_ms, 2 * this.waitMs);
  }

  /** What an update leaves out has not changed. */
  take(document) {
    const before = this.document ?? {};
    this.fresh = 'history' in document;
    this.document = {...document, history: document.history ?? before.history, runs: document.runs ?? before.runs};
    this.lastMs = performance.now();
    this.lost = false;
    this.waitMs = first_wait_ms;
    this.changed(this.document, this.fresh);
    this.tell();
  }

  tell() {
    const ms = this.lastMs === null ? null : performance.now() - this.lastMs;
    const state = ms === null ? (this.lost ? 'lost' : 'never') : this.lost ? 'lost' : ms > stale_after_ms ? 'stale' : 'live';
    this.heard({state, seconds: ms === null ? null : ms / 1000});
    if (state === 'stale' && ms > given_up_after_ms) this.tryAgain();
  }
}
