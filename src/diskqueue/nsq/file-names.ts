/*
 * The files of a queue, as go-diskqueue names them:
 *
 *      orders.diskqueue.000000.dat                  messages; more digits from a million on
 *      orders.diskqueue.000000.dat.bad              put aside, because it is damaged
 *      orders.diskqueue.meta.dat                    where reading and writing go on
 *      orders.diskqueue.meta.dat.7331.tmp           the next one of those, while it is written
 */

/** The files of one queue that are in its folder. */
export interface QueueFiles {
  /** Numbers of the data files, ascending. */
  readonly data: readonly number[];
  /** Of those that were put aside. */
  readonly bad: readonly number[];
  /** Names of metadata that was being written when a process ended. */
  readonly temporary: readonly string[];
}

const DIGITS = 6;
const NUMBER = /^\d{6,15}$/;
const RANDOM = /^\d+$/;

export function dataFileName(queue: string, number: number): string {
  return `${queue}.diskqueue.${String(number).padStart(DIGITS, '0')}.dat`;
}

export function metadataFileName(queue: string): string {
  return `${queue}.diskqueue.meta.dat`;
}

/** Picks the files of a queue out of the names in a folder. */
export function sortNames(queue: string, names: readonly string[]): QueueFiles {
  const data: number[] = [];
  const temporary: string[] = [];
  const bad: number[] = [];
  for (const name of names) {
    const number = numberOf(queue, name, '.dat');
    if (number !== undefined) data.push(number);
    const badNumber = numberOf(queue, name, '.dat.bad');
    if (badNumber !== undefined) bad.push(badNumber);
    if (isTemporary(queue, name)) temporary.push(name);
  }
  return { data: data.sort((a, b) => a - b), bad, temporary };
}

/** @returns undefined if it is no such file of the queue. */
function numberOf(queue: string, name: string, suffix: string): number | undefined {
  const digits = between(name, `${queue}.diskqueue.`, suffix);
  if (digits === undefined || !NUMBER.test(digits)) return undefined;
  const number = Number(digits);
  return dataFileName(queue, number) === `${queue}.diskqueue.${digits}.dat` ? number : undefined;
}

function isTemporary(queue: string, name: string): boolean {
  const random = between(name, `${metadataFileName(queue)}.`, '.tmp');
  return random !== undefined && RANDOM.test(random);
}

function between(name: string, prefix: string, suffix: string): string | undefined {
  if (name.length < prefix.length + suffix.length) return undefined;
  if (!name.startsWith(prefix) || !name.endsWith(suffix)) return undefined;
  return name.slice(prefix.length, name.length - suffix.length);
}
