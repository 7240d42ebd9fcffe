// rlnb/classroom/explorers/clip.py once more: compute, what `update` moves, and alt.
(() => {
  "use strict";
  const { fixed, signed } = window.rlnbText;
  const MAX_RATIO = 4;
  const SIGNS = [1, -1];
  const SHOWN = { both: [1, -1], positive: [1], negative: [-1] };
  const RATIOS = Array.from({ length: 800 }, (_, i) => ((i + 0.5) * MAX_RATIO) / 800);

  const compute = ({ epsilon_low, epsilon_high, dual = null, sign = "both" }) => {
    const band = [1 - epsilon_low, 1 + epsilon_high];
    const objective = (s, r) => {
      const value = Math.min(s * r, s * Math.min(Math.max(r, band[0]), band[1]));
      return s < 0 && dual !== null ? Math.max(value, s * dual) : value;
    };
    const slope = (s, r) => {
      if (s > 0) return r > band[1] ? 0 : 1;
      return r < band[0] || (dual !== null && r > dual) ? 0 : -1;
    };
    const marks = [
      ["down", Math.round(band[0] * 0.625 * 1e6) / 1e6],
      ["up", Math.round(band[1] * 1.25 * 1e6) / 1e6],
    ];
    if (dual !== null) marks.push(["far up", (dual + MAX_RATIO) / 2]);
    const corners = SIGNS.flatMap((s) => marks
      .filter(([moved]) => !(s > 0 && moved === "far up"))
      .map(([moved, ratio]) => ({
        sign: s, moved, ratio, objective: objective(s, ratio), slope: slope(s, ratio),
      })));
    const both = (f) => Object.fromEntries(SIGNS.map((s) => [s, RATIOS.map((r) => f(s, r))]));
    return {
      ratio: RATIOS, objective: both(objective), slope: both(slope), corners, band, dual, sign,
    };
  };

  const sentence = (s, corners, between) => {
    const parts = corners.map((c) =>
      `${c.moved} at ratio ${fixed(c.ratio, 2)}: slope ${signed(c.slope, 0)}, ` +
      `${c.slope !== 0 ? "alive" : "dead"}`);
    return `A = ${signed(s, 0)}    ${parts.join(between)}`;
  };

  // Points where a line bends: the others lie between them.
  const bends = (points) => points.filter((point, i) => {
    const [before, after] = [points[i - 1], points[i + 1]];
    return !before || !after || Math.abs(2 * point[1] - before[1] - after[1]) > 1e-9;
  });

  const parts = (data, frames) => {
    const at = (frame, x, y) => {
      const [x0, wide, y0, high, left, right, low, top] = frame;
      return [x0 + (wide * (x - left)) / (right - left), y0 + (high * (y - low)) / (top - low)];
    };
    const [left, right] = frames;
    const shown = SHOWN[data.sign];
    const [low, high] = data.band;
    const bands = frames.slice(0, 2).map((frame) => {
      const [bottom, top] = [frame[6], frame[7]];
      const box = [[low, bottom], [low, top], [high, top], [high, bottom]];
      return { path: box.map(([x, y]) => at(frame, x, y)), closed: true };
    });
    const line = (frame, values) => ({
      path: bends(values.map((y, i) => at(frame, RATIOS[i], y))),
    });
    const lines = SIGNS.flatMap((s) => shown.includes(s)
      ? [
          { path: [at(left, 0, 0), at(left, MAX_RATIO, s * MAX_RATIO)] },
          line(left, data.objective[s]),
          line(right, data.slope[s]),
        ]
      : [null, null, null]);
    const marks = [[left, "objective"], [right, "slope"]].flatMap(([frame, name]) =>
      SIGNS.flatMap((s) => [true, false].map((alive) => ({
        marks: data.corners
          .filter((c) => c.sign === s && shown.includes(s) && (c.slope !== 0) === alive)
          .map((c) => at(frame, c.ratio, c[name])),
      }))));
    const texts = SIGNS.map((s) => shown.includes(s)
      ? { text: sentence(s, data.corners.filter((c) => c.sign === s), "  ·  ") }
      : null);
    return [...bands, ...lines, ...marks, ...texts];
  };

  const alt = (data) => {
    const dual = data.dual === null ? "off" : `at ${fixed(data.dual, 2)}`;
    const sides = SHOWN[data.sign].map((s) =>
      sentence(s, data.corners.filter((c) => c.sign === s), "; ").split(/\s+/).join(" "));
    return "PPO's clipped objective (left) and its slope (right) against the ratio, band " +
      `${fixed(data.band[0], 2)} to ${fixed(data.band[1], 2)}, dual clip ${dual}. ` +
      `${sides.join(". ")}.`;
  };

  window.rlnbLive.clip_explorer = { compute, parts, alt };
})();
