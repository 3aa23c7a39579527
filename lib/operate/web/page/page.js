// The page: gets the document, and has each part show it.

import {Connection} from './connection.js';
import {AllNodes} from './all_nodes.js';
import {Charts} from './charts.js';
import {Cluster} from './cluster.js';
import {Commands} from './control.js';
import {Findings} from './findings.js';
import {History} from './history.js';
import {Overview} from './overview.js';
import {Picture} from './picture.js';
import {Pipeline} from './pipeline.js';
import {Runs} from './runs.js';
import {Sources} from './sources.js';

// At most five times a second, however often documents come.
const shortest_ms = 200;

const history = new History();
const overview = new Overview();
const commands = new Commands();
const parts = [overview, new Findings(), new Charts(history), new Pipeline(), new Cluster(), new AllNodes(commands), new Sources(), new Picture(), new Runs(), commands];

let newest = null;
let drawnMs = -Infinity;
let waiting = false;

function draw() {
  waiting = false;
  if (newest === null) return;
  drawnMs = performance.now();
  for (const part of parts) {
    try {
      part.show(newest);
    } catch (error) {  // the others are still shown
      console.error(error);
    }
  }
}

function drawSoon() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => requestAnimationFrame(draw), Math.max(0, drawnMs + shortest_ms - performance.now()));
}

new Connection(
  (document, fresh) => {
    newest = document;
    history.take(document, fresh);
    drawSoon();
  },
  (heard) => overview.showHeard(heard),
);

// What is drawn by hand has to be drawn again for another width or another colour scheme.
new ResizeObserver(drawSoon).observe(document.body);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawSoon);
