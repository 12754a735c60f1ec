import { EntryReader } from './entry-bytes.ts';
import {
  isOfTask,
  Kind,
  LAYOUTS,
  readBody,
  readHead,
  readRunFields,
  readState,
  readValues,
  type LaidOutKind,
} from './journal-format.ts';

interface TaskName {
  readonly queue: string;
  readonly id: string;
}

/** A task that damaged bytes are about. */
export interface DamagedTask extends TaskName {
  /** Whether nothing else of it was found: it is lost. If not, it may be as it was before. */
  readonly isLost: boolean;
}

/** What one entry is about: a task by its number, and by its names if they are in the entry. */
interface Entry {
  readonly kind: number;
  readonly number: number | undefined;
  readonly task: TaskName | undefined;
}

/** Checks that the records of a log are legal entries of a broker, and finds out which tasks damaged ones are about. */
export class EntryCheck {
  readonly #tasks = new Map<number, TaskName>();
  readonly #removed = new Set<number>();

  /** Checks an intact record. @returns what is wrong; undefined if nothing is. */
  check(payload: Buffer): string | undefined {
    try {
      for (const { kind, number, task } of entriesOf(payload)) {
        if (number === undefined) continue;
        if (task !== undefined) this.#tasks.set(number, task);
        if (kind === Kind.remove) this.#removed.add(number);
      }
      return undefined;
    } catch (error) {
      return `not the entries of a broker: ${(error as Error).message}`;
    }
  }

  /**
   * Returns the tasks that a damaged record is about, as far as it can be read, once all intact ones were checked. Tasks that were
   * removed later are left out: the damage has cost nothing of them.
   */
  tasksIn(payload: Buffer): DamagedTask[] {
    const found = new Map<number, DamagedTask>();
    try {
      for (const { number, task } of entriesOf(payload)) {
        if (number === undefined || this.#removed.has(number)) continue;
        const known = this.#tasks.get(number);
        const name = known ?? task;
        if (name !== undefined) found.set(number, { ...name, isLost: known === undefined });
      }
    } catch {
      // The rest cannot be read.
    }
    return [...found.values()];
  }
}

/** @throws Error - an entry is not legal. */
function* entriesOf(payload: Buffer): Generator<Entry> {
  const reader = new EntryReader(payload);
  let end = 0;
  for (let kind = reader.next(); kind !== undefined; kind = reader.next()) {
    const start = end;
    end += reader.size;
    if (end > payload.length) throw new Error(`an entry at ${start} is longer than its record`);
    const about = readEntry(reader, kind);
    if (about === undefined) continue; // a broker leaves it out
    if (reader.offset !== end) throw new Error(`an entry at ${start} has a wrong length`);
    yield about;
  }
  if (end !== payload.length) throw new Error(`${payload.length - end} bytes at ${end} are not an entry`);
}

/** Reads all of an entry. @returns undefined if its kind is unknown. */
function readEntry(reader: EntryReader, kind: number): Entry | undefined {
  if (kind === Kind.task || kind === Kind.keyedTask) {
    const { number, idOffset, names } = readHead(reader, kind);
    const id = reader.textAt(idOffset);
    readBody(reader, id, names);
    return { kind, number: finite(number), task: { queue: names.queue, id } };
  }
  if (kind === Kind.change) {
    const number = finite(reader.number());
    readState(reader);
    readRunFields(reader);
    return { kind, number, task: undefined };
  }
  if (!(kind in LAYOUTS)) return undefined;
  const values: readonly unknown[] = readValues(reader, kind as LaidOutKind);
  for (const value of values) if (typeof value === 'number') finite(value);
  return { kind, number: isOfTask(kind) ? (values[0] as number) : undefined, task: undefined };
}

function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw new Error(`${value} is not a number of a task or a time`);
}
