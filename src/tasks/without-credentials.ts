/**
 * Returns a URL for messages, without the credentials in it. Everything before the last `@` may be part of a password that was not
 * encoded, and some clients accept a password in the query.
 */
export function withoutCredentials(url: string | URL): string {
  return String(url)
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/isu, '$1***@')
    .replace(/(password=)[^&#]*/giu, '$1***');
}
