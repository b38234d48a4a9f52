"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const made = (name, text, kind) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };

  // ---- charts, in the page's own colours
  function configuration() {
    const style = getComputedStyle(document.documentElement);
    const [ink, faint, rule] = ["--ink", "--faint", "--rule"].map((name) => style.getPropertyValue(name).trim());
    const font = "system-ui, sans-serif";
    return {
      background: "transparent", font,
      axis: { labelColor: ink, titleColor: ink, tickColor: faint, domainColor: faint, gridColor: rule, labelFontSize: 11, titleFontSize: 12, titleFontWeight: "normal", labelLimit: 120 },
      view: { stroke: null },
    };
  }
  async function draw(holder, spec) {
    const width = Math.max(220, holder.clientWidth);
    // The run that was clicked in the legend of the section is shown alone.
    const fading = (each) => {
      const value = { area: 0.15, rule: 0.6 }[each.mark.type] ?? 1;
      const condition = { test: "chosen === null || datum.run === chosen", value };
      return { ...each, encoding: { ...each.encoding, opacity: { condition, value: 0.03 } } };
    };
    const faded = spec.layer ? { ...spec, layer: spec.layer.map(fading) } : fading(spec);
    const alone = holder.closest("section").querySelector(".legend [aria-pressed=true]");
    const chosen = { name: "chosen", value: alone?.dataset.run ?? null };
    const whole = {
      $schema: "https://vega.github.io/schema/vega-lite/v6.json",
      ...faded, params: [...(spec.params ?? []), chosen], width, height: 260, autosize: { type: "fit", contains: "padding" },
    };
    const result = await vegaEmbed(holder, whole, { actions: false, renderer: "svg", ast: true, config: configuration(), tooltip: { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light" } });
    return result;
  }
  const drawn = new Map();
  async function drawAll() {
    for (const section of document.querySelectorAll("section[data-section]"))
      for (const holder of section.querySelectorAll("[data-chart]")) {
        drawn.get(holder)?.finalize();
        drawn.set(holder, await draw(holder, data[section.dataset.section].charts[holder.dataset.chart]));
      }
    document.documentElement.dataset.drawn = drawn.size;
  }
  for (const button of document.querySelectorAll(".legend button"))
    button.addEventListener("click", () => {
      const alone = button.getAttribute("aria-pressed") !== "true", section = button.closest("section");
      for (const each of section.querySelectorAll(".legend button")) each.setAttribute("aria-pressed", alone && each === button);
      for (const holder of section.querySelectorAll("[data-chart]")) drawn.get(holder)?.view.signal("chosen", alone ? button.dataset.run : null).run();
    });
  let width = innerWidth, waiting = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 200);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll();

  // ---- every kernel: sorted by any column, filtered by words and by what differs
  const pageSize = 50;
  function kernelTable(holder, found) {
    const state = { column: null, down: false, words: "", which: "all", shown: pageSize };
    const many = found.names.length > 1;
    const columns = [
      { name: "kernel", of: (row) => row.id, text: true }, { name: "task", of: (row) => row.task, text: true },
      ...found.names.map((name, place) => ({ name, place, of: (row) => sortValue(row.runs[place]) })),
      { name: "label", of: (row) => row.label }, { name: "lower bound", of: (row) => row.bound },
      { name: "instructions", of: (row) => row.instructions }, { name: "virtual registers", of: (row) => row.registers },
    ];
    // Wrong before valid, then by registers.
    function sortValue(run) {
      return run === null ? null : run[0] === 0 ? -1 : run[2] ?? 0;
    }
    const bar = made("div", undefined, "bar"), number = document.querySelectorAll(".kernels input").length;
    const words = made("input"), which = made("select"), told = made("span", "", "told");
    words.type = "search";
    words.placeholder = "id or task";
    words.setAttribute("aria-label", "Show kernels whose id or task contains");
    which.setAttribute("aria-label", "Which kernels");
    for (const [value, text] of [["all", "all kernels"], ["failed", "not always valid in some run"], ...(many ? [["differ", "where runs differ in validity"], ["registers", "where runs differ in registers"]] : [])]) {
      const option = made("option", text);
      option.value = value;
      which.append(option);
    }
    told.setAttribute("role", "status");
    bar.append(words, which, told);
    const region = made("div", undefined, "table"), table = made("table"), head = made("tr"), body = made("tbody");
    region.tabIndex = 0;
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", "Every kernel");
    const more = made("button", "show more"), command = made("pre", undefined, "command");
    command.hidden = true;
    command.id = `command${number}`;
    for (const column of columns) {
      const cell = made("th", undefined, column.text ? "key" : ""), button = made("button", column.name);
      cell.scope = "col";
      button.onclick = () => {
        state.down = state.column === column ? !state.down : false;
        state.column = column;
        show();
      };
      cell.append(button);
      column.cell = cell;
      head.append(cell);
    }
    table.append(made("caption", "Every kernel"), made("thead"), body);
    table.tHead.append(head);
    region.append(table);
    holder.append(bar, command, region, more);
    const full = (run) => run !== null && run[0] === run[1];
    const wanted = {
      all: () => true,
      failed: (row) => row.runs.some((run) => run !== null && !full(run)),
      differ: (row) => new Set(row.runs.filter((run) => run !== null).map((run) => run[0] / run[1])).size > 1,
      registers: (row) => new Set(row.runs.filter((run) => run?.[2] != null).map((run) => run[2])).size > 1,
    };
    function chosen() {
      const parts = state.words.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = found.rows.filter((row) => wanted[state.which](row) && parts.every((part) => `${row.id} ${row.task} ${row.split}`.toLowerCase().includes(part)));
      if (!state.column) return rows;
      const sign = state.down ? -1 : 1, of = state.column.of;
      return rows.sort((a, b) => {
        const [x, y] = [of(a), of(b)];
        if (x === y) return 0;
        if (x === null) return 1; // what there is not comes last either way
        if (y === null) return -1;
        return (x < y ? -1 : 1) * sign;
      });
    }
    function tell(row) {
      const lines = [];
      if (found.assign) lines.push(`verilocc-bench show ${row.id}${found.dataset}${row.split === "test" ? "" : ` --split ${row.split}`} -o ${row.id}.html`);
      row.runs.forEach((run, place) => {
        if (run !== null && !full(run)) lines.push(`verilocc-bench failures ${found.folders[place]} --id ${row.id}`);
      });
      command.textContent = lines.join("\n");
      command.hidden = !lines.length;
      command.scrollIntoView({ block: "nearest" });
    }
    function verdict(row, run) {
      if (run === null) return made("td", "–");
      const cell = made("td"), best = Math.min(...row.runs.map((each) => each?.[2] ?? Infinity));
      const share = run[1] === 1 ? (run[0] ? "" : "wrong") : `${run[0]}/${run[1]}`;
      cell.className = run[0] === 0 ? "bad" : full(run) ? "good" : "part";
      if (run[2] === null) cell.textContent = run[1] === 0 ? "–" : share || "valid";
      else {
        const registers = made("span", String(run[2]));
        if (many && run[2] === best) registers.className = "least";
        cell.append(registers);
        if (row.label !== null && run[2] !== row.label) cell.append(made("small", (run[2] > row.label ? "+" : "−") + Math.abs(run[2] - row.label)));
        if (share) cell.append(made("small", share));
      }
      return cell;
    }
    function show() {
      const rows = chosen();
      for (const column of columns) {
        if (column === state.column) column.cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        else column.cell.removeAttribute("aria-sort");
      }
      body.replaceChildren(...rows.slice(0, state.shown).map((row) => {
        const line = made("tr"), name = made("th", undefined, "key"), button = made("button", row.id, "id");
        name.scope = "row";
        button.setAttribute("aria-controls", command.id);
        button.title = "the commands that tell more";
        button.onclick = () => tell(row);
        name.append(button);
        const figure = (value) => made("td", value === null ? "–" : value.toLocaleString("en"));
        line.append(name, made("td", row.task, "key"), ...row.runs.map((run) => verdict(row, run)));
        line.append(figure(row.label), figure(row.bound), figure(row.instructions), figure(row.registers));
        return line;
      }));
      told.textContent = `${rows.length.toLocaleString("en")} of ${found.rows.length.toLocaleString("en")} kernels`;
      more.hidden = rows.length <= state.shown;
    }
    words.oninput = () => { state.words = words.value; state.shown = pageSize; show(); };
    which.onchange = () => { state.which = which.value; state.shown = pageSize; show(); };
    more.onclick = () => { state.shown += 10 * pageSize; show(); };
    show();
    holder.append(made("p", "Registers that the first valid sample uses, beside it how far it is from the label, and how many samples are valid where there are several; the least are in bold. A click on an id shows the commands that tell more.", "meaning"));
  }
  for (const section of document.querySelectorAll("section[data-section]"))
    kernelTable(section.querySelector(".kernels"), data[section.dataset.section].kernels);
})();
