import type { Arrival } from './arrivals.ts';
import type { DemoResult } from './demo-result.ts';
import { countRepeats } from './repeats.ts';

/** What was under way, and what was acknowledged while the acknowledgements before it were being written. */
const BATCHES_PER_SHIPPER_KILL = 5;

/** What a run promised and did not keep; empty if all is well. */
export function selfCheck(result: DemoResult): string[] {
  return [
    everyLineArrived,
    confirmedLinesArrived,
    nothingIsStrange,
    isInOrder,
    nothingRepeatsWithoutKill,
    littleRepeats,
    spoolIsEmpty,
    outagesHappened,
    processesEnded,
  ]
    .map((check) => check(result))
    .filter((complaint) => complaint !== undefined);
}

function everyLineArrived({ arrivals, produced }: DemoResult): string | undefined {
  const arrived = new Set(arrivals.lines.map(({ number }) => number));
  const lost = numbers(1, produced).filter((number) => !arrived.has(number));
  return lost[0] === undefined ? undefined : `line ${lost[0]}${others(lost)} never arrived`;
}

/** And not because the producer gave them to somebody else. */
function confirmedLinesArrived({ arrivals, runs }: DemoResult): string | undefined {
  const arrived = new Set(arrivals.lines.map(({ run, number }) => `${run}/${number}`));
  for (const [index, { first, confirmed }] of runs.entries()) {
    const lost = numbers(first, confirmed).filter((number) => !arrived.has(`${index + 1}/${number}`));
    if (lost[0] !== undefined)
      return `shipper ${index + 1} has confirmed line ${lost[0]}${others(lost)} and lost it`;
  }
  return undefined;
}

function nothingIsStrange({ arrivals }: DemoResult): string | undefined {
  const [strange] = arrivals.strange;
  return strange && `a line arrived that nobody has written: '${strange}'`;
}

/** What one shipper was given arrives in that order, if repetitions are left out. */
function isInOrder({ arrivals }: DemoResult): string | undefined {
  const last = new Map<number, number>();
  const seen = new Set<string>();
  for (const { run, number } of arrivals.lines) {
    const before = last.get(run) ?? 0;
    if (number < before && !seen.has(`${run}/${number}`))
      return `line ${number} of run ${run} came after line ${before}`;
    last.set(run, Math.max(before, number));
    seen.add(`${run}/${number}`);
  }
  return undefined;
}

function nothingRepeatsWithoutKill({ arrivals }: DemoResult): string | undefined {
  const { unexplained } = countRepeats(arrivals.lines);
  return (
    unexplained[0] &&
    `${nameOf(unexplained[0])}${others(unexplained)} came twice, and nobody was killed between`
  );
}

/** A kill is no excuse for sending everything again. */
function littleRepeats(result: DemoResult): string | undefined {
  const { ofCollectorKills, ofShipperKills } = countRepeats(result.arrivals.lines);
  const [collectors, shippers] = [killsOf(result, 'collector'), killsOf(result, 'shipper')];
  if (ofCollectorKills > collectors * result.batchLines)
    return `${ofCollectorKills} lines came twice for ${collectors} kills of the collector`;
  if (ofShipperKills > shippers * BATCHES_PER_SHIPPER_KILL * result.batchLines)
    return `${ofShipperKills} lines came twice for ${shippers} kills of the shipper`;
  return undefined;
}

function spoolIsEmpty({ left }: DemoResult): string | undefined {
  return left === 0 ? undefined : `${left} lines are still in the spool`;
}

function outagesHappened(result: DemoResult): string | undefined {
  const missing = ['collector', 'shipper'].find((name) => killsOf(result, name) === 0);
  if (missing !== undefined) return `no ${missing} was killed`;
  return result.retries > 0 ? undefined : 'no request was ever repeated';
}

function processesEnded({ processes }: DemoResult): string | undefined {
  const running = processes.find((process) => process.isRunning);
  if (running !== undefined) return `${running.name} (pid ${running.pid}) still runs`;
  const unwell = processes.find(({ end }) => end.code !== 0 && end.signal !== 'SIGKILL');
  return unwell && `${unwell.name} ended with ${unwell.end.signal ?? `exit code ${String(unwell.end.code)}`}`;
}

function killsOf({ processes }: DemoResult, name: string): number {
  return processes.filter((process) => process.name === name && process.end.signal === 'SIGKILL').length;
}

function nameOf({ number, run }: Arrival): string {
  return `line ${number} of run ${run}`;
}

function others(all: readonly unknown[]): string {
  return all.length > 1 ? ` and ${all.length - 1} more` : '';
}

function numbers(first: number, last: number): number[] {
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, index) => first + index);
}
