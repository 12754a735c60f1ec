/** What runs when an entry is due. */
export type EntryCallback = (argument: never) => void;

/** Slots per page, as a shift. 4 096 references are 32 KiB: small enough to be an ordinary heap object. */
export const PAGE_SHIFT = 12;
const PAGE_SIZE = 2 ** PAGE_SHIFT;
const PAGE_MASK = PAGE_SIZE - 1;

/**
 * What 4 096 slots refer to outside flat memory: a callback and its argument each.
 *
 * HOW and WHY. Timers come by the million and callbacks by the handful, so a page stores its callback once for
 * as long as all of its entries agree, and spreads into an array at the first that differs:
 *
 *                    page 0               page 1                      page 2
 *     callbacks   [ expire ]          [ retry | expire | … ]       [ (none) ]
 *                   uniform               mixed                      unused
 *     arguments   [ r0 | r1 | … ]     [ r4096 | …          ]       [        ]
 *
 * A uniform page costs 8 bytes instead of 32 KiB, and neither adding nor removing an entry writes a callback,
 * which spares the collector's write barrier. It forgets its callback when its last entry goes; a mixed page
 * forgets entry by entry, and stays mixed.
 */
export class ReferencePage {
  readonly #arguments: unknown[] = new Array<unknown>(PAGE_SIZE).fill(undefined);
  /** The callback of every entry, while the page is uniform. */
  #callback: EntryCallback | undefined;
  /** The callback of each entry, once the page is mixed. */
  #callbacks: (EntryCallback | undefined)[] | undefined;
  /** Entries in use. */
  #used = 0;

  /** An entry takes the slot. `isUsed` is asked which of the page's slots hold entries, if the page must spread. */
  set(slot: number, callback: EntryCallback, argument: unknown, isUsed: (slot: number) => boolean): void {
    this.#arguments[slot & PAGE_MASK] = argument;
    this.#used++;
    if (this.#callback === callback) return;
    if (this.#callbacks === undefined && this.#callback === undefined) this.#callback = callback;
    else this.#setMixed(slot, callback, isUsed);
  }

  /** The entry is gone: nothing of it is held any more. */
  clear(slot: number): void {
    this.#arguments[slot & PAGE_MASK] = undefined;
    this.#used--;
    if (this.#callbacks !== undefined) this.#callbacks[slot & PAGE_MASK] = undefined;
    else if (this.#used === 0) this.#callback = undefined;
  }

  callbackOf(slot: number): EntryCallback {
    return (
      this.#callbacks === undefined ? this.#callback : this.#callbacks[slot & PAGE_MASK]
    ) as EntryCallback;
  }

  argumentOf(slot: number): unknown {
    return this.#arguments[slot & PAGE_MASK];
  }

  #setMixed(slot: number, callback: EntryCallback, isUsed: (slot: number) => boolean): void {
    this.#callbacks ??= this.#spread(slot & ~PAGE_MASK, isUsed);
    this.#callbacks[slot & PAGE_MASK] = callback;
  }

  #spread(firstSlot: number, isUsed: (slot: number) => boolean): (EntryCallback | undefined)[] {
    const shared = this.#callback;
    this.#callback = undefined;
    const callbacks: (EntryCallback | undefined)[] = [];
    for (let i = 0; i < PAGE_SIZE; i++) callbacks.push(isUsed(firstSlot + i) ? shared : undefined);
    return callbacks;
  }
}
