// The ledger of the run that is going on, and the runs before it, newest first.

import {byId, html, keep, setAttribute, setText, show} from './dom.js';
import {bytes, count, moment, seconds} from './format.js';

const yesNo = (value) => (value === true ? 'yes' : value === false ? 'no' : value ?? 'unknown');

const columns = [
  ['Run', 'count', (run) => count(run.number), 'number'],
  ['Started', 'moment', (run) => moment(run.started), 'started'],
  ['Lasted', 'seconds', (run) => seconds(run.seconds), 'seconds', 'number wide'],
  ['Events', 'count', (run) => count(run.events), 'events', 'number'],
  ['Incomplete', 'count', (run) => count(run.incomplete), 'incomplete', 'number wide'],
  ['Packets lost', 'count', (run) => count(run.lost_packets), 'lost_packets', 'number'],
  ['Lossless', 'yes-no', (run) => yesNo(run.lossless), 'lossless'],
  ['Ended by', 'text', (run) => run.error || run.stop_reason || '', '', 'wide'],
];

/** {a: {b: 1}} → [["/a/b", "a.b", 1]] */
function leaves(value, pointer = '', name = '') {
  if (value === null || typeof value !== 'object') return [[pointer, name, value]];
  return Object.entries(value).flatMap(([key, inner]) =>
    leaves(inner, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`, name ? `${name}.${key}` : key));
}

export class Runs {
  constructor() {
    this.opened = new Set();
    this.makeLedger();
    this.body = html('tbody');
    const heads = columns.map(([title, , , , kind]) => html('th', {scope: 'col', class: kind}, title));
    this.table = html('table', {class: 'runs'}, html('caption', {class: 'unseen'}, 'Runs, newest first'), html('thead', {}, html('tr', {}, ...heads, html('th', {scope: 'col'}, html('span', {class: 'unseen'}, 'Details')))), this.body);
    this.nothing = html('p', {class: 'dim'}, 'No run has ended yet.');
    byId('runs').append(this.nothing, html('div', {class: 'scrolls', tabindex: 0, role: 'group', 'aria-label': 'Table of runs'}, this.table));
  }

  makeLedger() {
    this.zeros = html('input', {type: 'checkbox', onchange: () => this.showLedger()});
    this.counters = html('dl', {class: 'counters'});
    this.noLedger = html('p', {class: 'dim'}, 'No run.');
    this.zerosLabel = html('label', {class: 'check'}, this.zeros, html('span', {}, 'with counters that are zero'));
    byId('ledger').append(this.noLedger, this.zerosLabel, this.counters);
  }

  show(document) {
    this.document = document;
    this.showLedger();
    const runs = document.runs ?? [];
    this.nothing.hidden = runs.length > 0;
    this.table.parentElement.hidden = runs.length === 0;
    const rows = runs.flatMap((run, index) => (this.opened.has(run.number) ? [{run, index}, {run, index, details: true}] : [{run, index}]));
    const shape = JSON.stringify(rows.map((row) => [row.run.number, row.details]));
    if (shape !== this.shape) this.body.replaceChildren(...rows.map((row) => (row.details ? this.makeDetails() : this.makeRow(row.run))));
    this.shape = shape;
    rows.forEach((row, i) => (row.details ? this.changeDetails(this.body.rows[i], row) : this.changeRow(this.body.rows[i], row)));
  }

  makeRow(run) {
    const toggle = html('button', {type: 'button', class: 'link', 'data-run': run.number, onclick: () => {
      if (!this.opened.delete(run.number)) this.opened.add(run.number);
      this.show(this.document);
      this.body.querySelector(`[data-run="${run.number}"]`)?.focus();
    }}, 'details');
    return html('tr', {}, ...columns.map(([, , , name, kind]) => html(name === 'number' ? 'th' : 'td', name === 'number' ? {scope: 'row'} : {class: kind})), html('td', {}, toggle));
  }

  changeRow(row, {run, index}) {
    const lost = run.lost_packets > 0 || run.lossless === 'no' || run.lossless === false || Boolean(run.error) || run.balanced === false;
    setAttribute(row, 'data-level', lost ? 'lost' : yesNo(run.lossless) === 'unknown' ? 'unknown' : 'ok');
    columns.forEach(([, form, text, name], i) => {
      if (name) show(row.cells[i], `/runs/${index}/${name}`, form, text(run));
      else setText(row.cells[i], text(run));
    });
    setAttribute(row.querySelector('button'), 'aria-expanded', this.opened.has(run.number));
    setAttribute(row.querySelector('button'), 'aria-label', `details of run ${run.number}`);
  }

  makeDetails() {
    return html('tr', {class: 'details'}, html('td', {colspan: columns.length + 1}, html('dl', {class: 'counters'})));
  }

  changeDetails(row, {run, index}) {
    this.list(row.querySelector('dl'), leaves(run).map(([pointer, name, value]) => [`/runs/${index}${pointer}`, name, value]));
  }

  list(into, entries) {
    keep(into, entries, () => html('div', {}, html('dt'), html('dd')), (node, [pointer, name, value]) => {
      setText(node.firstChild, name);
      const [form, text] = typeof value === 'number' ? (Number.isInteger(value) ? ['count', count(value)] : ['plain', String(value)]) : ['text', value === null ? 'unknown' : String(value)];
      show(node.lastChild, pointer, form, text);
      setAttribute(node.lastChild, 'title', /bytes/.test(name) && typeof value === 'number' ? bytes(value) : '');
    });
  }

  showLedger() {
    const ledger = this.document?.ledger ?? {};
    const entries = leaves(ledger, '/ledger').filter(([, , value]) => this.zeros.checked || (value !== 0 && value !== '' && value !== false) || value === 'unknown');
    this.noLedger.hidden = Object.keys(ledger).length > 0;
    this.zerosLabel.hidden = !this.noLedger.hidden;
    this.list(this.counters, entries);
  }
}
