import { systemClock, type Clock } from '../../core/clock.ts';

/** A response as text, or why there is none. */
export type TextResponse =
  | { readonly status: number; readonly text: string }
  | { readonly status: undefined; readonly text: string; readonly cause: unknown };

/**
 * Sends a request and reads the whole response, within a time. Never rejects.
 *
 * @param controller - ends the request when the caller aborts it. It is aborted at the end of the time, too.
 */
export async function fetchText(
  url: string,
  init: RequestInit,
  controller: AbortController,
  timeoutMs: number,
  clock: Clock = systemClock,
): Promise<TextResponse> {
  const timeout = clock.setTimeout(() => {
    controller.abort();
  }, timeoutMs);
  try {
    // A redirect would take the credentials to another server.
    const response = await fetch(url, { ...init, signal: controller.signal, redirect: 'manual' });
    return { status: response.status, text: await response.text() };
  } catch (cause) {
    const isLate = controller.signal.aborted;
    return {
      status: undefined,
      text: isLate ? `no response within ${timeoutMs} ms` : reasonOf(cause),
      cause,
    };
  } finally {
    timeout.cancel();
  }
}

/** Maximum number of characters of a response in a message. */
const SHOWN_CHARACTERS = 200;

/** Returns the first line of a response, for a message; empty for a page of HTML. */
export function firstLine(text: string): string {
  const [line = ''] = text.trimStart().split('\n');
  return line.startsWith('<') ? '' : line.trim().slice(0, SHOWN_CHARACTERS);
}

/** Returns why a `fetch` has failed: its error has the reason in its cause. */
function reasonOf(error: unknown): string {
  return messageOf((error as { cause?: unknown }).cause ?? error);
}

/** Returns the message of an error, or its code: the error of several attempts has no message. */
export function messageOf(error: unknown): string {
  const { message = '', code = '' } = error as { message?: string; code?: string };
  return message === '' ? code : message;
}
