/** The disk queue against the least that a disk asks for, and against the stores one would use in its place. */
import { describeFolder } from './diskqueue/bench-folder.ts';
import { depthCase } from './diskqueue/depth-case.ts';
import { keepUpCases } from './diskqueue/keep-up-cases.ts';
import { openCase } from './diskqueue/open-case.ts';
import { putCases } from './diskqueue/put-cases.ts';
import { receiveCase } from './diskqueue/receive-case.ts';
import { recoveryCase } from './diskqueue/recovery-case.ts';
import type { BenchPart } from './lib/part.ts';

export const part: BenchPart = {
  title: 'messages of 256 bytes in a queue on disk',
  remarks: [
    describeFolder(),
    'write, write + fdatasync: the limit. What all callers have asked for is one write, and one sync, through the same ' +
      'file handles: no checksums, no format, nothing can be taken out again.',
    'classic-level and lmdb are ordered maps: numbers are the keys, and whoever reads deletes. They know no receivers, ' +
      'no acknowledgements and no waiting. Batched: all that callers have asked for is one batch of classic-level, put ' +
      'together by hand; lmdb does that by itself. Not durable: sync: false, and noSync: true.',
  ],
  cases: [...putCases, receiveCase, ...keepUpCases, recoveryCase, depthCase, openCase],
};
