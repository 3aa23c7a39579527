// The latest event as a picture, with its contrast, a colour map and a histogram. It is fetched when there is a new one, while it is on
// the screen and nobody holds it.

import {byId, colour, html, prepare, rem, setAttribute, setText} from './dom.js';
import {count, counted, plain, seconds} from './format.js';
import {mapNames, mapOf, not_a_number} from './colours.js';
import {histogramOf, pixelsOf, scaleOf, statisticsOf} from './picture_data.js';

const shortest_ms = 500;
const bins = 128;
// The weakest and the strongest half percent tell little: noise, and hot pixels.
const kept = [0.005, 0.995];

export class Picture {
  constructor() {
    this.generation = null;
    this.fetchedMs = -Infinity;
    this.visible = true;
    this.cursor = null;
    this.canvas = html('canvas', {class: 'pixels', tabindex: 0, role: 'img', 'aria-label': 'No picture yet'});
    this.histogram = html('canvas', {class: 'histogram', role: 'img', 'aria-label': 'Histogram of the pixels'});
    this.caption = html('p', {class: 'dim'});
    this.pixel = html('output', {class: 'dim'});
    this.why = html('p', {class: 'dim'});
    this.makeControls();
    this.body = html('div', {class: 'event', hidden: true}, html('div', {class: 'frame'}, this.canvas), this.caption, this.pixel, this.controls, this.histogram);
    byId('picture').append(this.why, this.body);
    this.listen();
    new IntersectionObserver((entries) => { this.visible = entries.at(-1).isIntersecting; }).observe(byId('picture'));
  }

  makeControls() {
    const redraw = () => this.draw();
    this.range = html('select', {onchange: redraw}, ...[['auto', 'middle 99 %'], ['full', 'lowest to highest'], ['set', 'as entered']].map(([value, text]) => html('option', {value}, text)));
    this.low = html('input', {type: 'number', step: 'any', onchange: () => this.entered()});
    this.high = html('input', {type: 'number', step: 'any', onchange: () => this.entered()});
    this.logarithm = html('input', {type: 'checkbox', onchange: redraw});
    this.map = html('select', {onchange: redraw}, ...mapNames.map((name) => html('option', {value: name}, name)));
    this.hold = html('button', {type: 'button', 'aria-pressed': 'false', onclick: () => setAttribute(this.hold, 'aria-pressed', this.hold.getAttribute('aria-pressed') !== 'true')}, 'Hold');
    const labelled = (text, control) => html('label', {}, html('span', {}, text), control);
    this.controls = html('div', {class: 'controls', role: 'group', 'aria-label': 'Contrast'}, labelled('contrast', this.range), labelled('from', this.low), labelled('to', this.high),
      labelled('log', this.logarithm), labelled('colours', this.map), this.hold);
  }

  entered() {
    this.range.value = 'set';
    this.draw();
  }

  listen() {
    this.canvas.addEventListener('pointermove', (event) => {
      if (!this.shown) return;
      const box = this.canvas.getBoundingClientRect();
      this.cursor = [Math.floor(((event.clientX - box.left) / box.width) * this.shown.width), Math.floor(((event.clientY - box.top) / box.height) * this.shown.height)];
      this.showPixel();
    });
    const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    this.canvas.addEventListener('keydown', (event) => {
      const step = steps[event.key];
      if (!step || !this.shown) return;
      event.preventDefault();
      const by = event.shiftKey ? 10 : 1;
      const [x, y] = this.cursor ?? [Math.floor(this.shown.width / 2), Math.floor(this.shown.height / 2)];
      this.cursor = [x + by * step[0], y + by * step[1]];
      this.showPixel();
    });
  }

  show({picture}) {
    const held = this.hold.getAttribute('aria-pressed') === 'true';
    const available = picture?.available === true;
    this.body.hidden = !available && !held;
    setText(this.why, available ? '' : picture?.why || 'No picture: no event yet.');
    this.why.hidden = available;
    if (this.body.hidden) {
      this.generation = null;
      return;
    }
    if (!held && available) this.showCaption(picture);
    this.repaint();
    const due = performance.now() - this.fetchedMs >= shortest_ms;
    if (available && !held && this.visible && due && !this.fetching && picture.generation !== this.generation) this.fetch(picture);
  }

  showCaption({epoch, event, width, height, type, seconds_ago: ago}) {
    const number = epoch > 0 ? `${epoch}:${event}` : String(event);
    setText(this.caption, `event ${number}, ${width} × ${height} of ${type}${typeof ago === 'number' ? `, ${seconds(ago)} ago` : ''}`);
  }

  async fetch(picture) {
    this.fetching = true;
    this.fetchedMs = performance.now();
    try {
      const answer = await fetch('/picture', {cache: 'no-store'});
      if (!answer.ok) throw new Error(`weir answers with status ${answer.status}`);
      const header = (name, otherwise) => answer.headers.get(`X-Weir-${name}`) ?? otherwise;
      const [width, height] = [Number(header('Width', picture.width)), Number(header('Height', picture.height))];
      const pixels = pixelsOf(await answer.arrayBuffer(), header('Type', picture.type), width, height);
      this.shown = {width, height, pixels, event: header('Event', picture.event), statistics: statisticsOf(pixels)};
      this.generation = Number(header('Generation', picture.generation));
      this.draw();
    } catch (error) {
      this.generation = picture.generation;
      this.why.hidden = false;
      setText(this.why, `The picture cannot be shown: ${error.message}`);
    } finally {
      this.fetching = false;
    }
  }

  limits({lowest, highest, percentile}) {
    if (this.range.value === 'full') return [lowest, highest];
    const entered = [this.low, this.high].map((input) => input.valueAsNumber);
    if (this.range.value === 'set' && entered.every(Number.isFinite) && entered[0] < entered[1]) return entered;
    const [low, high] = kept.map(percentile);
    return low < high ? [low, high] : [lowest, highest];
  }

  draw() {
    if (!this.shown) return;
    const {width, height, pixels, statistics} = this.shown;
    const [low, high] = this.limits(statistics);
    if (this.range.value !== 'set') {
      this.low.value = String(Number(low.toPrecision(6)));
      this.high.value = String(Number(high.toPrecision(6)));
    }
    const scale = scaleOf(low, high, this.logarithm.checked);
    const map = mapOf(this.map.value);
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    const image = new ImageData(width, height);
    const words = new Uint32Array(image.data.buffer);
    for (let i = 0; i < pixels.length; ++i) words[i] = Number.isNaN(pixels[i]) ? not_a_number : map[scale(pixels[i])];
    this.canvas.getContext('2d').putImageData(image, 0, 0);
    const unknown = statistics.unknown > 0 ? `, ${counted(statistics.unknown, 'pixel')} not a number` : '';
    setAttribute(this.canvas, 'aria-label', `Event ${this.shown.event}: ${width} by ${height} pixels, from ${plain(statistics.lowest)} to ${plain(statistics.highest)}, mean ${plain(statistics.mean)}${unknown}. Arrow keys read pixels.`);
    this.drawn = {low, high, scale, map, counts: histogramOf(pixels, statistics.lowest, statistics.highest, bins)};
    this.drawHistogram();
    this.showPixel();
  }

  /** What depends on width and colour scheme. */
  repaint() {
    if (this.drawn) this.drawHistogram();
  }

  drawHistogram() {
    const unit = rem();
    const [width, height] = [Math.max(80, this.histogram.clientWidth), 5.6 * unit];
    this.histogram.style.height = `${height}px`;
    const context = prepare(this.histogram, width, height);
    const {counts, low, high, scale, map} = this.drawn;
    const {lowest, highest} = this.shown.statistics;
    const most = Math.log1p(Math.max(1, ...counts));
    const [bottom, left, right] = [height - 2.1 * unit, 0, width];
    const xOf = (value) => left + (highest > lowest ? (value - lowest) / (highest - lowest) : 0.5) * (right - left);
    context.fillStyle = colour('line');
    context.fillRect(Math.max(left, xOf(low)), 0, Math.max(1, Math.min(right, xOf(high)) - Math.max(left, xOf(low))), bottom);
    context.fillStyle = colour('accent');
    counts.forEach((number, bin) => {
      const tall = (Math.log1p(number) / most) * (bottom - 2);
      context.fillRect(left + (bin / bins) * (right - left), bottom - tall, (right - left) / bins - 0.5, tall);
    });
    for (let x = 0; x < width; x += 2) {
      const value = lowest + ((x - left) / (right - left)) * (highest - lowest);
      const word = map[scale(value)];
      context.fillStyle = `rgb(${word & 255} ${(word >> 8) & 255} ${(word >> 16) & 255})`;
      context.fillRect(x, bottom + 2, 2, 0.5 * unit);
    }
    this.histogramWords(context, width, height, unit);
  }

  histogramWords(context, width, height, unit) {
    const {lowest, highest, mean} = this.shown.statistics;
    context.font = `${0.82 * unit}px ${getComputedStyle(document.body).fontFamily}`;
    context.fillStyle = colour('dim');
    const words = [[plain(lowest), 0, 'left'], [`mean ${plain(mean)}; pixels, log scale`, width / 2, 'center'], [plain(highest), width, 'right']];
    for (const [text, x, align] of words) {
      context.textAlign = align;
      context.fillText(text, x, height - 0.35 * unit);
    }
    const most = Math.max(...this.drawn.counts);
    setAttribute(this.histogram, 'aria-label', `Histogram from ${plain(lowest)} to ${plain(highest)}, at most ${count(most)} pixels in one of ${bins} steps`);
  }

  showPixel() {
    if (!this.cursor || !this.shown) return setText(this.pixel, '');
    const {width, height, pixels} = this.shown;
    this.cursor = [Math.max(0, Math.min(width - 1, this.cursor[0])), Math.max(0, Math.min(height - 1, this.cursor[1]))];
    const [x, y] = this.cursor;
    setText(this.pixel, `column ${x}, row ${y}: ${plain(pixels[y * width + x])}`);
  }
}
