// Pixels as numbers, and what contrast they need. Nothing is drawn here.

const types = {
  u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array, i8: Int8Array, i16: Int16Array, i32: Int32Array, i64: BigInt64Array,
  f32: Float32Array, f64: Float64Array,
};
const longer = {uint: 'u', int: 'i', float: 'f'};

/** Little-endian pixels as an array of numbers. Throws an Error that says what does not fit. */
export function pixelsOf(buffer, type, width, height) {
  const short = type.replace(/^(uint|int|float)(\d+)$/, (_, kind, bits) => longer[kind] + bits);
  const kind = types[short];
  if (!kind) throw new Error(`pixels of type "${type}" cannot be shown`);
  if (buffer.byteLength !== width * height * kind.BYTES_PER_ELEMENT)
    throw new Error(`${buffer.byteLength} bytes for ${width} × ${height} pixels of ${type}`);
  const pixels = new kind(buffer);
  return short.endsWith('64') && short !== 'f64' ? Float64Array.from(pixels, Number) : pixels;
}

const sample_max = 20000;

/** {lowest, highest, sum, unknown, percentiles(part)}; unknown pixels are not numbers. */
export function statisticsOf(pixels) {
  let [lowest, highest, sum, unknown] = [Infinity, -Infinity, 0, 0];
  for (let i = 0; i < pixels.length; ++i) {
    const value = pixels[i];
    if (!Number.isFinite(value)) {
      ++unknown;
      continue;
    }
    if (value < lowest) lowest = value;
    if (value > highest) highest = value;
    sum += value;
  }
  if (unknown === pixels.length) [lowest, highest] = [0, 0];
  // Every nth pixel, with n odd, so that a pattern of columns is not taken for the whole.
  const step = Math.max(1, Math.floor(pixels.length / sample_max) | 1);
  const sample = [];
  for (let i = 0; i < pixels.length; i += step) if (Number.isFinite(pixels[i])) sample.push(pixels[i]);
  const sorted = Float64Array.from(sample).sort();
  const percentile = (part) => (sorted.length > 0 ? sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] : 0);
  return {lowest, highest, sum, unknown, mean: sum / Math.max(1, pixels.length - unknown), percentile};
}

/** How many pixels are in each of `bins` equal steps from lowest to highest. */
export function histogramOf(pixels, lowest, highest, bins) {
  const counts = new Uint32Array(bins);
  const scale = highest > lowest ? bins / (highest - lowest) : 0;
  for (let i = 0; i < pixels.length; ++i) {
    const value = pixels[i];
    if (value >= lowest && value <= highest) ++counts[Math.min(bins - 1, Math.floor((value - lowest) * scale))];
  }
  return counts;
}

/** A function from a value to 0 … 255: equal steps, or steps of the logarithm above `low`. */
export function scaleOf(low, high, logarithmic) {
  const range = high > low ? high - low : 1;
  if (!logarithmic) return (value) => Math.max(0, Math.min(255, Math.floor(((value - low) / range) * 256)));
  const top = Math.log1p(1000);
  return (value) => Math.max(0, Math.min(255, Math.floor((Math.log1p(1000 * Math.max(0, (value - low) / range)) / top) * 256)));
}
