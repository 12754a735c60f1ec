/** Names the method that `console.log` calls in Node, Deno and Bun, to learn what it prints in place of an object. */
export const CONSOLE_VIEW: unique symbol = Symbol.for('nodejs.util.inspect.custom');

/**
 * Returns what a console prints in place of an object: its public fields, and those that `read` returns, under the name of
 * its class. Fields that are undefined, and own fields whose names begin with an underscore, are left out.
 *
 * WHY an object and not text: the console formats it as any other, with its depth, colours and line length.
 */
export function consoleView(object: object, read: () => object): object {
  const View = class {}; // eslint-disable-line @typescript-eslint/no-extraneous-class -- a name is all it has
  Object.defineProperty(View, 'name', { value: nameOf(object.constructor) });
  const fields = Object.entries({ ...object, ...attempt(read) });
  return Object.assign(new View(), Object.fromEntries(fields.filter(isShown)));
}

/** A proxy or a mock has no private fields, and a getter of a subclass may throw: printing must not. */
function attempt(read: () => object): object | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** An anonymous subclass is printed under the name of the class that it extends. */
function nameOf(type: object & { readonly name?: string }): string {
  return type.name || nameOf(Object.getPrototypeOf(type) as object); // eslint-disable-line @typescript-eslint/prefer-nullish-coalescing -- it may be empty
}

function isShown([name, value]: [string, unknown]): boolean {
  return value !== undefined && !name.startsWith('_');
}
