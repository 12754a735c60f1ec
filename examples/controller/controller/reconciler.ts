import { rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { readIfThere, removeEmpty, writeWhole } from './files.ts';
import { outputOf } from './keys.ts';
import { isRendered, renderSettings } from './settings.ts';

/** What was to be done. */
export type Reconciled = 'written' | 'removed' | 'unchanged';

/**
 * Makes the output of one file what it should be, whatever has happened.
 *
 *      desired, from the source    actual, the output    then
 *      ────────────────────────    ──────────────────    ─────────
 *      the same                    the same              unchanged
 *      something                   nothing, or other     written
 *      nothing: it is gone         something             removed
 *      something                   somebody else's       failed
 *      it has a syntax error       anything              failed; the output stays
 *
 * It is not told what happened. Called once too often it does nothing, called after ten changes it sees the last, and
 * called after a failure it starts again: so the queue may put events together, and repeat what fails.
 */
export class Reconciler {
  readonly #source: string;
  readonly #output: string;

  constructor(sourceDirectory: string, outputDirectory: string) {
    this.#source = resolve(sourceDirectory);
    this.#output = resolve(outputDirectory);
  }

  /** Not for the same key twice at once: that is what the queue sees to. */
  async reconcile(key: string): Promise<Reconciled> {
    const output = join(this.#output, outputOf(key));
    const source = await readIfThere(join(this.#source, key));
    const desired = source === undefined ? undefined : renderSettings(key, source);
    const actual = await readIfThere(output);
    if (desired === actual) return 'unchanged';
    const isForeign = actual !== undefined && !isRendered(actual);
    if (desired === undefined) return isForeign ? 'unchanged' : this.#remove(output);
    if (isForeign) throw new Error(`${outputOf(key)} is there already, and was written by somebody else`);
    await writeWhole(output, desired);
    return 'written';
  }

  async #remove(output: string): Promise<Reconciled> {
    await rm(output, { force: true });
    await removeEmpty(dirname(output), this.#output);
    return 'removed';
  }
}
