import { rmSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { describeBothDirections, filesAfterOperations } from './both-directions.ts';
import { buildDriver, openerOf } from './go-diskqueue.ts';

const { folder, program } = buildDriver();

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describeBothDirections('go-diskqueue', openerOf(program));

it('the files of go-diskqueue are those of the golden file, with which tests compare where Go is not', async () => {
  const files = await filesAfterOperations(openerOf(program));
  const golden = '../../diskqueue/golden/go-diskqueue-1.1.0.json';
  await expect(`${JSON.stringify(files, undefined, 2)}\n`).toMatchFileSnapshot(golden);
});
