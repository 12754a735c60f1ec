import { ROOT } from '../controller/keys.ts';
import type { DemoResult } from './demo-result.ts';
import type { Attempt } from './journal.ts';
import { BLOCKED, BROKEN, SAVED } from './scenario.ts';

/** What a run promised and did not keep; empty if all is well. */
export function selfCheck(result: DemoResult): string[] {
  const failing = [BROKEN, BLOCKED].map((key) => () => wasGivenUpAndHealed(result, key));
  return [
    outputIsRight,
    nobodyShares,
    workersAreLimited,
    isDeduplicated,
    eventsAreHeard,
    countsAgree,
    ...failing,
    delaysAreKept,
    resyncs,
    ends,
  ]
    .map((check) => check(result))
    .filter((complaint) => complaint !== undefined);
}

function outputIsRight({ trees }: DemoResult): string | undefined {
  const { files, differences } = trees;
  if (files === 0) return 'there is no source file to compare';
  const others = differences.length > 1 ? ` and ${differences.length - 1} more` : '';
  return differences[0] && `the output is not what the source says: ${differences[0]}${others}`;
}

function nobodyShares({ overlaps }: DemoResult): string | undefined {
  return overlaps[0] && `${overlaps[0]} was with two workers at once, ${overlaps.length} times in all`;
}

function workersAreLimited({ mostInWork, workers }: DemoResult): string | undefined {
  return mostInWork > workers ? `${mostInWork} keys were in work at once, by ${workers} workers` : undefined;
}

/** Of hundreds of writes to a file, a few are worth a look. */
function isDeduplicated({ events, afterwards }: DemoResult): string | undefined {
  const adds = valueOf(afterwards, 'workqueue_adds_total');
  return adds < events ? undefined : `${adds} adds for ${events} events: nothing was put together`;
}

/** What is saved over and over is looked at more often than at each resync. */
function eventsAreHeard({ attempts }: DemoResult): string | undefined {
  const count = (wanted: string): number => attempts.filter(({ key }) => key === wanted).length;
  const deaf = SAVED.find((key) => count(key) <= count(ROOT));
  return deaf && `${deaf} was only looked at when everything was`;
}

/** Each add is one hand-out, each hand-out one attempt. */
function countsAgree({ attempts, events, afterwards }: DemoResult): string | undefined {
  const failed = attempts.filter(({ outcome }) => outcome === 'failed').length;
  const expected = [
    ['controller_events_total', events],
    ['workqueue_adds_total', attempts.length],
    ['workqueue_queue_duration_seconds_count', attempts.length],
    ['workqueue_work_duration_seconds_count', attempts.length],
  ] as const;
  const wrong = expected.find(([name, count]) => valueOf(afterwards, name) !== count);
  if (wrong !== undefined)
    return `${wrong[0]} is ${valueOf(afterwards, wrong[0])}, and ${wrong[1]} were seen`;
  const retries = valueOf(afterwards, 'workqueue_retries_total');
  return retries >= failed
    ? undefined
    : `workqueue_retries_total is ${retries}, and ${failed} failures were to be retried`;
}

function wasGivenUpAndHealed({ attempts, maxRetries }: DemoResult, key: string): string | undefined {
  const own = attempts.filter((attempt) => attempt.key === key);
  const dropped = own.findIndex(({ outcome }) => outcome === 'dropped');
  if (dropped < 0) return `${key} was never given up`;
  if (own[dropped]?.retries !== maxRetries)
    return `${key} was given up after ${own[dropped]?.retries ?? 0} retries, not ${maxRetries}`;
  return own.slice(dropped).some(({ outcome }) => outcome === 'written') ? undefined : `${key} did not heal`;
}

/** Unless somebody asked for it, what has failed is tried again after twice as long each time, and never earlier. */
function delaysAreKept({ attempts, retryDelayMs, maxRetries }: DemoResult): string | undefined {
  const retries = [...byKey(attempts).values()].flatMap(retriesOf);
  const early = retries.find(({ failures, afterMs }) => afterMs < retryDelayMs * 2 ** (failures - 1));
  if (early !== undefined)
    return `retry ${early.failures} of ${early.key} came after ${early.afterMs.toFixed(1)} ms`;
  const seen = new Set(retries.map(({ failures }) => failures));
  return seen.size >= maxRetries ? undefined : `only ${seen.size} delays of ${maxRetries} were seen`;
}

interface Retry {
  readonly key: string;
  readonly failures: number;
  readonly afterMs: number;
}

function retriesOf(attempts: readonly Attempt[]): Retry[] {
  return attempts
    .map(({ key, retries, startMs, wasWanted }, index) => {
      const afterMs = startMs - (attempts[index - 1]?.endMs ?? NaN);
      return { key, failures: retries, afterMs, wasWanted };
    })
    .filter(({ failures, wasWanted }) => failures > 0 && !wasWanted);
}

function byKey(attempts: readonly Attempt[]): Map<string, Attempt[]> {
  const keys = new Map<string, Attempt[]>();
  for (const attempt of attempts) {
    const own = keys.get(attempt.key) ?? [];
    keys.set(attempt.key, own);
    own.push(attempt);
  }
  return keys;
}

/** Not at the start and at the end alone, but by itself. */
function resyncs({ attempts }: DemoResult): string | undefined {
  const byItself = attempts.filter(({ key, wasWanted }) => key === ROOT && !wasWanted).length;
  return byItself > 0 ? undefined : 'there was no periodic resync';
}

function ends({ left, during, afterwards }: DemoResult): string | undefined {
  if (left[0] !== undefined) return `${left[0]} still waited for a retry when the controller was stopped`;
  if (!during.has('workqueue_depth')) return 'there was no workqueue_depth while the queue was open';
  return afterwards.has('workqueue_depth') ? 'the gauges of the queue are still there' : undefined;
}

function valueOf(scrape: DemoResult['during'], name: string): number {
  return scrape.get(name) ?? NaN;
}
