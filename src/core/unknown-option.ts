import { cutShort, withCode, type ArgumentError } from './errors.ts';

/** A message that lists more names than this is not read. */
const MAX_LISTED = 8;

/** A third of the longest name of an option, in letters. */
const MAX_EDITS = 9;

/** The error for a key that is not an option: it names the option that is most like it, or lists all if they are few. */
export function unknownOption(argument: string, key: string, names: readonly string[]): ArgumentError {
  const nearest = nearestTo(key.toLowerCase(), names);
  let advice = '';
  if (nearest !== undefined) advice = `. Did you mean ${nearest}?`;
  else if (names.length <= MAX_LISTED) advice = `. Known options: ${names.join(', ')}`;
  return withCode(
    new TypeError(`${argument}.${cutShort(key)} is not an option${advice}`),
    'ERR_UNKNOWN_OPTION',
  );
}

/** The name that the fewest edits make from a key, letter case aside; undefined if it takes too many. */
function nearestTo(key: string, names: readonly string[]): string | undefined {
  let nearest: string | undefined;
  for (let edits = 0; edits <= MAX_EDITS && nearest === undefined; edits++) {
    nearest = names.find(
      (name) =>
        edits < name.length &&
        edits <= Math.max(2, Math.ceil(name.length / 3)) &&
        areWithin(edits, key, name.toLowerCase()),
    );
  }
  return nearest;
}

/** Whether inserting, deleting or replacing at most so many letters makes one text from the other. */
function areWithin(edits: number, a: string, b: string): boolean {
  if (edits < 0) return false;
  if (a === '' || b === '') return a.length + b.length <= edits;
  const restOfA = a.slice(1);
  const restOfB = b.slice(1);
  if (a.startsWith(b.charAt(0))) return areWithin(edits, restOfA, restOfB);
  return (
    areWithin(edits - 1, restOfA, restOfB) ||
    areWithin(edits - 1, restOfA, b) ||
    areWithin(edits - 1, a, restOfB)
  );
}
