import { expect, test } from 'vitest';
import { Serial } from '../../src/core/serial.ts';

test('serial actions run one after another, in the order they were added', async () => {
  const serial = new Serial();
  const events: string[] = [];
  const action = (name: string) => async (): Promise<string> => {
    events.push(`${name} begins`);
    await Promise.resolve();
    events.push(`${name} ends`);
    return name;
  };
  expect(await Promise.all([serial.run(action('a')), serial.run(action('b'))])).toEqual(['a', 'b']);
  expect(events).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
});

test('a serial action that rejects fails for its caller alone', async () => {
  const serial = new Serial();
  const failed = serial.run(() => Promise.reject(new Error('broken')));
  const next = serial.run(() => Promise.resolve('next'));
  await expect(failed).rejects.toThrow('broken');
  expect(await next).toBe('next');
});
