// The first screen: who, in which state, is data being lost, and where.

import {byId, html, keep, setAttribute, setText, show} from './dom.js';
import {count, rate, seconds} from './format.js';
import {causeWords, judge} from './verdict.js';

// Shapes as well as colours: a tick, an exclamation mark in a triangle, a question mark, a ring.
const signs = {
  ok: 'M12 1a11 11 0 1 0 0 22 11 11 0 0 0 0-22Zm-1.7 16.2-4.8-4.8 1.9-1.9 2.9 2.9 6.3-6.3 1.9 1.9Z',
  losing: 'M12 1 0 23h24ZM10.7 9h2.6v7h-2.6Zm0 8.4h2.6V20h-2.6Z',
  lost: 'M12 1 0 23h24Zm0 5 7.9 14.6H4.1ZM11 10h2v5.5h-2Zm0 6.8h2v2h-2Z',
  unknown: 'M12 0 24 12 12 24 0 12Zm-1.2 16.2v2.4h2.4v-2.4Zm-3-6.7h2.4c0-1 .7-1.8 1.8-1.8s1.8.7 1.8 1.7c0 1.6-3 1.9-3 4.7v.7h2.4v-.6c0-1.5 3-1.8 3-4.9a4.2 4.2 0 0 0-8.4.2Z',
  idle: 'M12 1a11 11 0 1 0 0 22 11 11 0 0 0 0-22Zm0 2.6a8.4 8.4 0 1 1 0 16.8 8.4 8.4 0 0 1 0-16.8Z',
  stale: 'M2 2h20v20H2Zm4.5 6.4L10.1 12l-3.6 3.6 1.9 1.9 3.6-3.6 3.6 3.6 1.9-1.9-3.6-3.6 3.6-3.6-1.9-1.9-3.6 3.6-3.6-3.6Z',
};

// A screen reader hears of a change at once, and of new numbers not more often than this.
const spoken_again_ms = 60000;

export class Overview {
  constructor() {
    this.heard = {state: 'never', seconds: null};
    this.verdict = null;
    this.spokenMs = -Infinity;
    this.spokenLevel = '';
  }

  show(document) {
    const state = document.status?.state ?? '';
    setText(byId('who'), [document.name, document.host].filter(Boolean).join(' on ') || 'weir');
    window.document.title = `${document.name ?? 'weir'}: ${state}`;
    show(byId('state'), '/status/state', 'text', state);
    setAttribute(byId('state'), 'data-state', state);
    this.showRun(document);
    show(byId('version'), '/version', 'version', `weir ${document.version ?? ''}`);
    this.verdict = judge(document);
    this.showVerdict();
    this.showWhere(document.where ?? []);
    this.showLosses(document);
  }

  showRun({run, status}) {
    const node = byId('run');
    if (!run) {
      setText(node, status?.since_s > 0 ? `for ${seconds(status.since_s)}` : '');
      return;
    }
    if (node.children.length === 0) node.replaceChildren(html('span'), ' · ', html('span'), html('span', {class: 'reason'}));
    const [number, lasted, reason] = node.querySelectorAll('span');
    show(number, '/run/number', 'run', `run ${run.number}`);
    show(lasted, '/run/seconds', 'seconds', seconds(run.seconds));
    setText(reason, run.stop_reason ? ` · ${run.stop_reason}` : '');
  }

  showHeard(heard) {
    this.heard = heard;
    const ago = heard.seconds === null ? '' : `last heard ${Math.round(heard.seconds)} s ago`;
    const words = {never: 'connecting', live: 'live', stale: ago, lost: heard.seconds === null ? 'no connection; trying again' : `connection lost, ${ago}; trying again`};
    setText(byId('heard'), words[heard.state]);
    setAttribute(byId('heard'), 'data-heard', heard.state);
    setAttribute(document.body, 'data-heard', heard.state);
    this.showVerdict();
  }

  /** What was true some time ago is not shown as what is true. */
  current() {
    if (this.heard.state === 'live' || (this.heard.state === 'never' && !this.verdict)) return this.verdict;
    if (!this.verdict) return this.heard.state === 'lost' ? {level: 'stale', headline: 'Not known: weir does not answer', detail: 'Trying again.'} : null;
    const ago = `${Math.round(this.heard.seconds ?? 0)} s ago`;
    const why = this.heard.state === 'lost' ? 'connection lost' : 'nothing heard';
    return {level: 'stale', headline: `Not known: ${why}, last heard ${ago}`, detail: `It was: ${this.verdict.headline}.`};
  }

  showVerdict() {
    const verdict = this.current();
    if (!verdict) return;
    setAttribute(byId('verdict'), 'data-level', verdict.level);
    setAttribute(byId('sign'), 'd', signs[verdict.level]);
    setText(byId('headline'), verdict.headline);
    setText(byId('detail'), verdict.detail ?? '');
    const now = performance.now();
    if (verdict.level === this.spokenLevel && now - this.spokenMs < spoken_again_ms) return;
    this.spokenLevel = verdict.level;
    this.spokenMs = now;
    setText(byId('spoken'), verdict.headline);
  }

  showWhere(places) {
    byId('where-none').hidden = places.length > 0;
    const make = () => html('tr', {}, html('th', {scope: 'row'}), html('td', {class: 'number'}), html('td', {class: 'evidence'}));
    keep(byId('where').tBodies[0], places, make, (row, place, index) => {
      const known = typeof place.packets === 'number';
      setAttribute(row, 'data-level', !known ? 'unknown' : place.packets > 0 ? 'lost' : 'ok');
      show(row.cells[0], `/where/${index}/title`, 'text', place.title ?? '');
      show(row.cells[1], `/where/${index}/packets`, 'count', count(place.packets));
      show(row.cells[2], `/where/${index}/evidence`, 'text', place.evidence ?? '');
    });
  }

  showLosses({losses = [], run}) {
    const table = this.losses ??= this.makeLosses();
    const shown = losses.map((loss, index) => ({...loss, index})).filter((loss) => loss.packets > 0 || loss.per_s > 0);
    table.hidden = shown.length === 0;
    const make = () => html('tr', {}, html('th', {scope: 'row'}), html('td', {class: 'number'}), html('td', {class: 'number'}));
    keep(table.tBodies[0], shown, make, (row, loss) => {
      setText(row.cells[0], causeWords(loss.cause));
      show(row.cells[1], `/losses/${loss.index}/packets`, 'count', count(loss.packets));
      show(row.cells[2], `/losses/${loss.index}/per_s`, 'rate', rate(loss.per_s, ''));
      setAttribute(row, 'data-level', run && loss.per_s > 0 ? 'losing' : 'lost');
    });
  }

  makeLosses() {
    const heads = [['By cause', ''], ['packets', 'number'], ['per second', 'number']];
    const table = html('table', {class: 'losses', hidden: true}, html('thead', {}, html('tr', {},
      ...heads.map(([text, kind]) => html('th', {scope: 'col', class: kind}, text)))), html('tbody'));
    byId('losses').append(table);
    return table;
  }
}
