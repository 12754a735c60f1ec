type Globals = typeof globalThis;

/**
 * Returns a global of the host, also if a fake has taken its place before this module is loaded (jest's `enableGlobally`, for example).
 *
 * The fake timers of sinon, which are those of vitest and jest, refer to their clock, and that has what they replace under the same name
 * after an underscore. Where the host has a getter, so has the clock, and it may accept no other receiver than the global object.
 */
export function ofHost<Name extends keyof Globals>(name: Name): Globals[Name] {
  const current = globalThis[name];
  const fakeClock = (current as { readonly clock?: object } | undefined)?.clock ?? {};
  const replaced = Reflect.get(fakeClock, `_${name}`, globalThis) as Globals[Name] | undefined;
  return replaced ?? current;
}
