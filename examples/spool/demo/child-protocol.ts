/** What a parent tells its children: to finish what they do, or to leave it as it is. */
export type Order = 'finish' | 'abort';

/** The options of this process. They come as its only argument. */
export function optionsOfChild(): unknown {
  return JSON.parse(process.argv[2] ?? 'null') as unknown;
}

/** Tells the parent, if there is one. */
export function report(message: object): void {
  if (process.connected) process.send?.(message);
}

/** Calls back at an order, and keeps the process alive until `hangUp`. A parent that is gone wants nothing to go on. */
export function onOrder(obey: (order: Order) => void): void {
  process.on('message', obey);
  process.on('disconnect', () => {
    obey('abort');
  });
  if (!process.connected) obey('abort');
  // Whether Ctrl-C gets here depends on the platform; either way the parent decides what it means.
  process.on('SIGINT', () => undefined);
}

/** Nothing is to be reported any more. */
export function hangUp(): void {
  if (process.connected) process.disconnect();
}
