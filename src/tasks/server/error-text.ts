import { inspect } from 'node:util';

/** Longest error that is kept with a task, in characters: it is stored, and shown in tables. */
const MOST_CHARACTERS = 8_192;

/** What is kept of whatever a handler has thrown: never blank, well-formed Unicode, and of bounded length. */
export function errorText(error: unknown): string {
  const text = describe(error);
  const cut = text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
  return cut.toWellFormed();
}

/** Whatever was thrown may throw again when it is looked at. */
function describe(error: unknown): string {
  try {
    if (typeof error === 'string' && error.trim() !== '') return error;
    if (!(error instanceof Error)) return `thrown: ${inspect(error, { depth: 1 })}`;
    const { message, name } = error as { message: unknown; name: unknown };
    if (typeof message === 'string' && message.trim() !== '') return message;
    return typeof name === 'string' && name.trim() !== '' ? name : 'an error that says nothing';
  } catch {
    return 'an error that cannot be shown';
  }
}
