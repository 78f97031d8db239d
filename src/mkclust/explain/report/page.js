"use strict";
const say = (text) => { document.getElementById("status").textContent = text; };

// The title of a column is a button that sorts by it: numbers first from the largest, words from A.
const compare = (one, other) => {
  if (one.none || other.none) return one.none - other.none;
  return typeof one.key === "number"
    ? one.key - other.key
    : one.key.localeCompare(other.key, "en", { numeric: true });
};
const key = (cell) => {
  if (!("value" in cell.dataset)) return { key: cell.textContent, none: 0 };
  return { key: Number(cell.dataset.value), none: Number(cell.dataset.value === "") };
};
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const table = head.closest("table");
    const first = head.classList.contains("number") ? "descending" : "ascending";
    const second = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? second : first;
    for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const sign = order === "descending" ? -1 : 1;
    const rows = [...table.tBodies[0].rows].map((row) => ({ row, ...key(row.cells[head.cellIndex]) }));
    rows.sort((one, other) => compare(one, other) * (one.none || other.none ? 1 : sign));
    table.tBodies[0].append(...rows.map(({ row }) => row));
    say(`${table.caption.textContent}: sorted by ${button.textContent}, ${order}`);
  });
}

// On paper nothing can be unfolded.
window.addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});

for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const selection = window.getSelection();
    selection.selectAllChildren(button.previousElementSibling);
    // The clipboard interface is closed to pages that are files.
    const done = document.execCommand("copy");
    say(done ? "Copied." : "Selected: copy it with the keyboard.");
    button.textContent = done ? "Copied" : "Selected";
  });
}
