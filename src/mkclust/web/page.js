(() => {
  "use strict";
  const say = (text) => { document.getElementById("status").textContent = text; };

  // Plots.
  const narrow = () => window.innerWidth < 600;
  const settings = {
    responsive: true,
    displayModeBar: false,
    displaylogo: false,
    showSendToCloud: false,
    showEditInChartStudio: false,
  };
  const frame = {
    font: { family: "system-ui, sans-serif", size: 13, color: "#222222" },
    paper_bgcolor: "#ffffff",
    plot_bgcolor: "#ffffff",
    hoverlabel: { bgcolor: "#ffffff", bordercolor: "#9a9a9a", font: { color: "#222222" }, align: "left" },
  };
  // Two names for every entry of a map of pairs are known from one list of names.
  const complete = (trace) => {
    const { pairs, ...rest } = trace;
    // What its shades mean stands below the plot, too, where there is room for it.
    if (narrow()) rest.showscale = false;
    if (!pairs) return rest;
    return { ...rest, text: pairs.map((row) => pairs.map((column) => `${row}<br>${column}`)) };
  };
  const drawn = [];
  for (const figure of document.querySelectorAll("figure")) {
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const layout = { ...frame, ...spec.layout };
    // A finger that scrolls the page must not be taken for one that zooms.
    if (narrow() || matchMedia("(pointer: coarse)").matches) layout.dragmode = false;
    const place = figure.querySelector(".plot");
    const button = figure.querySelector("button.save");
    drawn.push(Plotly.newPlot(place, spec.data.map(complete), layout, settings).then(() => {
      button.hidden = false;
      button.addEventListener("click", () => Plotly.downloadImage(place, {
        format: "svg", width: 900, height: place.clientHeight, filename: figure.id,
      }));
    }));
  }
  Promise.all(drawn).then(() => { document.documentElement.dataset.drawn = drawn.length; });
  // Paper is narrower than most windows.
  const resize = (width) => document.querySelectorAll(".plot").forEach((place) => (
    width ? Plotly.relayout(place, { width }) : Plotly.relayout(place, { autosize: true, width: null })
  ));
  window.addEventListener("beforeprint", () => resize(Math.min(680, document.body.clientWidth)));
  window.addEventListener("afterprint", () => resize(null));

  // Tables.
  const compare = (one, other, down) => {
    if (one.none || other.none) return one.none - other.none;
    const order = typeof one.key === "number" && typeof other.key === "number"
      ? one.key - other.key
      : String(one.key).localeCompare(String(other.key), "en", { numeric: true });
    return down ? -order : order;
  };
  const key = (row, at) => {
    const cell = row.cells[at];
    if (!("value" in cell.dataset)) return { key: cell.textContent, none: 0 };
    return { key: Number(cell.dataset.value), none: Number(cell.dataset.value === "") };
  };
  for (const button of document.querySelectorAll("thead button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const table = head.closest("table");
      // Numbers are asked for the largest first, names from the beginning of the alphabet.
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const second = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? second : first;
      for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", order);
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => ({ row, ...key(row, head.cellIndex) }));
      rows.sort((one, other) => compare(one, other, order === "descending"));
      body.append(...rows.map(({ row }) => row));
      say(`${table.caption.textContent}: sorted by ${button.textContent}, ${order}`);
    });
  }

  // Texts to be copied.
  for (const button of document.querySelectorAll("button.copy")) {
    const text = button.previousElementSibling;
    button.hidden = false;
    button.addEventListener("click", () => {
      const range = document.createRange();
      range.selectNodeContents(text);
      const selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      // The clipboard proper is closed to pages that are files.
      const done = document.execCommand("copy");
      say(done ? "Copied." : "Selected: copy it with the keyboard.");
      button.textContent = done ? "Copied" : "Selected";
    });
  }
})();
