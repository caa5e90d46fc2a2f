'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const steps = data.rewards.length;
  const last = steps; // The film has one more frame: what came after the last decision.
  const film = $('film');
  const gaze = data.gaze;
  const maps = gaze && gaze.maps ? Uint8Array.from(atob(gaze.maps), (c) => c.charCodeAt(0)) : null;
  let overlay = gaze ? 'patches' : 'none';
  if (!gaze) document.querySelector('[aria-label="Overlay"]').style.display = 'none';
  let step = 0;
  // Until someone touches it, a moment from the middle of the drive is on show; it plays from the start all the same.
  let poster = !location.hash.startsWith('#step=');
  let speed = 1;
  let wanted = null;

  // A Blob can be sought in everywhere; a data address cannot on every phone.
  try {
    const bytes = Uint8Array.from(atob(film.src.slice(film.src.indexOf(',') + 1)), (c) => c.charCodeAt(0));
    film.src = URL.createObjectURL(new Blob([bytes], { type: 'video/mp4' }));
  } catch (_) { /* the address as it stands will do */ }

  const said = (value, digits) => (value < 0 ? '−' : '') + Math.abs(value).toFixed(digits);
  const colour = (name) => getComputedStyle(root).getPropertyValue('--' + name).trim();
  const ratio = Math.min(window.devicePixelRatio || 1, 2);

  // Screens

  const seen = $('seen'), world = $('world');
  const [seenX, seenY, seenW, seenH] = data.seen;
  seen.width = seenW * 2; seen.height = seenH * 2;
  if (data.world) {
    world.width = data.world[2]; world.height = data.world[3];
  } else {
    $('world-screen').remove();
    document.querySelector('.screens').classList.add('single');
  }

  // How far the action changes without the patch of this rank; null where that was not measured.
  function effectOf(at, rank) {
    const effects = gaze.effects;
    const row = effects ? effects.rows[Math.floor(at / effects.every)] : null;
    return row && rank < row.length ? row[rank] : null;
  }

  function drawScreens() {
    if (film.readyState < 2) return;
    if (data.world) {
      world.getContext('2d').drawImage(film, ...data.world, 0, 0, world.width, world.height);
    }
    const pen = seen.getContext('2d');
    pen.imageSmoothingEnabled = false;
    pen.drawImage(film, seenX, seenY, seenW, seenH, 0, 0, seen.width, seen.height);
    if (!gaze || overlay === 'none') return;
    const across = seen.width / gaze.width, down = seen.height / gaze.height;
    const at = Math.min(step, steps - 1);
    if (overlay === 'patches' && step < steps) {
      const looked = gaze.at[at];
      for (let rank = looked.length - 1; rank >= 0; rank--) {
        const patch = looked[rank], opacity = 1 - rank / looked.length;
        const x = patch % gaze.columns * gaze.stride * across;
        const y = Math.floor(patch / gaze.columns) * gaze.stride * down;
        const w = gaze.patch * across, h = gaze.patch * down;
        pen.fillStyle = 'rgba(255,255,255,' + 0.75 * opacity + ')';
        pen.fillRect(x, y, w, h);
        // Brightness is the claim; the border is the measured effect, where there is one.
        const effect = effectOf(at, rank);
        const strength = effect === null ? 0.25 + 0.75 * opacity : Math.min(1, effect / gaze.effects.most);
        const line = effect === null ? 3 : 1.5 + 5 * strength;
        pen.lineWidth = line;
        pen.strokeStyle = effect === null ? 'rgba(255,182,77,' + strength + ')'
          : 'rgb(' + Math.round(70 + 185 * strength) + ',' + Math.round(78 + 42 * strength) + ',' + Math.round(110 - 80 * strength) + ')';
        pen.strokeRect(x + line / 2, y + line / 2, w - line, h - line);
      }
    }
    if (overlay === 'heat' && maps) {
      const count = gaze.columns * gaze.rows;
      const start = Math.floor(at / gaze.every) * count;
      pen.fillStyle = 'rgba(8,10,16,.55)';
      pen.fillRect(0, 0, seen.width, seen.height);
      const side = gaze.stride, inset = (gaze.patch - gaze.stride) / 2;
      for (let i = 0; i < count; i++) {
        const level = maps[start + i] / 255;
        if (level < 0.03) continue;
        const x = (i % gaze.columns * side + inset) * across, y = (Math.floor(i / gaze.columns) * side + inset) * down;
        pen.fillStyle = 'rgba(255,' + Math.round(120 + 110 * level) + ',' + Math.round(40 + 140 * level * level) + ',' + level + ')';
        pen.fillRect(x, y, side * across + 0.5, side * down + 0.5);
      }
    }
  }

  // Traces

  const inks = ['control', 'other', 'loss', 'extra', 'gaze'];
  const tracks = [];
  data.names.forEach((name, i) => tracks.push({ name, values: data.actions[i], bounds: data.bounds[i], ink: inks[i % 4] }));
  const bounds = (values) => {
    const low = Math.min(0, ...values), high = Math.max(0, ...values);
    return high > low ? [low, high] : [low, low + 1];
  };
  tracks.push({ name: 'reward', values: data.rewards, bounds: bounds(data.rewards), ink: 'muted', bars: true });
  tracks.push({ name: 'score', values: data.scores, bounds: bounds(data.scores), ink: 'text' });
  if (gaze) tracks.push({ name: 'importance', values: data.shares, bounds: [0, Math.max(...data.shares, 0.01)], ink: 'gaze', fill: true });
  const sheet = document.createElement('canvas');
  $('traces').append(sheet);
  const LEFT = 78, RIGHT = 62, ROW = 46, GAP = 8;
  let plot = null;

  const backdrop = document.createElement('canvas');

  function drawTraces() {
    const width = $('traces').clientWidth;
    if (!width) return;
    const height = tracks.length * (ROW + GAP);
    sheet.width = backdrop.width = width * ratio;
    sheet.height = backdrop.height = height * ratio;
    sheet.style.height = height + 'px';
    const pen = backdrop.getContext('2d');
    pen.scale(ratio, ratio);
    pen.font = '12px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    const inner = width - LEFT - RIGHT;
    const x = (t) => LEFT + (steps > 1 ? t / (steps - 1) : 0) * inner;
    tracks.forEach((track, row) => {
      const top = row * (ROW + GAP) + GAP / 2, [low, high] = track.bounds;
      const y = (v) => top + ROW - (v - low) / (high - low) * ROW;
      pen.fillStyle = colour('muted');
      pen.textAlign = 'right';
      pen.fillText(track.name, LEFT - 10, top + ROW / 2);
      pen.strokeStyle = colour('grid');
      pen.lineWidth = 1;
      pen.beginPath();
      const zero = low <= 0 && high >= 0 ? y(0) : y(low);
      pen.moveTo(LEFT, zero); pen.lineTo(width - RIGHT, zero);
      pen.stroke();
      pen.strokeStyle = pen.fillStyle = colour(track.ink);
      pen.lineWidth = 1.4;
      if (track.bars) {
        track.values.forEach((v, t) => {
          const from = y(v);
          pen.globalAlpha = 0.8;
          pen.fillRect(LEFT + t / steps * inner, Math.min(from, zero), Math.max(inner / steps, 0.7), Math.max(Math.abs(zero - from), 0.4));
        });
        pen.globalAlpha = 1;
      } else {
        pen.beginPath();
        track.values.forEach((v, t) => (t ? pen.lineTo(x(t), y(v)) : pen.moveTo(x(t), y(v))));
        pen.stroke();
        if (track.fill) {
          pen.lineTo(x(steps - 1), y(low)); pen.lineTo(x(0), y(low));
          pen.globalAlpha = 0.18; pen.fill(); pen.globalAlpha = 1;
        }
      }
    });
    plot = { width, height, inner, x };
    drawCursor();
  }

  function drawCursor() {
    if (!plot) return;
    const pen = sheet.getContext('2d');
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, sheet.width, sheet.height);
    pen.drawImage(backdrop, 0, 0);
    pen.scale(ratio, ratio);
    pen.font = '12px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    const at = Math.min(step, steps - 1), x = plot.x(at);
    pen.strokeStyle = colour('gaze');
    pen.lineWidth = 1.5;
    pen.beginPath(); pen.moveTo(x, 0); pen.lineTo(x, plot.height); pen.stroke();
    pen.textAlign = 'left';
    tracks.forEach((track, row) => {
      const top = row * (ROW + GAP) + GAP / 2, [low, high] = track.bounds, v = track.values[at];
      pen.fillStyle = colour(track.ink);
      pen.beginPath(); pen.arc(x, top + ROW - (v - low) / (high - low) * ROW, 3, 0, 7); pen.fill();
      pen.fillStyle = colour('text');
      pen.fillText(track.name === 'importance' ? Math.round(v * 100) + ' %' : said(v, Math.abs(v) >= 100 ? 0 : 2), plot.width - RIGHT + 10, top + ROW / 2);
    });
  }

  // Time

  function show(now) {
    step = Math.max(0, Math.min(last, now));
    $('scrub').value = step;
    $('clock').textContent = 'step ' + step + ' of ' + last + ' · ' + (step / data.fps).toFixed(2) + ' s';
    const at = Math.min(step, steps - 1);
    const parts = data.names.map((name, i) => name + ' <b>' + said(data.actions[i][at], 2) + '</b>');
    if (gaze) parts.push('the ' + gaze.at[at].length + ' patches hold <b>' + Math.round(data.shares[at] * 100) + ' %</b> of all importance');
    if (gaze && gaze.effects) {
      const effects = gaze.at[at].map((_, rank) => effectOf(at, rank) ?? 0), most = Math.max(...effects);
      parts.push('the patch that moves the action most is number <b>' + (effects.indexOf(most) + 1) + '</b> by attention (<b>' + said(most * 100, 1) + ' %</b>)');
    }
    $('readout').innerHTML = step < steps ? parts.join(' · ') : 'the end: score <b>' + said(data.scores[steps - 1], 1) + '</b>';
    drawScreens();
    drawCursor();
  }

  const frameOf = (seconds) => Math.min(last, Math.floor(seconds * data.fps + 1e-3));

  function seek(to) {
    poster = false;
    to = Math.max(0, Math.min(last, Math.round(to)));
    show(to);
    wanted = to;
    if (!film.seeking) goWhereWanted();
  }

  function goWhereWanted() {
    if (wanted === null) return;
    film.currentTime = (wanted + 0.5) / data.fps;
    wanted = null;
  }

  film.addEventListener('seeked', () => {
    if (wanted !== null) goWhereWanted(); else drawScreens();
  });
  film.addEventListener('loadeddata', () => show(step));
  film.addEventListener('play', () => { $('play').textContent = '❚❚'; tick(); });
  film.addEventListener('pause', () => { $('play').textContent = '▶'; });
  film.addEventListener('ended', () => show(last));

  function tick() {
    if (film.paused) return;
    if (film.requestVideoFrameCallback) {
      film.requestVideoFrameCallback((_, frame) => { show(frameOf(frame.mediaTime + 0.5 / data.fps)); tick(); });
    } else {
      requestAnimationFrame(() => { show(frameOf(film.currentTime)); tick(); });
    }
  }

  function toggle() {
    if (!film.paused) { film.pause(); return; }
    if (poster || step >= last) film.currentTime = 0;
    poster = false;
    film.playbackRate = speed;
    film.play().catch(() => {});
  }

  // Hands

  $('scrub').max = last;
  $('scrub').addEventListener('input', (event) => { film.pause(); seek(Number(event.target.value)); });
  $('play').addEventListener('click', toggle);
  const point = (event) => {
    const box = sheet.getBoundingClientRect();
    film.pause();
    seek((event.clientX - box.left - LEFT) / plot.inner * (steps - 1));
  };
  sheet.addEventListener('pointerdown', (event) => { sheet.setPointerCapture(event.pointerId); point(event); });
  sheet.addEventListener('pointermove', (event) => { if (event.buttons) point(event); });
  const choose = (attribute, value) => document.querySelectorAll('[data-' + attribute + ']').forEach((button) => {
    button.classList.toggle('on', button.dataset[attribute] === String(value));
  });
  function setOverlay(name) { overlay = gaze ? name : 'none'; choose('overlay', overlay); drawScreens(); }
  document.querySelectorAll('[data-overlay]').forEach((b) => b.addEventListener('click', () => setOverlay(b.dataset.overlay)));
  document.querySelectorAll('[data-speed]').forEach((b) => b.addEventListener('click', () => {
    speed = Number(b.dataset.speed); film.playbackRate = speed; choose('speed', b.dataset.speed);
  }));
  function theme() {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    drawTraces();
  }
  $('theme').addEventListener('click', theme);
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = event.shiftKey ? 10 : 1;
    const actions = {
      ' ': toggle, ArrowLeft: () => { film.pause(); seek(step - by); }, ArrowRight: () => { film.pause(); seek(step + by); },
      Home: () => seek(0), End: () => seek(last), 1: () => setOverlay('patches'), 2: () => setOverlay('heat'), 3: () => setOverlay('none'), d: theme,
    };
    // Keys are the player's while it can be seen; a button or a heading in focus has the space bar.
    const fold = $('player').closest('details');
    const elsewhere = event.key !== 'd' && fold && !fold.open;
    const onButton = ['BUTTON', 'SUMMARY'].includes(event.target.tagName) && event.key === ' ';
    if (actions[event.key] && !elsewhere && !onButton) { event.preventDefault(); actions[event.key](); }
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawTraces);
  new ResizeObserver(drawTraces).observe($('traces'));
  const posted = poster;
  seek(posted ? steps / 4 : Number(location.hash.slice(6)) || 0);
  poster = posted;
})();
