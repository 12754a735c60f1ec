/** The command line asked for something that cannot be: message on stderr, exit code 2, nothing measured. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
