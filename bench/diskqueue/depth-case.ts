/** Does memory grow with what is stored? */
import type { ScenarioCase } from '../lib/part.ts';
import { withFolder } from './bench-folder.ts';
import { DEPTH_KINDS } from './depth-kinds.ts';
import { runChild } from '../lib/run-child.ts';

const HEAP = 'heap growth';
const MIB = 1024 * 1024;
/** Less is not told from nothing. */
const LEAST_MIB = 0.01;
const MOST_MIB = 1;
/** The smaller depth, as a share of the larger one. */
const SMALL_SHARE = 0.01;

function growthOf(bytes: number | undefined): number {
  return Math.max((bytes ?? Number.NaN) / MIB, LEAST_MIB);
}

export const depthCase: ScenarioCase = {
  kind: 'scenario',
  name: 'memory: from ten thousand messages to a million',
  note:
    'In a process of its own. Heap: what lives after a collection, buffers included. rss is all of the process, and ' +
    'with lmdb what it has mapped of its file, which the host may take back.',
  size: { full: 1_000_000, quick: 20_000, of: 'messages' },
  rounds: 1,
  metrics: [
    { name: HEAP, unit: 'MiB' },
    { name: 'rss growth', unit: 'MiB' },
  ],
  contestants: DEPTH_KINDS.map(({ name, role }) => ({
    name,
    role,
    open: async (size) => {
      const small = Math.ceil(size * SMALL_SHARE);
      const { heap, rss } = await withFolder((folder) =>
        runChild(new URL('depth-child.ts', import.meta.url), name, folder, String(small), String(size)),
      );
      return { values: { [HEAP]: growthOf(heap), 'rss growth': growthOf(rss) }, problem: undefined };
    },
  })),
  targets: [{ kind: 'limit', contestant: 'ours', metric: HEAP, atMost: MOST_MIB }],
};
