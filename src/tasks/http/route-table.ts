import { HttpError } from './http-error.ts';

/** The methods of the interface; `HEAD` is `GET` without the body. */
export type Method = 'GET' | 'POST' | 'DELETE';

/** One operation of the interface. */
export interface Route<Action> {
  readonly method: Method;
  /** Pattern of its path: `/queues/{queue}/pending_tasks/{task}:archive`. */
  readonly pattern: string;
  readonly action: Action;
}

/** Parts of a path by their names in the pattern. */
export type Parameters = ReadonlyMap<string, string>;

/** Result of a look-up. */
export type Match<Action> =
  | { readonly action: Action; readonly parameters: Parameters }
  /** The path exists, with these methods only. */
  | { readonly allowed: readonly Method[] };

/** One step of a pattern: a literal or a parameter, and an optional verb behind it. */
interface Step {
  readonly literal: string | undefined;
  readonly name: string;
  /** With its colon; empty if there is none. */
  readonly verb: string;
}

interface CompiledRoute<Action> extends Route<Action> {
  readonly steps: readonly Step[];
}

/**
 * Finds the operation of a path. A path is split at its slashes and at the colon of the verb before it is decoded, so an id may
 * contain both, percent-encoded.
 */
export class RouteTable<Action> {
  readonly #byLength = new Map<number, CompiledRoute<Action>[]>();

  constructor(routes: readonly Route<Action>[]) {
    for (const route of routes) {
      const steps = route.pattern.slice(1).split('/').map(stepOf);
      const alike = this.#byLength.get(steps.length) ?? [];
      this.#byLength.set(steps.length, [...alike, { ...route, steps }]);
    }
  }

  /** Returns undefined if there is no such path. @throws HttpError 400 - it cannot be decoded. */
  find(method: Method | undefined, path: string): Match<Action> | undefined {
    const parts = path.slice(1).split('/');
    const matching = (this.#byLength.get(parts.length) ?? []).filter((route) => fits(route.steps, parts));
    const route = matching.find((one) => one.method === method);
    if (route !== undefined) {
      return { action: route.action, parameters: parametersOf(route.steps, parts) };
    }
    if (matching.length === 0) return undefined;
    return { allowed: [...new Set(matching.map((one) => one.method))] };
  }
}

function stepOf(pattern: string): Step {
  const [, whole = '', verb = ''] = /^([^:]*)(:.*)?$/.exec(pattern) ?? [];
  const name = /^\{(.*)\}$/.exec(whole)?.[1];
  return { literal: name === undefined ? whole : undefined, name: name ?? '', verb };
}

function fits(steps: readonly Step[], parts: readonly string[]): boolean {
  return steps.every(({ literal, verb }, at) => {
    const part = parts[at] ?? '';
    if (!part.endsWith(verb)) return false;
    const rest = part.slice(0, part.length - verb.length);
    return literal === undefined ? rest !== '' : rest === literal;
  });
}

function parametersOf(steps: readonly Step[], parts: readonly string[]): Parameters {
  const parameters = new Map<string, string>();
  for (const [at, { literal, name, verb }] of steps.entries()) {
    const part = parts[at] ?? '';
    if (literal === undefined) parameters.set(name, decode(part.slice(0, part.length - verb.length)));
  }
  return parameters;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new HttpError(400, 'malformed percent-encoding in the path');
  }
}
