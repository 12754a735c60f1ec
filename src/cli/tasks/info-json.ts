import { utcDay } from '../../core/units.ts';
import type { Content, ServerView } from '../../tasks/http/asynqmon-json.ts';
import type { DailyStats } from '../../tasks/inspector-info.ts';
import { bytesJson } from '../../tasks/show-bytes.ts';

/** Fields with bytes of users. */
const CONTENTS: readonly string[] = ['payload', 'taskPayload', 'result'];

/**
 * Returns an info as `--json` prints it. The names are those of the info; a time is text in RFC 3339, and undefined is null. A field
 * that the target does not have is left out.
 */
export function infoJson(info: object): Record<string, unknown> {
  const fields = Object.entries(info).map(([name, value]: [string, unknown]) =>
    CONTENTS.includes(name) ? contentJson(name, value as Content | undefined) : { [name]: value ?? null },
  );
  return Object.assign({}, ...fields) as Record<string, unknown>;
}

export function serverJson(server: ServerView): object {
  return { ...infoJson(server), activeWorkers: server.activeWorkers.map(infoJson) };
}

export function dayJson({ date, processed, failed }: DailyStats): object {
  return { date: utcDay(date.getTime()), processed, failed };
}

/** `shown` is the text of the HTTP API. */
function contentJson(name: string, content: Content | undefined): object {
  const encoding = `${name}Encoding`;
  if (content === undefined) return { [name]: null, [encoding]: null };
  if (content instanceof Uint8Array) return bytesJson(name, content);
  return { [name]: content.shown, [encoding]: 'shown' };
}
