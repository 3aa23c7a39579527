// All nodes of the cluster, as this one hears from them, and the commands for all. They are asked for only while somebody looks.

import {byId, html, keep, setAttribute, setText} from './dom.js';
import {count, rate, seconds} from './format.js';

const pause_ms = 1000;
const names = {start: 'Start all', stop: 'Stop all', new_run: 'New run of all', abort: 'Abort all'};
const titles = ['Node', 'Role', 'State', 'Run', 'Lasts', 'Gbit/s', 'Events', 'Packets lost', 'Waits for'];
const numbers = new Set(['Run', 'Lasts', 'Gbit/s', 'Events', 'Packets lost']);
const share_shown = 0.05;

const sum = (counts) => Object.values(counts ?? {}).reduce((all, one) => all + (typeof one === 'number' ? one : 0), 0);

export class AllNodes {
  constructor(commands) {
    this.commands = commands;
    this.panel = byId('nodes');
    this.summary = html('p');
    this.bar = html('div', {class: 'commands', role: 'group', 'aria-label': 'Commands for all nodes'});
    this.last = html('p', {class: 'dim', role: 'status'});
    this.body = html('tbody');
    this.losses = html('ul');
    const heads = titles.map((title) => html('th', {scope: 'col', class: numbers.has(title) ? 'number' : undefined}, title));
    this.panel.append(this.summary, this.bar, this.last, html('div', {class: 'scrolls', tabindex: 0, role: 'group', 'aria-label': 'Table of all nodes'},
      html('table', {}, html('caption', {class: 'unseen'}, 'Nodes of the cluster: what each does, and whom it waits for'), html('thead', {}, html('tr', {}, ...heads)), this.body)), this.losses);
  }

  show(document) {
    if (this.asks || !document.node) return;
    this.asks = true;
    this.ask();
  }

  async ask() {
    let goesOn = true;
    if (!document.hidden) {
      try {
        const answer = await fetch('/cluster', {cache: 'no-store'});
        goesOn = answer.status !== 404;  // no node says where the others reach it
        if (answer.ok) this.draw(await answer.json());
      } catch {
        this.panel.hidden = true;
      }
    }
    if (goesOn) setTimeout(() => this.ask(), pause_ms);
  }

  draw(cluster) {
    const nodes = cluster.nodes ?? [];
    this.panel.hidden = nodes.length === 0;
    const reached = nodes.filter((node) => node.reached).length;
    setText(this.summary, `${reached} of ${nodes.length} nodes answer; ${cluster.state}${typeof cluster.run === 'number' ? `, run ${cluster.run}` : ''}`);
    keep(this.bar, cluster.allowed ?? [], () => html('button', {type: 'button', onclick: (event) => this.commands.press(event.currentTarget.dataset.command, '/cluster')}), (button, name) => {
      setAttribute(button, 'data-command', name);
      setText(button, names[name] ?? name);
    });
    const {command = {}} = cluster;
    setText(this.last, command.command ? `${names[command.command] ?? command.command}: ${!command.done ? 'under way …' : command.error || command.message || 'done'}` : '');
    keep(this.body, nodes, () => html('tr', {}, html('th', {scope: 'row'}), ...titles.slice(1).map((title) => html('td', {class: numbers.has(title) ? 'number' : undefined}))),
      (row, node) => this.change(row, node, cluster));
    keep(this.losses, cluster.losses ?? [], () => html('li'), (item, loss) => {
      setText(item, `${loss.builder} lacks parts of ${loss.readout}: ${count(loss.node_down)} node down, ${count(loss.not_held)} not held, ${count(loss.late)} late`);
    });
  }

  change(row, node, cluster) {
    const lost = sum(node.lost);
    setAttribute(row, 'data-level', !node.reached && node.spare ? 'ok' : !node.reached || node.error ? 'lost' : lost > 0 ? 'losing' : 'ok');
    const waits = (cluster.waits ?? []).filter((wait) => wait.node === node.name && wait.share >= share_shown).sort((a, b) => b.share - a.share);
    const inRun = node.reached && node.state !== 'idle';
    const texts = [
      node.name,
      node.role,
      !node.reached ? (node.spare ? 'spare, not here' : `not reached: ${node.error}`) : node.error ? `${node.state}: ${node.error}` : node.state,
      node.run?.number ?? '',
      inRun ? seconds(node.run?.seconds) : '',
      inRun ? (node.rates?.gbps ?? 0).toFixed(3) : '',
      inRun ? rate(node.rates?.events_per_s ?? 0, '/s') : '',
      count(lost),
      waits.map((wait) => `${wait.for} ${(100 * Math.min(wait.share, 1)).toFixed(0)} %`).join(', '),
    ];
    texts.forEach((text, i) => setText(row.children[i], String(text)));
  }
}
