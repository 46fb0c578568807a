"use strict";
// What is nicer with a script: counting what is ticked, and progress without a reload. Everything else works without.
(() => {
  const all = document.getElementById("all");
  const picked = document.getElementById("picked");
  if (all && picked) {
    const boxes = [...document.querySelectorAll('.convos input[name="c"]')];
    const others = Number(picked.dataset.others ?? 0); // ticked on another page of the list
    const count = () => {
      const n = boxes.filter((box) => box.checked).length;
      picked.textContent = `${n + others} selected`;
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

  const cancel = document.getElementById("cancel");
  if (cancel) document.addEventListener("keydown", (event) => event.key === "Escape" && cancel.click());

  // An estimate is of what the panel was set to when it was counted.
  document.getElementById("run")?.addEventListener("change", () => {
    const said = document.querySelector("#estimate [data-changed]");
    if (!said) return;
    said.textContent = said.dataset.changed;
    document.querySelector("#estimate .sum").classList.add("old");
  });

  // A part of the page that will look otherwise in a moment is asked for again, and put in place of what was there.
  const poll = (part) => {
    const every = Number(part.dataset.poll);
    if (!every) return;
    setTimeout(async () => {
      let page = null;
      try {
        const answer = await fetch(location.href, { headers: { accept: "text/html" } });
        if (answer.status >= 500) return poll(part); // the store is busy, say
        page = new DOMParser().parseFromString(await answer.text(), "text/html");
      } catch {
        poll(part); // the server may be there again
        return;
      }
      const fresh = page.getElementById(part.id);
      if (!fresh) return location.reload();
      if (fresh.dataset.state && fresh.dataset.state === part.dataset.state) {
        for (const live of part.querySelectorAll("[data-live]")) {
          const now = fresh.querySelector(`[data-live="${live.dataset.live}"]`);
          if (!now) continue;
          if (live.value === undefined) live.textContent = now.textContent;
          else live.value = now.value;
        }
        poll(part);
      } else if (fresh.dataset.state) {
        document.getElementById("main").replaceWith(page.getElementById("main"));
        poll(document.getElementById(part.id));
      } else {
        part.replaceWith(fresh);
        poll(fresh);
      }
    }, every);
  };
  for (const part of document.querySelectorAll("[data-poll]")) poll(part);
})();
