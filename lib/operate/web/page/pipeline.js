// The pipeline as it is placed: ports and queues, lcores with what they do and how busy they are, rings with their fill, sinks. Drawn
// anew when its shape changes; otherwise only numbers and bars change.

import {byId, html, keep, rem, setAttribute, setText, show, svg} from './dom.js';
import {bytes, count, counted, percent, rate, seconds, shortened} from './format.js';
import {edgesOf, layOut, partsOf, sharedLcores} from './pipeline_layout.js';

const levelNames = {buffers: 'Packet buffers', memory: 'Event memory', open: 'Open events', queued: 'Queued events', writer: 'Output buffers'};

const fraction = (level) => (level?.size > 0 ? level.used / level.size : 0);

/** What is full when nothing happens, and says nothing then. */
const fullWhenIdle = (ring) => ring.name.startsWith('free');

export class Pipeline {
  constructor() {
    this.parent = byId('pipeline');
    this.table = byId('pipeline-table');
    this.table.addEventListener('toggle', () => this.showTable());
    this.updates = [];
    this.shape = '';
  }

  show(document) {
    const {pipeline} = document;
    this.document = document;
    byId('pipeline').hidden = !pipeline;
    if (!pipeline) return this.showNothing();
    const width = this.parent.clientWidth;
    const shape = JSON.stringify([width, rem(), pipeline.queues, (pipeline.ports ?? []).map((port) => port.name), (pipeline.rings ?? []).map((ring) => ring.name),
      (pipeline.stages ?? []).map((stage) => [stage.name, stage.lcore]), (pipeline.sinks ?? []).map((sink) => sink.kind)]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.build(pipeline, width);
    }
    for (const update of this.updates) update(pipeline, document);
    this.showLevels(pipeline);
    this.showTable();
  }

  showNothing() {
    this.shape = '';
    this.updates = [];
    this.parent.replaceChildren();
    byId('levels').replaceChildren(html('p', {class: 'dim'}, 'No run, so nothing is placed on lcores.'));
    this.table.hidden = true;
  }

  build(pipeline, width) {
    const unit = rem();
    this.unit = unit;
    this.updates = [];
    const columns = partsOf(pipeline);
    const edges = edgesOf(pipeline, columns);
    const size = layOut(columns, width, unit);
    const drawing = svg('svg', {viewBox: `0 0 ${size.width} ${size.height.toFixed(0)}`, width: size.width, height: size.height.toFixed(0), role: 'img',
      'aria-label': this.summary(pipeline)}, svg('defs', {}, svg('pattern', {id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'},
      svg('rect', {width: 2.4, height: 6, class: 'hatching'}))));
    for (const frame of sharedLcores(columns, unit)) drawing.append(svg('rect', {class: 'lcore', x: frame.x, y: frame.y, width: frame.width, height: frame.height, rx: 0.6 * unit}));
    if (size.edges) for (const edge of edges) drawing.append(this.edge(edge));
    for (const part of columns.flat()) drawing.append(this.part(part));
    this.parent.replaceChildren(drawing);
    byId('levels').replaceChildren();
    this.table.hidden = false;
  }

  summary(pipeline) {
    const stages = pipeline.stages ?? [];
    const lcores = new Set(stages.map((stage) => stage.lcore));
    return `Pipeline: ${counted((pipeline.ports ?? []).length, 'port')}, ${counted(stages.length, 'stage')} on ${counted(lcores.size, 'lcore')}, ${counted((pipeline.rings ?? []).length, 'ring')}, `
      + `${counted((pipeline.sinks ?? []).length, 'sink')}. The same as a table follows.`;
  }

  edge({ring, index, queue, from, to, input}) {
    const unit = this.unit;
    const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
    const x2 = to.x;
    const y2 = ring ? this.barY(to, input) + 0.25 * unit : to.y + 1.1 * unit;
    const bend = Math.max(1.2 * unit, (x2 - x1) / 2);
    const path = svg('path', {class: 'edge', d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`});
    if (queue) return svg('g', {}, path, svg('title', {}, `queue ${queue.queue} of port ${queue.port} → ${queue.stage}`));
    this.updates.push((pipeline) => {
      const now = pipeline.rings[index];
      setAttribute(path, 'class', now.dropped > 0 ? 'edge dropped' : fraction(now) > 0.75 ? 'edge full' : 'edge');
    });
    return path;
  }

  barY(part, input) {
    const lines = part.kind === 'stage' ? 2 : part.kind === 'capture' ? 1 : 4;
    return part.y + (0.75 + 1.25 * lines) * this.unit + input * part.barPitch;
  }

  part(part) {
    const group = svg('g', {class: `part ${part.kind}`});
    const title = svg('title');
    group.append(title, svg('rect', {class: 'box', x: part.x, y: part.y, width: part.width, height: part.height, rx: 0.35 * this.unit}));
    ({port: () => this.port(group, part, title), stage: () => this.stage(group, part, title), sink: () => this.sink(group, part, title),
      capture: () => this.text(group, part, 0, 'capture reader', 'name')})[part.kind]();
    part.inputs.forEach((_, input) => group.append(this.ring(part, input)));
    this.fullest(group, part);
    return group;
  }

  /** Text in line `line` of a part; at the right where `end`. */
  text(group, part, line, words, kind, end = false) {
    const node = svg('text', {class: kind, x: end ? part.x + part.width - 0.6 * this.unit : part.x + 0.6 * this.unit, y: part.y + (1.35 + 1.25 * line) * this.unit,
      'text-anchor': end ? 'end' : 'start'});
    node.textContent = words;
    group.append(node);
    return node;
  }

  /** How many letters fit into a part beside `taken` others. */
  fits(part, taken = 0) {
    return Math.max(6, Math.floor((part.width - 1.2 * this.unit) / (0.47 * this.unit)) - taken);
  }

  port(group, part, title) {
    const lines = ['name', 'dim', '', ''].map((kind, line) => this.text(group, part, line, '', kind));
    const link = this.text(group, part, 0, '', 'dim', true);
    this.updates.push((pipeline) => {
      const port = pipeline.ports[part.index];
      const of = `/pipeline/ports/${part.index}`;
      setText(title, `${port.name}: ${port.device}, ${port.driver}`);
      setText(lines[0], shortened(port.name, this.fits(part, 9)));
      setText(link, port.link_up ? (port.mbps ? `${rate(port.mbps / 1000, 'Gb/s')}` : 'link up') : '⚠ link down');
      setAttribute(link, 'class', port.link_up ? 'dim' : 'bad');
      setText(lines[1], shortened(`${port.driver} · ${counted(port.queues, 'queue')}`, this.fits(part)));
      show(lines[2], `${of}/received`, 'count-received', `${count(port.received)} received`);
      const missed = typeof port.missed === 'number' ? (port.missed ?? 0) + (typeof port.no_buffer === 'number' ? port.no_buffer : 0) : null;
      setText(lines[3], missed === null ? 'missed: unknown' : `${missed > 0 ? '⚠ ' : ''}${count(missed)} missed`);
      setAttribute(lines[3], 'class', missed > 0 ? 'bad' : 'dim');
    });
  }

  stage(group, part, title) {
    const unit = this.unit;
    this.text(group, part, 0, part.id, 'name');
    const lcore = this.text(group, part, 0, '', 'dim', true);
    const bar = this.bar(group, part.x + 0.6 * unit, part.y + 1.95 * unit, part.width - 1.2 * unit - 3.2 * unit, 0.75 * unit, 'busy');
    const waits = svg('rect', {class: 'waits', fill: 'url(#hatch)', y: part.y + 1.95 * unit, height: 0.75 * unit});
    group.append(waits);
    const share = this.text(group, part, 1, '', 'number', true);
    this.updates.push((pipeline, document) => {
      const stage = pipeline.stages[part.index];
      const limit = document.bottleneck?.part === stage.name;
      setAttribute(group, 'class', `part stage${limit ? ' limit' : ''}${stage.busy > 0.9 ? ' hot' : ''}`);
      setText(lcore, `${limit ? '⚠ limit · ' : ''}lcore ${stage.lcore}`);
      setText(title, `${stage.name} on lcore ${stage.lcore}: busy ${percent(stage.busy)}${stage.blocked > 0 ? `, waits ${percent(stage.blocked)} for ${stage.blocked_by || 'room'}` : ''}`);
      bar.set(stage.busy);
      setAttribute(waits, 'x', (bar.x + bar.width * Math.min(1, stage.busy)).toFixed(1));
      setAttribute(waits, 'width', (bar.width * Math.max(0, Math.min(1 - stage.busy, stage.blocked ?? 0))).toFixed(1));
      show(share, `/pipeline/stages/${part.index}/busy`, 'percent', percent(stage.busy));
    });
  }

  sink(group, part, title) {
    const lines = ['name', '', '', 'dim'].map((kind, line) => this.text(group, part, line, '', kind));
    this.updates.push((pipeline) => {
      const sink = pipeline.sinks[part.index];
      const of = `/pipeline/sinks/${part.index}`;
      const bad = Boolean(sink.error) || sink.lost > 0;
      setText(title, `${sink.kind}: ${sink.path ?? ''}${sink.error ? `: ${sink.error}` : ''}`);
      show(lines[0], `${of}/kind`, 'text', sink.kind);
      show(lines[1], `${of}/written`, 'count-written', `${count(sink.written)} written`);
      setAttribute(lines[2], 'class', bad ? 'bad' : 'dim');
      setText(lines[2], bad ? shortened(`⚠ ${sink.lost > 0 ? `${count(sink.lost)} lost` : ''}${sink.lost > 0 && sink.error ? ': ' : ''}${sink.error ?? ''}`, this.fits(part)) : bytes(sink.bytes));
      const left = sink.hours_left === null || sink.hours_left === undefined ? '' : ` · ${seconds(sink.hours_left * 3600)} left`;
      setText(lines[3], typeof sink.free_bytes === 'number' ? `${bytes(sink.free_bytes)} free${left}` : shortened(sink.path ?? '', this.fits(part)));
    });
    setAttribute(group, 'class', 'part sink');
  }

  bar(group, x, y, width, height, kind) {
    const full = svg('rect', {class: `fill ${kind}`, x, y, height, width: 0});
    group.append(svg('rect', {class: 'trough', x, y, width, height}), full);
    return {x, width, full, set: (part) => setAttribute(full, 'width', (width * Math.max(0, Math.min(1, part || 0))).toFixed(1))};
  }

  /** The bar of a ring that leads to this part, with its fill and a line at its highest. */
  ring(part, input) {
    const unit = this.unit;
    const {index} = part.inputs[input];
    const wide = part.barPitch > unit;
    const group = svg('g', {class: 'ring'});
    const title = svg('title');
    group.append(title);
    const [x, y, width] = [part.x + 0.6 * unit, this.barY(part, input), wide ? 0.36 * part.width : part.width - 1.2 * unit];
    const bar = this.bar(group, x, y, width, wide ? 0.5 * unit : 0.36 * unit, 'level');
    const mark = svg('rect', {class: 'mark', y: y - 1, height: (wide ? 0.5 : 0.36) * unit + 2, width: 1.6});
    group.append(mark);
    const label = wide ? svg('text', {class: 'small', x: part.x + part.width - 0.6 * unit, y: y + 0.5 * unit, 'text-anchor': 'end'}) : null;
    if (label) group.append(label);
    this.updates.push((pipeline) => {
      const ring = pipeline.rings[index];
      bar.set(fraction(ring));
      setAttribute(mark, 'x', (x + width * Math.min(1, ring.size > 0 ? ring.highest / ring.size : 0) - 0.8).toFixed(1));
      setText(title, `${ring.name}, ${ring.from} → ${ring.to}: ${count(ring.used)} of ${count(ring.size)}, at most ${count(ring.highest)}; full ${counted(ring.times_full, 'time')}, ${count(ring.dropped)} dropped`);
      setAttribute(group, 'class', ring.dropped > 0 ? 'ring dropped' : ring.times_full > 0 ? 'ring wasfull' : 'ring');
      const words = ring.dropped > 0 ? `⚠ ${count(ring.dropped)} dropped` : `${shortened(ring.name, this.fits(part, 18))} ${percent(fraction(ring))}`;
      if (label) setText(label, words);
    });
    return group;
  }

  /** Where the bars have no room for words: one line about the fullest of them. */
  fullest(group, part) {
    if (part.inputs.length === 0 || part.barPitch > this.unit) return;
    const text = svg('text', {class: 'small', x: part.x + 0.6 * this.unit, y: part.y + part.height - 0.4 * this.unit});
    group.append(text);
    this.updates.push((pipeline) => {
      const rings = part.inputs.map((input) => pipeline.rings[input.index]);
      const dropped = rings.filter((ring) => ring.dropped > 0);
      const most = rings.reduce((a, b) => (fraction(b) > fraction(a) ? b : a));
      setText(text, dropped.length > 0 ? `⚠ ${dropped[0].name}: ${count(dropped[0].dropped)} dropped` : `${rings.length} rings, fullest ${percent(fraction(most))}`);
      setAttribute(text, 'class', dropped.length > 0 ? 'small bad' : 'small');
    });
  }

  showLevels({levels = {}, longest_poll_s: poll, recorder}) {
    const shown = Object.keys(levelNames).filter((name) => levels[name]?.size > 0).map((name) => ({name, level: levels[name]}));
    const make = () => html('div', {class: 'level'}, html('span', {class: 'name'}), html('meter', {min: 0, max: 1}), html('span', {class: 'number'}), html('span', {class: 'dim'}));
    const others = [];
    if (typeof poll === 'number') others.push({name: 'Longest poll', of: '/pipeline/longest_poll_s', text: seconds(poll)});
    if (recorder) others.push({name: 'Flight recorder', text: recorder.stopped ? `stopped: ${recorder.stopped}` : `${recorder.seconds_held !== undefined ? `${seconds(recorder.seconds_held)} held, ` : ''}${counted(recorder.files ?? 0, 'file')}`});
    keep(byId('levels'), [...shown, ...others], make, (node, item) => {
      const [name, meter, number, highest] = node.children;
      setText(name, levelNames[item.name] ?? item.name);
      meter.hidden = !item.level;
      if (item.level) {
        setAttribute(meter, 'aria-label', levelNames[item.name]);
        meter.value = fraction(item.level);
        show(number, `/pipeline/levels/${item.name}`, 'level', percent(fraction(item.level)));
        setText(highest, `at most ${percent(item.level.highest / item.level.size)}`);
        setAttribute(node, 'data-level', fraction(item.level) > 0.9 ? 'high' : '');
      } else {
        for (const attribute of ['data-of', 'data-form']) number.removeAttribute(attribute);
        if (item.of) show(number, item.of, 'seconds', item.text);
        else setText(number, item.text);
        setText(highest, '');
      }
    });
  }

  /** Everything that is drawn, as text; only while somebody looks at it. */
  showTable() {
    const pipeline = this.document?.pipeline;
    if (!this.table.open || !pipeline) return;
    const body = this.table.lastElementChild;
    if (body.children.length === 0)
      for (const heads of [['Stage', 'Lcore', 'Busy', 'Waits', 'For'], ['Ring', 'From', 'To', 'Used', 'Size', 'Highest', 'Times full', 'Dropped']])
        body.append(html('div', {class: 'scrolls', tabindex: 0, role: 'group', 'aria-label': `${heads[0]}s`}, html('table', {}, html('thead', {}, html('tr', {}, ...heads.map((head) => html('th', {scope: 'col'}, head)))), html('tbody'))));
    const [stages, rings] = body.querySelectorAll('tbody');
    const fill = (row, of, cells) => keep(row, cells, (i) => html(i === 0 ? 'th' : 'td', i === 0 ? {scope: 'row'} : {}), (cell, [name, form, text]) => show(cell, `${of}/${name}`, form, text));
    keep(stages, pipeline.stages ?? [], () => html('tr'), (row, stage, i) => fill(row, `/pipeline/stages/${i}`, [['name', 'text', stage.name], ['lcore', 'count', count(stage.lcore)],
      ['busy', 'percent', percent(stage.busy)], ['blocked', 'percent', percent(stage.blocked)], ['blocked_by', 'text', stage.blocked_by ?? '']]));
    keep(rings, pipeline.rings ?? [], () => html('tr'), (row, ring, i) => {
      fill(row, `/pipeline/rings/${i}`, [['name', 'text', ring.name], ['from', 'text', ring.from ?? ''], ['to', 'text', ring.to ?? ''],
        ...['used', 'size', 'highest', 'times_full', 'dropped'].map((name) => [name, 'count', count(ring[name])])]);
      setAttribute(row, 'data-level', ring.dropped > 0 ? 'losing' : fraction(ring) > 0.75 && !fullWhenIdle(ring) ? 'unknown' : '');
    });
  }
}
