import { nextHostTurn } from '../core/own-turn.ts';
import { HttpError } from '../tasks/http/http-error.ts';
import type { Content } from '../tasks/http/asynqmon-json.ts';
import { requireTaskState } from './dashboard-call.ts';
import { FILTER_TEXTS, type SearchFilter } from './dashboard-json.ts';
import type { Runs } from './dashboard-views.ts';
import type { SourceTask } from './tasks-source.ts';

export const FILTER_FIELDS = [...FILTER_TEXTS, 'state', 'queue', 'from', 'to'] as const;

/** Longest text to find, in characters. */
const MAX_TEXT = 1_000;

/** Work without a turn for the host, in milliseconds. */
const MAX_WORK_MS = 5;

/** Bytes that are decoded at once: a millisecond or less. */
const WINDOW_BYTES = 65_536;

/** Returns a filter without the fields that are empty. @throws HttpError 400 - a field is invalid. */
export function filterOf(given: Readonly<Partial<Record<keyof SearchFilter, unknown>>>): SearchFilter {
  const fields = {
    ...Object.fromEntries(FILTER_TEXTS.map((name) => [name, textOf(name, given[name])])),
    ...{ state: listOf('state', given.state)?.map(requireTaskState), queue: listOf('queue', given.queue) },
    ...{ from: timeOf('from', given.from), to: timeOf('to', given.to) },
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** The filter in the query of a URL. */
export function filterOfQuery(query: URLSearchParams): SearchFilter {
  const texts = [...FILTER_TEXTS, 'from', 'to'].map((name) => [name, query.get(name) ?? undefined] as const);
  return filterOf({
    ...Object.fromEntries(texts),
    ...{ state: query.getAll('state'), queue: query.getAll('queue') },
  });
}

function textOf(name: string, value: unknown): string | undefined {
  if (value === undefined || value === '') return undefined;
  if (typeof value === 'string' && value.length <= MAX_TEXT) return value.toLowerCase();
  throw new HttpError(400, `${name} must be a text of at most ${MAX_TEXT} characters`);
}

function listOf(name: string, value: unknown): readonly string[] | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) {
    const names = value.filter((one) => one !== '');
    return names.length > 0 ? names : undefined;
  }
  throw new HttpError(400, `${name} must be an array of names`);
}

function timeOf(name: string, value: unknown): number | undefined {
  if (value === undefined || value === '') return undefined;
  const ms = typeof value === 'string' ? Number(value) : value;
  if (typeof ms === 'number' && Number.isFinite(ms)) return ms;
  throw new HttpError(400, `${name} must be a time in milliseconds`);
}

/** Compares tasks with a filter, and gives the host a turn every few milliseconds. */
export class Matcher {
  readonly #filter: SearchFilter;
  readonly #runs: Runs;
  #workedSinceMs = performance.now();

  /** @param runs - when active tasks were started. */
  constructor(filter: SearchFilter, runs: Runs) {
    this.#filter = filter;
    this.#runs = runs;
  }

  /** Returns the tasks that match. */
  async matchesOf(tasks: readonly SourceTask[]): Promise<SourceTask[]> {
    const matching: SourceTask[] = [];
    this.#workedSinceMs = performance.now();
    for (const task of tasks) {
      const isMatch = this.#matchesHead(task) && (await this.#matchesContents(task));
      if (isMatch) matching.push(task);
      await this.#rest();
    }
    return matching;
  }

  #rest(): Promise<void> | undefined {
    if (performance.now() - this.#workedSinceMs < MAX_WORK_MS) return undefined;
    return nextHostTurn().then(() => {
      this.#workedSinceMs = performance.now();
    });
  }

  #matchesHead(task: SourceTask): boolean {
    const { type, id, error, state, from, to } = this.#filter;
    if (state?.includes(task.state) === false) return false;
    if (!hasText(task.type, type) || !hasText(task.id, id) || !hasText(task.lastError, error)) return false;
    if (from === undefined && to === undefined) return true;
    const atMs = this.#timeOf(task);
    return atMs !== undefined && atMs >= (from ?? -Infinity) && atMs <= (to ?? Infinity);
  }

  async #matchesContents(task: SourceTask): Promise<boolean> {
    const { text, payload, result } = this.#filter;
    if (payload !== undefined && !(await this.#hasContent(task.payload, payload))) return false;
    if (result !== undefined && !(await this.#hasContent(task.result, result))) return false;
    if (text === undefined) return true;
    if ([task.type, task.id, task.lastError].some((field) => hasText(field, text))) return true;
    return (await this.#hasContent(task.payload, text)) || this.#hasContent(task.result, text);
  }

  /** Decodes in windows, which overlap by more than the text: letters may take four bytes. */
  async #hasContent(content: Content | undefined, text: string): Promise<boolean> {
    if (content === undefined) return false;
    if ('shown' in content) return hasText(content.shown, text);
    const bytes = Buffer.from(content.buffer, content.byteOffset, content.length);
    const overlap = 4 * text.length + 4;
    for (let at = 0; at < bytes.length; at += WINDOW_BYTES) {
      if (hasText(bytes.toString('utf8', at, at + WINDOW_BYTES + overlap), text)) return true;
      if (at > 0) await this.#rest();
    }
    return false;
  }

  /** Returns the task's own time; a pending or aggregating task has none. */
  #timeOf(task: SourceTask): number | undefined {
    const { state, lastFailedAt, nextProcessAt, completedAt } = task;
    if (state === 'active') return this.#runs.of(task)?.startedAtMs;
    if (state === 'completed') return completedAt?.getTime();
    if (state === 'scheduled') return nextProcessAt?.getTime();
    return (lastFailedAt ?? (state === 'retry' ? nextProcessAt : undefined))?.getTime();
  }
}

/** @param text - in lower case. */
function hasText(field: string, text: string | undefined): boolean {
  return text === undefined || field.toLowerCase().includes(text);
}
