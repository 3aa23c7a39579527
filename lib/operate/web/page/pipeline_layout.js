// Where the parts of the pipeline stand in its drawing: columns along the way of the data, or where it is narrow one below the other.
// Plain numbers; nothing is drawn here.

/** Of the document: {id, kind, column, title, inputs: [ring]}, by column: inputs, rx, build, work, sinks. */
export function partsOf(pipeline) {
  const columns = [[], [], [], [], []];
  const kinds = ['', 'rx', 'build', 'work'];
  (pipeline.ports ?? []).forEach((port, index) => columns[0].push({id: `port${index}`, kind: 'port', port, index}));
  (pipeline.stages ?? []).forEach((stage, index) => {
    const column = kinds.indexOf(stage.kind);
    if (column > 0) columns[column].push({id: stage.name, kind: 'stage', stage, index});
  });
  (pipeline.sinks ?? []).forEach((sink, index) => columns[4].push({id: `sink${index}`, kind: 'sink', sink, index}));
  if ((pipeline.rings ?? []).some((ring) => ring.name === 'capture')) columns[0].push({id: 'capture', kind: 'capture'});
  columns.forEach((parts, column) => parts.forEach((part) => Object.assign(part, {column, inputs: []})));
  return columns;
}

/** Which rings are drawn, from which part to which: those along the way of the data. Those that lead back, or aside, are left to
 * the table, unless something happened in them. */
export function edgesOf(pipeline, columns) {
  const parts = new Map(columns.flat().map((part) => [part.id, part]));
  const sinkIndex = (name) => parts.get(name) ?? (columns[4][0] && /^(sinks?|writer|disk)/.test(name ?? '') ? columns[4][Math.min(columns[4].length - 1, Number(/\d+$/.exec(name)?.[0] ?? 0))] : undefined);
  const edges = [];
  (pipeline.rings ?? []).forEach((ring, index) => {
    const from = parts.get(ring.from) ?? (ring.name === 'capture' ? parts.get('capture') : sinkIndex(ring.from));
    const to = parts.get(ring.to) ?? sinkIndex(ring.to);
    if (!from || !to || from.column >= to.column) return;
    to.inputs.push({ring, index, from});
    edges.push({ring, index, from, to, input: to.inputs.length - 1});
  });
  for (const queue of pipeline.queues ?? []) {
    const [from, to] = [parts.get(`port${queue.port}`), parts.get(queue.stage)];
    if (from && to) edges.push({queue, from, to});
  }
  return edges;
}

/** How high a part is: its lines of text, and a bar for each ring that leads to it. */
function heightOf(part, unit, dense) {
  const lines = part.kind === 'stage' ? 2 : part.kind === 'capture' ? 1 : 4;
  const bars = part.inputs.length;
  const pitch = bars > 3 || dense ? 0.55 : 1.15;
  part.barPitch = pitch * unit;
  return (0.9 + 1.25 * lines + (bars > 0 ? 0.35 + bars * pitch + (pitch < 1 ? 1.0 : 0) : 0)) * unit;
}

/** Sets x, y, width and height of each part; gives the size of the whole. */
export function layOut(columns, width, unit) {
  const shown = columns.filter((parts) => parts.length > 0);
  const most = Math.max(0, ...shown.map((parts) => parts.length));
  for (const part of columns.flat()) part.height = heightOf(part, unit, most > 8);
  const widest = shown.length * 10.5 * unit + (shown.length - 1) * 3 * unit;
  return width < widest ? stacked(shown, width, unit) : sideBySide(shown, width, unit);
}

function sideBySide(shown, width, unit) {
  const margin = 0.7 * unit;
  const partWidth = Math.min(17 * unit, (width - 2 * margin - (shown.length - 1) * 3.5 * unit) / shown.length);
  const gap = shown.length > 1 ? (width - 2 * margin - shown.length * partWidth) / (shown.length - 1) : 0;
  const space = 0.9 * unit;
  const heights = shown.map((parts) => parts.reduce((sum, part) => sum + part.height + space, -space));
  const height = Math.max(0, ...heights);
  shown.forEach((parts, i) => {
    // Columns with as many parts as the longest stand at the same heights where that fits; others are spread over it.
    const slack = parts.length > 0 ? (height - heights[i]) / parts.length : 0;
    let y = margin + slack / 2;
    for (const part of parts) {
      Object.assign(part, {x: margin + i * (partWidth + gap), y, width: partWidth});
      y += part.height + space + slack;
    }
  });
  return {width, height: height + 2 * margin, edges: true};
}

function stacked(shown, width, unit) {
  const margin = 0.5 * unit;
  const space = 0.8 * unit;
  const across = Math.max(1, Math.floor((width - 2 * margin + space) / (11 * unit + space)));
  let y = margin;
  for (const parts of shown) {
    const row = Math.min(across, parts.length);
    const partWidth = (width - 2 * margin - (row - 1) * space) / row;
    for (let i = 0; i < parts.length; i += row) {
      const some = parts.slice(i, i + row);
      some.forEach((part, j) => Object.assign(part, {x: margin + j * (partWidth + space), y, width: partWidth}));
      y += Math.max(...some.map((part) => part.height)) + space;
    }
    y += 0.9 * unit;
  }
  return {width, height: y - 0.9 * unit - space + 2 * margin, edges: false};
}

/** A frame around the stages that share an lcore, where nothing else stands between them: [{lcore, x, y, width, height}]. */
export function sharedLcores(columns, unit) {
  const stages = columns.flat().filter((part) => part.kind === 'stage');
  const lcores = new Map();
  for (const part of stages) lcores.set(part.stage.lcore, [...(lcores.get(part.stage.lcore) ?? []), part]);
  const frames = [];
  for (const [lcore, parts] of lcores) {
    if (parts.length < 2) continue;
    const pad = 0.4 * unit;
    const x = Math.min(...parts.map((part) => part.x)) - pad;
    const y = Math.min(...parts.map((part) => part.y)) - pad;
    const right = Math.max(...parts.map((part) => part.x + part.width)) + pad;
    const bottom = Math.max(...parts.map((part) => part.y + part.height)) + pad;
    const inside = (part) => part.x < right && part.x + part.width > x && part.y < bottom && part.y + part.height > y;
    if (columns.flat().some((part) => !parts.includes(part) && inside(part))) continue;
    frames.push({lcore, x, y, width: right - x, height: bottom - y});
  }
  return frames;
}
