'use strict';
// Draws the charts, and moves between translations and attention maps. All text is set as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById('report-data').textContent);
  const byId = (id) => document.getElementById(id);
  const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = matchMedia('(prefers-color-scheme: dark)');
  const heat = () => [colour('--heat-0'), colour('--heat-1'), colour('--heat-2')];
  const failed = (error) => { console.error(error); };

  // ---- charts

  function options() {
    const text = { labelColor: 'var(--ink-2)', titleColor: 'var(--ink-2)', labelFontSize: 12, titleFontSize: 12,
      titleFontWeight: 500 };
    return {
      renderer: 'svg', actions: false, mode: 'vega-lite', tooltip: { theme: isDark.matches ? 'dark' : 'light' },
      config: {
        background: 'transparent', font: colour('--font').replaceAll('"', ''), view: { stroke: null },
        axis: { ...text, gridColor: 'var(--line)', domainColor: 'var(--line-2)', tickColor: 'var(--line-2)' },
        axisY: { domain: false, ticks: false, labelPadding: 6 },
        legend: { ...text, symbolType: 'stroke', symbolStrokeWidth: 3 },
        header: { ...text, labelColor: 'var(--ink)', labelFontSize: 13 },
        range: { heatmap: heat(), category: ['var(--accent)', 'var(--second)', 'var(--ink-2)'] },
      },
    };
  }

  const views = new Map();
  const drawings = new Map();

  /** Draw after what is being drawn there, so that the last one asked for stays. */
  function draw(id, spec) {
    const before = drawings.get(id) ?? Promise.resolve();
    const drawing = before.catch(() => {}).then(() => embed(id, structuredClone(spec)));
    drawings.set(id, drawing);
    return drawing;
  }

  async function embed(id, spec) {
    views.get(id)?.finalize();
    const result = await vegaEmbed(byId(id), spec, options());
    views.set(id, result.view);
    byId(id).dataset.drawn = 'yes';
    return result.view;
  }

  function drawCharts() {
    for (const [name, spec] of Object.entries(data.charts)) draw(`chart-${name}`, spec).catch(failed);
    drawHeads();
  }

  function drawHeads() {
    const select = byId('measure');
    if (!select) return;
    const spec = structuredClone(data.heads[select.value]);
    const kinds = new Set(spec.data.values.map((row) => row.kind)).size;
    const heads = Math.max(...spec.data.values.map((row) => row.head));
    const room = byId('chart-heads').parentElement.clientWidth;
    spec.columns = Math.max(1, Math.min(kinds, Math.floor(room / (heads * 52 + 60))));
    draw('chart-heads', spec).catch(failed);
  }

  // ---- translations

  const FIRST = 10;

  function showTranslations() {
    const wanted = byId('find').value.trim().toLocaleLowerCase();
    let found = 0;
    for (const list of document.querySelectorAll('.list')) {
      const isChosen = list.id === `list-${chosen('list')}`;
      list.hidden = !isChosen;
      if (!isChosen) continue;
      const more = list.querySelector('.more');
      const isShort = more.dataset.all !== 'yes' && !wanted;
      const items = [...list.querySelectorAll('.translations > li')];
      items.forEach((item, index) => {
        const isFound = item.textContent.toLocaleLowerCase().includes(wanted);
        item.hidden = !isFound || (isShort && index >= FIRST);
        found += isFound ? 1 : 0;
      });
      more.hidden = !isShort || items.length <= FIRST;
    }
    byId('found').textContent = wanted ? `${found} found in this list` : '';
  }

  function startTranslations() {
    if (!byId('find')) return;
    byId('list').addEventListener('change', showTranslations);
    byId('find').addEventListener('input', showTranslations);
    for (const button of document.querySelectorAll('.more')) {
      button.addEventListener('click', () => { button.dataset.all = 'yes'; showTranslations(); });
    }
    showTranslations();
  }

  // ---- attention

  const cursor = { query: -1, key: -1 };
  const LARGEST_CELL = 60;
  const SMALLEST_CELL = 18;
  const LABEL_PIXELS = 130;

  const sentence = () => data.attention[Number(byId('sentence').value)];
  const shownView = () => sentence().kinds[chosen('kind')][chosen('level')];

  /** The weights of one head or the mean of several, as numbers from 0 to 1: queries by keys, flat. */
  function weightsOf(view, layer, head) {
    const layers = layer === 'mean' ? view.weights : [view.weights[Number(layer)]];
    const maps = layers.flatMap((heads) => (head === 'mean' ? heads : [heads[Number(head)]]));
    return maps[0].map((_, cell) => maps.reduce((sum, map) => sum + map[cell], 0) / maps.length / data.units);
  }

  function fillChoices(select, number, name) {
    const before = select.value;
    const entries = [...(number > 1 ? [['mean', `mean of all ${number}`]] : []),
      ...Array.from({ length: number }, (_, index) => [String(index), `${name} ${index + 1}`])];
    select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
    if (entries.some(([value]) => value === before)) select.value = before;
  }

  function showSentence() {
    byId('shown-source').textContent = sentence().source;
    byId('shown-translation').textContent = sentence().translation;
    const view = shownView();
    fillChoices(byId('layer'), view.weights.length, 'layer');
    fillChoices(byId('head'), view.weights[0].length, 'head');
    cursor.query = -1;
    showHeads();
    showWeights().catch(failed);
  }

  async function showWeights() {
    const view = shownView();
    const weights = weightsOf(view, byId('layer').value, byId('head').value);
    const numbered = (word, index) => `${String(index).padStart(4, '0')}|${word}`;
    const cells = view.queries.flatMap((query, q) => view.keys.map((key, k) => ({
      query: numbered(query, q), key: numbered(key, k), query_word: query, key_word: key,
      weight: weights[q * view.keys.length + k], q, k,
    })));
    const spec = structuredClone(data.attention_chart);
    spec.data.values = cells;
    const room = (byId('heatmap').clientWidth - LABEL_PIXELS) / view.keys.length;
    const step = Math.round(Math.max(SMALLEST_CELL, Math.min(LARGEST_CELL, room)));
    spec.width.step = step;
    spec.height.step = Math.min(step, 38);
    writeTable(view, weights);
    writeWords(view);
    markPressed();
    const vega = await draw('chart-attention', spec);
    vega.addEventListener('pointerover', (_event, item) => {
      if (item?.datum && item.datum.q !== undefined) moveTo(item.datum.q, item.datum.k);
    });
    if (cursor.query >= 0) moveTo(cursor.query, cursor.key);
    else say('Point at a cell, or focus the heatmap and press the arrow keys.');
  }

  function say(text) { byId('readout').textContent = text; }

  /** Put the cursor on a cell: a frame around it, and its weight in words. */
  function moveTo(query, key) {
    const view = shownView();
    cursor.query = query;
    cursor.key = key;
    const weights = weightsOf(view, byId('layer').value, byId('head').value);
    const weight = weights[query * view.keys.length + key].toFixed(4);
    const bold = (text) => Object.assign(document.createElement('b'), { textContent: text });
    byId('readout').replaceChildren(bold(view.queries[query]), ' looks at ', bold(view.keys[key]), ': ', bold(weight));
    shadeWords(weights, query, view.keys.length);
    const paths = [...byId('chart-attention').querySelectorAll('.mark-rect.role-mark > path')];
    byId('chart-attention').querySelector('.cursor')?.remove();
    const path = paths[query * view.keys.length + key];
    if (!path) return;
    const frame = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    for (const name of ['d', 'transform']) {
      if (path.hasAttribute(name)) frame.setAttribute(name, path.getAttribute(name));
    }
    frame.setAttribute('class', 'cursor');
    path.parentNode.append(frame);
    if (document.activeElement === byId('heatmap')) path.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  function moveByKey(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const view = shownView();
    const within = (place, length) => Math.max(0, Math.min(length - 1, place));
    if (cursor.query < 0) moveTo(0, 0);
    else moveTo(within(cursor.query + move[0], view.queries.length), within(cursor.key + move[1], view.keys.length));
  }

  /** The words of both sides in a line; to point at a query, or tap it, shades what it looks at. */
  function writeWords(view) {
    const word = (text) => Object.assign(document.createElement('span'), { textContent: text, className: 'word' });
    byId('query-words').replaceChildren(...view.queries.map(word));
    byId('key-words').replaceChildren(...view.keys.map(word));
    [...byId('query-words').children].forEach((element, query) => {
      const strongest = () => {
        const weights = weightsOf(view, byId('layer').value, byId('head').value);
        const row = weights.slice(query * view.keys.length, (query + 1) * view.keys.length);
        moveTo(query, row.indexOf(Math.max(...row)));
      };
      element.addEventListener('pointerenter', strongest);
      element.addEventListener('click', strongest);
    });
  }

  function shadeWords(weights, query, numKeys) {
    const stops = heat().map(parsed);
    [...byId('query-words').children].forEach((word, index) => word.classList.toggle('here', index === query));
    [...byId('key-words').children].forEach((word, key) => {
      const share = Math.sqrt(weights[query * numKeys + key]);
      word.style.background = mixed(stops, Math.min(1, share));
      word.style.color = share > 0.62 ? 'var(--heat-text-high)' : 'var(--heat-text-low)';
    });
  }

  function writeTable(view, weights) {
    const cell = (kind, text) => Object.assign(document.createElement(kind), { textContent: text });
    const row = (cells) => { const line = document.createElement('tr'); line.append(...cells); return line; };
    const head = document.createElement('thead');
    head.append(row([cell('td', ''), ...view.keys.map((key) => cell('th', key))]));
    const body = document.createElement('tbody');
    view.queries.forEach((query, q) => {
      const numbers = weights.slice(q * view.keys.length, (q + 1) * view.keys.length);
      body.append(row([cell('th', query), ...numbers.map((weight) => cell('td', weight.toFixed(4)))]));
    });
    byId('weights').replaceChildren(head, body);
  }

  /** A small picture of every head, each a button that chooses it. */
  function showHeads() {
    const view = shownView();
    const columns = view.weights[0].length;
    byId('thumbnails').style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const buttons = view.weights.flatMap((heads, layer) => heads.map((_, head) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.title = columns > 1 ? `Layer ${layer + 1}, head ${head + 1}` : `Layer ${layer + 1}`;
      button.setAttribute('aria-label', button.title);
      Object.assign(button.dataset, { layer, head });
      button.append(picture(view, weightsOf(view, layer, head)));
      button.addEventListener('click', () => {
        const isChosen = button.getAttribute('aria-pressed') === 'true';
        const mean = (select) => (select.options[0].value === 'mean' ? 'mean' : '0');
        byId('layer').value = isChosen ? mean(byId('layer')) : String(layer);
        byId('head').value = isChosen ? mean(byId('head')) : String(head);
        showWeights().catch(failed);
      });
      return button;
    }));
    byId('thumbnails').replaceChildren(...buttons);
    markPressed();
  }

  function markPressed() {
    const fits = (select, value) => byId(select).value === 'mean' || byId(select).value === value;
    const isMean = byId('layer').value === 'mean' && byId('head').value === 'mean';
    for (const button of byId('thumbnails').children) {
      const isShown = !isMean && fits('layer', button.dataset.layer) && fits('head', button.dataset.head);
      button.setAttribute('aria-pressed', String(isShown));
    }
  }

  function picture(view, weights) {
    const canvas = document.createElement('canvas');
    canvas.width = view.keys.length;
    canvas.height = view.queries.length;
    const context = canvas.getContext('2d');
    const stops = heat().map(parsed);
    weights.forEach((weight, cell) => {
      context.fillStyle = mixed(stops, Math.sqrt(Math.min(1, weight)));
      context.fillRect(cell % canvas.width, Math.floor(cell / canvas.width), 1, 1);
    });
    return canvas;
  }

  const parsed = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));

  /** The colour at a share of the scale, as Vega interpolates it. */
  function mixed(stops, share) {
    const place = share * (stops.length - 1);
    const below = Math.min(Math.floor(place), stops.length - 2);
    const parts = stops[below].map((part, index) => part + (stops[below + 1][index] - part) * (place - below));
    return `rgb(${parts.map(Math.round).join(' ')})`;
  }

  function startAttention() {
    if (!byId('sentence') || !data.attention.length) return;
    for (const id of ['sentence', 'kind', 'level']) byId(id).addEventListener('change', showSentence);
    for (const id of ['layer', 'head']) byId(id).addEventListener('change', () => showWeights().catch(failed));
    byId('heatmap').addEventListener('keydown', moveByKey);
    showSentence();
  }

  // ---- the page

  function startNavigation() {
    const links = new Map([...document.querySelectorAll('nav a')].map((link) => [link.hash.slice(1), link]));
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) links.get(entry.target.id)?.classList.toggle('here', entry.isIntersecting);
    }, { rootMargin: '-49.9% 0px -50% 0px' });
    for (const section of document.querySelectorAll('main > section')) observer.observe(section);
  }

  function redrawWhenWidthChanges() {
    let width = window.innerWidth;
    let waiting = 0;
    window.addEventListener('resize', () => {
      if (window.innerWidth === width) return;
      width = window.innerWidth;
      clearTimeout(waiting);
      waiting = setTimeout(() => { drawHeads(); if (byId('sentence')) showWeights().catch(failed); }, 150);
    });
  }

  startNavigation();
  startTranslations();
  startAttention();
  drawCharts();
  byId('measure')?.addEventListener('change', drawHeads);
  isDark.addEventListener('change', () => { drawCharts(); if (byId('sentence')) showSentence(); });
  redrawWhenWidthChanges();
})();
