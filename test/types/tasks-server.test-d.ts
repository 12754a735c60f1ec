import { defineTask, ServeMux, Server } from 'escapement/tasks';
import type { Broker, Handler, Middleware, ReceivedTask, TaskContext } from 'escapement/tasks';
import { expectTypeOf, test } from 'vitest';
import * as z from 'zod';

declare const broker: Broker;

test('the data of a task type is what its schema makes of the payload', () => {
  const resize = defineTask('image:resize', { schema: z.object({ width: z.string().transform(Number) }) });
  new ServeMux().handle(resize, (task, context) => {
    expectTypeOf(task).toEqualTypeOf<ReceivedTask<{ width: number }>>();
    expectTypeOf(context).toEqualTypeOf<TaskContext>();
  });
});

test('the data of a task that a pattern matches is unknown', () => {
  new ServeMux().handle('image:', (task) => {
    expectTypeOf(task.data).toBeUnknown();
    expectTypeOf(task.json<{ a: 1 }>()).toEqualTypeOf<{ a: 1 }>();
  });
});

test('middleware takes a handler and returns one', () => {
  const logged: Middleware = (next) => (task, context) => next(task, context);
  expectTypeOf(logged).returns.toEqualTypeOf<Handler>();
});

test('events of a server are typed', () => {
  const server = new Server({ broker });
  server.on('retried', (event) => {
    expectTypeOf(event.retryAt).toEqualTypeOf<Date>();
    expectTypeOf(event.isFailure).toEqualTypeOf<boolean>();
  });
  server.on('cancelled', ({ outcome }) => {
    expectTypeOf(outcome).toEqualTypeOf<'retry' | 'archive' | 'delete'>();
  });
  // @ts-expect-error -- there is no such event
  server.on('finished', () => undefined);
});
