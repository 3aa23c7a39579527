"""What holds of the page whatever it shows: it agrees with the document, its text can be read, nothing sticks out, everything has a name."""
import json

GROUPED = "count"
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def settle(page):
    """Until two frames have passed without the page having anything to draw."""
    page.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 260))")


def digits(value):
    if abs(value) >= 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1f}".removesuffix(".0") if abs(value) >= 10 else f"{value:.2f}".rstrip("0").rstrip(".")


def scaled(value, tail):
    size, letter = next((one for one in PREFIXES if abs(value) >= one[0] * 0.9995), PREFIXES[3])
    return f"{digits(value / size)} {letter}{tail}"


def rate(value, unit=""):
    tail = f" {unit}" if unit else ""
    if abs(value) >= 9999.5:
        return scaled(value, tail)
    return (f"{value:,.0f}" if abs(value) >= 1000 else digits(value)) + tail


def percent(part):
    return "< 1 %" if 0 < part < 0.005 else f"{100 * part:.0f} %"


def duration(value):
    if value == 0:
        return "0 s"
    if value < 0.001:
        return f"{1e6 * value:.0f} µs"
    if value < 0.1:
        return f"{float(f'{1e3 * value:.{1 if value < 0.01 else 0}f}'):g} ms"
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    for size, above, below, small in ((60, "", "s", 1), (3600, "min", "s", 60), (86400, "h", "min", 3600)):
        if whole < size:
            return f"{whole} s" if size == 60 else f"{whole // small} {above} {whole % small // (small // 60)} {below}"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def count(value):
    return "unknown" if value is None else f"{value:,}"


def yes_no(value):
    return {True: "yes", False: "no", None: "unknown"}.get(value, value)


FORMS = {
    "count": count, "rate": rate, "percent": percent, "seconds": duration, "plain": lambda value: None, "text": lambda value: "unknown" if value is None else str(value).lower() if isinstance(value, bool) else str(value),
    "version": lambda value: f"weir {value}", "run": lambda value: f"run {value}", "count-received": lambda value: f"{value:,} received", "count-written": lambda value: f"{value:,} written",
    "level": lambda value: percent(value["used"] / value["size"]), "seconds-or-never": lambda value: "never" if value is None else duration(value), "yes-no": yes_no, "moment": lambda value: None,
}


def resolve(document, pointer):
    value = document
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def shown_values(page):
    """[{of, form, text}] of what says which value of the document it is."""
    return page.evaluate("[...document.querySelectorAll('[data-of]')].map((one) => ({of: one.dataset.of, form: one.dataset.form, text: one.textContent}))")


def disagreements(document, shown):
    wrong = []
    for one in shown:
        try:
            value = resolve(document, one["of"])
        except (KeyError, IndexError, TypeError):
            wrong.append(f"{one['of']} is not in the document, and shown as {one['text']!r}")
            continue
        form = one["form"]
        # Moments are in the time zone of the reader, so only the minutes are the document's.
        if form == "moment":
            agrees = value[14:19] in one["text"]
        elif form == "plain":
            agrees = float(one["text"]) == value
        elif form in FORMS:
            agrees = FORMS[form](value) == one["text"]
        else:
            agrees = rate(value, form) == one["text"]  # a rate with its unit
        if not agrees:
            wrong.append(f"{one['of']} ({form}): {json.dumps(value)} is shown as {one['text']!r}")
    return wrong


def overlapping_boxes(page):
    """Parts of the pipeline that lie on each other, or outside of the drawing."""
    boxes = page.evaluate("""(() => {
        const outer = document.querySelector('#pipeline svg').getBoundingClientRect();
        return [[outer.x, outer.y, outer.right, outer.bottom], ...[...document.querySelectorAll('#pipeline .box')].map((one) => {
            const box = one.getBoundingClientRect(); return [box.x, box.y, box.right, box.bottom]; })]; })()""")
    outer, *parts = boxes
    found = [box for box in parts if box[0] < outer[0] or box[1] < outer[1] or box[2] > outer[2] or box[3] > outer[3]]
    for i, a in enumerate(parts):
        found += [(a, b) for b in parts[i + 1:] if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]
    return found


def sticking_out(page):
    """Visible parts that are wider than the window, but for what scrolls by itself."""
    return page.evaluate("""[...document.querySelectorAll('body *')].filter((one) => one.checkVisibility() && !one.closest('.scrolls, .unseen, .skip, svg, pre'))
        .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => `${one.tagName}.${one.className}: ${one.textContent.slice(0, 40)}`)""")


def unnamed(page):
    """Controls and drawings without a name that a screen reader could say."""
    return page.evaluate("""[...document.querySelectorAll('button, a[href], input, select, [role=img], table, section, dialog')].filter((one) => {
        const labelled = one.getAttribute('aria-labelledby');
        const label = one.getAttribute('aria-label') || (labelled && document.getElementById(labelled)?.textContent) || one.labels?.[0]?.textContent
            || one.querySelector(':scope > caption')?.textContent || (/^(BUTTON|A)$/.test(one.tagName) && one.textContent) || '';
        return label.trim() === '' && one.checkVisibility() && !(one.tagName === 'TABLE' && one.tHead);
    }).map((one) => one.outerHTML.slice(0, 80))""")


WEAK = """(() => {
    const linear = (channel) => { const part = channel / 255; return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; };
    const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const parse = (text) => { const found = text.match(/[\\d.]+/g)?.map(Number) ?? [0, 0, 0, 0]; return [found[0], found[1], found[2], found[3] ?? 1]; };
    const over = (top, below) => top.slice(0, 3).map((value, i) => value * top[3] + below[i] * (1 - top[3]));
    // What is behind a node: the grounds of all that it is in, and of the box that it is drawn on.
    const ground = (node) => {
        if (node === null) return [255, 255, 255];
        const drawn = node instanceof SVGElement ? node.closest('.part')?.querySelector('.box') : null;
        if (drawn && node !== drawn && node.tagName === 'text') return over(parse(getComputedStyle(drawn).fill), ground(drawn.ownerSVGElement));
        const own = node instanceof SVGElement && node.tagName !== 'svg' ? [0, 0, 0, 0] : parse(getComputedStyle(node).backgroundColor);
        return over(own, ground(node.parentElement));
    };
    const opacity = (node) => (node === null ? 1 : Number(getComputedStyle(node).opacity) * opacity(node.parentElement));
    const weak = [];
    for (const node of document.querySelectorAll('body *')) {
        const text = [...node.childNodes].filter((one) => one.nodeType === 3).map((one) => one.data).join('').trim();
        if (text === '' || !node.checkVisibility() || node.closest('.unseen, .skip, title, option') || node.disabled) continue;
        const style = getComputedStyle(node);
        const back = ground(node);
        const colour = parse(node instanceof SVGElement ? style.fill : style.color);
        colour[3] *= opacity(node);
        const [a, b] = [luminance(over(colour, back)), luminance(back)];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) weak.push(`${node.tagName}.${node.getAttribute('class')}: ${text.slice(0, 30)}: ${contrast.toFixed(2)}`);
    }
    return weak;
})()"""


def weak_text(page):
    """Text whose contrast to what is behind it is below 4.5."""
    return page.evaluate(WEAK)


def difference_of_cell(page, index):
    """How far, in luminance, the cell of a source is from that of its neighbour on the left: the mean over its pixels."""
    return page.evaluate("""((index) => {
        const canvas = document.querySelector('canvas.grid');
        const number = 1000, scale = devicePixelRatio;
        const width = canvas.clientWidth, unit = parseFloat(getComputedStyle(document.documentElement).fontSize);
        const room = width * Math.max(9 * unit, Math.min(20 * unit, width * 0.42));
        const side = Math.max(0.5 * unit, Math.min(2.2 * unit, Math.floor(Math.sqrt(room / number))));
        const across = Math.floor(width / side);
        const cell = (i) => canvas.getContext('2d').getImageData((i % across) * side * scale, Math.floor(i / across) * side * scale, side * scale, side * scale).data;
        const [a, b] = [cell(index), cell(index - 1)];
        const grey = (data, i) => 0.3 * data[i] + 0.59 * data[i + 1] + 0.11 * data[i + 2] + 0.5 * data[i + 3];
        let sum = 0;
        for (let i = 0; i < a.length; i += 4) sum += Math.abs(grey(a, i) - grey(b, i));
        return sum / (a.length / 4);
    })""" + f"({index})")
