/** What JSON leaves as it is, and a terminal does not: control characters, line separators and marks of direction. */
const LEFT = /[\u007f-\u009f\u2028\u2029\p{Bidi_Control}]/gu;

/** For programs, and for people who look: does nothing to a terminal. @param indent - 0 for one line. */
export function toJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent).replace(
    LEFT,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
