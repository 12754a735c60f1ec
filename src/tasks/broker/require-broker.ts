import { requireMethods } from '../../core/validate.ts';
import type { Broker } from './broker.ts';

const METHODS: readonly (keyof Broker)[] = ['enqueue', 'dequeue', 'complete', 'subscribe', 'queues'];

export function requireBroker(argument: string, value: unknown): asserts value is Broker {
  requireMethods(argument, 'a Broker', METHODS, value);
}
