/** Whether it is what Node's own functions reject with when their signal fires. */
export function isAbortError(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
