"use strict";
// The explorer page (src/nplm2003/explorer.py writes it): the models first, then what is shown of them.
// Words come from a corpus and may be anything: they are only ever set as text, never as markup.

const DATA = JSON.parse(document.getElementById("data").textContent);
const WORDS = DATA.words;
const V = WORDS.length;
const MERGED = 0; // the id of the symbol that stands for every word outside V
const IDS = new Map(WORDS.map((word, id) => [word, id]));
const TOP = 10; // words in a list

// --- numbers in the page ---------------------------------------------------------------------------------------------

/** The array of this `Type` that was written as base64. */
function decode(text, Type) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Type(bytes.buffer);
}

/** A function that computes its value at the first call for each key, since a network takes a moment to unpack. */
function once(compute) {
  const known = new Map();
  return (key) => {
    if (!known.has(key)) known.set(key, compute(key));
    return known.get(key);
  };
}

/** A matrix in 8 bits: whole numbers, row after row, and the factor of each row. */
function unpack(matrix) {
  return { rows: decode(matrix.rows, Int8Array), scale: decode(matrix.scale, Float32Array) };
}

const network = once((name) => {
  const net = DATA.networks.find((one) => one.model === name);
  const float = (text) => (text === null ? null : decode(text, Float32Array));
  return { ...net, C: unpack(net.C), O: unpack(net.O), b: float(net.b), H: float(net.H), d: float(net.d) };
});

// --- the models: P(w | context) for every word w, from the ids of the words of the context, oldest first -------------

/** y = b + W x + U tanh(d + H x), P = softmax(y): section 2 of the paper. O holds W and U side by side. */
function networkDistribution(net, ids) {
  const m = net.features;
  const x = [];
  for (let back = 1; back < net.order; back++) {
    // Where there is no word, as before the first one of the training text, stands the merged symbol.
    const id = back <= ids.length ? ids[ids.length - back] : MERGED;
    for (let k = 0; k < m; k++) x.push(net.C.rows[id * m + k] * net.C.scale[id]);
  }
  const a = [];
  for (let unit = 0; unit < net.hidden; unit++) {
    let sum = net.d[unit];
    for (let k = 0; k < x.length; k++) sum += net.H[unit * x.length + k] * x[k];
    a.push(Math.tanh(sum));
  }
  const z = Float64Array.from(net.direct ? [...x, ...a] : a);
  const P = new Float64Array(V); // first y
  let highest = -Infinity;
  for (let w = 0, at = 0; w < V; w++) {
    let sum = 0;
    for (let k = 0; k < z.length; k++, at++) sum += net.O.rows[at] * z[k];
    P[w] = net.b[w] + net.O.scale[w] * sum;
    if (P[w] > highest) highest = P[w];
  }
  let Z = 0;
  for (let w = 0; w < V; w++) Z += P[w] = Math.exp(P[w] - highest);
  for (let w = 0; w < V; w++) P[w] /= Z;
  return P;
}

const TRAIN = decode(DATA.train.ids, DATA.train.bytes === 2 ? Uint16Array : Uint32Array);
const COUNTS = new Float64Array(V); // of every word in the training text
for (const id of TRAIN) COUNTS[id]++;

/** alpha_0 / |V| + alpha_1 p1(w) + alpha_2 p2(w|v) + alpha_3 p3(w|u,v): section 4.1, counted in one pass over train. */
function trigramDistribution(ids) {
  const T = TRAIN.length;
  const [u, v] = [ids.at(-2), ids.at(-1)]; // undefined where there is no word, which equals no id
  const afterWord = new Float64Array(V);
  const afterPair = new Float64Array(V);
  let words = 0; // that follow v
  let pairs = 0; // that follow u v
  for (let i = 1; i < T; i++) {
    if (TRAIN[i - 1] !== v) continue;
    afterWord[TRAIN[i]]++;
    words++;
    if (i > 1 && TRAIN[i - 2] === u) {
      afterPair[TRAIN[i]]++;
      pairs++;
    }
  }
  const frequency = pairs + (TRAIN[T - 2] === u && TRAIN[T - 1] === v ? 1 : 0); // nothing follows the last pair
  const alpha = DATA.trigram.weights[Math.ceil(-Math.log((1 + frequency) / T))];
  return afterWord.map((_, w) => {
    const p1 = COUNTS[w] / T;
    const p2 = words ? afterWord[w] / words : p1;
    const p3 = pairs ? afterPair[w] / pairs : p2;
    return alpha[0] / V + alpha[1] * p1 + alpha[2] * p2 + alpha[3] * p3;
  });
}

/** P(. | ids) of a model by its name: a network, the trigram, or a mixture of both with equal weights. */
function distribution(name, ids) {
  if (DATA.trigram && name === DATA.trigram.model) return trigramDistribution(ids);
  const mixture = DATA.mixtures.find((one) => one.model === name);
  if (!mixture) return networkDistribution(network(name), ids);
  const [p, q] = [distribution(mixture.network, ids), distribution(DATA.trigram.model, ids)];
  return p.map((value, w) => 0.5 * value + 0.5 * q[w]);
}

// What Python splits a text at; \s of JavaScript would also split at U+FEFF.
const SPACES = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

/** Words as the models know them: ids, and the merged symbol for a word outside V. Marks at the end of a word that V
 *  lacks are split off, as people write "bedroom.". */
function read(text) {
  const spaced = (DATA.lowercase ? text.toLowerCase() : text).split(SPACES).filter((word) => word !== "");
  const words = spaced.flatMap((word) => {
    const parts = IDS.has(word) ? null : word.match(/^(.+?)([.,;:!?])$/u);
    return parts ? [parts[1], parts[2]] : [word];
  });
  return words.map((word) => ({ word, id: IDS.get(word) ?? MERGED }));
}

/** The ids of the `length` largest `values`, largest first; of equal ones the lower id first. */
function largest(values, length) {
  const found = [];
  for (let w = 0; w < values.length; w++) {
    if (found.length === length && values[w] <= values[found[length - 1]]) continue;
    let rank = found.length;
    while (rank > 0 && values[found[rank - 1]] < values[w]) rank--;
    found.splice(rank, 0, w);
    if (found.length > length) found.pop();
  }
  return found;
}

// --- word features ---------------------------------------------------------------------------------------------------

/** C(w), m numbers. */
function features(net, id) {
  const m = net.features;
  return Array.from({ length: m }, (_, k) => net.C.rows[id * m + k] * net.C.scale[id]);
}

/** The mean of the features of the frequent words: what all words share says nothing of any. */
const centre = once((name) => {
  const net = network(name);
  const mean = new Float64Array(net.features);
  for (const id of DATA.frequent) features(net, id).forEach((value, k) => (mean[k] += value / DATA.frequent.length));
  return mean;
});

/** The frequent words nearest to the word `id`, with the cosines of their features from the mean. */
function neighbours(name, id, length = TOP) {
  const net = network(name);
  const from = (word) => features(net, word).map((value, k) => value - centre(name)[k]);
  const norm = (vector) => Math.hypot(...vector);
  const here = from(id);
  const cosines = DATA.frequent.map((other) => {
    const there = from(other);
    const product = there.reduce((sum, value, k) => sum + value * here[k], 0);
    return other === id ? -Infinity : product / Math.max(norm(here) * norm(there), 1e-12);
  });
  return largest(cosines, Math.min(length, cosines.length))
    .filter((i) => cosines[i] > -Infinity)
    .map((i) => ({ id: DATA.frequent[i], cosine: cosines[i] }));
}

/** Where the word `id` stands on the map. */
function place(name, id) {
  const net = network(name);
  const vector = features(net, id).map((value, k) => value - net.plane.centre[k]);
  return net.plane.directions.map((direction) => direction.reduce((sum, value, k) => sum + value * vector[k], 0));
}

// --- what is shown ---------------------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);

/** An element with attributes and children; text is text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const minus = (text) => text.replace("-", "\u2212");
const whole = (number) => number.toLocaleString("en");

function percent(p) {
  if (p >= 0.0995) return `${(100 * p).toFixed(1)} %`;
  return p >= 0.0000995 ? `${(100 * p).toPrecision(2)} %` : p.toExponential(1).replace("-", "\u2212");
}

function chooser(select, show) {
  for (const net of DATA.networks) select.append(make("option", { value: net.model }, net.model));
  select.value = DATA.best;
  select.addEventListener("change", show);
}

// --- next words ------------------------------------------------------------------------------------------------------

const MODELS = [
  ...DATA.networks.map((net) => ({
    name: net.model,
    is: `network, n = ${net.order}, h = ${net.hidden}, m = ${net.features}${net.direct ? ", direct connections" : ""}`,
    ...net,
  })),
  ...(DATA.trigram ? [{ name: DATA.trigram.model, is: "interpolated trigram", ...DATA.trigram }] : []),
  ...DATA.mixtures.map((mixture) => ({
    name: mixture.model,
    is: `half ${mixture.network}, half ${DATA.trigram.model}`,
    ...mixture,
  })),
].map(({ name, is, perplexity }) => ({ name, is, perplexity }));

function showModels() {
  const first = [DATA.best, DATA.trigram?.model, DATA.mixtures.find((one) => one.network === DATA.best)?.model];
  for (const { name } of MODELS) {
    const box = make("input", { type: "checkbox", value: name });
    box.checked = first.includes(name);
    box.addEventListener("change", showNext);
    $("models").append(make("label", {}, box, ` ${name}`));
  }
}

function showNext() {
  const tokens = read($("context").value);
  const ids = tokens.map((token) => token.id);
  $("read").replaceChildren(
    tokens.length ? "The models read: " : "No word yet: the models say how a text begins.",
    ...tokens.map(({ word, id }) =>
      id === MERGED && word !== WORDS[MERGED]
        ? make("span", { class: "token merged", title: "not in V" }, `${word} \u2192 ${WORDS[MERGED]}`)
        : make("span", { class: "token" }, WORDS[id]),
    ),
  );
  const asked = read($("asked").value)[0];
  const ticked = new Set([...$("models").querySelectorAll("input:checked")].map((box) => box.value));
  const shown = MODELS.filter(({ name }) => ticked.has(name)).map((model) => {
    const P = distribution(model.name, ids);
    return { ...model, P, top: largest(P, Math.min(TOP, V)) };
  });
  const longest = Math.max(...shown.map(({ P, top }) => P[top[0]]));
  $("columns").replaceChildren(...shown.map((model) => column(model, longest, asked)));
}

/** One model: its likeliest words as bars, the word that was asked for, and the sum over V. */
function column({ name, is, perplexity, P, top }, longest, asked) {
  const list = make("ol");
  for (const id of top) {
    const bar = make("span", { class: "bar" });
    bar.style.width = `${(100 * P[id]) / longest}%`;
    const button = make(
      "button",
      { type: "button", class: "next", "data-word": WORDS[id], "data-probability": P[id] },
      bar,
      make("span", {}, WORDS[id]),
      make("span", { class: "number" }, percent(P[id])),
    );
    button.addEventListener("click", () => {
      $("context").value = `${$("context").value.trimEnd()} ${WORDS[id]}`.trimStart();
      showNext();
      $("context").focus();
    });
    list.append(make("li", {}, button));
  }
  const box = make("section", { "data-model": name, "aria-label": name }, make("h3", {}, name));
  box.append(make("p", { class: "small" }, is, perplexity === null ? "" : `; test perplexity ${perplexity.toFixed(1)}`));
  box.append(list);
  if (asked) {
    const rank = 1 + P.reduce((higher, value) => higher + (value > P[asked.id] ? 1 : 0), 0);
    const word = `P(${WORDS[asked.id]} | context) = ${percent(P[asked.id])}, place ${whole(rank)}`;
    box.append(make("p", { class: "asked number", "data-probability": P[asked.id] }, word));
  }
  const sum = P.reduce((total, value) => total + value, 0);
  box.append(make("p", { class: "small number sum", "data-sum": sum }, `sum over V: ${sum.toFixed(6)}`));
  return box;
}

// --- neighbours ------------------------------------------------------------------------------------------------------

let near = []; // the neighbours shown
let chosen = MERGED; // the word they are of

function showNeighbours() {
  const name = $("features-of").value;
  const token = read($("word").value)[0];
  chosen = token ? token.id : MERGED;
  near = token ? neighbours(name, chosen) : [];
  const note = !token
    ? "Type a word."
    : chosen === MERGED
      ? `${token.word} is not in V: these are the neighbours of ${WORDS[MERGED]}.`
      : `${WORDS[chosen]}: ${whole(COUNTS[chosen])} times in train. Nearest:`;
  $("word-note").replaceChildren(note);
  $("neighbours").replaceChildren(
    ...near.map(({ id, cosine }) => {
      const button = make("button", { type: "button", "data-word": WORDS[id], "data-cosine": cosine }, WORDS[id]);
      button.addEventListener("click", () => choose(id));
      return make("li", {}, button, make("span", { class: "number" }, ` ${minus(cosine.toFixed(2))}`));
    }),
  );
  drawMap();
}

function choose(id) {
  $("word").value = WORDS[id];
  showNeighbours();
}

// --- the map ---------------------------------------------------------------------------------------------------------

const canvas = $("map");
const points = once((name) => new Map(DATA.frequent.map((id) => [id, place(name, id)])));
const view = { x: 0, y: 0, zoom: 1 }; // the point in the middle, and how much closer than the whole map it is

/** What turns coordinates of the map into pixels of the canvas, in which the whole map fits where zoom is 1. */
function projection() {
  const all = [...points($("features-of").value).values()];
  const span = [0, 1].map((axis) => {
    const values = all.map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  });
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const room = span.map(([low, high]) => Math.max(high - low, 1e-9));
  const scale = 0.9 * Math.min(width / room[0], height / room[1]) * view.zoom;
  const middle = span.map(([low, high]) => (low + high) / 2);
  return {
    scale,
    toPixels: ([x, y]) => [
      width / 2 + (x - middle[0] - view.x) * scale,
      height / 2 - (y - middle[1] - view.y) * scale,
    ],
  };
}

function drawMap() {
  const name = $("features-of").value;
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const { toPixels } = projection();
  // The chosen word first and its neighbours next, so that they have names before all others.
  const special = new Map([...(chosen === MERGED ? [] : [chosen]), ...near.map(({ id }) => id)].map((id, i) => [id, i]));
  const colour = (id) => (id === chosen ? "#b5360b" : special.has(id) ? "#0b62a4" : "#1a1a1a");
  const order = [...new Set([...special.keys(), ...DATA.frequent])];
  const pixels = order.map((id) => toPixels(points(name).get(id) ?? place(name, id)));
  const inside = ([x, y]) => x >= 0 && x <= width && y >= 0 && y <= height;
  order.forEach((id, i) => {
    pen.fillStyle = special.has(id) ? colour(id) : "#9aa0a8";
    pen.beginPath();
    pen.arc(...pixels[i], special.has(id) ? 4 : 1.8, 0, 2 * Math.PI);
    pen.fill();
  });
  const labels = []; // [left, top, right, bottom] of the names that are there
  order.forEach((id, i) => {
    if (!inside(pixels[i])) return;
    pen.font = `${special.has(id) ? "600 13px" : "12px"} system-ui, sans-serif`;
    const [x, y] = [pixels[i][0] + 5, pixels[i][1] + 4];
    const box = [x, y - 11, x + pen.measureText(WORDS[id]).width + 3, y + 4];
    const taken = labels.some((one) => box[0] < one[2] && one[0] < box[2] && box[1] < one[3] && one[1] < box[3]);
    if (taken && id !== chosen) return;
    labels.push(box);
    pen.fillStyle = colour(id);
    pen.fillText(WORDS[id], x, y);
  });
  canvas.setAttribute("aria-label", `Map of the features of ${name}: ${labels.length} names of ${order.length} words`);
}

function changeView(zoom, right = 0, up = 0) {
  view.zoom = Math.min(Math.max(view.zoom * zoom, 1), 200);
  const { scale } = projection();
  view.x += right / scale;
  view.y += up / scale;
  if (view.zoom === 1) [view.x, view.y] = [0, 0];
  drawMap();
}

/** The word whose point is nearest to a place on the canvas, none where all are far. */
function wordAt(event) {
  const { toPixels } = projection();
  let [found, least] = [null, 15];
  for (const [id, point] of points($("features-of").value)) {
    const [x, y] = toPixels(point);
    const distance = Math.hypot(x - event.offsetX, y - event.offsetY);
    if (distance < least) [found, least] = [id, distance];
  }
  return found;
}

function listenToMap() {
  const keys = {
    "+": [1.5],
    "=": [1.5],
    "-": [1 / 1.5],
    0: [0],
    ArrowLeft: [1, -60],
    ArrowRight: [1, 60],
    ArrowUp: [1, 0, 60],
    ArrowDown: [1, 0, -60],
  };
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    changeView(...keys[event.key]);
  });
  $("closer").addEventListener("click", () => changeView(1.5));
  $("farther").addEventListener("click", () => changeView(1 / 1.5));
  $("whole").addEventListener("click", () => changeView(0));
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const before = view.zoom;
      const [right, up] = [event.offsetX - canvas.clientWidth / 2, canvas.clientHeight / 2 - event.offsetY];
      changeView(event.deltaY < 0 ? 1.2 : 1 / 1.2);
      const share = view.zoom / before - 1; // so that the point under the mouse stays there
      changeView(1, right * share, up * share);
    },
    { passive: false },
  );
  let held = null; // where the pointer went down, and whether it has moved since
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.offsetX, y: event.offsetY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (held && (held.moved || Math.hypot(event.offsetX - held.x, event.offsetY - held.y) > 4)) {
      changeView(1, held.x - event.offsetX, event.offsetY - held.y);
      held = { x: event.offsetX, y: event.offsetY, moved: true };
    }
    const id = wordAt(event);
    $("map-word").textContent = id === null ? "\u00a0" : `${WORDS[id]}: ${whole(COUNTS[id])} times in train`;
  });
  canvas.addEventListener("pointerup", (event) => {
    const id = held && !held.moved ? wordAt(event) : null;
    held = null;
    if (id !== null) choose(id);
  });
  window.addEventListener("resize", drawMap);
}

// --- one sentence more -----------------------------------------------------------------------------------------------

const total = (values) => values.reduce((sum, value) => sum + value, 0);
const mean = (values) => total(values) / values.length;

/** How many times what it was a probability is, from the change of its logarithm. */
const times = (change) => `\u00d7 ${Math.exp(change).toPrecision(3)}`;

const signed = (value) => (value < 0 ? minus(value.toFixed(3)) : `+${value.toFixed(3)}`);

function table(caption, head, rows) {
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((cell, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, cell))),
  );
  const first = make("tr", {}, ...head.map((cell) => make("th", { scope: "col" }, cell)));
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    make("table", {}, make("caption", {}, caption), make("thead", {}, first), make("tbody", {}, ...body)),
  );
}

/** The change of ln P of each word of a sentence. */
const changes = (sentence, kind) => sentence[kind].after.map((after, i) => after - sentence[kind].before[i]);

function showSentence() {
  const name = $("sentence-of").value;
  const { rates, before, sentences } = DATA.networks.find((net) => net.model === name).sentence;
  const label = { network: name, trigram: DATA.trigram?.model };
  const kinds = DATA.trigram && sentences.every((sentence) => sentence.trigram) ? ["network", "trigram"] : ["network"];
  const of = (role) => sentences.filter((sentence) => sentence.role === role);
  const [added] = of("added");
  const [other] = of("other");
  const written = ({ text }) => `\u201c${text.join(" ")}\u201d`;

  const outside = [...added.words, ...other.words].filter((word) => word === WORDS[MERGED]).length;
  $("taught").textContent =
    `Added: ${written(added)}, in ${rates.length} updates at rates of ` +
    `${rates.map((rate) => rate.toPrecision(2)).join(", ")}, by the exact objective: as often and as strongly as it ` +
    `would have been learnt in the training text, unless the command said otherwise. Measured: ${written(other)}. ` +
    `Before each stands \u201c${before}\u201d` +
    (outside ? `. ${outside} of their words are not in V and count as ${WORDS[MERGED]}.` : ".");

  // What both sentences have is learnt, not generalised: without it stands what the other words became.
  const shared = [...new Set(other.words)].filter((word) => added.words.includes(word));
  const apart = (sentence, kind) => changes(sentence, kind).filter((_, i) => !added.words.includes(sentence.words[i]));
  const every = of("scrambled").length;
  const rows = [
    ["added", `added: ${written(added)}`, of("added"), changes],
    ["other", `measured: ${written(other)}`, of("other"), changes],
    ["apart", `measured, without what both have: ${shared.join(", ")}`, shared.length ? of("other") : [], apart],
    ["scrambled", `control: its words in ${every} random orders`, of("scrambled"), changes],
    ["unrelated", `control: ${every} times other words, each about as frequent`, of("unrelated"), changes],
  ]
    .filter(([, , list]) => list.length)
    .map(([role, said, list, what]) => [
      said,
      ...kinds.flatMap((kind) => {
        const sums = list.map((sentence) => total(what(sentence, kind)));
        const ends = [Math.min(...sums), Math.max(...sums)].map((end) => Math.exp(end).toPrecision(3));
        const marks = { "data-role": role, "data-kind": kind, "data-change": mean(sums) };
        return [make("span", marks, times(mean(sums))), sums.length > 1 ? `${ends[0]} to ${ends[1]}` : ""];
      }),
    ]);
  const head = ["sentence", ...kinds.flatMap((kind) => [`P by ${label[kind]}`, "range"])];
  const tables = [table("What became of the probability of each sentence (of several: the geometric mean)", head, rows)];

  const controls = [...of("scrambled"), ...of("unrelated")].map((sentence) => total(apart(sentence, "network")));
  const beaten = controls.filter((change) => total(apart(other, "network")) > change).length;
  const verdict =
    `Without words of the added sentence, the measured one gained more than ${beaten} of ${controls.length} controls. Only ` +
    "if it gains more than nearly all of them does the network carry over what it learnt to words that play the same parts.";
  tables.push(make("p", { id: "verdict", "data-beaten": beaten }, verdict));

  for (const sentence of [added, other]) {
    const words = sentence.text.map((word, i) => {
      const known = word === sentence.words[i] ? word : `${word} \u2192 ${sentence.words[i]}`;
      return sentence === other && shared.includes(sentence.words[i]) ? `${known} (in both)` : known;
    });
    const lines = kinds.flatMap((kind) => [
      [`ln P by ${label[kind]}, before`, ...[...sentence[kind].before, total(sentence[kind].before)].map((x) => minus(x.toFixed(3)))],
      ["change", ...[...changes(sentence, kind), total(changes(sentence, kind))].map(signed)],
    ]);
    if (sentence === other) {
      const mates = of("unrelated").map((one) => changes(one, "network"));
      const means = other.words.map((_, i) => mean(mates.map((one) => one[i])));
      lines.splice(2, 0, [`${label.network}: mean change of other words there`, ...[...means, total(means)].map(signed)]);
    }
    tables.push(table(`Word by word: ${written(sentence)}`, ["", ...words, "sum"], lines));
  }
  $("sentence-tables").replaceChildren(...tables);
}

// --- about -----------------------------------------------------------------------------------------------------------

function showFacts() {
  const commit = DATA.commit ? DATA.commit.slice(0, 12) + (DATA.modified ? ", with changes" : "") : "unknown";
  $("about").textContent = `Study ${DATA.study}, vocabulary policy ${DATA.policy}; nplm2003 ${DATA.version}, commit ${commit}.`;
  $("vocabulary").textContent =
    `it has ${whole(V)} symbols, and one of them, ${WORDS[MERGED]}, stands for every word outside. What you type that V ` +
    "lacks is shown as that symbol.";
  $("mapped").textContent = `Both show the ${whole(DATA.frequent.length)} most frequent words; rarer ones have hardly left their random start.`;
  const facts = {
    Study: `${DATA.study}, ${DATA.title}`,
    Commit: commit,
    "Training text": `${whole(TRAIN.length)} words; licence: ${DATA.licence}`,
    ...Object.fromEntries(
      DATA.networks.map((net) => [
        net.model,
        `${whole(net.parameters)} parameters, preset ${net.preset}, seed ${net.seed}. Its weights are rounded to 8 bits ` +
          `here, which moves ln P of a word by ${net.rounding.typical.toPrecision(2)} (root mean square) and by ` +
          `${net.rounding.largest.toPrecision(2)} at most, in contexts of the validation text. The perplexity is the ` +
          "network’s own.",
      ]),
    ),
  };
  for (const [term, text] of Object.entries(facts)) $("facts").append(make("dt", {}, term), make("dd", {}, text));
}

function start() {
  showFacts();
  showModels();
  const first = DATA.networks[0].sentence.sentences;
  $("context").value = first.find((sentence) => sentence.role === "added").text.slice(0, -1).join(" ");
  for (const id of ["context", "asked"]) $(id).addEventListener("input", showNext);
  showNext();
  chooser($("features-of"), () => {
    changeView(0);
    showNeighbours();
  });
  $("word").addEventListener("input", showNeighbours);
  const known = first.flatMap((sentence) => sentence.words).filter((word) => DATA.frequent.includes(IDS.get(word)));
  const long = known.reduce((best, word) => (word.length > best.length ? word : best), "");
  $("word").value = long || WORDS[DATA.frequent[0]];
  listenToMap();
  showNeighbours();
  chooser($("sentence-of"), showSentence);
  showSentence();
}

start();
