// A section of the guides, which weir carries with it, in a dialog: what to do must be readable where there is no network but the
// detector's. Knows as much of Markdown as the guides use.

import {html} from './dom.js';

/** The guides that are served with the page (meson.build beside this). */
const guides = ['BOTTLENECK.md', 'DISKS.md', 'FLOWS.md', 'LOSSES.md', 'OVERLOAD.md', 'PAGE.md', 'RECORDER.md'];

/** "docs/guides/LOSSES.md#late" → {file: "LOSSES.md", anchor: "late"}; null for what is not served. */
export function guideOf(page) {
  const [path, anchor = ''] = (page ?? '').split('#');
  const file = path.split('/').at(-1);
  return guides.includes(file) ? {file, anchor} : null;
}

const anchorOf = (heading) => heading.toLowerCase().replace(/[^\w\- ]/g, '').trim().replaceAll(' ', '-');

/** The lines from the heading with this anchor to the next one of its rank; all of them where there is none. */
export function section(text, anchor) {
  const lines = text.split('\n');
  const rankOf = (line) => /^(#+) /.exec(line)?.[1].length ?? 0;
  const begin = lines.findIndex((line) => rankOf(line) > 0 && anchorOf(line.replace(/^#+ /, '')) === anchor);
  if (begin < 0) return lines;
  const length = lines.slice(begin + 1).findIndex((line) => rankOf(line) > 0 && rankOf(line) <= rankOf(lines[begin]));
  return length < 0 ? lines.slice(begin) : lines.slice(begin, begin + 1 + length);
}

/** `code`, **strong** and the text of [links](…). */
function inline(text) {
  const nodes = [];
  let rest = text;
  for (let found; (found = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\([^)]*\)/.exec(rest)); rest = rest.slice(found.index + found[0].length)) {
    nodes.push(rest.slice(0, found.index));
    if (found[1] !== undefined) nodes.push(html('code', {}, found[1]));
    else if (found[2] !== undefined) nodes.push(html('strong', {}, ...inline(found[2])));
    else nodes.push(...inline(found[3]));
  }
  return [...nodes, rest];
}

const blocks = [
  {of: (line) => /^#+ /.test(line), make: (lines) => html('h3', {}, ...inline(lines[0].replace(/^#+ /, ''))), single: true},
  {of: (line) => /^( {4}|```)/.test(line), make: (lines) => html('pre', {tabindex: 0}, lines.filter((line) => !line.startsWith('```')).map((line) => line.replace(/^ {4}/, '')).join('\n'))},
  {of: (line) => line.startsWith('|'), make: (lines) => html('table', {}, html('tbody', {}, ...lines.filter((line) => !/^[|\-: ]+$/.test(line))
    .map((line) => html('tr', {}, ...line.split('|').slice(1, -1).map((cell) => html('td', {}, ...inline(cell.trim())))))))},
  {of: (line) => line.startsWith('- '), continues: (line) => /^ {2}\S/.test(line), make: (lines) => html('ul', {}, ...lines.join('\n').replace(/\n {2}/g, ' ').split('\n')
    .map((line) => html('li', {}, ...inline(line.slice(2)))))},
];
const paragraph = {of: (line) => !blocks.some((block) => block.of(line)), make: (lines) => html('p', {}, ...inline(lines.join(' ')))};

/** Elements for lines of Markdown. */
export function rendered(lines) {
  const nodes = [];
  for (let i = 0; i < lines.length;) {
    if (lines[i].trim() === '') {
      ++i;
      continue;
    }
    const kind = blocks.find((block) => block.of(lines[i])) ?? paragraph;
    const begin = i++;
    while (!kind.single && i < lines.length && lines[i].trim() !== '' && (kind.of(lines[i]) || kind.continues?.(lines[i]))) ++i;
    nodes.push(kind.make(lines.slice(begin, i)));
  }
  return nodes;
}

let dialog = null;

/** Opens the section in a dialog; Escape closes it, and the focus returns to where it was. */
export async function openGuide({file, anchor}) {
  if (dialog === null) {
    dialog = html('dialog', {class: 'guide', 'aria-label': 'What to do'});
    document.body.append(dialog);
  }
  const close = html('button', {type: 'button', onclick: () => dialog.close()}, 'Close');
  const body = html('div', {class: 'text', tabindex: 0});
  dialog.replaceChildren(html('div', {class: 'bar'}, html('span', {class: 'dim'}, `docs/guides/${file}`), close), body);
  dialog.showModal();
  try {
    const answer = await fetch(`/assets/${file}`);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    body.replaceChildren(...rendered(section(await answer.text(), anchor)));
  } catch {
    body.replaceChildren(html('p', {}, `The page cannot be fetched now. It is docs/guides/${file}${anchor ? `, section ${anchor}` : ''}.`));
  }
}
