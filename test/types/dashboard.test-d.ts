import type { IncomingMessage } from 'node:http';
import { expectTypeOf, test } from 'vitest';
import type { Access, Dashboard, DashboardAction, DashboardOptions } from 'escapement/dashboard';

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

test('authorize may take the request of a framework, and may be undefined like every option', () => {
  interface FrameworkRequest extends IncomingMessage {
    readonly user?: { readonly isAdmin: boolean };
  }
  const authorize = ({ user }: FrameworkRequest) => user?.isAdmin ?? 'read-only';
  expectTypeOf<{ authorize: typeof authorize }>().toExtend<DashboardOptions>();
  expectTypeOf<Record<keyof DashboardOptions, undefined>>().toExtend<DashboardOptions>();
});

test('fetch is a function that needs no this, and not a method: a server may get it alone', () => {
  interface Served extends Request {
    readonly served: true;
  }
  // A parameter of a method may be narrower, one of a function not.
  expectTypeOf<(request: Served) => Promise<Response>>().not.toExtend<Dashboard['fetch']>();
});
