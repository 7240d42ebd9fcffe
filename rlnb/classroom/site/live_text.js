// Numbers as Python writes them: toFixed rounds a half away from zero, Python to the even digit.
(() => {
  "use strict";
  if (window.rlnbText) return;
  const fixed = (value, digits) => {
    const told = value.toFixed(digits);
    const exact = Math.abs(value).toFixed(100); // every digit of what can be a tie
    const rest = exact.slice(exact.indexOf(".") + 1 + digits);
    if (!/^50*$/.test(rest)) return told;
    const down = exact.slice(0, exact.indexOf(".") + (digits ? 1 + digits : 0));
    const even = "02468".includes(down.at(-1));
    const sign = told.startsWith("-") ? "-" : "";
    return even ? sign + down : told;
  };
  const signed = (value, digits = 4) => {
    const told = fixed(value, digits);
    if (Number(told) === 0) return fixed(0, digits);
    return told.startsWith("-") ? `−${told.slice(1)}` : `+${told}`;
  };
  // f"{value:g}": six significant digits
  const general = (value) => {
    if (value === 0) return Object.is(value, -0) ? "-0" : "0";
    const [digits, power] = value.toExponential(5).split("e");
    const short = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
    if (+power < -4 || +power >= 6) {
      const size = String(Math.abs(+power)).padStart(2, "0");
      return `${short(digits)}e${+power < 0 ? "-" : "+"}${size}`;
    }
    return short(value.toFixed(5 - +power));
  };
  window.rlnbText = { fixed, signed, general };
})();
