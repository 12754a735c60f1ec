/** The purgatory against what one would write without it, and against a model of Kafka's own. */
import type { BenchPart } from './lib/part.ts';
import { harnessCases } from './purgatory/harness-cases.ts';

export const part: BenchPart = {
  title: 'operations that wait for a condition or a deadline',
  cases: [...harnessCases],
};
