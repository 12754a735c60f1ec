import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHECKS } from './checks.ts';
import { RUNTIMES, sleepInRequests, Workspace } from './runtimes.ts';

let workspace: Workspace;
beforeAll(async () => {
  workspace = await Workspace.create();
});
afterAll(() => workspace.remove());

describe.each(RUNTIMES)('in $name', (runtime) => {
  test(
    'every check of the timer, the drop-in, the purgatory and the work queue passes',
    { timeout: 120_000 },
    async () => {
      const results = await runtime.run(workspace, runtime.features);
      expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
      expect(results.map(({ name }) => name)).toEqual(Object.keys(CHECKS));
    },
  );
});

test.each([false, true])(
  'each of several requests of a Cloudflare Worker has its timeouts, also after another request has ended (nodejs_compat: %s)',
  async (asyncContext) => {
    const paths = await sleepInRequests(workspace, { asyncContext }, [40, 120, 80]);
    expect(paths).toEqual(['/40', '/120', '/80']);
  },
);
