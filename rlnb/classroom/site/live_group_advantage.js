// rlnb/classroom/explorers/group_advantage.py once more: compute, what `update` moves, and alt.
(() => {
  "use strict";
  const { fixed, signed, general } = window.rlnbText;
  const MAX_SIZE = 16, MAX_REWARD = 4, EPS = 1e-6;
  const DIVISORS = { population: "population std", bessel: "Bessel std", none: "no division" };
  const NUMBER = /^[+-]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)(e[+-]?\d+(_\d+)*)?$/i;
  const ENDLESS = /^[+-]?(inf|infinity|nan)$/i;
  const head = (word) => [...word].slice(0, 20).join("");

  const parse = (text) => {
    const words = text.trim().split(/[,;\s]+/).filter(Boolean);
    const rewards = words.map((word) => {
      const plain = word.replaceAll("−", "-");
      const endless = ENDLESS.test(plain);
      if (!endless && !NUMBER.test(plain))
        throw new RangeError(`rewards: “${head(word)}” is not a number. Write numbers with ` +
          "commas between, like 1, 1, 0, 0.");
      const value = endless ? NaN : Number(plain.replaceAll("_", ""));
      if (!Number.isFinite(value) || Math.abs(value) > MAX_REWARD)
        throw new RangeError(`rewards: ${head(word)} is outside −${MAX_REWARD} to ${MAX_REWARD}` +
          ", the range of the figure.");
      return value;
    });
    if (!rewards.length)
      throw new RangeError(
        "rewards: the list is empty. Write at least one number, like 1, 0.");
    return rewards;
  };

  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const deviation = (rewards, ddof) => {
    const mean = sum(rewards) / rewards.length;
    const squares = rewards.map((r) => (r - mean) ** 2);
    return Math.sqrt(sum(squares) / (rewards.length - ddof));
  };
  const advantage = (rewards, std) => {
    if (Math.max(...rewards) === Math.min(...rewards)) return rewards.map(() => 0);
    const mean = sum(rewards) / rewards.length;
    const divisor = std === "none" ? 1 : deviation(rewards, std === "bessel" ? 1 : 0) + EPS;
    return rewards.map((r) => (r - mean) / divisor);
  };

  const compute = ({ rewards, size, std = "population", fill = "list" }) => {
    const given = parse(rewards);
    const group = Array.from({ length: size }, (_, i) =>
      i < given.length ? given[i] : fill === "last" ? given.at(-1) : given[i % given.length]);
    const advantages = advantage(group, std);
    const spread = std === "none" ? 0 : deviation(group, std === "bessel" ? 1 : 0);
    const bound = { population: Math.sqrt(size - 1), bessel: (size - 1) / Math.sqrt(size) }[std];
    return {
      rewards: group, advantages, mean: sum(group) / size,
      std_of_rewards: std === "none" ? deviation(group, 0) : spread,
      divisor: std === "none" ? 1 : spread + EPS,
      largest: Math.max(...advantages.map(Math.abs)),
      bound: bound === undefined ? null : bound,
      equal: Math.max(...group) === Math.min(...group),
      given, size, std, fill,
    };
  };

  const rule = ({ given, size, fill }) => {
    if (given.length > size) return `the first ${size} of ${given.length} given`;
    if (given.length < size)
      return `${given.length} given, the ${fill === "last" ? "last" : "list"} repeated`;
    return "all given";
  };
  const sizes = (data) => {
    if (data.equal)
      return "All rewards are equal: every advantage is exactly 0, the group pulls nowhere.";
    const largest = `Largest |A| ${fixed(data.largest, 4)}`;
    if (data.bound === null) return `${largest}; twice the rewards, twice the advantages.`;
    const name = data.std === "bessel" ? "(G−1)/√G" : "√(G−1)";
    return `${largest}, at most ${name} = ${fixed(data.bound, 4)} whatever the rewards.`;
  };
  const lines = (data) => {
    const name = data.std === "bessel" ? "Bessel" : "population";
    const divisor = data.std === "none"
      ? `no divisor (${name} std ${fixed(data.std_of_rewards, 4)})`
      : `divisor: ${name} std + 1e-6 = ${fixed(data.divisor, 4)}`;
    return [
      `G = ${data.size} (${rule(data)})  ·  mean ${fixed(data.mean, 4)}  ·  ${divisor}`,
      sizes(data),
    ];
  };

  const parts = (data, frames) => {
    const [x0, wide, y0, high, left, right, low, top] = frames[0];
    const at = (x, y) =>
      [x0 + (wide * (x - left)) / (right - left), y0 + (high * (y - low)) / (top - low)];
    const count = data.size;
    const width = Math.min(0.62 / count, 0.07);
    const all = Array.from({ length: MAX_SIZE }, (_, i) => i);
    const middle = (i) => (i + 0.5) / count;
    const bars = all.map((i) => {
      if (i >= count) return null;
      const a = data.advantages[i], from = middle(i) - width / 2;
      const box = [[from, 0], [from + width, 0], [from + width, a], [from, a]];
      // of two patterns, even bars are positive in the first and odd ones in the second
      return { path: box.map(([x, y]) => at(x, y)), closed: true, look: +((a > 0) === (i % 2 === 1)) };
    });
    const level = (y) => ({ path: [at(0, y), at(1, y)] });
    const bounds = [1, -1].map((side) => data.bound === null ? null : level(side * data.bound));
    const marks = { marks: data.rewards.map((r, i) => at(middle(i), r)) };
    const numbers = all.map((i) => i >= count ? null
      : { text: signed(data.advantages[i], 2), x: at(middle(i), 0)[0] });
    return [...bars, level(data.mean), ...bounds, marks, ...numbers,
      ...lines(data).map((text) => ({ text }))];
  };

  const running = ["population", "bessel", "none"].map((std) => {
    const size = Math.abs(advantage([1, 1, 0, 0], std)[0]);
    return `±${fixed(size, 4)} ${{ bessel: "Bessel", none: "undivided" }[std] || std}`;
  });
  const alt = (data) =>
    `Bars: advantages of a group of ${data.size} (${DIVISORS[data.std]}). Rewards ` +
    `${data.rewards.map(general).join(", ")}; mean ${fixed(data.mean, 4)}; advantages ` +
    `${data.advantages.map((a) => signed(a)).join(", ")}. ${sizes(data)} ` +
    `Running group 1, 1, 0, 0: ${running.join(", ")}.`;

  window.rlnbLive.group_advantage_explorer = { compute, parts, alt };
})();
