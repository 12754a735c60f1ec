import { EmbeddedBroker } from 'escapement/tasks';
import { expect, test } from 'vitest';

test.each([[], [{ maxArchived: 1 }]])('new EmbeddedBroker(%j) throws, and names open', (...args) => {
  const Constructor = EmbeddedBroker as unknown as new (...args: unknown[]) => EmbeddedBroker;
  expect(() => new Constructor(...args)).toThrow(
    expect.objectContaining({
      name: 'TypeError',
      code: 'ERR_ILLEGAL_CONSTRUCTOR',
      message: 'EmbeddedBroker has no public constructor. Use await EmbeddedBroker.open({ … })',
    }),
  );
});
