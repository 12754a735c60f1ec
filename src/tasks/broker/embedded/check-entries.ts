import { TASK_STATES } from '../../task-state.ts';
import { EntryReader } from './entry-bytes.ts';
import { ENTRIES, Kind, readBody, readHead, readRunFields, readState } from './journal-format.ts';

/** A task by its names. */
export interface TaskName {
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
  check(type: number, payload: Buffer): string | undefined {
    if (type !== ENTRIES) return `a broker has no records of type ${type}`;
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
    const read = READERS[kind];
    if (read === undefined) throw new Error(`an entry at ${start} has the unknown kind ${kind}`);
    const { number, task } = read(reader);
    if (reader.offset !== end) throw new Error(`an entry at ${start} has a wrong length`);
    yield { kind, number, task };
  }
  if (end !== payload.length) throw new Error(`${payload.length - end} bytes at ${end} are not an entry`);
}

type Read = (reader: EntryReader) => { readonly number?: number; readonly task?: TaskName };

/** Reads all of an entry of each kind. */
const READERS: Readonly<Record<number, Read>> = {
  [Kind.task]: (reader) => task(reader, Kind.task),
  [Kind.keyedTask]: (reader) => task(reader, Kind.keyedTask),
  [Kind.change](reader) {
    const number = finite(reader.number());
    requireState(readState(reader).state);
    readRunFields(reader);
    return { number };
  },
  [Kind.remove]: (reader) => ({ number: finite(reader.number()) }),
  [Kind.start](reader) {
    const number = finite(reader.number());
    finite(reader.number());
    return { number };
  },
  [Kind.result](reader) {
    const number = finite(reader.number());
    reader.blob();
    return { number };
  },
  [Kind.progress](reader) {
    const number = finite(reader.number());
    reader.text();
    return { number };
  },
  [Kind.count](reader) {
    finite(reader.number());
    reader.byte();
    reader.text();
    return {};
  },
  [Kind.queue]: textAndJson,
  [Kind.removeQueue](reader) {
    reader.text();
    return {};
  },
  [Kind.tick]: timeAndTexts,
  [Kind.bucket]: timeAndTexts,
  [Kind.event]: timeAndTexts,
  [Kind.events]: textAndJson,
  [Kind.serial](reader) {
    finite(reader.number());
    return {};
  },
};

function task(reader: EntryReader, kind: number): ReturnType<Read> {
  const { number, stored, id, names } = readHead(reader, kind);
  readBody(reader);
  requireState(stored.state);
  return { number: finite(number), task: { queue: names.queue, id } };
}

function textAndJson(reader: EntryReader): object {
  reader.text();
  JSON.parse(reader.text());
  return {};
}

function timeAndTexts(reader: EntryReader): object {
  finite(reader.number());
  reader.text();
  reader.text();
  return {};
}

function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw new Error(`${value} is not a number of a task or a time`);
}

function requireState(state: string | undefined): void {
  if (!TASK_STATES.some((known) => known === state)) throw new Error('a task is in an unknown state');
}
