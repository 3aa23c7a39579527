// Rates of the last minutes: what weir remembers, and from then on what the updates say.

const points_max = 300;

export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.times = [];
    this.columns = {packets_per_s: [], gbps: [], events_per_s: []};
    this.lost = {};
    this.offset = null;
  }

  /** `fresh`: the document has the whole history. */
  take(document, fresh) {
    if (fresh) this.restart(document);
    const now = Date.parse(document.time) / 1000;
    if (!document.rates || Number.isNaN(now)) return;
    // Weir's own clock tells the time of a point; where the last one was is known from the history.
    this.offset ??= (this.times.at(-1) ?? 0) - now;
    const time = now + this.offset;
    const step = document.history?.step_s ?? 1;
    if (this.times.length > 0 && time - this.times.at(-1) < 0.9 * step) return;
    this.append(time, document);
  }

  restart({history}) {
    this.clear();
    const times = history?.time_s ?? [];
    this.times = times.slice(-points_max);
    for (const name of Object.keys(this.columns)) this.columns[name] = (history?.[name] ?? times.map(() => null)).slice(-points_max);
    for (const [cause, values] of Object.entries(history?.lost_per_s ?? {})) this.lost[cause] = values.slice(-points_max);
  }

  append(time, document) {
    this.times.push(time);
    for (const [name, values] of Object.entries(this.columns)) values.push(document.rates[name] ?? null);
    for (const loss of document.losses ?? []) this.lost[loss.cause] ??= this.times.slice(1).map(() => 0);
    for (const [cause, values] of Object.entries(this.lost))
      values.push((document.losses ?? []).find((loss) => loss.cause === cause)?.per_s ?? 0);
    while (this.times.length > points_max) {
      this.times.shift();
      for (const values of [...Object.values(this.columns), ...Object.values(this.lost)]) values.shift();
    }
  }

  /** Causes of which something was lost in the time shown, the largest first. */
  causes() {
    const sums = Object.entries(this.lost).map(([cause, values]) => [cause, values.reduce((sum, value) => sum + (value ?? 0), 0)]);
    return sums.filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1]).map(([cause]) => cause);
  }
}
