// Sources as a grid of cells, so that one among a thousand stands out, with those in trouble first in a table beside it. A cell's
// mark is a shape, its shade the rate: colours only repeat what these say.

import {byId, colour, html, keep, prepare, rem, setAttribute, setText, show} from './dom.js';
import {count, counted, percent, rate, seconds} from './format.js';

const rows_shown = 8;
const silent_after_s = 5;

// In the order of trouble. `mark` draws in a square of side 1.
const states = {
  lagging: {rank: 4, word: 'lags behind', plural: 'lag behind', colour: 'bad'},
  silent: {rank: 3, word: 'is silent', plural: 'are silent', colour: 'bad'},
  never: {rank: 2, word: 'never sent', plural: 'never sent', colour: 'unknown'},
  missing: {rank: 1, word: 'misses packets', plural: 'miss packets', colour: 'warn'},
  fine: {rank: 0, word: 'fine', plural: 'fine', colour: 'ok'},
};

/** [{id, label, packets, missing, per_s, last_seen_s, state}] of the document's columns. */
export function sourcesOf({sources, status}) {
  const running = status?.state === 'running';
  return (sources?.label ?? []).map((label, id) => {
    const source = {id, label};
    for (const name of ['packets', 'missing', 'per_s', 'last_seen_s', 'lagging']) source[name] = sources[name]?.[id] ?? null;
    source.state = source.lagging ? 'lagging' : source.last_seen_s === null ? 'never'
      : running && source.last_seen_s > silent_after_s ? 'silent' : source.missing > 0 ? 'missing' : 'fine';
    return source;
  });
}

const byTrouble = (a, b) => states[b.state].rank - states[a.state].rank || (b.missing ?? 0) - (a.missing ?? 0) || a.id - b.id;

export class Sources {
  constructor() {
    this.selected = null;  // until somebody selects one: then what is worst is described
    this.page = 0;
    this.all = [];
    this.summary = html('p', {class: 'summary'});
    this.canvas = html('canvas', {class: 'grid', tabindex: 0, role: 'img'});
    this.detail = html('output', {class: 'selected'});
    this.find = html('input', {type: 'search', placeholder: 'find a source', 'aria-label': 'Find a source', spellcheck: 'false', autocomplete: 'off', oninput: () => this.turn(0)});
    this.earlier = html('button', {type: 'button', onclick: () => this.turn(this.page - 1)}, 'Previous');
    this.later = html('button', {type: 'button', onclick: () => this.turn(this.page + 1)}, 'Next');
    this.where = html('span', {class: 'dim'});
    const heads = [['Source', ''], ['State', ''], ['Rate /s', 'number wide'], ['Packets', 'number wide'], ['Missing', 'number'], ['Last seen', 'number']];
    this.table = html('table', {class: 'sources'}, html('caption', {class: 'unseen'}, 'Sources, those in trouble first'),
      html('thead', {}, html('tr', {}, ...heads.map(([text, kind]) => html('th', {scope: 'col', class: kind}, text)))), html('tbody'));
    this.legend = html('ul', {class: 'keys'});
    this.listen();
    byId('sources').append(this.summary, this.canvas, this.legend, this.detail,
      html('div', {class: 'scrolls', tabindex: 0, role: 'group', 'aria-label': 'Table of sources'}, this.table), html('div', {class: 'bar'}, this.find, this.where, this.earlier, this.later));
  }

  listen() {
    const steps = {ArrowLeft: () => -1, ArrowRight: () => 1, ArrowUp: () => -this.grid.across, ArrowDown: () => this.grid.across, Home: () => -this.all.length, End: () => this.all.length};
    this.canvas.addEventListener('keydown', (event) => {
      if (!(event.key in steps) || this.all.length === 0) return;
      event.preventDefault();
      this.select((this.selected ?? this.worst().id) + steps[event.key]());
    });
    this.canvas.addEventListener('pointermove', (event) => {
      const box = this.canvas.getBoundingClientRect();
      const {across, pitchX, pitchY} = this.grid ?? {};
      if (!across) return;
      const index = Math.floor((event.clientY - box.top) / pitchY) * across + Math.min(across - 1, Math.floor((event.clientX - box.left) / pitchX));
      if (index < this.all.length) this.select(index);
    });
  }

  worst() {
    return this.all.reduce((a, b) => (byTrouble(a, b) <= 0 ? a : b));
  }

  select(index) {
    this.selected = Math.max(0, Math.min(this.all.length - 1, index));
    this.draw();
    this.showSelected();
  }

  show(document) {
    this.document = document;
    this.all = sourcesOf(document);
    const none = this.all.length === 0;
    for (const node of [this.canvas, this.legend, this.detail, this.table.parentElement, this.find.parentElement]) node.hidden = none;
    this.showSummary();
    if (none) return;
    if (this.selected >= this.all.length) this.selected = null;
    this.draw();
    this.showSelected();
    this.showTable();
  }

  showSummary() {
    if (this.all.length === 0) return setText(this.summary, 'No sources.');
    const counts = {};
    for (const source of this.all) counts[source.state] = (counts[source.state] ?? 0) + 1;
    const troubles = Object.entries(states).filter(([name]) => name !== 'fine' && counts[name]).map(([name, state]) => `${count(counts[name])} ${counts[name] === 1 ? state.word : state.plural}`);
    const text = `${counted(this.all.length, 'source')}: ${troubles.length > 0 ? troubles.join(', ') : 'all fine'}.`;
    setText(this.summary, text);
    setAttribute(this.summary, 'data-level', troubles.length > 0 ? 'lost' : 'ok');
    setAttribute(this.canvas, 'aria-label', `${text} Arrow keys go from source to source.`);
    this.showLegend(counts);
  }

  showLegend(counts) {
    const present = Object.entries(states).filter(([name]) => counts[name]);
    keep(this.legend, present, () => html('li', {}, html('canvas', {'aria-hidden': 'true'}), html('span')), (item, [name, state]) => {
      const side = rem();
      const canvas = item.firstChild;
      const context = prepare(canvas, side, side);
      this.cell(context, 0, 0, side, side, name, 0.6, this.colours ??= this.readColours());
      setText(item.lastChild, `${state.word === 'fine' ? 'fine; the stronger, the higher its rate' : state.word}`);
    });
  }

  readColours() {
    return Object.fromEntries(['ok', 'bad', 'warn', 'unknown', 'text', 'panel', 'line', 'dim', 'on-bad'].map((name) => [name, colour(name)]));
  }

  /** Cells as large as there is room for, at most three rem high. */
  measure() {
    const unit = rem();
    const width = Math.max(60, this.canvas.clientWidth);
    const number = this.all.length;
    if (number <= 24) {
      const across = Math.max(1, Math.min(number, Math.floor(width / (8 * unit))));
      return {width, across, pitchX: width / across, pitchY: 2.9 * unit, height: Math.ceil(number / across) * 2.9 * unit, words: true};
    }
    const room = width * Math.max(9 * unit, Math.min(20 * unit, width * 0.42));
    const side = Math.max(0.5 * unit, Math.min(2.2 * unit, Math.floor(Math.sqrt(room / number))));
    const across = Math.max(1, Math.floor(width / side));
    return {width, across, pitchX: side, pitchY: side, height: Math.ceil(number / across) * side, words: false};
  }

  draw() {
    this.colours = this.readColours();
    const grid = this.grid = this.measure();
    this.canvas.style.height = `${grid.height}px`;
    const context = prepare(this.canvas, grid.width, grid.height);
    const highest = Math.max(1e-9, ...this.all.map((source) => source.per_s ?? 0));
    const gap = grid.words ? 6 : grid.pitchX > 10 ? 2 : 1;
    for (const source of this.all) {
      const [x, y] = [(source.id % grid.across) * grid.pitchX, Math.floor(source.id / grid.across) * grid.pitchY];
      this.cell(context, x, y, grid.pitchX - gap, grid.pitchY - gap, source.state, (source.per_s ?? 0) / highest, this.colours);
      if (grid.words) this.words(context, source, x, y, grid.pitchX - gap);
      if (source.id === this.selected) this.frame(context, x, y, grid.pitchX - gap, grid.pitchY - gap);
    }
  }

  cell(context, x, y, width, height, state, share, colours) {
    const side = Math.min(width, height);
    context.globalAlpha = 0.1 + 0.42 * Math.min(1, share);
    context.fillStyle = colours.ok;
    if (state === 'fine' || state === 'missing') context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
    if (state === 'fine') return;
    if (state === 'lagging') {  // and a little more than its cell
      context.fillStyle = colours.bad;
      context.fillRect(x - 1, y - 1, width + 2, height + 2);
    }
    context.save();
    context.translate(x + (width > 2 * height ? 0 : (width - side) / 2), y + (height - side) / 2);
    this.mark(context, state, side, colours[states[state].colour], colours);
    context.restore();
    if (state === 'missing' || state === 'lagging') return;
    context.strokeStyle = colours[states[state].colour];
    context.lineWidth = 1;
    const inset = context.lineWidth / 2;
    context.strokeRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
  }

  mark(context, state, side, ink, colours) {
    context.fillStyle = context.strokeStyle = ink;
    context.lineWidth = Math.max(1.4, side / 8);
    context.beginPath();
    if (state === 'lagging') {  // a full triangle
      context.fillStyle = colours['on-bad'];
      context.moveTo(side / 2, side * 0.16);
      context.lineTo(side * 0.88, side * 0.84);
      context.lineTo(side * 0.12, side * 0.84);
      context.fill();
    } else if (state === 'missing') {  // a corner that is gone
      context.fillStyle = colours.panel;
      context.moveTo(side, 0);
      context.lineTo(side, side);
      context.lineTo(0, 0);
      context.fill();
      context.beginPath();
      context.fillStyle = ink;
      context.moveTo(side, 0);
      context.lineTo(side, side * 0.82);
      context.lineTo(side * 0.18, 0);
      context.fill();
    } else if (state === 'silent') {  // a cross
      context.moveTo(side * 0.25, side * 0.25);
      context.lineTo(side * 0.75, side * 0.75);
      context.moveTo(side * 0.75, side * 0.25);
      context.lineTo(side * 0.25, side * 0.75);
      context.stroke();
    } else {  // a dash: nothing ever came
      context.moveTo(side * 0.28, side * 0.5);
      context.lineTo(side * 0.72, side * 0.5);
      context.stroke();
    }
  }

  words(context, source, x, y, width) {
    const unit = rem();
    const left = x + (source.state === 'fine' ? 0.5 * unit : this.grid.pitchY + 0.1 * unit);
    const room = x + width - left - 0.3 * unit;
    context.fillStyle = source.state === 'lagging' ? this.colours['on-bad'] : this.colours.text;
    context.font = `600 ${0.85 * unit}px ${getComputedStyle(document.body).fontFamily}`;
    context.fillText(this.clipped(context, source.label, room), left, y + 1.05 * unit);
    context.font = `${0.82 * unit}px ${getComputedStyle(document.body).fontFamily}`;
    const second = source.state === 'fine' ? rate(source.per_s, '/s') : source.state === 'missing' ? `${count(source.missing)} missing` : states[source.state].word;
    context.fillText(this.clipped(context, second, room), left, y + 2.1 * unit);
  }

  clipped(context, text, room) {
    let shown = text;
    while (shown.length > 3 && context.measureText(shown).width > room) shown = `${shown.slice(0, -2)}…`;
    return shown;
  }

  frame(context, x, y, width, height) {
    context.strokeStyle = this.colours.text;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, width + 2, height + 2);
  }

  showSelected() {
    const source = this.all[this.selected] ?? this.worst();
    const seen = source.last_seen_s === null ? 'never seen' : `last seen ${seconds(source.last_seen_s)} ago`;
    setText(this.detail, `${source.id}: ${source.label}: ${rate(source.per_s, 'packets/s')}, ${count(source.packets)} packets, ${count(source.missing)} missing, ${seen}; ${states[source.state].word}.`);
  }

  turn(page) {
    this.page = page;
    this.showTable();
  }

  showTable() {
    const wanted = this.find.value.trim().toLowerCase();
    const found = this.all.filter((source) => wanted === '' || `${source.id} ${source.label} ${states[source.state].word}`.toLowerCase().includes(wanted)).sort(byTrouble);
    const pages = Math.max(1, Math.ceil(found.length / rows_shown));
    this.page = Math.max(0, Math.min(pages - 1, this.page));
    const shown = found.slice(this.page * rows_shown, (this.page + 1) * rows_shown);
    setText(this.where, found.length === 0 ? 'none found' : `${this.page * rows_shown + 1} to ${this.page * rows_shown + shown.length} of ${count(found.length)}`);
    this.earlier.disabled = this.page === 0;
    this.later.disabled = this.page === pages - 1;
    const highest = Math.max(1e-9, ...this.all.map((source) => source.per_s ?? 0));
    const make = () => html('tr', {}, html('th', {scope: 'row'}), html('td'), ...['number wide', 'number wide', 'number', 'number'].map((kind) => html('td', {class: kind})));
    keep(this.table.tBodies[0], shown, make, (row, source) => {
      setAttribute(row, 'data-level', states[source.state].rank > 1 ? 'losing' : source.state === 'missing' ? 'lost' : '');
      show(row.cells[0], `/sources/label/${source.id}`, 'text', source.label);
      setText(row.cells[1], states[source.state].word);
      show(row.cells[2], `/sources/per_s/${source.id}`, 'rate', rate(source.per_s, ''));
      setAttribute(row.cells[2], 'title', `${percent((source.per_s ?? 0) / highest)} of the fastest`);
      show(row.cells[3], `/sources/packets/${source.id}`, 'count', count(source.packets));
      show(row.cells[4], `/sources/missing/${source.id}`, 'count', count(source.missing));
      show(row.cells[5], `/sources/last_seen_s/${source.id}`, 'seconds-or-never', source.last_seen_s === null ? 'never' : seconds(source.last_seen_s));
    });
  }
}
