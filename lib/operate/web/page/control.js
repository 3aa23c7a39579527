// Commands: only those that the state allows. Whoever changes something shows the token, which this tab remembers until it is closed.

import {byId, html, keep, setAttribute, setText} from './dom.js';

const names = {start: 'Start', stop: 'Stop', new_run: 'New run', snapshot: 'Snapshot', flight_record: 'Save flight record', abort: 'Abort'};
const stored = 'weir-token';
const said_ms = 20000;

export class Commands {
  constructor() {
    this.bar = byId('commands');
    this.said = byId('said');
    this.underWay = null;
    this.makeTokenDialog();
    this.makeAbortDialog();
    document.body.append(this.tokenDialog, this.abortDialog);
  }

  makeTokenDialog() {
    this.token = html('input', {type: 'password', autocomplete: 'off', spellcheck: 'false', id: 'token'});
    this.tokenWhy = html('p');
    this.tokenDialog = this.dialog('Token', [this.tokenWhy, html('label', {for: 'token'}, 'Token'), this.token,
      html('p', {class: 'dim'}, 'It is what the file has that token_file names in the table [serve]. It is kept until this tab is closed.')], 'Use this token', () => {
      sessionStorage.setItem(stored, this.token.value.trim());
      this.token.value = '';
      this.execute(...this.wanted);
    });
  }

  makeAbortDialog() {
    this.abortDialog = this.dialog('Abort the run?', [html('p', {}, 'Abort ends the run without waiting for consumers of streams or for other nodes. Events that are still open are closed as incomplete; what has come is written. Stop ends the run in order.')],
      'Abort the run', () => this.execute('abort', this.abortAt));
  }

  /** A dialog with a form; `done` is called when it is agreed to. */
  dialog(title, content, agree, done) {
    const close = () => dialog.close();
    const form = html('form', {onsubmit: (event) => {
      event.preventDefault();
      close();
      done();
    }}, html('h2', {}, title), ...content, html('div', {class: 'bar'}, html('button', {type: 'button', onclick: close}, 'Cancel'), html('button', {type: 'submit', class: 'main'}, agree)));
    const dialog = html('dialog', {'aria-label': title}, form);
    return dialog;
  }

  show({command = {}}) {
    const allowed = command.allowed ?? [];
    this.bar.hidden = allowed.length === 0;
    keep(this.bar, allowed, () => html('button', {type: 'button', onclick: (event) => this.press(event.currentTarget.dataset.command)}), (button, name) => {
      setAttribute(button, 'data-command', name);
      setText(button, names[name] ?? name);
      button.disabled = this.underWay !== null;
    });
    this.showLast(command.last);
  }

  /** What became of the last command, if it is not the one from before this page was opened. */
  showLast(last) {
    if (!last?.command) return;
    const key = JSON.stringify(last);
    if (key === this.lastKey) return;
    const first = this.lastKey === undefined;
    this.lastKey = key;
    if (first && !last.error) return;
    const name = names[last.command] ?? last.command;
    this.say(last.error ? `${name} failed: ${last.error}` : last.done ? `${name}: ${last.message || 'done'}` : `${name}: under way …`, Boolean(last.error));
  }

  say(text, bad) {
    this.said.hidden = false;
    setAttribute(this.said, 'data-level', bad ? 'losing' : '');
    setText(this.said, `${bad ? '⚠ ' : ''}${text}`);
    clearTimeout(this.timer);
    if (!bad) this.timer = setTimeout(() => { this.said.hidden = true; }, said_ms);
  }

  /** `at`: where the command goes, for all nodes of a cluster. */
  press(command, at) {
    this.abortAt = at;
    if (command === 'abort') this.abortDialog.showModal();
    else this.execute(command, at);
  }

  askForToken(command, at, why) {
    this.wanted = [command, at];
    setText(this.tokenWhy, why);
    this.tokenDialog.showModal();
  }

  async execute(command, at = '/api/0.1/weir/command/execute') {
    const token = sessionStorage.getItem(stored);
    if (!token) return this.askForToken(command, at, 'Whoever changes something shows the token.');
    this.underWay = command;
    try {
      // Not as Authorization: that would displace the password of a proxy in front.
      const answer = await fetch(at, {
        method: 'PUT', cache: 'no-store', headers: {'Content-Type': 'application/json', 'X-Weir-Token': token}, body: JSON.stringify(at === '/cluster' ? {execute: command} : {value: command}),
      });
      const why = await this.reason(answer);
      if (answer.status === 401 || answer.status === 403) {
        sessionStorage.removeItem(stored);
        this.askForToken(command, at, `The token was refused${why ? `: ${why}` : ''}.`);
      } else if (!answer.ok) {
        this.say(`${names[command] ?? command}: ${why || `refused, status ${answer.status}`}`, true);
      } else if (why) {
        this.say(`${names[command] ?? command}: ${why}`, false);
      }
    } catch {
      this.say(`${names[command] ?? command} was not sent: no connection`, true);
    } finally {
      this.underWay = null;
    }
  }

  /** What weir says in its answer, for people. */
  async reason(answer) {
    const text = (await answer.text()).trim();
    try {
      const said = JSON.parse(text);
      return said.error ?? said.msg ?? said.message ?? '';
    } catch {
      return text.startsWith('<') ? '' : text.slice(0, 300);
    }
  }
}
