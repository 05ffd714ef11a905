"use strict";
(() => {
  const d = document, all = (q, e = d) => [...e.querySelectorAll(q)];
  const make = (name, set, ...inner) => {
    const e = d.createElement(name);
    for (const k in set) k in e ? (e[k] = set[k]) : e.setAttribute(k, set[k]);
    e.append(...inner);
    return e;
  };
  d.documentElement.classList.add("js");

  // Numbers as the page writes them: a narrow space between thousands, a real minus, a mark in front.
  const value = (cell) => {
    const text = cell.textContent.trim();
    const number = parseFloat(text.replace(/^[~≤≥+\s]+/, "").replace(/\u2212/g, "-").replace(/\u202f/g, ""));
    return [text, number];
  };
  const compare = (a, b) => {
    const [x, y] = [a[1], b[1]], [p, q] = [Number.isNaN(x), Number.isNaN(y)];
    return p || q ? p - q || a[0].localeCompare(b[0]) : x - y;
  };
  const sortable = (table) => {
    const body = table.tBodies[0], heads = all("thead tr > *", table);
    if (body.rows.length < 4) return;
    heads.forEach((head, column) => {
      if (!head.textContent) return;
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const number = head.classList.contains("n");
        const keyed = [...body.rows].map((row) => [row, value(row.cells[column])]);
        // What has no value stays at the end, whichever way.
        const empty = (key) => key[0] === "";
        keyed.sort(([, a], [, b]) => empty(a) - empty(b) ||
          (up ? 1 : -1) * (number ? compare(a, b) : a[0].localeCompare(b[0], "en", { numeric: true })));
        table.classList.add("sorted");
        body.append(...keyed.map(([row]) => row));
      });
    });
  };

  const filterable = (table) => {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 6) return;
    const data = table.dataset, count = make("output", { "aria-live": "polite" });
    const text = make("input", { type: "search", placeholder: "part of a name", autocomplete: "off" });
    const tools = make("div", { className: "tools" }, make("label", {}, "Filter ", text));
    const checks = [], add = (label, keeps) => {
      const box = make("input", { type: "checkbox" });
      checks.push([box, keeps]);
      tools.append(make("label", {}, box, label));
    };
    let kind = null;
    if (data.kinds) {
      const option = (name) => make("option", { value: name }, name);
      kind = make("select", {}, make("option", { value: "" }, "all"), ...data.kinds.split("\n").map(option));
      tools.append(make("label", {}, "Kind ", kind));
    }
    if (rows.some((row) => row.dataset.t)) add("failed or doubtful", (row) => row.dataset.t);
    if (data.quiet) add("hide what is " + data.quiet, (row) => !row.classList.contains("quiet"));
    const texts = new Map();
    const apply = () => {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let seen = 0;
      for (const row of rows) {
        if (words.length && !texts.has(row)) texts.set(row, row.textContent.toLowerCase());
        const shows = words.every((word) => texts.get(row).includes(word)) &&
          (!kind || !kind.value || row.dataset.k === kind.value) &&
          checks.every(([box, keeps]) => !box.checked || keeps(row));
        row.hidden = !shows;
        seen += shows;
      }
      count.textContent = seen === rows.length ? rows.length + " rows" : seen + " of " + rows.length + " rows";
    };
    tools.append(count);
    tools.addEventListener("input", apply);
    table.parentNode.before(tools);
    apply();
  };
  all("table.sort").forEach((table) => {
    sortable(table);
    if ("filter" in table.dataset) filterable(table);
  });

  // What does not scroll is no stop for the tab key; looked at when it comes into sight.
  const seen = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target }) => {
    if (isIntersecting) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  }));
  all(".scroll").forEach((one) => seen.observe(one));

  // Items: all at once, and the one that a link leads to.
  const items = all("details.item");
  if (items.length > 1) {
    const button = (text, open) => make("button", { type: "button", className: "b",
      onclick: () => items.forEach((item) => (item.open = open)) }, text);
    d.querySelector(".items").before(make("div", { className: "tools" }, button("Open all", true), button("Close all", false)));
  }
  const arrive = () => {
    const to = location.hash && d.getElementById(location.hash.slice(1));
    for (let e = to; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    if (to) to.scrollIntoView();
  };
  addEventListener("hashchange", arrive);
  arrive();
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach((one) => (one.open = true));
  });
  addEventListener("afterprint", () => closed.forEach((one) => (one.open = false)));

  // Plots: the values at a place, by pointer and by arrow keys, out of the plot's own table.
  all("figure.plot").forEach((figure) => {
    const plot = figure.querySelector(".pl"), table = figure.querySelector("table");
    const heads = all("thead tr > *", table).map((head) => head.textContent);
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map(value));
    if (!rows.length) return;
    const low = +plot.dataset.x0, high = +plot.dataset.x1, steps = "steps" in plot.dataset;
    const cross = make("div", { className: "cross", hidden: true }), tip = make("div", { className: "tip", hidden: true });
    plot.append(cross, tip);
    plot.tabIndex = 0;
    for (const [k, v] of [["role", "slider"], ["aria-valuemin", rows[0][0][1]], ["aria-valuemax", rows.at(-1)[0][1]]]) plot.setAttribute(k, v);
    let at = 0;
    const show = (index) => {
      at = Math.max(0, Math.min(rows.length - 1, index));
      const row = rows[at], text = heads.map((head, i) => head + " " + row[i][0]).join(" · ");
      const share = ((row[0][1] - low) / (high - low)) * 100;
      cross.style.left = share + "%";
      tip.style[share > 50 ? "right" : "left"] = (share > 50 ? 100 - share : share) + 1 + "%";
      tip.style[share > 50 ? "left" : "right"] = "auto";
      tip.textContent = text;
      cross.hidden = tip.hidden = false;
      plot.setAttribute("aria-valuenow", row[0][1]);
      plot.setAttribute("aria-valuetext", text);
    };
    const hide = () => (cross.hidden = tip.hidden = true);
    plot.setAttribute("aria-valuenow", rows[0][0][1]);
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const x = low + ((event.clientX - box.left) / box.width) * (high - low);
      // A step holds up to its own place; a point is where it is.
      let best = rows.findIndex((row) => row[0][1] >= x);
      if (best < 0) best = rows.length - 1;
      if (!steps && best > 0 && x - rows[best - 1][0][1] < rows[best][0][1] - x) best--;
      show(best);
    });
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("blur", hide);
    plot.addEventListener("focus", () => plot.matches(":focus-visible") && show(at));
    plot.addEventListener("keydown", (event) => {
      const far = Math.max(1, Math.round(rows.length / 10));
      const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageUp: at + far, PageDown: at - far,
        Home: 0, End: rows.length - 1 }[event.key];
      if (event.key === "Escape") hide();
      if (to === undefined) return;
      event.preventDefault();
      show(to);
    });
  });

  // Flame graphs: a frame over the whole width.
  all("figure.flame").forEach((figure) => {
    const items = all("li", figure);
    figure.querySelector(".hint").hidden = items.length < 8;
    const reset = () => items.forEach((item) => item.classList.remove("off", "all"));
    const zoom = (item) => {
      reset();
      for (let e = item; e && e !== figure; e = e.parentElement) {
        if (e.tagName !== "LI") continue;
        e.classList.add("all");
        for (const other of e.parentElement.children) if (other !== e) other.classList.add("off");
      }
    };
    all(".f:not(.rest)", figure).forEach((frame) => {
      frame.tabIndex = 0;
      frame.setAttribute("role", "button");
      const act = () => zoom(frame.parentElement);
      frame.addEventListener("click", act);
      frame.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
        if (event.key === "Escape") reset();
      });
    });
  });

  // Light or dark, against what the system says.
  const root = d.documentElement;
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme:dark)").matches ? "dark" : "light")) === "dark";
  const theme = make("button", { type: "button", className: "b" });
  const name = () => (theme.textContent = isDark() ? "Light" : "Dark");
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  name();
  d.querySelector("nav ul").append(make("li", {}, theme));
})();
