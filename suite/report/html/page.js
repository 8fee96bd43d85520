// Makes tables sortable: a button in each head; without this script the tables are simply not sortable.
"use strict";
const value = (row, place) => {
  const cell = row.cells[place];
  return cell.dataset.sort === undefined ? cell.textContent.trim() : Number(cell.dataset.sort);
};
const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b, "en", { numeric: true });
};
const sortBy = (table, place) => {
  const head = table.tHead.rows[0].cells[place];
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((a, b) => compare(value(a, place), value(b, place)));
  body.append(...(down ? rows.reverse() : rows));
};
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    const name = head.textContent.trim();
    if (!name || name === "bar") return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => sortBy(table, place));
    head.replaceChildren(button);
  });
}
// A printed page shows where each finding was seen. All results stay folded unless the reader opens them: many pages.
addEventListener("beforeprint", () => document.querySelectorAll(".findings details").forEach((part) => (part.open = true)));
