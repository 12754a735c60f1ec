/** The purgatory against what one would write without it, and against a model of Kafka's own. */
import type { BenchPart } from './lib/part.ts';
import { crowdedKeyCases } from './purgatory/crowded-key-case.ts';
import { expiryCase } from './purgatory/expiry-case.ts';
import { harnessCases } from './purgatory/harness-cases.ts';
import { operationCases } from './purgatory/operation-cases.ts';
import { waitCases } from './purgatory/wait-cases.ts';

export const part: BenchPart = {
  title: 'operations that wait for a condition or a deadline',
  remarks: [
    'setTimeout + Map: a Map of Sets says who waits for which key, and each operation has a host timeout. It does ' +
      'less: an operation that throws breaks the check of the others, and a chain of completions ends in a stack overflow.',
    "Kafka's design: lists of watchers that completed operations stay in until a key is checked, or until more than " +
      '1 000 seem to be dead and a purge goes through all lists. On our timer, advanced by a reaper as in Kafka.',
  ],
  cases: [...operationCases, expiryCase, ...waitCases, ...crowdedKeyCases, ...harnessCases],
};
