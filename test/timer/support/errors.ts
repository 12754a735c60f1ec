/** The error that `action` throws; fails if it throws none. */
export function thrownBy(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error('expected it to throw');
}

/** A function that throws `error` whenever it is called. */
export function throwing(error: unknown): () => never {
  return () => {
    throw error;
  };
}
