import type { Clock } from './clock.ts';
import { requireMethods } from './validate.ts';

const METHODS: readonly (keyof Clock)[] = ['now', 'wallNow', 'setTimeout'];

export function requireClock(argument: string, value: unknown): void {
  requireMethods(argument, 'a Clock with now, wallNow and setTimeout', METHODS, value);
}
