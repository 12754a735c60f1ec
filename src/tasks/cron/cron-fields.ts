/** Allowed values of a field. */
interface FieldRule {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly words: readonly string[];
}

/** A parsed field: its numbers in order, and whether all are allowed (`*`, `?`). */
interface Field {
  readonly values: readonly number[];
  readonly isOpen: boolean;
}

/** Five fields as numbers and commas, or `*`. */
export interface CronFields {
  readonly text: string;
  /** Whether the hour is `*`: then the spec means every hour, also when the clocks are changed. */
  readonly isEveryHour: boolean;
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const RULES: readonly FieldRule[] = [
  { name: 'minute', min: 0, max: 59, words: [] },
  { name: 'hour', min: 0, max: 23, words: [] },
  { name: 'day of month', min: 1, max: 31, words: [] },
  { name: 'month', min: 1, max: 12, words: MONTHS },
  { name: 'day of week', min: 0, max: 6, words: WEEKDAYS },
];

const HOUR = 1;

/**
 * Parses five fields by the rules of robfig/cron's standard parser, which asynq uses, and which differ from most others: `5/15` is
 * from 5 on, every 15; `?` is `*` in any field; Sunday is 0 and never 7; there are no L, W and #; `*` with a step of more than 1 is a
 * list of values, which matters if both kinds of days are given.
 *
 * @returns for an invalid field a requirement, as the end of a sentence that begins with "a cron spec".
 */
export function readCronFields(text: string): CronFields | string {
  const parts = text.split(/\s+/).filter((part) => part !== '');
  if (parts.length !== RULES.length) {
    return `of five fields (minute, hour, day of month, month, day of week), not ${parts.length}`;
  }
  const fields: Field[] = [];
  for (const [at, rule] of RULES.entries()) {
    const field = readField(parts[at] ?? '', rule);
    if (typeof field === 'string') return field;
    fields.push(field);
  }
  return {
    text: fields.map(({ values, isOpen }) => (isOpen ? '*' : values.join(','))).join(' '),
    isEveryHour: fields[HOUR]?.isOpen === true,
  };
}

function readField(text: string, rule: FieldRule): Field | string {
  const values = new Set<number>();
  let isOpen = false;
  for (const piece of text.split(',')) {
    const span = readSpan(piece, rule);
    if (typeof span === 'string') return `whose ${rule.name} ${span}`;
    for (let value = span.from; value <= span.to; value += span.step) values.add(value);
    isOpen ||= span.isOpen;
  }
  return { values: [...values].sort((a, b) => a - b), isOpen };
}

interface Span {
  readonly from: number;
  readonly to: number;
  readonly step: number;
  readonly isOpen: boolean;
}

/** Parses `*`, `?`, `5` or `5-10`, optionally with a step. */
function readSpan(text: string, rule: FieldRule): Span | string {
  const { min, max } = rule;
  const [range = '', stepText, ...more] = text.split('/');
  if (more.length > 0) return `has at most one step, not '${text}'`;
  const step = stepText === undefined ? 1 : readNumber(stepText);
  if (step === undefined || step < 1) return `has a step of 1 or more, not '${text}'`;
  if (range === '*' || range === '?') return { from: min, to: max, step, isOpen: step === 1 };
  const [first = '', last, ...rest] = range.split('-');
  const from = readValue(first, rule);
  const to = last === undefined ? (stepText === undefined ? from : max) : readValue(last, rule);
  if (from === undefined || to === undefined || rest.length > 0) return `is ${describe(rule)}, not '${text}'`;
  if (from > to) return `is an ascending range, not '${text}'`;
  return { from, to, step, isOpen: false };
}

function readValue(text: string, { min, max, words }: FieldRule): number | undefined {
  const word = words.indexOf(text.toLowerCase());
  if (word !== -1) return min + word;
  const value = readNumber(text);
  return value !== undefined && value >= min && value <= max ? value : undefined;
}

function readNumber(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function describe({ min, max, words }: FieldRule): string {
  const names = words.length === 0 ? '' : ` or ${words[0] ?? ''}-${words.at(-1) ?? ''}`;
  return `from ${min} to ${max}${names}`;
}
