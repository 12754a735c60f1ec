/** The purgatories that are compared, each with its own copy of `operations.ts`. */
import { DelayedOperation, DelayedOperationPurgatory } from 'escapement';
import { baseline, instanceFor, ours, rival, type Contestant } from '../lib/part.ts';
import type { HarnessKind } from './harness.ts';
import { KafkaOperation, KafkaPurgatory } from './kafka-purgatory.ts';
import { NaiveOperation, NaivePurgatory } from './naive-purgatory.ts';
import type { OperationBase, OperationClasses, Purgatory, WaitingOperations } from './operations.ts';

export interface PurgatoryKind {
  readonly id: HarnessKind['id'];
  readonly newPurgatory: () => Purgatory;
  readonly classes: OperationClasses;
  readonly openRing: (size: number, ringSize: number) => WaitingOperations;
}

async function kindOf(
  id: HarnessKind['id'],
  newPurgatory: () => Purgatory,
  Base: OperationBase,
): Promise<PurgatoryKind> {
  const url = new URL('./operations.ts', import.meta.url);
  const { operationsOn, WaitingOperations: Ring } = (await instanceFor(
    url,
    id,
  )) as typeof import('./operations.ts');
  const classes = operationsOn(Base);
  const openRing = (size: number, ringSize: number): WaitingOperations =>
    new Ring(newPurgatory(), classes.Flag, size, ringSize);
  return { id, newPurgatory, classes, openRing };
}

const NAIVE = baseline('setTimeout + Map', await kindOf('naive', () => new NaivePurgatory(), NaiveOperation));
const KAFKA = rival("Kafka's design", await kindOf('kafka', () => new KafkaPurgatory(), KafkaOperation));
const OURS = ours(
  'ours',
  await kindOf('ours', () => new DelayedOperationPurgatory<string>('bench'), DelayedOperation),
);

export const PURGATORIES: readonly Contestant<PurgatoryKind>[] = [NAIVE, KAFKA, OURS];
export const WITHOUT_KAFKA: readonly Contestant<PurgatoryKind>[] = [NAIVE, OURS];

/** What the harness drives. Kafka's design is not exact: it keeps watch entries of completed requests. */
export const HARNESS_KINDS: readonly HarnessKind[] = [NAIVE, KAFKA, OURS].map(({ name, role, open }) => {
  const { id, newPurgatory, classes } = open as PurgatoryKind;
  return {
    id,
    name,
    role,
    isExact: id !== 'kafka',
    open: (timeoutMs, tally) => {
      const purgatory = newPurgatory();
      return {
        send: (requestId, latencyMs, keys) => {
          const request = new classes.Request(requestId, latencyMs, timeoutMs, tally);
          purgatory.tryCompleteElseWatch(request, keys);
          return request;
        },
        checkAndComplete: (key) => purgatory.checkAndComplete(key),
        get watched() {
          return purgatory.watched;
        },
        close: () => purgatory.close(),
      };
    },
  };
});
