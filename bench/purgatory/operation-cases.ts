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

function operationCase(name: string, size: MicroCase['size'], step: Step): MicroCase {
  return {
    kind: 'micro',
    name,
    size,
    contestants: contest(KINDS, (kind) => (count: number): MicroRun => {
      const operations = kind.open(count);
      operations.fill();
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

const FEW = { full: 10, quick: 10, of: 'waiting' };
const MANY = { full: 100_000, quick: 10_000, of: 'waiting' };

export const operationCases: readonly MicroCase[] = [
  operationCase('tryCompleteElseWatch on 3 keys + checkAndComplete: few waiting', FEW, CHECK),
  operationCase('tryCompleteElseWatch on 3 keys + forceComplete: few waiting', FEW, FORCE),
  operationCase('tryCompleteElseWatch on 3 keys + checkAndComplete: many waiting', MANY, CHECK),
];
