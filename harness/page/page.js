'use strict';
// Optional: the page shows all of this without scripts. Everything works with a keyboard.
(() => {
  const all = (selector, inside = document) => Array.from(inside.querySelectorAll(selector));
  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  // Notes of points: shown without delay, and read out.
  const tip = make('div', { className: 'tip', role: 'status' });
  const notes = new Map();
  document.body.append(tip);
  let at = null;

  const show = (mark) => {
    if (at) at.classList.remove('at');
    at = mark;
    tip.textContent = mark ? notes.get(mark) : '';
    if (!mark) return;
    mark.classList.add('at');
    const box = mark.getBoundingClientRect();
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const left = Math.max(8, Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, room));
    const above = box.top - tip.offsetHeight - 8;
    tip.style.transform = `translate(${left}px, ${above > 8 ? above : box.bottom + 8}px)`;
  };

  const hidden = (mark) => mark.closest('.c-hidden') !== null;

  for (const chart of all('svg.c-chart')) {
    const marks = [];
    for (const title of all('title', chart)) {
      if (title.parentNode === chart) continue;
      notes.set(title.parentNode, title.textContent);
      marks.push(title.parentNode);
      title.remove();
    }
    if (marks.length > 0) {
      chart.setAttribute('tabindex', '0');
      chart.setAttribute('role', 'group');
      chart.setAttribute('aria-description', 'Left and right arrow keys read its points.');
      chart.addEventListener('keydown', (event) => {
        if (event.target !== chart) return;
        const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
        if (event.key === 'Escape') show(null);
        if (!(event.key in steps)) return;
        event.preventDefault();
        const there = marks.filter((mark) => !hidden(mark));
        if (there.length === 0) return;
        const next = there.indexOf(at) + steps[event.key];
        show(there[Math.max(0, Math.min(next, there.length - 1))]);
      });
      chart.addEventListener('blur', () => show(null));
    }
    const keys = all('.c-key[data-series]', chart);
    if (keys.length < 2) continue;
    chart.setAttribute('role', 'group');
    for (const key of keys) {
      const toggle = () => {
        const shown = key.getAttribute('aria-pressed') === 'true';
        key.setAttribute('aria-pressed', String(!shown));
        for (const series of all(`.c-series[data-series="${key.dataset.series}"]`, chart))
          series.classList.toggle('c-hidden', shown);
      };
      key.setAttribute('role', 'button');
      key.setAttribute('tabindex', '0');
      key.setAttribute('aria-pressed', 'true');
      key.addEventListener('click', toggle);
      key.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        toggle();
      });
    }
  }
  document.addEventListener('pointerover', (event) => {
    const mark = notes.has(event.target) ? event.target : null;
    if (mark || (at && event.pointerType === 'mouse')) show(mark);
  });
  document.addEventListener('scroll', () => at && show(null), { passive: true, capture: true });

  // Tables: sorted by a click on a title, filtered by words.
  const factors = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18, m: 1e-3, u: 1e-6, n: 1e-9,
                    Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3, Ti: 1024 ** 4 };
  const value = (text, unit) => {
    const match = /^[^\d+-]*([+-]?[\d.,]+(?:e[+-]?\d+)?)\s*(.*)$/.exec(text);
    if (!match) return text === 'inf' ? Infinity : -Infinity;
    const rest = unit && match[2].endsWith(unit) ? match[2].slice(0, -unit.length) : match[2];
    const prefix = unit ? rest : (/^([kMGTPE])[A-Za-z]/.exec(rest) || ['', ''])[1];
    return Number(match[1].replace(/,/g, '')) * (factors[prefix] || 1);
  };

  for (const table of all('.scroll > table:not(.facts-table)')) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    all('th', table.tHead).forEach((head, column) => {
      const number = table.classList.contains(`n${column + 1}`);
      const button = make('button', { type: 'button' });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const down = number ? head.ariaSort !== 'descending' : head.ariaSort === 'ascending';
        for (const other of all('th', table.tHead)) other.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        const cell = (row) => row.cells[column].textContent;
        const order = number
          ? (a, b) => value(cell(a), head.dataset.unit) - value(cell(b), head.dataset.unit) || 0
          : (a, b) => cell(a).localeCompare(cell(b), 'en', { numeric: true });
        rows.sort((a, b) => (down ? order(b, a) : order(a, b)));
        body.append(...rows);
      });
    });
    if (rows.length < 9 || table.closest('.told')) continue;
    const label = 'Filter these rows by words';
    const filter = make('input', { type: 'search', className: 'filter', placeholder: 'filter', ariaLabel: label });
    // The table of all cases also by parts of the id (suite/workload/dimensions/precision/...), and by verdict.
    const part = (row, at) => row.cells[1].textContent.split('/')[at] || '';
    const kinds = table.closest('.cases')
      ? [['suite', (row) => part(row, 0)], ['precision', (row) => part(row, 3)], ['verdict', (row) => row.cells[0].textContent]]
      : [];
    const chosen = kinds.map(([name, of]) => {
      const select = make('select', { className: 'filter', ariaLabel: `Filter by ${name}` },
        make('option', { value: '', textContent: `every ${name}` }));
      for (const word of new Set(rows.map(of))) select.append(make('option', { value: word, textContent: word }));
      return [select, of];
    });
    const found = make('span', { className: 'found', role: 'status' });
    const apply = () => {
      const words = filter.value.toLowerCase().split(/\s+/);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word)) ||
          !chosen.every(([select, of]) => select.selectedIndex === 0 || of(row) === select.value);
        shown += row.hidden ? 0 : 1;
      }
      found.textContent = shown === rows.length ? '' : `${shown} of ${rows.length}`;
    };
    for (const input of [filter, ...chosen.map(([select]) => select)]) input.addEventListener('input', apply);
    table.parentNode.before(make('div', { className: 'filters' }, ...chosen.map(([select]) => select), filter, found));
  }

  for (const line of all('code.rerun')) {
    const button = make('button', { type: 'button', className: 'copy', textContent: 'Copy' });
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(line.textContent);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(line);
        button.textContent = 'Selected';
      }
    });
    line.after(button);
  }
})();
