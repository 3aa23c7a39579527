// Numbers as people read them. Counts are exact; rates have three digits.

const grouped = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

/** 1234567 → "1,234,567" */
export function count(value) {
  return typeof value === 'number' ? grouped.format(value) : 'unknown';
}

/** Three digits, without zeros at the end. */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return value.toFixed(0);
  return String(Number(size >= 10 ? value.toFixed(1) : value.toFixed(2)));
}

const prefixes = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

/** 1234567, "packets/s" → "1.23 M packets/s". Up to 9999 as it is. */
export function rate(value, unit) {
  const tail = unit ? ` ${unit}` : '';
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'unknown';
  if (Math.abs(value) < 9999.5) return (Math.abs(value) >= 1000 ? grouped.format(value) : digits(value)) + tail;
  const [size, letter] = prefixes.find(([limit]) => Math.abs(value) >= limit * 0.9995) ?? prefixes[3];
  return `${digits(value / size)} ${letter}${tail}`;
}

/** 1234567 → "1.23 MB", as disks count */
export function bytes(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'unknown';
  if (value < 1000) return `${value.toFixed(0)} B`;
  const [size, letter] = prefixes.find(([limit]) => value >= limit * 0.9995) ?? prefixes[3];
  return `${digits(value / size)} ${letter}B`;
}

/** 0.513 → "51 %"; a little is not nothing */
export function percent(part) {
  if (typeof part !== 'number' || !Number.isFinite(part)) return 'unknown';
  if (part > 0 && part < 0.005) return '< 1 %';
  return `${(100 * part).toFixed(0)} %`;
}

/** 200.4 → "3 min 20 s"; 0.0003 → "0.3 ms" */
export function seconds(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'unknown';
  if (value === 0) return '0 s';
  if (value < 0.001) return `${(1e6 * value).toFixed(0)} µs`;
  if (value < 0.1) return `${Number((1e3 * value).toFixed(value < 0.01 ? 1 : 0))} ms`;
  if (value < 9.95) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** Of a pixel or an axis: at most five digits. */
export function plain(value) {
  if (typeof value !== 'number' || Number.isNaN(value)) return 'not a number';
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return grouped.format(value);
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(5)));
}

/** "2026-11-25T16:00:00Z" → "25 Nov 16:00:00", in the reader's time zone */
export function moment(text) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text || '';
  return time.toLocaleString('en-GB', {day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false})
    .replace(',', '');
}

/** Longer text loses its middle, which says least of a path. */
export function shortened(text, length) {
  if (text.length <= length) return text;
  const kept = Math.max(4, length - 1);
  return `${text.slice(0, Math.ceil(kept * 0.35))}…${text.slice(text.length - Math.floor(kept * 0.65))}`;
}

/** 1, "packet" → "1 packet"; 2 → "2 packets" */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** A step of an axis: 1, 2 or 5 times a power of ten, so that `top` has about `steps` of them. */
export function niceStep(top, steps) {
  const raw = top / steps;
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
}
