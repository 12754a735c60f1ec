import { rmSync } from 'node:fs';
import { afterAll } from 'vitest';
import { describeBothDirections } from './both-directions.ts';
import { buildDriver, openerOf } from './go-diskqueue.ts';

const { folder, program } = buildDriver();

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describeBothDirections('go-diskqueue', openerOf(program));
