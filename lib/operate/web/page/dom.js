// Making and changing elements. Whatever comes from the server is put in as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An element of HTML; attributes that begin with `on` are listeners. */
export function html(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An element of SVG. */
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export const byId = (id) => document.getElementById(id);

/** Changes text only where it is another: layout and screen readers are left in peace. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  const text = String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

/** Shows a value of the document. `of` says which, as a JSON pointer, and `form` how it is written: tests hold the page against
 * the document by both. */
export function show(node, of, form, text) {
  setAttribute(node, 'data-of', of);
  setAttribute(node, 'data-form', form);
  setText(node, text);
}

/** Makes `parent` have as many children as there are items: made once by `make(index)`, then changed by `change(child, item, index)`. */
export function keep(parent, items, make, change) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  while (parent.children.length < items.length) parent.append(make(parent.children.length));
  items.forEach((item, index) => change(parent.children[index], item, index));
}

/** How many pixels 1 rem has: what is drawn grows with the text. */
export function rem() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
}

/** The page's colours, for what is drawn on a canvas. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A canvas made as large as it is shown, in the device's pixels; gives its context, in CSS pixels, and that size. */
export function prepare(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext('2d');
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
