/** Callers that each wait for their put before they begin the next one. */
import { performance } from 'node:perf_hooks';
import type { MessageStore } from './message-store.ts';
import { newMessage, renumber } from './messages.ts';

/** Puts the messages `from` up to `to`. @param latenciesMs - how long each put took, by its place among them. */
export async function putAll(
  store: MessageStore,
  from: number,
  to: number,
  callers: number,
  latenciesMs?: Float64Array,
): Promise<void> {
  let next = from;
  const call = async (): Promise<void> => {
    const message = newMessage();
    while (next < to) {
      const number = next++;
      renumber(message, number);
      const startMs = performance.now();
      await store.put(message);
      if (latenciesMs !== undefined) latenciesMs[number - from] = performance.now() - startMs;
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
}
