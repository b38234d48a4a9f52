"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const pointCount = data.points.length;
const layers = { pressure: true, loops: true, conflicts: true, copies: true, clashes: true };
const left = 46, pressureHeight = 80, stripHeight = 12;
let view = [0, pointCount]; // the points that are shown: from the first to before the last
let active = null, pinned = null, atPoint = null;
const element = (name, parent, text, kind) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  parent.append(made);
  return made;
};
const tip = element("div", document.body);
tip.id = "tip";
tip.hidden = true;

// ---- colours: as in pictures of `show -o FILE.png`
function colourOf(register) {
  if (register < 0) return colours.fixed;
  const hue = (register * 0.618033988749895) % 1 * 360;
  return `hsl(${hue} 55% ${[46, 58, 68][register % 3]}%)`;
}
let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "faint", "rule", "paper", "empty", "accent", "line", "area", "fixed", "conflict", "copy", "loop"])
    colours[name] = style.getPropertyValue("--" + name).trim();
}

// ---- text: a line for each instruction, and where each register stands
const linesOf = new Map(); // register -> lines
const tokensOf = new Map(); // register -> elements
const pointOfLine = new Map();
data.points.forEach((line, point) => pointOfLine.set(line, point));
const textPane = document.getElementById("text");
const lineElements = data.text.map((text, number) => {
  const line = document.createElement("div");
  line.dataset.line = number;
  if (/^bb\d/.test(text)) line.className = "block";
  element("span", line, number + 1, "n");
  let end = 0;
  for (const match of text.matchAll(/%(\d+)/g)) {
    line.append(text.slice(end, match.index));
    const register = Number(match[1]), token = element("b", line, match[0]);
    token.dataset.register = register;
    end = match.index + match[0].length;
    if (!tokensOf.has(register)) { tokensOf.set(register, []); linesOf.set(register, []); }
    tokensOf.get(register).push(token);
    if (linesOf.get(register).at(-1) !== number) linesOf.get(register).push(number);
  }
  line.append(text.slice(end));
  return line;
});
textPane.append(...lineElements);

// ---- one picture for each answer
const files = data.files;
const rowCount = files.reduce((sum, file) => sum + file.used, 0);
const pictures = data.answers.map((answer) => {
  const box = element("section", document.getElementById("pictures"), undefined, "answer");
  if (data.answers.length > 1) element("h2", box, answer.source);
  element("p", box, answer.subtitle, answer.valid ? "subtitle" : "subtitle bad");
  const canvas = element("canvas", box);
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Registers by ${answer.source} over the points of the function. Arrow keys move, + and - zoom.`);
  const byUnit = new Map(), byRegister = new Map();
  for (let i = 0; i < answer.spans.length; i += 5) {
    const [register, lane, unit, first, last] = answer.spans.slice(i, i + 5);
    const span = { register, lane, unit, first, last };
    (byUnit.get(unit) ?? byUnit.set(unit, []).get(unit)).push(span);
    if (register >= 0) (byRegister.get(register) ?? byRegister.set(register, []).get(register)).push(span);
  }
  const picture = { answer, box, canvas, byUnit, byRegister, still: document.createElement("canvas") };
  if (answer.clashes.length) {
    const list = element("ul", box, undefined, "findings");
    for (const clash of answer.clashes.slice(0, 50)) {
      const button = element("button", element("li", list), clash[2]);
      button.onclick = () => showClash(clash);
    }
    if (answer.findings > 50) element("li", list, `and ${(answer.findings - 50).toLocaleString("en")} more`);
  }
  listen(picture);
  return picture;
});
const wrong = data.answers.some((answer) => !answer.valid);
document.getElementById("clashes").hidden = document.querySelector(".key .wrong").hidden = !wrong;
document.getElementById("title").textContent = data.title;
if (pictures.length > 1) document.getElementById("main").classList.add("two");

// ---- geometry
function layout(picture) {
  const width = picture.canvas.clientWidth;
  const row = Math.max(2.5, Math.min(12, 520 / rowCount));
  let y = 4;
  const found = { width, row, plot: width - left - 4, strips: {} };
  if (layers.pressure) { found.pressure = y; y += pressureHeight + 8; }
  found.files = files.map((file) => {
    const top = y;
    y += file.used * row + 8;
    return { ...file, top };
  });
  for (const name of ["conflicts", "copies", "loops"])
    if (layers[name]) { found.strips[name] = y; y += stripHeight + 4; }
  found.height = y;
  return found;
}
const xOf = (place, point) => left + (point - view[0]) / (view[1] - view[0]) * place.plot;
const pointAt = (place, x) => Math.floor(view[0] + (x - left) / place.plot * (view[1] - view[0]));
function unitY(place, unit) {
  for (const file of place.files)
    if (unit >= file.first && unit < file.first + file.used) return file.top + (unit - file.first) * place.row;
  return null;
}
function unitAt(place, y) {
  for (const file of place.files)
    if (y >= file.top && y < file.top + file.used * place.row) return file.first + Math.floor((y - file.top) / place.row);
  return null;
}
function nameOf(unit) {
  const file = files.find((each) => unit >= each.first && unit < each.first + each.count);
  return file.names.length ? file.names[unit - file.first] : file.name + (unit - file.first);
}

// ---- drawing: a still picture, and what the pointer is at above it
function drawStill(picture) {
  const place = picture.place = layout(picture), ratio = devicePixelRatio || 1;
  for (const canvas of [picture.canvas, picture.still]) {
    canvas.width = Math.round(place.width * ratio);
    canvas.height = Math.round(place.height * ratio);
  }
  picture.canvas.style.height = place.height + "px";
  const draw = picture.still.getContext("2d");
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.clearRect(0, 0, place.width, place.height);
  draw.font = "11px system-ui, sans-serif";
  draw.textAlign = "right";
  draw.textBaseline = "middle";
  const label = (text, y) => { draw.fillStyle = colours.faint; draw.fillText(text, left - 5, y); };
  const clip = (top, height) => { draw.save(); draw.beginPath(); draw.rect(left, top, place.plot, height); draw.clip(); };
  for (const file of place.files) {
    draw.fillStyle = colours.empty;
    draw.fillRect(left, file.top, place.plot, file.used * place.row);
    const step = file.names.length ? 1 : [1, 2, 4, 8, 16, 32, 64].find((s) => s * place.row >= 16);
    for (let index = 0; index < file.used; index += step)
      if (place.row * step >= 9 || index === 0) label(file.names[index]?.replace(/^.*_/, "") ?? file.name + index, file.top + (index + .5) * place.row);
  }
  for (const [unit, spans] of picture.byUnit) {
    const y = unitY(place, unit);
    if (y !== null) for (const span of spans) fillSpan(draw, place, span, y);
  }
  const faintness = Math.max(.12, Math.min(.6, place.plot / (view[1] - view[0]) / 4));
  for (const point of data.blocks) {
    const x = xOf(place, point);
    if (x <= left || x >= left + place.plot) continue;
    draw.fillStyle = colours.ink;
    draw.globalAlpha = faintness;
    for (const file of place.files) draw.fillRect(x - .25, file.top, .5, file.used * place.row);
    draw.globalAlpha = 1;
  }
  if (layers.pressure) drawPressure(draw, picture, place, clip, label);
  const marks = { conflicts: picture.answer.conflicts, copies: data.copies };
  const named = { conflicts: "banks", copies: "copies", loops: "loops" };
  for (const [name, y] of Object.entries(place.strips)) {
    label(named[name], y + stripHeight / 2);
    clip(y, stripHeight);
    if (name === "loops") {
      for (const [first, last, depth] of data.loops) {
        draw.globalAlpha = Math.min(1, .35 + .25 * depth);
        draw.fillStyle = colours.loop;
        draw.fillRect(xOf(place, first), y, xOf(place, last + 1) - xOf(place, first), stripHeight);
      }
      draw.globalAlpha = 1;
    } else {
      draw.fillStyle = name === "conflicts" ? colours.conflict : colours.copy;
      const wide = Math.max(1.5, place.plot / (view[1] - view[0]));
      for (const point of marks[name]) draw.fillRect(xOf(place, point), y, wide, stripHeight);
    }
    draw.restore();
  }
  if (layers.clashes) for (const [point, unit] of picture.answer.clashes) drawCross(draw, place, point, unit);
}
function fillSpan(draw, place, span, y) {
  if (span.last + 1 <= view[0] || span.first >= view[1]) return;
  const x0 = Math.max(left, xOf(place, span.first)), x1 = Math.min(left + place.plot, xOf(place, span.last + 1));
  draw.fillStyle = colourOf(span.register);
  draw.fillRect(x0, y, Math.max(.6, x1 - x0), place.row);
}
function drawPressure(draw, picture, place, clip, label) {
  const most = Math.max(picture.answer.used, ...data.pressure) * 1.08 || 1;
  const y = (value) => place.pressure + pressureHeight * (1 - value / most);
  clip(place.pressure, pressureHeight);
  draw.beginPath();
  draw.moveTo(left, y(0));
  for (let point = view[0]; point < view[1]; point++) {
    draw.lineTo(xOf(place, point), y(data.pressure[point]));
    draw.lineTo(xOf(place, point + 1), y(data.pressure[point]));
  }
  draw.lineTo(left + place.plot, y(0));
  draw.fillStyle = colours.area;
  draw.fill();
  draw.fillStyle = colours.accent;
  draw.fillRect(left, y(picture.answer.used) - .75, place.plot, 1.5);
  draw.restore();
  label(String(picture.answer.used), y(picture.answer.used));
  label("0", y(0) - 4);
}
function drawCross(draw, place, point, unit) {
  const y = point === null || unit === null ? null : unitY(place, unit);
  if (y === null || point < view[0] || point >= view[1]) return;
  const x = (xOf(place, point) + xOf(place, point + 1)) / 2, middle = y + place.row / 2;
  for (const [colour, width] of [[colours.paper, 6], [colours.accent, 2.5]]) {
    draw.strokeStyle = colour;
    draw.lineWidth = width;
    draw.beginPath();
    draw.moveTo(x - 5, middle - 5); draw.lineTo(x + 5, middle + 5);
    draw.moveTo(x + 5, middle - 5); draw.lineTo(x - 5, middle + 5);
    draw.stroke();
  }
}
function drawAbove(picture) {
  const draw = picture.canvas.getContext("2d"), ratio = devicePixelRatio || 1, place = picture.place;
  draw.setTransform(1, 0, 0, 1, 0, 0);
  draw.clearRect(0, 0, picture.canvas.width, picture.canvas.height);
  draw.drawImage(picture.still, 0, 0);
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  const register = pinned ?? active;
  if (register !== null) {
    draw.globalAlpha = .7;
    draw.fillStyle = colours.paper;
    for (const file of place.files) draw.fillRect(left, file.top, place.plot, file.used * place.row);
    draw.globalAlpha = 1;
    for (const span of picture.byRegister.get(register) ?? []) {
      const y = unitY(place, span.unit);
      if (y !== null) fillSpan(draw, place, span, y);
    }
    if (layers.clashes) for (const [point, unit] of picture.answer.clashes) drawCross(draw, place, point, unit);
  }
  if (atPoint !== null && atPoint >= view[0] && atPoint < view[1]) {
    draw.fillStyle = colours.ink;
    draw.globalAlpha = .6;
    draw.fillRect((xOf(place, atPoint) + xOf(place, atPoint + 1)) / 2 - .5, 0, 1, place.height);
    draw.globalAlpha = 1;
  }
}
let asked = false, stale = true;
function redraw(still) {
  stale ||= still;
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    if (stale) { readColours(); pictures.forEach(drawStill); stale = false; }
    pictures.forEach(drawAbove);
  });
}

// ---- what the pointer is at
let lit = [], litLine = null;
function light(register, line) {
  const shown = pinned ?? register;
  active = register;
  for (const token of lit) token.classList.remove("on");
  lit = shown === null ? [] : tokensOf.get(shown) ?? [];
  for (const token of lit) token.classList.add("on");
  if (litLine) litLine.classList.remove("at");
  litLine = line === null ? null : lineElements[line];
  if (litLine) litLine.classList.add("at");
  redraw(false);
}
function scrollTo(line) {
  const target = lineElements[line];
  if (target) textPane.scrollTop = target.offsetTop - textPane.offsetTop - textPane.clientHeight / 3;
}
function tellOf(picture, span) {
  const name = nameOf(span.unit);
  if (span.register < 0) return `${name}: named by the function\npoints ${span.first} to ${span.last}`;
  const [kind, width] = data.registers[span.register], lines = linesOf.get(span.register) ?? [];
  const lane = width > 1 ? `, lane ${span.lane} of ${width}` : "";
  const told = [`%${span.register}${lane} in ${name}`, `class ${kind}, base ${picture.answer.bases[span.register]}`,
    `lives from point ${span.first} to ${span.last} (${span.last - span.first + 1})`,
    `in ${lines.length} instructions: lines ${lines.slice(0, 8).map((n) => n + 1).join(", ")}${lines.length > 8 ? " …" : ""}`];
  return told.join("\n");
}
function spanAt(picture, event) {
  const box = picture.canvas.getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  if (x < left || x > left + picture.place.plot) return [null, null];
  const point = Math.max(0, Math.min(pointCount - 1, pointAt(picture.place, x))), unit = unitAt(picture.place, y);
  const here = (picture.byUnit.get(unit) ?? []).filter((span) => point >= span.first && point <= span.last);
  return [point, here.at(-1) ?? null, here];
}
function listen(picture) {
  const canvas = picture.canvas;
  let drag = null;
  canvas.onpointermove = (event) => {
    if (drag) {
      const moved = (drag.x - event.clientX) / picture.place.plot * (drag.view[1] - drag.view[0]);
      show(drag.view[0] + moved, drag.view[1] + moved);
      return;
    }
    const [point, span, here] = spanAt(picture, event);
    atPoint = point;
    light(span && span.register >= 0 ? span.register : null, point === null ? null : data.points[point]);
    if (point !== null) scrollTo(data.points[point]);
    tip.hidden = !span;
    if (span) {
      tip.textContent = here.toReversed().map((each) => tellOf(picture, each)).join("\n– and also –\n");
      tip.style.left = Math.max(0, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 6)) + "px";
      tip.style.top = Math.max(0, Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 6)) + "px";
    }
  };
  canvas.onpointerleave = () => { tip.hidden = true; atPoint = null; light(null, null); };
  canvas.onpointerdown = (event) => { drag = { x: event.clientX, view: [...view] }; canvas.setPointerCapture(event.pointerId); };
  canvas.onpointerup = (event) => {
    if (drag && Math.abs(drag.x - event.clientX) < 3) {
      const [, span] = spanAt(picture, event);
      pin(span && span.register >= 0 && span.register !== pinned ? span.register : null);
    }
    drag = null;
  };
  canvas.ondblclick = (event) => zoom(.5, spanAt(picture, event)[0]);
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : .8, spanAt(picture, event)[0]);
  }, { passive: false });
  canvas.onkeydown = (event) => {
    const step = (view[1] - view[0]) / 8;
    const does = { "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), "ArrowLeft": () => show(view[0] - step, view[1] - step), "ArrowRight": () => show(view[0] + step, view[1] + step), "Escape": () => pin(null) }[event.key];
    if (does) { event.preventDefault(); does(); }
  };
}
function pin(register) {
  pinned = register;
  document.getElementById("find").value = register === null ? "" : "%" + register;
  light(active, null);
  const lines = register === null ? [] : linesOf.get(register) ?? [];
  if (lines.length) scrollTo(lines[0]);
  document.getElementById("told").textContent = register === null ? "" : `%${register} is marked, in ${lines.length} instructions`;
}
function show(first, last) {
  const size = Math.max(8, Math.min(pointCount, Math.round(last - first)));
  const start = Math.max(0, Math.min(pointCount - size, Math.round(first)));
  view = [start, start + size];
  redraw(true);
}
function zoom(factor, about) {
  const middle = about ?? (view[0] + view[1]) / 2, part = (middle - view[0]) / (view[1] - view[0]);
  const size = (view[1] - view[0]) * factor;
  show(middle - part * size, middle + (1 - part) * size);
}
function showClash([point, , , register]) {
  pin(register);
  if (point === null) return;
  show(point - 40, point + 40);
  atPoint = point;
  light(null, data.points[point]);
  scrollTo(data.points[point]);
}
textPane.addEventListener("mouseover", (event) => {
  const line = event.target.closest("div[data-line]");
  if (!line) return;
  const token = event.target.closest("b");
  atPoint = pointOfLine.get(Number(line.dataset.line)) ?? null;
  light(token ? Number(token.dataset.register) : null, Number(line.dataset.line));
});
textPane.addEventListener("mouseleave", () => { atPoint = null; light(null, null); });
textPane.addEventListener("click", (event) => {
  const token = event.target.closest("b");
  if (!token) return;
  const register = Number(token.dataset.register);
  pin(register === pinned ? null : register);
});
document.getElementById("in").onclick = () => zoom(.5);
document.getElementById("out").onclick = () => zoom(2);
document.getElementById("whole").onclick = () => show(0, pointCount);
document.getElementById("find").oninput = (event) => {
  const match = /^%?(\d+)$/.exec(event.target.value.trim());
  const register = match && tokensOf.has(Number(match[1])) ? Number(match[1]) : null;
  const typed = event.target.value;
  pin(register);
  event.target.value = typed;
};
for (const box of document.querySelectorAll("[data-layer]"))
  box.onchange = () => { layers[box.dataset.layer] = box.checked; redraw(true); };
scrollTo(data.points[0]);
new ResizeObserver(() => redraw(true)).observe(document.getElementById("pictures"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(true));
redraw(true);
