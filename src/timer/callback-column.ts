/** What runs when an entry is due. */
export type EntryCallback = (argument: never) => void;

/** Entries per page. 4 096 references are 32 KiB: small enough to be an ordinary heap object. */
export const PAGE_SHIFT = 12;
const PAGE_SIZE = 2 ** PAGE_SHIFT;
const PAGE_MASK = PAGE_SIZE - 1;

/** A page whose entries do not all have one callback. */
type MixedPage = (EntryCallback | undefined)[];

/**
 * The callback of every entry, where most entries have the same one.
 *
 * HOW and WHY. Timers come by the million and callbacks by the handful, so a page of 4 096 entries stores its
 * callback once for as long as all of them agree, and spreads into an array at the first that differs:
 *
 *        page 0            page 1                    page 2
 *     [ expire ]     [ retry | expire | … ]       [ (none) ]
 *       uniform              mixed                  unused
 *
 * A uniform page costs 8 bytes instead of 32 KiB, and adding or removing an entry writes no reference, which
 * spares the collector's write barrier. It forgets its callback when its last entry goes; a mixed page forgets
 * entry by entry, and stays mixed.
 */
export class CallbackColumn {
  readonly #pages: (EntryCallback | MixedPage | undefined)[] = [];
  /** Entries in use, by page. */
  readonly #used: number[] = [];
  readonly #isUsed: (slot: number) => boolean;

  /** @param isUsed - whether a slot holds an entry now; asked only when a page spreads. */
  constructor(isUsed: (slot: number) => boolean) {
    this.#isUsed = isUsed;
  }

  set(slot: number, callback: EntryCallback): void {
    const page = slot >>> PAGE_SHIFT;
    const held = this.#pages[page];
    this.#used[page] = (this.#used[page] ?? 0) + 1;
    if (held === callback) return;
    if (held === undefined) this.#pages[page] = callback;
    else if (typeof held === 'function') this.#pages[page] = this.#spread(held, slot, callback);
    else held[slot & PAGE_MASK] = callback;
  }

  get(slot: number): EntryCallback {
    const held = this.#pages[slot >>> PAGE_SHIFT];
    return (typeof held === 'object' ? held[slot & PAGE_MASK] : held) as EntryCallback;
  }

  clear(slot: number): void {
    const page = slot >>> PAGE_SHIFT;
    const used = (this.#used[page] as number) - 1;
    this.#used[page] = used;
    const held = this.#pages[page];
    if (typeof held === 'object') held[slot & PAGE_MASK] = undefined;
    else if (used === 0) this.#pages[page] = undefined;
  }

  #spread(shared: EntryCallback, slot: number, callback: EntryCallback): MixedPage {
    const firstSlot = slot & ~PAGE_MASK;
    const page: MixedPage = [];
    for (let i = 0; i < PAGE_SIZE; i++) page.push(this.#isUsed(firstSlot + i) ? shared : undefined);
    page[slot & PAGE_MASK] = callback;
    return page;
  }
}
