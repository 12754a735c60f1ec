/** Whoever sits at the terminal has pressed Ctrl-C. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Does something that Ctrl-C can stop, once; the next one ends the process at once. */
export async function interruptible<R>(action: (signal: AbortSignal) => Promise<R>): Promise<R> {
  const controller = new AbortController();
  const interrupt = (): void => {
    controller.abort(new Interrupted('interrupted'));
  };
  process.once('SIGINT', interrupt);
  try {
    return await action(controller.signal);
  } finally {
    process.off('SIGINT', interrupt);
  }
}
