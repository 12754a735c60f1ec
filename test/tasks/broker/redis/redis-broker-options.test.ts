import { EmbeddedBroker, Server, type ServerOptions } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { expect, test } from 'vitest';

test('leaseThread is an option of the Redis broker, and must be a boolean', () => {
  expect(() => new RedisBroker({ url: 'redis://localhost:1', leaseThread: 'no' as never })).toThrow(
    "options.leaseThread must be a boolean. Received 'no'",
  );
});

test('leaseThread is not an option of a server', async () => {
  const broker = await EmbeddedBroker.open();
  expect(() => new Server({ broker, leaseThread: false } as ServerOptions)).toThrow(/leaseThread/);
});
