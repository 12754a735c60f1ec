const MARK = '# Rendered from ';

/**
 * JSON as lines of settings, sorted: `{ "server": { "port": 80 } }` is `server.port = 80`.
 *
 * @throws SyntaxError - it is not JSON, or no object.
 */
export function renderSettings(key: string, json: string): string {
  const settings: unknown = JSON.parse(json);
  if (!isBranch(settings)) throw new SyntaxError('settings must be an object');
  const lines = linesOf(settings, '').sort();
  return `${MARK}${key}: what is changed here will be overwritten.\n${lines.map((line) => `${line}\n`).join('')}`;
}

/** Whether a file was written by this controller. Others are neither overwritten nor removed. */
export function isRendered(text: string): boolean {
  return text.startsWith(MARK);
}

function linesOf(branch: object, prefix: string): string[] {
  return Object.entries(branch).flatMap(([name, value]: [string, unknown]) =>
    isBranch(value) ? linesOf(value, `${prefix}${name}.`) : [`${prefix}${name} = ${JSON.stringify(value)}`],
  );
}

function isBranch(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
