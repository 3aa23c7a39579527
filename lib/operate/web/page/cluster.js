// The cluster that this run is a node of: who is there, and what went from node to node.

import {byId, html, keep, setAttribute, show} from './dom.js';
import {count} from './format.js';

const causes = ['node_down', 'not_held', 'late'];
const parts = {
  readout: ['builders', 'Parts handed over', 'handed_over'],
  builder: ['readouts', 'Parts received', 'received'],
};

export class Cluster {
  constructor() {
    this.panel = byId('cluster');
    this.facts = html('dl', {class: 'counters'});
    this.moved = html('th', {scope: 'col', class: 'number'});
    this.missing = ['Node down', 'Not held', 'Late'].map((title) => html('th', {scope: 'col', class: 'number'}, title));
    this.body = html('tbody');
    this.panel.append(this.facts, html('div', {class: 'scrolls', tabindex: 0, role: 'group', 'aria-label': 'Table of nodes'},
      html('table', {}, html('caption', {class: 'unseen'}, 'Nodes of the cluster, and parts of blocks that they have not sent, by cause'),
        html('thead', {}, html('tr', {}, ...['Node', 'Role', 'Here'].map((title) => html('th', {scope: 'col'}, title)), this.moved, ...this.missing)),
        this.body)));
  }

  show(document) {
    const cluster = document.cluster;
    this.panel.hidden = !cluster;
    if (!cluster) return;
    this.showFacts(cluster);
    const [list, title, key] = parts[cluster.role] ?? ['', '', ''];
    this.moved.textContent = title;
    for (const head of this.missing) head.hidden = cluster.role !== 'builder';
    const partners = cluster[cluster.role]?.[list] ?? [];
    keep(this.body, cluster.nodes ?? [], () => html('tr', {}, html('th', {scope: 'row'}), ...Array.from({length: 3}, () => html('td')), ...causes.map(() => html('td'))),
      (row, node, index) => this.change(row, node, index, partners.findIndex((partner) => partner.node === node.name), cluster, list, key));
  }

  showFacts(cluster) {
    const facts = [
      ['this node', '/cluster/node', 'text', cluster.node],
      ['its role', '/cluster/role', 'text', cluster.role],
      ['gives out blocks', '/cluster/manager/manages', 'yes-no', cluster.manager?.manages ? 'yes' : 'no'],
      ['blocks lost with a builder', '/cluster/lost_blocks/builder_down', 'count', count(cluster.lost_blocks?.builder_down)],
      ['blocks that nobody had', '/cluster/lost_blocks/nothing_held', 'count', count(cluster.lost_blocks?.nothing_held)],
      ['blocks lost with a readout node', '/cluster/lost_blocks/node_down', 'count', count(cluster.lost_blocks?.node_down)],
      ['blocks that came too late', '/cluster/lost_blocks/late', 'count', count(cluster.lost_blocks?.late)],
    ].filter(([, of]) => of !== '/cluster/manager/manages' || cluster.manager);
    keep(this.facts, facts, () => html('div', {}, html('dt'), html('dd')), (item, [name, of, form, text]) => {
      item.children[0].textContent = name;
      show(item.children[1], of, form, text);
    });
  }

  change(row, node, index, partner, cluster, list, key) {
    const [name, role, here, moved, ...missing] = row.children;
    show(name, `/cluster/nodes/${index}/name`, 'text', node.name);
    show(role, `/cluster/nodes/${index}/role`, 'text', node.role);
    show(here, `/cluster/nodes/${index}/up`, 'yes-no', node.up ? 'yes' : 'no');
    setAttribute(row, 'data-level', node.up || node.spare ? 'ok' : 'lost');
    const at = `/cluster/${cluster.role}/${list}/${partner}`;
    const put = (cell, of, value) => {
      setAttribute(cell, 'class', 'number');
      if (partner < 0) {
        cell.removeAttribute('data-of');
        cell.textContent = '';
      } else {
        show(cell, of, 'count', count(value));
      }
    };
    const entry = cluster[cluster.role]?.[list]?.[partner];
    put(moved, `${at}/${key}`, entry?.[key]);
    missing.forEach((cell, i) => {
      cell.hidden = cluster.role !== 'builder';
      if (!cell.hidden) put(cell, `${at}/missing/${causes[i]}`, entry?.missing?.[causes[i]]);
    });
  }
}
