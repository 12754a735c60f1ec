/** One operation from watch to completion: by a check of a key, and by force. */
import { TIME } from '../lib/measurement.ts';
import type { MicroCase, MicroRun } from '../lib/part.ts';
import { naiveOperations } from './naive-waiting-operations.ts';
import { ourOperations } from './our-waiting-operations.ts';
import { contest, type PurgatoryKind, type WaitingOperations } from './waiting-operations.ts';

const KINDS: readonly PurgatoryKind[] = [naiveOperations, ourOperations];
/** A budget of 1.5 µs. */
const MOST_NS = 1_500;

type Step = (operations: WaitingOperations, count: number) => void;

const CHECK: Step = (operations, count) => {
  operations.checkOldest(count);
};
const FORCE: Step = (operations, count) => {
  operations.forceOldest(count);
};

/** @param ringSize - of those that wait, how many are completed and replaced; the others stay. */
function operationCase(
  name: string,
  size: MicroCase['size'],
  step: Step,
  ringSize: number,
  note?: string,
): MicroCase {
  return {
    kind: 'micro',
    name: `tryCompleteElseWatch on 3 keys + ${name}`,
    ...(note === undefined ? {} : { note }),
    size,
    contestants: contest(KINDS, (kind) => (count: number): MicroRun => {
      const operations = kind.open(count, ringSize);
      return {
        run: (times) => {
          step(operations, times);
        },
        check: () => operations.check(),
        close: () => {
          operations.close();
        },
      };
    }),
    targets: [{ kind: 'limit', contestant: ourOperations.name, metric: TIME, atMost: MOST_NS }],
  };
}

const A_FEW = 10;
const FEW = { full: A_FEW, quick: A_FEW, of: 'waiting' };
const MANY = { full: 100_000, quick: 10_000, of: 'waiting' };
const HOT_NOTE =
  'The same keys come and go. A Map of V8 keeps what was deleted in its chains until it is rehashed, which a large ' +
  'one rarely is: whoever deletes a key that empties, and looks for it again, walks through all of its former selves.';
const COLD_NOTE =
  'Every operation finds its keys, lists and neighbours where nobody has been for a hundred thousand operations: ' +
  'out of the caches, and in the old generation of the heap.';

export const operationCases: readonly MicroCase[] = [
  operationCase('checkAndComplete: few waiting', FEW, CHECK, A_FEW),
  operationCase('forceComplete: few waiting', FEW, FORCE, A_FEW),
  operationCase('checkAndComplete: many waiting, a few of them come and go', MANY, CHECK, A_FEW, HOT_NOTE),
  operationCase('checkAndComplete: many waiting, always the oldest goes', MANY, CHECK, Infinity, COLD_NOTE),
];
