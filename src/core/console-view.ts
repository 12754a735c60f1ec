/** The name of the method whose result `console.log` prints in place of an object, in Node, Deno and Bun. */
export const CONSOLE_VIEW: unique symbol = Symbol.for('nodejs.util.inspect.custom');

/**
 * Returns what a console prints in place of an object: its public fields, and those that `read` returns, under the name of
 * its class. Fields that are undefined, and own fields whose names begin with an underscore, are left out.
 *
 * WHY an object and not text: the console formats it as any other, with its depth, colours and line length.
 */
export function consoleView(object: object, read: () => object): object {
  const fields: Record<string, unknown> = { ...object };
  try {
    Object.assign(fields, read());
  } catch {
    // A proxy or a mock has no private fields, and a getter of a subclass may throw: printing must not.
  }
  const name = nameOf(object.constructor);
  const View = { [name]: class {} }[name] as new () => Record<string, unknown>; // eslint-disable-line @typescript-eslint/no-extraneous-class -- a name is all it has
  const view = new View();
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined && !key.startsWith('_')) view[key] = value;
  }
  return view;
}

/** An anonymous subclass is printed under the name of the class that it extends. */
function nameOf(type: object & { readonly name?: string }): string {
  return type.name || nameOf(Object.getPrototypeOf(type) as object); // eslint-disable-line @typescript-eslint/prefer-nullish-coalescing -- it may be empty
}
