/** What a command ends with; a shell tells them apart. */
export const EXIT_CODES = {
  /** All is well. */
  ok: 0,
  /** It was done, and there is something to be known about: damage, or a loss. */
  problems: 1,
  /** It could not be done: wrong usage, or what it needs cannot be read. */
  failed: 2,
  /** By whoever sits at the terminal: 128 and the number of the signal, as shells have it. */
  interrupted: 130,
  /** By a signal that ends programs. */
  terminated: 143,
} as const;
