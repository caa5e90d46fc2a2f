'use strict';
// Folds open where an address leads, in browsers that do not do so themselves, and for printing.
(() => {
  function lead() {
    const name = location.hash.slice(1);
    const at = name && document.getElementById(name.startsWith('step=') ? 'episode' : decodeURI(name));
    for (let part = at; part; part = part.parentElement) if (part.tagName === 'DETAILS') part.open = true;
    if (at) at.scrollIntoView();
  }
  addEventListener('hashchange', lead);
  lead();
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    opened.forEach((fold) => { fold.open = true; });
  });
  addEventListener('afterprint', () => opened.forEach((fold) => { fold.open = false; }));
})();
