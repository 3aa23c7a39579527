// Is data being lost? From the document, in words: no drawing here. `weir top` says the same (app/watch_verdict.cpp);
// tests/page/verdicts.py has what both have to say.

import {count, counted, rate, seconds} from './format.js';

/** Where packets of this cause get lost: a device is the card, or the kernel in front of it. */
function placeOf(loss, where) {
  if (loss.place !== 'device') return loss.place;
  const lost = (place) => where.find((one) => one.place === place)?.packets ?? 0;
  return lost('kernel') > lost('nic') ? 'kernel' : 'nic';
}

const placeWords = {way: 'on the way', nic: 'in the NIC', kernel: 'in the kernel', weir: 'in weir'};
const causeNames = {missing: 'missing', device: 'dropped by the device'};

/** "queue_full" → "queue full" */
export function causeWords(cause) {
  return causeNames[cause] ?? cause.replaceAll('_', ' ').replaceAll('.', ': ');
}

/** "missing, on the way" */
export function lossWords(loss, where) {
  return `${causeWords(loss.cause)}, ${placeWords[placeOf(loss, where)] ?? placeWords.weir}`;
}

/** What makes the sinks worth a headline of their own: an error, or events that they lost. */
function sinkTrouble(document) {
  const sinks = document.pipeline?.sinks ?? [];
  const bad = sinks.find((sink) => sink.error) ?? sinks.find((sink) => sink.lost > 0);
  if (!bad) return null;
  const lost = bad.lost > 0 ? `${counted(bad.lost, 'event')} not written` : 'not written';
  return {what: `${lost}, in the sink ${bad.kind}`, why: bad.error ?? ''};
}

/** Of a node that has no run of its own. */
function managing({nodes = [], manager = {}, lost_blocks: lost = {}}) {
  const away = nodes.filter((node) => !node.up && !node.spare).map((node) => node.name);
  const detail = `${counted(manager.assigned ?? 0, 'block')} given out${manager.assigned_again > 0 ? `, ${count(manager.assigned_again)} of them again` : ''}.`;
  const gone = ['builder_down', 'nothing_held', 'node_down', 'late'].reduce((sum, cause) => sum + (lost[cause] ?? 0), 0);
  if (gone > 0) return {level: 'lost', headline: `${counted(gone, 'block')} lost whole`, detail};
  if (away.length > 0) return {level: 'unknown', headline: `Not here: ${away.join(', ')}`, detail};
  return {level: 'idle', headline: manager.manages ? 'No node is missing, and this one manages' : 'No node is missing, and another one manages', detail};
}

/** What a run that is over has lost, in weir and before. */
function lostBefore({lossless, lost_packets: here = 0, missing_packets: missing = 0}) {
  if (lossless === 'yes') return 'no packet lost';
  if (lossless !== 'no') return 'whether packets were lost is not known';
  if (here > 0 || missing > 0) return `${counted(here, 'packet')} lost in weir, ${count(missing)} missing`;
  return 'data was lost';
}

function idle(document) {
  const last = document.runs?.[0];
  if (document.status?.error) return {level: 'lost', headline: `No run: ${document.status.error}`, detail: 'The last command failed. Nothing is being received.'};
  if (document.cluster) return managing(document.cluster);
  const ended = last?.stop_reason ? `, ended by ${last.stop_reason}` : '';
  const detail = last ? `Run ${last.number} before: ${counted(last.events, 'event')}${ended}; ${lostBefore(last)}.` : 'Nothing is being received.';
  return {level: 'idle', headline: 'No run', detail};
}

function losing(document, where) {
  const losses = [...(document.losses ?? [])].filter((loss) => loss.per_s > 0).sort((a, b) => b.per_s - a.per_s);
  const trouble = sinkTrouble(document);
  if (losses.length === 0 && !trouble) return null;
  if (losses.length === 0)
    return {level: 'losing', headline: `Losing data: ${trouble.what}`, detail: trouble.why};
  const [first, ...others] = losses;
  const detail = others.map((loss) => `${rate(loss.per_s, 'packets/s')} ${lossWords(loss, where)}`);
  if (trouble) detail.push(`${trouble.what}${trouble.why ? `: ${trouble.why}` : ''}`);
  return {
    level: 'losing',
    headline: `Losing data: ${rate(first.per_s, 'packets/s')} ${lossWords(first, where)}`,
    detail: detail.length > 0 ? `Also ${detail.join('; ')}.` : `${count(first.packets)} of them in this run.`,
  };
}

/** {level, headline, detail}; level is one of ok, losing, lost, unknown, idle. */
export function judge(document) {
  const where = document.where ?? [];
  if (!document.run || document.cluster?.role === 'manager') return idle(document);
  const now = losing(document, where);
  if (now) return now;
  const unknown = where.filter((place) => place.packets === null || place.packets === undefined);
  const losses = [...(document.losses ?? [])].filter((loss) => loss.packets > 0).sort((a, b) => b.packets - a.packets);
  if (losses.length > 0) {
    const lost = losses.map((loss) => `${counted(loss.packets, 'packet')} ${lossWords(loss, where)}`);
    return {level: 'lost', headline: `Lost in this run: ${lost[0]}`,
      detail: `Nothing is being lost now.${lost.length > 1 ? ` Also lost: ${lost.slice(1).join('; ')}.` : ''}`};
  }
  const places = where.filter((place) => place.packets > 0);
  // Of events that were thrown away no packet counter tells.
  if (places.length > 0 && document.rates?.lost_per_s > 0)
    return {level: 'losing', headline: `Losing data: ${rate(document.rates.lost_per_s, 'packets/s')}, ${places[0].title}`, detail: places[0].evidence ?? ''};
  if (places.length > 0)
    return {level: 'lost', headline: `Lost in this run: ${counted(places[0].packets, 'packet')} ${places[0].title}`, detail: places[0].evidence ?? ''};
  if (document.status?.state === 'running' && (document.ledger?.packets?.received ?? 0) === 0)
    return {level: 'unknown', headline: 'Nothing has come yet', detail: `The run has lasted ${seconds(document.run.seconds)}, and no packet came.`};
  if (unknown.length > 0 || where.length === 0)
    return {
      level: 'unknown',
      headline: `No loss seen; unknown ${unknown.map((place) => place.title).join(' and ') || 'everywhere'}`,
      detail: unknown.map((place) => `${place.title}: ${place.evidence ?? ''}`).join('; '),
    };
  return {level: 'ok', headline: 'Nothing lost', detail: `${counted(document.ledger?.packets?.received ?? 0, 'packet')} received, all accounted for.`};
}
