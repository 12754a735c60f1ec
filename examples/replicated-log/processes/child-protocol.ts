/** What a child process reports when it listens. The parent's only message is `'stop'`. */
export interface Listening {
  readonly port: number;
}

/** Something that runs in a child process. */
export interface Service {
  listen(): Promise<number>;
  close(): Promise<void>;
}

/** Runs a service in this process until the parent says stop, or is gone. The options come as the only argument. */
export async function serve(start: (options: unknown) => Service): Promise<void> {
  const service = start(JSON.parse(process.argv[2] ?? 'null') as unknown);
  const listening = service.listen();
  let isStopping = false;
  const stop = async (): Promise<void> => {
    if (isStopping) return;
    isStopping = true;
    await listening;
    await service.close();
    if (process.connected) process.disconnect();
  };
  process.on('message', () => void stop());
  process.on('disconnect', () => void stop());
  // Whether Ctrl-C gets here depends on the platform; either way the parent decides what it means.
  process.on('SIGINT', () => undefined);
  const report: Listening = { port: await listening };
  if (process.connected) process.send?.(report);
}
