import { cutShort, outOfRange, withCode, wrongType, type ArgumentError } from './errors.ts';
import { requireFiniteNumber, requireIntegerAtLeast, requireMethods, requireOneOf } from './validate.ts';

/**
 * Options, each described once: a table has one row per option, with its check and its default.
 *
 *     const OPTIONS = {
 *       broker: [requireBroker],                 // required
 *       concurrency: [integer(1), 10],           // optional, with a default
 *       errorHandler: [requireFunction, undefined], // optional, without one
 *     } satisfies OptionTable<ServerOptions>;
 *
 * The compiler rejects a table that lacks an option or has another one. `readOptions` checks and fills in what a caller gave, and
 * rejects names that are not in the table: a misspelt option would silently have its default. A row may have more columns, which
 * only its owner reads.
 */
export type OptionTable<Options> = Readonly<
  Record<NameIn<Options>, readonly [check: Check, byDefault?: unknown, ...more: unknown[]]>
>;

/** Throws a `TypeError` or `RangeError` that names the argument, if the value is not valid. */
export type Check = (argument: string, value: unknown) => void;

/** Distributes over a union, whose `keyof` has only the names that its members share. */
type NameIn<Options> = Options extends unknown ? keyof Options & string : never;

/** The options of a table with every default filled in. */
export type Resolved<Options, Table> = {
  readonly [Name in keyof Table & keyof Options]: Table[Name] extends readonly [Check, infer Default]
    ? Exclude<Options[Name], undefined> | OtherThan<Exclude<Options[Name], undefined>, Default>
    : Options[Name];
};

type OtherThan<Value, Default> = Default extends Value ? never : Value extends Default ? never : Default;

type Rows = Readonly<Record<string, readonly [Check, unknown?, ...unknown[]]>>;

/**
 * Returns the options that a caller gave, with the defaults of those that are missing or undefined.
 *
 * @param subject - what takes the options, as a user would write it: `SystemTimer.close`.
 * @throws TypeError or RangeError - an option is missing, wrong or unknown.
 */
export function readOptions<Options extends object, Table extends OptionTable<Options>>(
  subject: string,
  given: Options,
  table: Table,
  argument = 'options',
): Resolved<Options, Table> {
  checkOptions(subject, given, table, argument);
  const resolved: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(table as Rows)) {
    resolved[name] = given[name as keyof Options] ?? row[1];
  }
  return resolved as Resolved<Options, Table>;
}

/** Checks options as {@link readOptions} does, and makes no object: for calls that are made millions of times. */
export function checkOptions(subject: string, given: unknown, table: Rows, argument = 'options'): void {
  requireOptions(subject, argument, given);
  const values = given as Readonly<Record<string, unknown>>;
  for (const key in values) {
    if (Object.hasOwn(table, key) || !Object.hasOwn(values, key)) continue;
    throw unknownOption(`${subject}: ${argument}`, key, Object.keys(table));
  }
  for (const name in table) {
    const row = table[name];
    const value = values[name];
    if (row !== undefined && (value !== undefined || row.length === 1)) row[0](`${argument}.${name}`, value);
  }
}

/**
 * Checks options as {@link checkOptions} does, for a table without required options. The cost depends on the number of options
 * that are given, not on those of the table.
 */
export function checkGivenOptions(subject: string, given: object, table: Rows): void {
  requireOptions(subject, 'options', given);
  if (Object.getPrototypeOf(given) !== Object.prototype) {
    checkOptions(subject, given, table); // the class of the object may have getters, which no loop finds
    return;
  }
  for (const key in given) {
    const row: unknown = table[key];
    if (!Array.isArray(row)) throw unknownOption(`${subject}: options`, key, Object.keys(table));
    const value: unknown = given[key as never];
    if (value !== undefined) (row[0] as Check)(`options.${key}`, value);
  }
}

function requireOptions(subject: string, argument: string, given: unknown): void {
  if (typeof given !== 'object' || given === null)
    throw wrongType(`${subject}: ${argument}`, 'an object', given);
}

export function integer(minimum: number, maximum = Number.MAX_SAFE_INTEGER): Check {
  return (argument, value) => {
    requireIntegerAtLeast(argument, minimum, value);
    if (value > maximum) throw outOfRange(argument, `at most ${maximum}`, value);
  };
}

/** Also a number of milliseconds that is not an integer. By default at most what a clock can show. */
export function milliseconds(minimum: number, maximum = Number.MAX_SAFE_INTEGER): Check {
  return (argument, value) => {
    requireFiniteNumber(argument, value);
    if (value < minimum) throw outOfRange(argument, `at least ${minimum} ms`, value);
    if (value > maximum) throw outOfRange(argument, `at most ${maximum} ms`, value);
  };
}

export function orInfinity(check: Check): Check {
  return (argument, value) => {
    if (value !== Infinity) check(argument, value);
  };
}

export function oneOf(...allowed: readonly string[]): Check {
  return (argument, value) => {
    requireOneOf(argument, allowed, value);
  };
}

export function objectWith(description: string, ...methods: readonly string[]): Check {
  return (argument, value) => {
    requireMethods(argument, description, methods, value);
  };
}

/** The error for a key that is not an option: it names the option that is most like it, or lists all. */
function unknownOption(argument: string, key: string, names: readonly string[]): ArgumentError {
  const shown = cutShort(key);
  const nearest = nearestTo(shown.toLowerCase(), names);
  const advice = nearest === undefined ? `Known options: ${names.join(', ')}` : `Did you mean ${nearest}?`;
  return withCode(new TypeError(`${argument}.${shown} is not an option. ${advice}`), 'ERR_UNKNOWN_OPTION');
}

/** The name that the fewest edits make from a key, letter case aside; undefined if it takes too many. */
function nearestTo(key: string, names: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let fewest = Infinity;
  for (const name of names) {
    const edits = editsBetween(key, name.toLowerCase());
    // As many edits as a name has letters make any text; at most a third of them, or two, are a slip.
    if (edits >= Math.min(fewest, name.length, Math.max(3, name.length / 3 + 1))) continue;
    nearest = name;
    fewest = edits;
  }
  return nearest;
}

/** How many letters must be inserted, deleted or replaced to make one text from the other (Wagner and Fischer, 1974). */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 0; i < a.length; i++) {
    let left = i;
    let diagonal = i;
    row = row.map((above, j) => {
      left = Math.min(above, left, diagonal - Number(a[i] === b[j - 1])) + 1;
      diagonal = above;
      return left;
    });
  }
  return row[b.length] as number;
}
