/** The client's mistake: answered with its status, and what it says. */
export class BadRequest extends Error {
  readonly status: number;

  constructor(message: string, status = 400) {
    super(message);
    this.status = status;
  }
}

/** The parameters of a URL. What is missing or wrong is a `BadRequest` that names it. */
export class Query {
  readonly #parameters: URLSearchParams;

  constructor(parameters: URLSearchParams) {
    this.#parameters = parameters;
  }

  text(name: string): string {
    const value = this.#parameters.get(name) ?? '';
    if (value === '') throw new BadRequest(`parameter '${name}' is missing`);
    return value;
  }

  /** One of some words; the first is the default. */
  word<W extends string>(name: string, allowed: readonly [W, ...W[]]): W {
    const value = this.#parameters.get(name) ?? allowed[0];
    const word = allowed.find((candidate) => candidate === value);
    if (word === undefined)
      throw new BadRequest(`parameter '${name}' is '${value}', not ${allowed.join(' or ')}`);
    return word;
  }

  /** A whole number from 0 to `max`. */
  whole(name: string, max: number, byDefault?: number): number {
    const value = this.#parameters.get(name);
    if (value === null && byDefault !== undefined) return byDefault;
    return wholeNumber(name, this.text(name), max);
  }

  /** Whole numbers, with commas between them. */
  wholes(name: string): number[] {
    return this.text(name)
      .split(',')
      .map((part) => wholeNumber(name, part, Number.MAX_SAFE_INTEGER));
  }
}

function wholeNumber(name: string, value: string, max: number): number {
  const number = /^\d+$/.test(value) ? Number(value) : NaN;
  if (number <= max) return number;
  throw new BadRequest(`parameter '${name}' is '${value}', not a whole number from 0 to ${max}`);
}
