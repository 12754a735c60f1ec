/** Acknowledged messages, `from` up to and not including `to`, and the bytes of their payloads in the log. */
export interface AckedRange {
  from: number;
  to: number;
  /** `UNKNOWN_BYTES` if it is not known. */
  bytes: number;
}

/** Stays unknown, whatever is added to it. */
export const UNKNOWN_BYTES = NaN;

interface Node {
  readonly range: AckedRange;
  /** Not smaller than those below, so the tree is as flat as if the ranges had come in random order. */
  readonly priority: number;
  before: Tree;
  behind: Tree;
}
type Tree = Node | undefined;

/**
 * Which messages are acknowledged: all below `prefix`, and some ranges beyond it.
 *
 *      acknowledged:  1 2 3 4 . 6 7 . . 10          prefix 5, ranges [6, 8) [10, 11)
 *      bytes:         3 9 2 2 5 4 4 7 1 6           of the ranges 8 and 6
 *
 * The bytes of everything behind a position of the log are known. Less those of the ranges, that is what is not
 * acknowledged, without reading it. Ranges are disjoint, ascending, and never touch: there is at most one for each message
 * that is held. They are a treap (Seidel and Aragon, "Randomized search trees", 1996): whatever the order in which messages
 * are acknowledged, adding one is O(log ranges).
 */
export class AckRanges {
  prefix: number;
  /** Number of acknowledged messages, if all below the first prefix are. */
  count: number;
  #tree: Tree;
  #random = 1;

  constructor(prefix: number) {
    this.prefix = prefix;
    this.count = prefix;
  }

  /** Ascending. O(ranges). */
  get ranges(): readonly AckedRange[] {
    const ranges: AckedRange[] = [];
    collect(this.#tree, ranges);
    return ranges;
  }

  has(sequence: number): boolean {
    return this.nextAfter(sequence) > sequence;
  }

  /** The first message at or after `sequence` that is not acknowledged. */
  nextAfter(sequence: number): number {
    if (sequence < this.prefix) return this.prefix;
    for (let node = this.#tree; node !== undefined;) {
      const { from, to } = node.range;
      if (sequence >= from && sequence < to) return to;
      node = sequence < from ? node.before : node.behind;
    }
    return sequence;
  }

  /**
   * @param bytes - of the messages `from` up to `to`. If only some of them were acknowledged before, the bytes of the range
   * are unknown from then on; if all were, they stay as they are, unless `bytes` is `UNKNOWN_BYTES`.
   * @returns how many of them were not acknowledged before.
   */
  add(from: number, to: number, bytes: number): number {
    const start = Math.max(from, this.prefix);
    if (start >= to) return 0;
    if (this.#tree === undefined && start === this.prefix) {
      this.prefix = to;
      this.count += to - start;
      return to - start;
    }
    const [before, rest] = split(this.#tree, 'to', start);
    const [touched, behind] = split(rest, 'from', to + 1);
    const merged = { from: start, to, bytes: 0 };
    const known = mergeInto(merged, touched, start, to);
    const added = to - start - known;
    this.count += added;
    if (known === 0) merged.bytes += bytes;
    else if (added > 0 || Number.isNaN(bytes)) merged.bytes = UNKNOWN_BYTES;
    if (merged.from <= this.prefix) {
      this.prefix = merged.to;
      this.#tree = behind; // there is nothing before
    } else this.#tree = join(join(before, this.#newNode(merged)), behind);
    return added;
  }

  /** Bytes of the ranges. O(ranges). */
  get bytesBeyond(): number {
    return this.ranges.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  get end(): number {
    let last = this.#tree;
    while (last?.behind !== undefined) last = last.behind;
    return Math.max(last?.range.to ?? 0, this.prefix);
  }

  /** Xorshift (Marsaglia, 2003). */
  #newNode(range: AckedRange): Node {
    this.#random ^= this.#random << 13;
    this.#random ^= this.#random >>> 17;
    this.#random ^= this.#random << 5;
    return { range, priority: this.#random, before: undefined, behind: undefined };
  }
}

/** Returns the ranges of which a field is less than the limit, and the others. */
function split(tree: Tree, field: 'from' | 'to', limit: number): [Tree, Tree] {
  if (tree === undefined) return [undefined, undefined];
  if (tree.range[field] < limit) {
    const [less, others] = split(tree.behind, field, limit);
    tree.behind = less;
    return [tree, others];
  }
  const [less, others] = split(tree.before, field, limit);
  tree.before = others;
  return [less, tree];
}

/** @param a - ranges before all of `b`. */
function join(a: Tree, b: Tree): Tree {
  if (a === undefined) return b;
  if (b === undefined) return a;
  if (a.priority >= b.priority) {
    a.behind = join(a.behind, b);
    return a;
  }
  b.before = join(a, b.before);
  return b;
}

/** @returns how many messages from `start` up to `to` are in the tree. */
function mergeInto(merged: AckedRange, tree: Tree, start: number, to: number): number {
  if (tree === undefined) return 0;
  const { range } = tree;
  const before = mergeInto(merged, tree.before, start, to);
  merged.from = Math.min(merged.from, range.from);
  merged.to = Math.max(merged.to, range.to);
  merged.bytes += range.bytes;
  const known = Math.min(range.to, to) - Math.max(range.from, start);
  return before + known + mergeInto(merged, tree.behind, start, to);
}

function collect(tree: Tree, ranges: AckedRange[]): void {
  if (tree === undefined) return;
  collect(tree.before, ranges);
  ranges.push(tree.range);
  collect(tree.behind, ranges);
}
