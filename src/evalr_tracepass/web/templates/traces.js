"use strict";
// What is nicer with a script: counting what is ticked, and progress without a reload. Everything else works without.
(() => {
  for (const part of document.querySelectorAll("[data-needs-script]")) part.hidden = false;

  const all = document.getElementById("all");
  const picked = document.getElementById("picked");
  if (all && picked) {
    const boxes = [...document.querySelectorAll('.picking input[name="c"]')];
    const count = () => {
      const n = boxes.filter((box) => box.checked).length;
      picked.textContent = `${n} selected`;
      all.checked = n > 0 && n === boxes.length;
      all.indeterminate = n > 0 && n < boxes.length;
    };
    all.addEventListener("change", () => {
      for (const box of boxes) box.checked = all.checked;
      count();
    });
    for (const box of boxes) box.addEventListener("change", count);
    window.addEventListener("pageshow", count);
    count();
  }
})();
