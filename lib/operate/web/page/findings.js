// Findings in words, each with what to do about it; and what limits the pipeline.

import {byId, html, keep, setAttribute, setText, show} from './dom.js';
import {guideOf, openGuide} from './guide.js';

const names = {error: 'Error', warning: 'Warning', note: 'Note'};

export class Findings {
  constructor() {
    this.list = byId('findings');
    this.nothing = html('p', {class: 'dim'}, 'Nothing to say: no finding.');
    this.list.after(this.nothing);
    this.limits = byId('bottleneck');
    this.limits.append(html('strong', {}, 'Limit: '), html('span'), ' ', this.link('BOTTLENECK.md'));
  }

  link(page) {
    const button = html('button', {type: 'button', class: 'link', onclick: () => {
      const guide = guideOf(button.dataset.page);
      if (guide) openGuide(guide);
    }}, 'what to do');
    setAttribute(button, 'data-page', page);
    return button;
  }

  show(document) {
    const sentence = document.bottleneck?.sentence ?? '';
    this.limits.hidden = sentence === '';
    if (document.bottleneck) show(this.limits.querySelector('span'), '/bottleneck/sentence', 'text', sentence);
    const findings = document.findings ?? [];
    this.nothing.hidden = findings.length > 0;
    keep(this.list, findings, () => html('li', {}, html('strong'), html('span'), ' ', this.link(''), html('span', {class: 'dim'})),
      (item, finding, index) => this.change(item, finding, index));
  }

  change(item, finding, index) {
    const [severity, text, link, page] = item.children;
    setAttribute(item, 'data-severity', finding.severity);
    setText(severity, `${names[finding.severity] ?? finding.severity}: `);
    show(text, `/findings/${index}/text`, 'text', finding.text ?? '');
    const served = guideOf(finding.page) !== null;
    link.hidden = !served;
    setAttribute(link, 'data-page', finding.page ?? '');
    setAttribute(link, 'aria-label', `what to do: ${finding.page ?? ''}`);
    setText(page, served || !finding.page ? '' : finding.page);
  }
}
