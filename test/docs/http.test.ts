import { expect, test } from 'vitest';
import { asynqmonRoutes } from '../../src/tasks/http/asynqmon-routes.ts';
import { read } from './read.ts';

/** Requests whose routes are made from the options of the handler. */
const BY_OPTIONS = ['POST /tasks', 'GET /metrics', 'GET /redis_info'];

/** One path for the tasks in any state, except what only active ones have. */
function anyState(path: string): string {
  const inQueue = path.replace('/groups/{group}/', '/');
  return inQueue.includes('cancel') ? inQueue : inQueue.replace(/[a-z]+_tasks/, '{state}_tasks');
}

test('the page of HTTP names every request of the API, and no other', () => {
  const page = read('docs/tasks-http.md');
  const cells = [...page.matchAll(/^\| (`(?:GET|POST|DELETE) [^|]+)\|/gm)].map(([, cell = '']) => cell);
  const named = cells.flatMap((cell) => [...cell.matchAll(/`([A-Z]+ \/[^`]*)`/g)]).map(([, name]) => name);
  const routes = asynqmonRoutes.map(([method, path]) => `${method} ${anyState(path)}`);
  expect([...new Set(named)].sort()).toEqual([...new Set([...routes, ...BY_OPTIONS])].sort());
});
