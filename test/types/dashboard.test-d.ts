import { expectTypeOf, test } from 'vitest';
import type { Access, DashboardAction, DashboardOptions } from 'escapement/dashboard';

test('authorize may return actions that are read from a configuration, which are strings', () => {
  expectTypeOf<{ actions: string[] }>().toExtend<Access>();
  expectTypeOf<{ actions: DashboardAction[] }>().toExtend<Access>();
  expectTypeOf<() => Promise<{ actions: string[] }>>().toExtend<NonNullable<DashboardOptions['authorize']>>();
});

test('authorize returns nothing else', () => {
  expectTypeOf<'read'>().not.toExtend<Access>();
  expectTypeOf<undefined>().not.toExtend<Access>();
  expectTypeOf<{ actions: number[] }>().not.toExtend<Access>();
});
