import type { DemoResult } from './demo-result.ts';
import type { ResultRow } from '../shared/report-table.ts';
import { formatCount, formatMebibytes, formatMs, formatPercent } from '../shared/number-format.ts';
import { quantile } from './quantile.ts';

/** Its deadline, and the end of its work. */
const TIMERS_PER_REQUEST = 2;

/** The result as the terminal and the report show it. */
export function resultRows(result: DemoResult): ResultRow[] {
  return [...requestRows(result), ...timerRows(result), ...latenessRows(result), ...costRows(result)];
}

function requestRows(result: DemoResult): ResultRow[] {
  const { requests, answered, timedOut, abandoned, options, connections } = result;
  const perSecond = (requests * 1_000) / options.durationMs;
  const reached = result.isInterrupted ? '' : `${formatCount(perSecond)} a second over `;
  const share = (count: number): string => formatPercent(count / requests);
  const rows = [
    row('requests', formatCount(requests), `${reached}${formatCount(connections)} connections`),
    row('answered in time', formatCount(answered), share(answered)),
    row(
      'timed out',
      formatCount(timedOut),
      `${share(timedOut)}, expected ${formatPercent(result.expectedShare)}`,
    ),
  ];
  if (abandoned > 0) rows.push(row('abandoned', formatCount(abandoned), 'the client hung up first'));
  return rows;
}

function timerRows({ requests, peakInFlight, peak, wakeUps }: DemoResult): ResultRow[] {
  const timers = requests * TIMERS_PER_REQUEST;
  return [
    row(
      'pending at peak',
      formatCount(peakInFlight),
      `requests; ${formatCount(peak.size)} timers in the wheels`,
    ),
    row('timers scheduled', formatCount(timers), 'a deadline and a piece of work per request'),
    row(
      'host wake-ups',
      formatCount(wakeUps),
      `${formatCount((wakeUps * 1_000) / Math.max(timers, 1))} per 1,000 timers`,
    ),
  ];
}

function latenessRows({ latenessMs, load, options }: DemoResult): ResultRow[] {
  const { p50, p99 } = load.timeoutSeenMs;
  const early = latenessMs.filter((lateness) => lateness < 0).length;
  return [
    row('timeouts too early', formatCount(early), ''),
    row('timeout lateness p50', formatMs(quantile(latenessMs, 0.5)), 'after the deadline, at the server'),
    row('timeout lateness p99', formatMs(quantile(latenessMs, 0.99)), ''),
    row('timeout lateness max', formatMs(latenessMs.at(-1) ?? NaN), ''),
    row(
      'seen by the client',
      formatMs(p50 - options.timeoutMs),
      `p50; p99 ${formatMs(p99 - options.timeoutMs)}; with the network, both ways`,
    ),
  ];
}

function costRows(result: DemoResult): ResultRow[] {
  const { cpuUserMs, cpuSystemMs, elapsedMs, requests, loopBusy, peakRssBytes } = result;
  const cpuMs = cpuUserMs + cpuSystemMs;
  const perRequestUs = (cpuMs * 1_000) / Math.max(requests, 1);
  return [
    row(
      'CPU time of the server',
      `${(cpuMs / 1_000).toFixed(2)} s`,
      `${formatPercent(cpuMs / elapsedMs)} of a core, ${formatCount(perRequestUs)} µs a request, HTTP included`,
    ),
    row('event loop busy', formatPercent(loopBusy), ''),
    row('memory of the server', formatMebibytes(peakRssBytes), 'resident, at its highest'),
  ];
}

function row(label: string, value: string, note: string): ResultRow {
  return { label, value, note };
}
