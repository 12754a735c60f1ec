import { inspect } from 'node:util';

/** Longest error that is stored with a task, in characters: it is shown in tables. */
const MOST_CHARACTERS = 8_192;

/** Returns the text that is stored for a thrown value: never blank, well-formed Unicode, and of bounded length. */
export function errorText(error: unknown): string {
  const text = describe(error);
  const cut = text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
  return cut.toWellFormed();
}

/** A thrown value may itself throw when its properties are read. */
function describe(error: unknown): string {
  try {
    if (typeof error === 'string' && error.trim() !== '') return error;
    if (!(error instanceof Error)) return `thrown: ${inspect(error, { depth: 1 })}`;
    const { message, name } = error as { message: unknown; name: unknown };
    if (typeof message === 'string' && message.trim() !== '') return message;
    return typeof name === 'string' && name.trim() !== '' ? name : 'unknown error';
  } catch {
    return 'unknown error: it cannot be read';
  }
}
