/** The keys of the cases: names of pods, as a controller has them. */

/** As many as a controller of a large cluster sees again and again. */
export const DISTINCT = 10_000;

let made: readonly string[] = [];

/** The first `count` keys. The strings are the same ones for every contestant. */
export function keysUpTo(count: number): readonly string[] {
  // A template makes a string of two halves, which is put together when it is first looked for in a map: by whoever
  // is first. What comes out of a parser is in one piece.
  if (made.length < count) made = JSON.parse(JSON.stringify(newKeys(count))) as string[];
  return made.slice(0, count);
}

/** Keys that nobody has seen before, as a template makes them. */
export function newKeys(count: number): string[] {
  return Array.from({ length: count }, (_, number) => `default/pod-${number}`);
}

/** Lets go of them: a million is 40 MB. */
export function dropKeys(): void {
  made = [];
}
