// While jobs are active, fetch the page again and replace its live part.
// Only that part: files chosen in the upload form stay chosen.
(() => {
  "use strict";
  const PERIOD = 1500;

  async function refresh() {
    const live = document.getElementById("live");
    if (!live || !("active" in live.dataset)) return;
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
        if (answer.ok) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          const fresh = page.getElementById("live");
          // Replacing would take the focus from somebody who is in there, or undo a selection.
          const inUse = live.contains(document.activeElement) || String(getSelection());
          if (fresh && fresh.innerHTML !== live.innerHTML && !inUse) live.replaceWith(fresh);
        }
      } catch {
        // The server is away for a moment: ask again.
      }
    }
    setTimeout(refresh, PERIOD);
  }

  setTimeout(refresh, PERIOD);
})();
