import type { SegmentFile } from './segment.ts';

/*
 * Somebody has copied a segment, or given it another name, or has put one there from a backup. What is in such a file
 * is in another one, too, or was: it must not come twice.
 *
 *      file      5          6          7          8
 *      header    5          6          5          8         its name is wrong
 *      messages  40 ─ 49    50 ─ 59    40 ─ 49    70 ─ 79
 *
 *      header    5          6          7          8         its name is right, its messages are not
 *      messages  40 ─ 49    50 ─ 59    10 ─ 19    70 ─ 79
 */

/** A file that has the name of another segment. */
export interface MisplacedFile {
  readonly path: string;
  readonly size: number;
  readonly reason: string;
}

const WRONG_NUMBER = 'its name and its header have different numbers';
const WRONG_ORDER = 'its messages are not those that belong between its neighbours';

/** @param files - ascending. Those of which the header is damaged are given the benefit of the doubt. */
export function findMisplaced(files: readonly SegmentFile[]): {
  readonly inPlace: readonly SegmentFile[];
  readonly misplaced: readonly MisplacedFile[];
} {
  const hasRightName = ({ header, number }: SegmentFile): boolean => (header?.number ?? number) === number;
  const named = files.filter(hasRightName);
  const inOrder = mostInOrder(named);
  const inPlace = named.filter((file) => file.header === undefined || inOrder.has(file));
  const misplaced = files
    .filter((file) => !inPlace.includes(file))
    .map((file) => ({
      ...{ path: file.path, size: file.size },
      reason: hasRightName(file) ? WRONG_ORDER : WRONG_NUMBER,
    }));
  return { inPlace, misplaced };
}

/** Files of which each begins where the one before ends, or later. */
interface Chain {
  readonly file: SegmentFile;
  readonly base: number;
  readonly rest: Chain | undefined;
}

/** The longest chain: a file that contradicts most others is the wrong one. Of two that contradict each other, the later. */
function mostInOrder(files: readonly SegmentFile[]): Set<SegmentFile> {
  const chains: Chain[] = []; // of every length the one that begins last; a longer one never begins later
  for (let i = files.length - 1; i >= 0; i--) {
    const file = files[i] as SegmentFile;
    if (file.header === undefined) continue;
    const base = file.header.baseSequence;
    const next = file.sealed?.next ?? base;
    let length = chains.length;
    while (length > 0 && (chains[length - 1] as Chain).base < next) length--;
    if (base >= (chains[length]?.base ?? base)) chains[length] = { file, base, rest: chains[length - 1] };
  }
  const inOrder = new Set<SegmentFile>();
  for (let chain = chains.at(-1); chain !== undefined; chain = chain.rest) inOrder.add(chain.file);
  return inOrder;
}
