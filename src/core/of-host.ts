type Globals = typeof globalThis;

/**
 * Returns a global of the host, also if a fake has taken its place before this module is loaded (jest's `enableGlobally`, for example).
 *
 * The fake timers of sinon, which are those of vitest and jest, refer to their clock, and that has what they replace under the same name
 * after an underscore.
 */
export function ofHost<Name extends keyof Globals>(name: Name): Globals[Name] {
  const current = globalThis[name];
  const clock = (current as { readonly clock?: object } | undefined)?.clock; // browsers have no setImmediate
  const replaced = `_${name}`;
  if (clock === undefined || !(replaced in clock)) return current;
  // Where the host has a getter, so has the clock, and it may accept no other receiver than the global object.
  return Reflect.get(clock, replaced, globalThis) as Globals[Name];
}
