/** The purgatories that are compared, each with its own copy of `operations.ts`. */
import { DelayedOperation, DelayedOperationPurgatory } from 'escapement';
import { baseline, instanceFor, ours, rival, type Contestant } from '../lib/part.ts';
import { KafkaOperation, KafkaPurgatory } from './kafka-purgatory.ts';
import { NaiveOperation, NaivePurgatory } from './naive-purgatory.ts';
import type { OperationBase, OperationClasses, Purgatory, WaitingOperations } from './operations.ts';

export interface PurgatoryKind {
  /** Name on the command line of the harness. */
  readonly id: 'ours' | 'naive' | 'kafka';
  /** Whether completed operations have no watch entries. */
  readonly isExact: boolean;
  readonly newPurgatory: () => Purgatory;
  readonly classes: OperationClasses;
  readonly openWaiting: (size: number, ringSize: number) => WaitingOperations;
}

async function kindOf(
  id: PurgatoryKind['id'],
  newPurgatory: () => Purgatory,
  Base: OperationBase,
): Promise<PurgatoryKind> {
  const own = await instanceFor(new URL('./operations.ts', import.meta.url), id);
  const { operationsOn, openWaiting } = own as typeof import('./operations.ts');
  const classes = operationsOn(Base);
  return {
    ...{ id, isExact: id !== 'kafka', newPurgatory, classes },
    openWaiting: (size, ringSize) => openWaiting(newPurgatory(), classes.Watcher, size, ringSize),
  };
}

const NAIVE = await kindOf('naive', () => new NaivePurgatory(), NaiveOperation);
const KAFKA = await kindOf('kafka', () => new KafkaPurgatory(), KafkaOperation);
const OURS = await kindOf('ours', () => new DelayedOperationPurgatory<string>('bench'), DelayedOperation);

export const KINDS: readonly PurgatoryKind[] = [NAIVE, KAFKA, OURS];

export const PURGATORIES: readonly Contestant<PurgatoryKind>[] = [
  baseline('setTimeout + Map', NAIVE),
  rival("Kafka's design", KAFKA),
  ours('ours', OURS),
];
export const WITHOUT_KAFKA = PURGATORIES.filter(({ open }) => open !== KAFKA);
