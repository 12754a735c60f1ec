/** Every colour of the report, charts and wheels included, is a variable here: once for light, once for dark. */
export const REPORT_STYLE = `
:root {
  --paper: #fbfaf7; --card: #fff; --ink: #23262b; --soft: #5f6670; --faint: #c9ccd1;
  --first: #2563a8; --second: #c2571a; --good: #1d7a46; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15171a; --card: #1e2125; --ink: #e6e4df; --soft: #a2a8b1; --faint: #454a52;
    --first: #6cb0f5; --second: #f29a5c; --good: #6fd39a; --bad: #ff8a80;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2rem 1.25rem 3rem; max-width: 1560px; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, sans-serif;
}
header { max-width: 70ch; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.05rem; margin: 0 0 .75rem; }
p { margin: .5rem 0; }
main { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 560px), 1fr)); margin-top: 1.5rem; }
section { background: var(--card); border: 1px solid var(--faint); border-radius: 10px; padding: 1.25rem; min-width: 0; }
section p { color: var(--soft); font-size: .9rem; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
svg { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--faint); vertical-align: baseline; }
th { font-weight: 500; }
td:nth-child(2) { text-align: right; white-space: nowrap; font-weight: 600; }
td:nth-child(3) { color: var(--soft); font-size: .9rem; }
tr:last-child > * { border-bottom: 0; }
.rings { max-width: 460px; margin: 0 auto; }
.rings .empty { fill: var(--faint); fill-opacity: .3; }
.rings .bucket { fill: var(--first); }
.rings .hand { stroke: var(--second); stroke-width: 3; stroke-linecap: round; }
.rings text { fill: var(--ink); font-family: system-ui, sans-serif; }
.rings .count { font-size: 26px; font-weight: 600; }
.rings .unit { font-size: 12px; fill: var(--soft); }
`;
