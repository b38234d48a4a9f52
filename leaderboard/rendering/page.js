"use strict";
// Sorting and filtering of the tables, which are there without it.
(() => {
  const holder = document.getElementById("data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent);
  const form = document.getElementById("filters");
  const status = document.getElementById("status");
  const missing = "–";
  const share = (value) => `${(100 * value).toFixed(1)} %`;

  function passed(figures, k) {
    return figures && figures.passed.find((each) => each[0] === k);
  }

  const template = document.querySelector(".bar");

  function bar(found) {
    const copy = template.cloneNode(true);
    const [, value, low, high] = found;
    copy.querySelector(".value").setAttribute("width", 100 * value);
    const interval = copy.querySelector(".interval");
    interval.setAttribute("x", 100 * low);
    interval.setAttribute("width", Math.max(100 * (high - low), 0.6));
    return copy;
  }

  function fill(cell, figures) {
    const name = cell.dataset.figure;
    if (name.startsWith("pass@")) {
      const found = passed(figures, Number(name.slice(5)));
      cell.dataset.value = found ? found[1] : "";
      const figure = document.createElement("span");
      figure.className = "figure";
      figure.textContent = found ? share(found[1]) : missing;
      cell.replaceChildren(figure);
      if (found) {
        const interval = document.createElement("small");
        interval.textContent = `${(100 * found[2]).toFixed(1)}–${(100 * found[3]).toFixed(1)}`;
        cell.append(" ", interval);
        if (template) cell.append(bar(found));
      }
    } else if (name === "score") {
      const [value, low, high] = (figures && figures.score) || ["", null, null];
      cell.dataset.value = value;
      cell.textContent = value === "" ? missing : value.toFixed(3);
      if (low !== null) {
        const interval = document.createElement("small");
        interval.textContent = `${low.toFixed(3)}–${high.toFixed(3)}`;
        cell.append(" ", interval);
      }
    } else if (name === "occupancy") {
      const known = figures && figures.gained !== null;
      cell.dataset.value = known ? figures.gained - figures.lost : "";
      cell.textContent = known ? `+${figures.gained} −${figures.lost}` : missing;
    } else {
      const value = figures ? figures[name] : null;
      cell.dataset.value = value === null ? "" : value;
      const digits = { above_bound: 2, spill_cost: 1, move_cost: 1 }[name] ?? 3;
      const whole = digits === 2 && Number.isInteger(value);
      const grouped = { minimumFractionDigits: digits, maximumFractionDigits: digits };
      cell.textContent = value === null ? missing : whole ? `${value}` : value.toLocaleString("en", grouped);
      if (["registers", "conflicts", "spill_cost"].includes(name) && figures && figures.valid < figures.kernels) {
        const note = document.createElement("small");
        note.textContent = `of ${figures.valid} valid`;
        cell.append(" ", note);
      }
    }
  }

  function compare(a, b, column, direction, text) {
    const [x, y] = [a, b].map((row) => row.children[column].dataset.value);
    if (x === "" || y === "") return (x === "") - (y === ""); // what is missing comes last
    return direction * (text ? x.localeCompare(y, "en") : x - y);
  }

  function sort(table, column, direction) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      if (at === column) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    const text = heads[column].dataset.sort === "text";
    const rows = [...table.tBodies[0].rows];
    // Rows that are equal there: by spill cost, on the split track.
    const cost = table.querySelector("tbody [data-figure=spill_cost]");
    const tied = (a, b) => (cost ? compare(a, b, cost.cellIndex, 1, false) : 0);
    rows.sort((a, b) => compare(a, b, column, direction, text) || tied(a, b));
    table.tBodies[0].append(...rows);
    number(table);
  }

  // The rank is the place among the rows in sight; rows that the order cannot tell apart share one.
  function number(table) {
    const head = table.querySelector("[aria-sort]");
    let place = 0, rank = 0, last = null;
    for (const row of table.tBodies[0].rows) {
      if (row.hidden) continue;
      const cost = row.querySelector("[data-figure=spill_cost]"); // the second key of the split track
      const value = [head ? row.children[head.cellIndex].dataset.value : "", cost ? cost.dataset.value : ""];
      ++place;
      if (!value[0] || String(value) !== String(last)) rank = place;
      last = value;
      row.querySelector(".rank").textContent = rank;
    }
  }

  function fits(row, wanted) {
    if (wanted.text && !row.dataset.text.includes(wanted.text.trim().toLowerCase())) return false;
    const count = row.dataset.parameters === "" ? null : Number(row.dataset.parameters);
    switch (wanted.parameters) {
      case "all": return true;
      case "none": return count === null;
      case "more": return count !== null && count > 1e10;
      default: return count !== null && count <= Number(wanted.parameters);
    }
  }

  const usual = form.elements.sort.value;

  function sortAll(column) {
    for (const table of document.querySelectorAll("section[data-kind] table")) {
      sort(table, column, table.tHead.rows[0].cells[column].dataset.sort === "down" ? -1 : 1);
    }
  }

  function apply() {
    const wanted = Object.fromEntries(new FormData(form));
    const key = [wanted.architecture, wanted.family, wanted.size].join("|");
    const figures = data.figures[key] || {};
    let shown = 0;
    for (const section of document.querySelectorAll("section[data-kind]")) {
      let any = false;
      for (const row of section.querySelectorAll("tbody tr")) {
        const found = figures[row.dataset.entry] || null;
        for (const cell of row.querySelectorAll("[data-figure]")) fill(cell, found);
        row.hidden = found === null || !fits(row, wanted);
        any = any || !row.hidden;
        shown += !row.hidden;
      }
      section.hidden = !any || !["all", section.dataset.kind].includes(wanted.kind);
      if (section.hidden) {
        shown -= [...section.querySelectorAll("tbody tr")].filter((row) => !row.hidden).length;
      }
      const table = section.querySelector("table");
      const head = table.querySelector("[aria-sort]");
      number(table);
      if (head) sort(table, head.cellIndex, head.getAttribute("aria-sort") === "ascending" ? 1 : -1);
    }
    const kernels = Math.max(0, ...Object.values(figures).map((each) => (each ? each.kernels : 0)));
    const parts = [...document.querySelectorAll("section[data-kind] tbody tr")]
      .filter((row) => !figures[row.dataset.entry]).length;
    status.textContent = `${shown} ${shown === 1 ? "entry" : "entries"} on ${kernels} kernels`;
    if (parts) status.textContent += `; ${parts} more ${parts === 1 ? "answers" : "answer"} some architectures alone: choose one`;
    const bound = data.bound[key];
    for (const cell of document.querySelectorAll("[data-bound]")) {
      cell.textContent = typeof bound === "number" ? bound.toFixed(3) : missing;
    }
    for (const cell of document.querySelectorAll("[data-possible]")) {
      cell.textContent = data.possible[key] ? data.possible[key].join(" of ") : missing;
    }
    const kept = new URLSearchParams();
    for (const [name, value] of Object.entries(wanted)) if (value && value !== "all" && !(name === "sort" && value === usual)) kept.set(name, value);
    const text = kept.toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  }

  for (const table of document.querySelectorAll("section[data-kind] table")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.dataset.sort) return; // the rank follows
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const first = head.dataset.sort === "down" ? -1 : 1;
        const direction = before ? (before === "ascending" ? -1 : 1) : first;
        sort(table, column, direction);
        form.elements.sort.value = column;
        const way = direction > 0 ? "ascending" : "descending";
        status.textContent = `sorted by ${button.firstChild.textContent.trim()}, ${way}`;
      });
    });
  }

  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    const field = [...form.elements].find((each) => each.name === name);
    if (!field) continue;
    const known = field.tagName !== "SELECT" || [...field.options].some((each) => each.value === value);
    if (known) field.value = value;
  }
  form.hidden = false;
  sortAll(Number(form.elements.sort.value));
  form.addEventListener("change", (event) => {
    if (event.target.name === "sort") sortAll(Number(event.target.value));
    apply();
  });
  form.elements.text.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  // The event "reset" comes before the fields change; this way the tables follow in the same step.
  form.querySelector("button[type=reset]").addEventListener("click", (event) => {
    event.preventDefault();
    form.reset();
    sortAll(Number(usual));
    apply();
  });
  apply();
})();
