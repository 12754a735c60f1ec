/** The disk queue against plain file writes, and against the stores that one would use in its place. */
import { depthCase, keepUpCases, openCase, putCases, receiveCase, recoveryCase } from './diskqueue/cases.ts';
import { describeFolder } from './lib/folder.ts';
import type { BenchPart } from './lib/part.ts';

export const part: BenchPart = {
  title: 'messages of 256 bytes in a queue on disk',
  remarks: [
    describeFolder(),
    'write, write + fdatasync: the limit. All pending puts are one write, and one sync, through the same file handles: no ' +
      'checksums, no format, no removal of messages.',
    'classic-level and lmdb are ordered maps: numbers are the keys, and the reader deletes. They have no receivers, no ' +
      'acknowledgements and no waiting. Batched: all pending puts are one batch of classic-level, collected by hand; lmdb ' +
      'does that by itself. Not durable: sync: false, and noSync: true.',
  ],
  cases: [...putCases, receiveCase, ...keepUpCases, recoveryCase, depthCase, openCase],
};
