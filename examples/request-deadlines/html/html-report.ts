import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DemoResult } from '../demo-result.ts';
import { formatCount, formatSpan } from '../../shared/number-format.ts';
import { SERVICE_TIME } from '../options.ts';
import { latenessChart, pendingChart } from './report-charts.ts';
import { REPORT_STYLE } from './report-style.ts';
import { resultRows } from '../result-rows.ts';
import { wheelRings } from './wheel-rings.ts';

/** Writes the report, one file that needs no other. @returns its name. */
export function writeHtmlReport(file: string, result: DemoResult, complaints: readonly string[]): string {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, htmlReport(result, complaints));
  return file;
}

/** The report as a page. */
export function htmlReport(result: DemoResult, complaints: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>escapement: request deadlines</title>
<style>${REPORT_STYLE}</style>
</head>
<body>
<header>
<h1>Request deadlines on one shared timer</h1>
<p>${introduction(result)}</p>
${verdict(result, complaints)}
</header>
<main>
<section><h2>Result</h2>${table(result)}</section>
<section><h2>The wheels at their fullest</h2>${wheelRings(result.peak)}${ringLegend(result)}</section>
<section><h2>How late the timeouts were</h2>${latenessChart(result.latenessMs)}
<p>Measured in the server, from the deadline of a request to the moment its 504 is written. The timer rounds up to
its tick of ${formatSpan(result.peak.levels[0]?.tickMs ?? 1)}, so it is never early; the rest is the host's own delay. At
most one timeout in 200 lies beyond the right end.</p></section>
<section><h2>Pending over time</h2>${pendingChart(result.samples)}
<p>Each request hangs in the wheels twice: with its deadline, and with the end of its work.</p></section>
</main>
</body>
</html>
`;
}

function introduction({ options }: DemoResult): string {
  const { ratePerSecond, durationMs, timeoutMs, connections } = options;
  return `${formatCount(ratePerSecond)} requests a second for ${formatSpan(durationMs)} from ${formatCount(connections)} connections; each has ${formatSpan(timeoutMs)}, and its work takes a
lognormal time with median ${formatSpan(SERVICE_TIME.medianMs)} and sigma ${SERVICE_TIME.sigma}. Node ${process.versions.node}.`;
}

function verdict({ isInterrupted }: DemoResult, complaints: readonly string[]): string {
  const interrupted = isInterrupted ? '<p class="bad">Interrupted: this is the run so far.</p>' : '';
  if (complaints.length === 0) return `${interrupted}<p class="good">Self-check passed.</p>`;
  return interrupted + complaints.map((text) => `<p class="bad">Self-check failed: ${text}.</p>`).join('');
}

function table(result: DemoResult): string {
  const rows = resultRows(result).map(
    ({ label, value, note }) => `<tr><th scope="row">${label}</th><td>${value}</td><td>${note}</td></tr>`,
  );
  return `<table>${rows.join('\n')}</table>`;
}

function ringLegend({ peak }: DemoResult): string {
  const levels = peak.levels.map(({ wheelSize, tickMs, intervalMs }, index) => {
    return `level ${index + 1}: ${wheelSize} buckets of ${formatSpan(tickMs)}, a turn is ${formatSpan(intervalMs)}`;
  });
  return `<p>From the outside in: ${levels.join('; ')}. The stronger a bucket's colour, the more timers it holds; the hand is the
wheel's clock, which goes round clockwise.</p>`;
}
