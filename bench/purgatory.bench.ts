/** The purgatory against a Map with host timeouts, and against a model of Kafka's design. */
import type { BenchPart } from './lib/part.ts';
import { crowdedKeyCases, expiryCase, operationCases, waitCases } from './purgatory/cases.ts';
import { harnessCases } from './purgatory/harness-cases.ts';

export const part: BenchPart = {
  title: 'operations that wait for a condition or a deadline',
  remarks: [
    'setTimeout + Map: a Map of Sets from keys to operations, and a host timeout for each operation. It does less: an ' +
      'operation that throws breaks the check of the others, and a chain of completions ends in a stack overflow.',
    "Kafka's design: completed operations stay in the lists of their keys until a key is checked, or until more than " +
      '1 000 are estimated to be dead and a purge goes through all lists. On our timer, advanced by a reaper as in Kafka.',
  ],
  cases: [...operationCases, expiryCase, ...waitCases, ...crowdedKeyCases, ...harnessCases],
};
