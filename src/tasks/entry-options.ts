import { formatGoDuration, parseGoDuration } from './go-duration.ts';
import { quoteGoString, unquoteGoString } from './go-string.ts';
import type { TaskOptions } from './task-options.ts';
import { formatUnixDate, parseUnixDate } from './unix-date.ts';

type Written = { -readonly [Name in keyof TaskOptions]: TaskOptions[Name] };

/** One option: its name in Go, how it is written, and how it is read back; undefined for what means nothing. */
interface OptionCodec {
  readonly name: string;
  readonly write: (options: TaskOptions) => readonly string[];
  readonly read: (argument: string, into: Written) => void;
}

/**
 * How asynq writes the options of a schedule's entry, for whoever shows them.
 *
 * Its readers cut an option at the first `(` and the first `)`, and the whole program ends if there is none (asynq's
 * parseOption). So each option here has both, and a `)` that belongs to a name is escaped in a way that Go reads back.
 */
const CODECS: readonly OptionCodec[] = [
  {
    name: 'MaxRetry',
    write: ({ maxRetry }) => present(maxRetry, String),
    read: (argument, into) => {
      if (/^\d+$/.test(argument)) into.maxRetry = Number(argument);
    },
  },
  text('Queue', 'queue'),
  text('TaskID', 'taskId'),
  duration('Timeout', 'timeoutMs'),
  moment('Deadline', 'deadline'),
  duration('Unique', 'uniqueTtlMs'),
  moment('ProcessAt', 'processAt'),
  duration('ProcessIn', 'processInMs'),
  duration('Retention', 'retentionMs'),
  text('Group', 'group'),
  {
    name: 'Header',
    write: ({ headers = {} }) =>
      Object.entries(headers).map((pair) => escapeEnd(JSON.stringify(pair), '\\u0029')),
    read: (argument, into) => {
      const pair = readHeader(argument);
      if (pair !== undefined) into.headers = { ...into.headers, [pair[0]]: pair[1] };
    },
  },
];

const CODEC_OF = new Map(CODECS.map((codec) => [codec.name, codec]));

/** Options as asynq shows them: `MaxRetry(5)`, `Queue("low")`, `Timeout(30m0s)`. Whole seconds, where it is a moment. */
export function formatTaskOptions(options: TaskOptions): string[] {
  return CODECS.flatMap(({ name, write }) => write(options).map((argument) => `${name}(${argument})`));
}

/** The other way round. Never throws: what is not understood is left out. */
export function parseTaskOptions(written: readonly string[]): TaskOptions {
  const options: Written = {};
  for (const one of written) {
    const start = one.indexOf('(');
    const end = one.lastIndexOf(')');
    if (start !== -1 && end > start)
      CODEC_OF.get(one.slice(0, start))?.read(one.slice(start + 1, end), options);
  }
  return options;
}

function text(name: string, key: 'queue' | 'taskId' | 'group'): OptionCodec {
  return {
    name,
    write: (options) => present(options[key], (value) => escapeEnd(quoteGoString(value), '\\x29')),
    read: (argument, into) => {
      const value = unquoteGoString(argument);
      if (value !== undefined) into[key] = value;
    },
  };
}

function duration(
  name: string,
  key: 'timeoutMs' | 'uniqueTtlMs' | 'processInMs' | 'retentionMs',
): OptionCodec {
  return {
    name,
    write: (options) => present(options[key], formatGoDuration),
    read: (argument, into) => {
      const value = parseGoDuration(argument);
      if (value !== undefined) into[key] = value;
    },
  };
}

function moment(name: string, key: 'deadline' | 'processAt'): OptionCodec {
  return {
    name,
    write: (options) => present(options[key], (at) => formatUnixDate(Number(at))),
    read: (argument, into) => {
      const value = parseUnixDate(argument);
      if (value !== undefined) into[key] = value;
    },
  };
}

function present<V>(value: V | undefined, write: (value: V) => string): readonly string[] {
  return value === undefined ? [] : [write(value)];
}

function escapeEnd(quoted: string, escape: string): string {
  return quoted.replaceAll(')', escape);
}

function readHeader(argument: string): readonly [string, string] | undefined {
  try {
    const pair: unknown = JSON.parse(argument);
    if (!Array.isArray(pair) || pair.length !== 2) return undefined;
    const [key, value] = pair as unknown[];
    return typeof key === 'string' && typeof value === 'string' ? [key, value] : undefined;
  } catch {
    return undefined;
  }
}
