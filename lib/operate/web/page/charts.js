// Small charts of the last five minutes: packets, bits, events, and what was lost by cause. All begin at zero.

import {byId, html, keep, rem, setAttribute, setText, show, svg} from './dom.js';
import {niceStep, rate} from './format.js';
import {causeWords} from './verdict.js';

const span_s = 300;
const causes_max = 4;

/** One chart: a title with the newest value, a plot with axes, and where there are several lines a legend. */
class Chart {
  constructor(parent, title, unit, of) {
    this.unit = unit;
    this.of = of;
    this.now = html('output');
    this.legend = html('ul', {class: 'legend'});
    this.plot = svg('svg', {class: 'plot', role: 'img'});
    this.legendMakes = () => html('li', {}, svg('svg', {class: 'sample', viewBox: '0 0 24 8', 'aria-hidden': 'true'}, svg('path', {d: 'M0 4H24'})), html('span'));
    this.figure = html('figure', {class: 'chart'}, html('figcaption', {}, html('span', {}, title), this.now), this.plot, this.legend);
    this.title = title;
    this.grid = svg('g', {class: 'grid'});
    this.lines = svg('g', {class: 'lines'});
    this.cursor = svg('g', {class: 'cursor', visibility: 'hidden'}, svg('line'), svg('text'));
    this.plot.append(this.grid, this.lines, this.cursor);
    this.plot.addEventListener('pointermove', (event) => this.point(event));
    this.plot.addEventListener('pointerleave', () => this.cursor.setAttribute('visibility', 'hidden'));
    parent.append(this.figure);
  }

  /** `lines`: [{name, values}] */
  draw(times, lines, value) {
    show(this.now, this.of, this.unit, rate(value, this.unit));
    this.times = times;
    this.shown = lines;
    const unit = rem();
    const width = Math.max(120, this.plot.clientWidth);
    const height = Math.max(70, this.plot.clientHeight);
    setAttribute(this.plot, 'viewBox', `0 0 ${width} ${height}`);
    this.area = {left: 3.4 * unit, right: width - 0.4 * unit, top: 0.6 * unit, bottom: height - 1.4 * unit};
    const highest = Math.max(0, ...lines.flatMap((line) => line.values.filter((one) => Number.isFinite(one))));
    this.top = this.axis(highest, unit);
    this.drawLines(times, lines);
    this.showLegend(lines);
    setAttribute(this.plot, 'aria-label', `${this.title}, ${rate(value, this.unit)} now, at most ${rate(highest, this.unit)} in the time shown`);
  }

  axis(highest, unit) {
    const step = highest > 0 ? niceStep(highest, 3) : 1;
    const top = Math.max(step, Math.ceil(highest / step - 1e-9) * step);
    const ticks = [];
    for (let i = 0; i * step <= top * 1.0001; ++i) ticks.push({y: this.yOf(i * step, top), text: rate(i * step, '')});
    const times = [0, 60, 120, 180, 240, 300].map((ago) => ({x: this.xOf(-ago), text: ago === 0 ? 'now' : ago === span_s ? `−${ago / 60} min` : `−${ago / 60}`, ago}));
    keep(this.grid, [...ticks, ...times], () => svg('g', {}, svg('line'), svg('text')), (group, tick) => {
      const [line, text] = group.children;
      const {left, right, bottom, top: above} = this.area;
      const ends = tick.y !== undefined ? [left, tick.y, right, tick.y] : [tick.x, above, tick.x, bottom];
      ['x1', 'y1', 'x2', 'y2'].forEach((name, i) => setAttribute(line, name, ends[i].toFixed(1)));
      setAttribute(text, 'x', (tick.y !== undefined ? left - 0.35 * unit : tick.x).toFixed(1));
      setAttribute(text, 'y', (tick.y !== undefined ? tick.y + 0.27 * unit : bottom + 1.05 * unit).toFixed(1));
      setAttribute(text, 'text-anchor', tick.y !== undefined || tick.ago === 0 ? 'end' : tick.ago === span_s ? 'start' : 'middle');
      setText(text, tick.text);
    });
    return top;
  }

  xOf(seconds) {
    return this.area.right + (seconds / span_s) * (this.area.right - this.area.left);
  }

  yOf(value, top) {
    return this.area.bottom - (value / top) * (this.area.bottom - this.area.top);
  }

  drawLines(times, lines) {
    const last = times.at(-1) ?? 0;
    const from = times.findIndex((time) => time - last >= -span_s);
    keep(this.lines, lines, () => svg('path'), (path, line, index) => {
      let d = '';
      for (let i = Math.max(0, from); i < times.length; ++i) {
        const value = line.values[i];
        if (!Number.isFinite(value)) continue;
        const move = d === '' || !Number.isFinite(line.values[i - 1]) || times[i] - times[i - 1] > 5;
        d += `${move ? 'M' : 'L'}${this.xOf(times[i] - last).toFixed(1)} ${this.yOf(value, this.top).toFixed(1)}`;
      }
      setAttribute(path, 'd', d);
      setAttribute(path, 'class', `line line${index}`);
    });
  }

  showLegend(lines) {
    this.legend.hidden = lines.every((line) => !line.name);
    keep(this.legend, this.legend.hidden ? [] : lines, this.legendMakes, (item, line, index) => {
      setAttribute(item.firstChild.firstChild, 'class', `line line${index}`);
      setText(item.lastChild, `${line.name} ${rate(line.values.at(-1) ?? 0, '/s')}`);
    });
  }

  /** The values under the pointer. */
  point(event) {
    if (!this.times?.length || !this.area) return;
    const x = event.clientX - this.plot.getBoundingClientRect().left;
    const wanted = this.times.at(-1) + ((x - this.area.right) / (this.area.right - this.area.left)) * span_s;
    let nearest = 0;
    this.times.forEach((time, i) => {
      if (Math.abs(time - wanted) < Math.abs(this.times[nearest] - wanted)) nearest = i;
    });
    const at = this.xOf(this.times[nearest] - this.times.at(-1));
    const [line, text] = this.cursor.children;
    for (const [name, value] of [['x1', at], ['x2', at], ['y1', this.area.top], ['y2', this.area.bottom]]) setAttribute(line, name, value.toFixed(1));
    const left = at > (this.area.left + this.area.right) / 2;
    setAttribute(text, 'x', (at + (left ? -6 : 6)).toFixed(1));
    setAttribute(text, 'y', (this.area.top + 0.8 * rem()).toFixed(1));
    setAttribute(text, 'text-anchor', left ? 'end' : 'start');
    setText(text, this.shown.map((one) => `${one.name ? `${one.name} ` : ''}${rate(one.values[nearest], this.unit)}`).join(', '));
    setAttribute(this.cursor, 'visibility', 'visible');
  }
}

export class Charts {
  constructor(history) {
    this.history = history;
    const parent = byId('charts');
    this.section = parent.closest('section');
    this.rates = [['packets_per_s', 'Packets', 'packets/s'], ['gbps', 'Data', 'Gb/s'], ['events_per_s', 'Events', 'events/s']]
      .map(([name, title, unit]) => ({name, chart: new Chart(parent, title, unit, `/rates/${name}`)}));
    this.lost = new Chart(parent, 'Lost', 'packets/s', '/rates/lost_per_s');
    this.lost.figure.classList.add('lost');
  }

  show(document) {
    // A node that only manages a cluster takes no packets.
    this.section.hidden = !document.rates && (!document.run || document.cluster?.role === 'manager');
    if (this.section.hidden) return;
    for (const {name, chart} of this.rates)
      chart.draw(this.history.times, [{name: '', values: this.history.columns[name]}], document.rates?.[name]);
    this.lost.figure.classList.toggle('none', this.history.causes().length === 0);
    this.lost.draw(this.history.times, this.lossLines(), document.rates?.lost_per_s);
  }

  /** The largest causes each have a line; the rest share one. */
  lossLines() {
    const causes = this.history.causes();
    const lines = causes.slice(0, causes_max).map((cause) => ({name: causeWords(cause), values: this.history.lost[cause]}));
    const others = causes.slice(causes_max).map((cause) => this.history.lost[cause]);
    if (others.length > 0)
      lines.push({name: 'others', values: this.history.times.map((_, i) => others.reduce((sum, values) => sum + (values[i] ?? 0), 0))});
    return lines.length > 0 ? lines : [{name: '', values: this.history.times.map(() => 0)}];
  }
}
