/** The promise form: `await purgatory.wait(keys, condition, options)`, one after the other. */
import { DelayedOperationPurgatory } from 'escapement';
import type { BulkCase, BulkRun } from '../lib/part.ts';
import { NaivePurgatory } from './naive-purgatory.ts';
import { waitNaively, type NaiveCondition } from './naive-wait.ts';
import { LONG_MS } from './waiting-operations.ts';

const KEYS = ['topic-0', 'topic-1', 'topic-2'] as const;
const OTHER_KEY = 'topic-3';
const VALUE = 7;

interface WaitingPurgatory {
  wait(keys: readonly string[], condition: NaiveCondition<number>): Promise<number>;
  checkAndComplete(key: string): number;
  readonly watched: number;
  close(): void;
}

type Repeat = (purgatory: WaitingPurgatory, times: number) => Promise<number>;

function ours(): WaitingPurgatory {
  const purgatory = new DelayedOperationPurgatory<string>('bench');
  const options = { timeoutMs: LONG_MS };
  return {
    wait: (keys, condition) => purgatory.wait(keys, condition, options),
    checkAndComplete: (key) => purgatory.checkAndComplete(key),
    get watched() {
      return purgatory.watched;
    },
    close: () => purgatory.close(),
  };
}

function naive(): WaitingPurgatory {
  const purgatory = new NaivePurgatory();
  return {
    wait: (keys, condition) => waitNaively(purgatory, keys, condition, LONG_MS),
    checkAndComplete: (key) => purgatory.checkAndComplete(key),
    get watched() {
      return purgatory.watched;
    },
    close: () => {
      purgatory.close();
    },
  };
}

/** The condition holds when it is first looked at. */
async function atOnce(purgatory: WaitingPurgatory, times: number): Promise<number> {
  let sum = 0;
  for (let done = 0; done < times; done++) sum += await purgatory.wait(KEYS, () => VALUE);
  return sum;
}

/** It answers with a promise that is resolved already. */
async function byPromise(purgatory: WaitingPurgatory, times: number): Promise<number> {
  const answer = Promise.resolve(VALUE);
  let sum = 0;
  for (let done = 0; done < times; done++) sum += await purgatory.wait(KEYS, () => answer);
  return sum;
}

/** It holds when somebody has said so. */
async function afterTrigger(purgatory: WaitingPurgatory, times: number): Promise<number> {
  let sum = 0;
  for (let done = 0; done < times; done++) {
    const place: { value: number | undefined } = { value: undefined };
    const waiting = purgatory.wait(KEYS, () => place.value);
    place.value = VALUE;
    purgatory.checkAndComplete(KEYS[0]);
    sum += await waiting;
  }
  return sum;
}

function openWith(make: () => WaitingPurgatory, repeat: Repeat): (size: number) => BulkRun {
  return (size) => {
    const purgatory = make();
    let sum = 0;
    // Another one waits all the time, or each of ours would arm the host's timeout and disarm it.
    purgatory.wait([OTHER_KEY], () => undefined).catch(() => undefined);
    return {
      run: async () => {
        sum = await repeat(purgatory, size);
        return size;
      },
      check: () => {
        if (sum !== size * VALUE) return `the values add up to ${sum}, not to ${size * VALUE}`;
        const { watched } = purgatory;
        return watched === 1 ? undefined : `${watched} watch entries, not the other one's alone`;
      },
      close: () => {
        purgatory.close();
      },
    };
  };
}

function waitCase(name: string, repeat: Repeat): BulkCase {
  return {
    kind: 'bulk',
    name: `wait on 3 keys: ${name}`,
    size: { full: 200_000, quick: 20_000, of: 'waits' },
    contestants: [
      { name: 'setTimeout + Map', role: 'baseline', open: openWith(naive, repeat) },
      { name: 'ours', role: 'ours', open: openWith(ours, repeat) },
    ],
  };
}

export const waitCases: readonly BulkCase[] = [
  waitCase('the condition holds', atOnce),
  waitCase('the condition is a resolved promise', byPromise),
  waitCase('the condition holds after a check', afterTrigger),
];
