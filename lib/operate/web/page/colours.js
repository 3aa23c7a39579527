// Colour maps: tables of 256 colours, as 32-bit words that a canvas takes.

// Viridis (van der Walt and Smith, CC0) and cividis (Nuñez, Anderton and Renslow, CC0), every sixteenth colour: between them lines are close enough.
const points = {
  viridis: '440154 481a6c 472f7d 414487 39568c 31688e 2a788e 23888e 1f988b 22a884 35b779 54c568 7ad151 a5db36 d2e21b fde725',
  cividis: '00224e 002f6b 1a386f 35456c 48516b 575d6d 666a70 747678 838079 938d78 a59b74 b6a971 c8b866 dbc75a efd748 fee838',
  grey: '000000 ffffff',
  'grey, inverted': 'ffffff 000000',
};

export const mapNames = Object.keys(points);

const parse = (text) => [0, 2, 4].map((at) => parseInt(text.slice(at, at + 2), 16));
const word = ([red, green, blue]) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;

/** 256 words, from low to high. */
export function mapOf(name) {
  const colours = points[name].split(' ').map(parse);
  return Uint32Array.from({length: 256}, (_, i) => {
    const at = (i / 255) * (colours.length - 1);
    const [low, part] = [Math.min(colours.length - 2, Math.floor(at)), at - Math.min(colours.length - 2, Math.floor(at))];
    return word(colours[low].map((value, channel) => Math.round(value + part * (colours[low + 1][channel] - value))));
  });
}

/** Of pixels that are not a number: no colour of any map. */
export const not_a_number = word([226, 60, 160]);
